/* Small text files of the kernel: read whole, cut or not at all; numbers, groups and start times in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base/proc.h"

static char folder[] = "/tmp/brigade-test-proc-XXXXXX";

static void put(const char *path, const char *text)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int make_folder(void **state)
{
    char sub[256];
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(sub, sizeof sub, "%s/proc", folder);
    mkdir(sub, 0700);
    snprintf(sub, sizeof sub, "%s/proc/7", folder);
    return mkdir(sub, 0700);
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"text", "proc/7/stat", NULL}, *const folders[] = {"proc/7", "proc",
                                                                                          ""};
    char path[256];
    (void)state;
    for (size_t i = 0; names[i] != NULL; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
        rmdir(path);
    }
    return 0;
}

static void reads(void **state)
{
    char text[8], long_path[8192];
    (void)state;
    put("text", "abcdefghij");
    assert_int_equal(brig_proc_read(text, sizeof text, "%s/text", folder), 7);
    assert_string_equal(text, "abcdefg");
    put("text", "abc");
    assert_int_equal(brig_proc_read(text, sizeof text, "%s/%s", folder, "text"), 3);
    assert_string_equal(text, "abc");
    put("text", "");
    assert_int_equal(brig_proc_read(text, sizeof text, "%s/text", folder), 0);
    assert_string_equal(text, "");
    memset(text, 'x', sizeof text);
    assert_int_equal(brig_proc_read(text, sizeof text, "%s/none", folder), -1);
    assert_string_equal(text, "");
    memset(text, 'x', sizeof text);
    assert_int_equal(brig_proc_read(text, sizeof text, "%s", folder),
                     -1); /* a folder opens; it cannot be read */
    assert_string_equal(text, "");
    memset(long_path, '/', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    assert_int_equal(brig_proc_read(text, sizeof text, "%s", long_path), -1);
}

static void numbers(void **state)
{
    static const char text[] = "Pss_Dirty:  5 kB\n Pss:  6 kB\nPss:\t 7 kB\nPss: 8\nwords max\n"
                               "huge 99999999999999999999\nminus -1\nlast 18446744073709551615";
    uint64_t v = 42;
    (void)state;
    assert_true(brig_proc_number(text, "Pss:", &v) && v == 7);
    assert_true(brig_proc_number(text, "last ", &v) && v == UINT64_MAX);
    assert_true(brig_proc_number("12\n13\n", "", &v) && v == 12);
    static const char *const none[] = {"words ", "huge ", "minus ", "Swap:", ""};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(brig_proc_number(text, none[i], &v));
    assert_false(brig_proc_number("", "", &v));
    assert_false(brig_proc_number("", "a", &v));
    assert_int_equal(v, 12); /* untouched by failure */
}

static void lists(void **state)
{
    static const char list[] = "cpu,cpuacct,memory";
    size_t n = strlen(list);
    (void)state;
    assert_true(brig_proc_listed(list, n, "cpu"));
    assert_true(brig_proc_listed(list, n, "cpuacct"));
    assert_true(brig_proc_listed(list, n, "memory"));
    assert_false(brig_proc_listed(list, n, "mem"));
    assert_false(brig_proc_listed(list, n, "acct"));
    assert_false(brig_proc_listed(list, n - 1, "memory")); /* not beyond its end */
    assert_false(brig_proc_listed(list, n, ""));
    assert_true(brig_proc_listed(list, 0, ""));
}

static void groups(void **state)
{
    static const char text[] = "12:cpuset:/a\n5:cpu,memory:/b:c/d\n1:name=systemd:/e\nno colon\n0::/f g";
    char path[16];
    (void)state;
    assert_true(brig_proc_group(text, "memory", path, sizeof path));
    assert_string_equal(path, "/b:c/d");
    assert_true(brig_proc_group(text, "cpuset", path, sizeof path));
    assert_string_equal(path, "/a");
    assert_true(brig_proc_group(text, "", path, sizeof path));
    assert_string_equal(path, "/f g");
    assert_false(brig_proc_group(text, "pids", path, sizeof path));
    assert_false(brig_proc_group("", "", path, sizeof path));
    assert_false(brig_proc_group(text, "memory", path, 6)); /* "/b:c/d" and its NUL need 7 */
    assert_true(brig_proc_group(text, "memory", path, 7));
}

static void start_times(void **state)
{
    uint64_t ticks = 0;
    (void)state;
    put("proc/7/stat", "7 (a) 9 (b c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n");
    assert_true(brig_proc_start_ticks(folder, 7, &ticks));
    assert_int_equal(ticks, 4711);
    put("proc/7/stat", "7 (a) S 1 2 3\n");
    assert_false(brig_proc_start_ticks(folder, 7, &ticks));
    put("proc/7/stat", "nothing of the kind\n");
    assert_false(brig_proc_start_ticks(folder, 7, &ticks));
    assert_false(brig_proc_start_ticks(folder, 8, &ticks));
    assert_int_equal(ticks, 4711);
    assert_true(brig_proc_start_ticks("", getpid(), &ticks));
    assert_true(ticks > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),  cmocka_unit_test(numbers),     cmocka_unit_test(lists),
        cmocka_unit_test(groups), cmocka_unit_test(start_times),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
