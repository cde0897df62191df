/* The probe: what is remembered and what is not believed, which way of reading is the best, what is void. */
#include "tests/unit/disk_util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <jansson.h>

#include "launcher/probe_parts.h"
#include "proto/disk/pages.h"

#define NOW 1800000000u

static struct brig_fail why;
static char cache[64], cache_file[96];

static int make_cache(void **state)
{
    (void)state;
    snprintf(cache, sizeof cache, "build/probe-test-XXXXXX");
    char *root = mkdtemp(cache) != NULL ? realpath(cache, NULL) : NULL;
    int r = root == NULL || setenv("XDG_CACHE_HOME", root, 1) != 0;
    free(root);
    snprintf(cache_file, sizeof cache_file, "%s/brigade/probe.json", cache);
    return r;
}

static int remove_cache(void **state)
{
    (void)state;
    char folder[96];
    snprintf(folder, sizeof folder, "%s/brigade", cache);
    unlink(cache_file);
    rmdir(cache_file);
    rmdir(folder);
    unlink(folder);
    return rmdir(cache);
}

static struct brig_probe_row row(const char *how, bool direct, uint32_t kib, uint32_t depth, unsigned n,
                                 double speed)
{
    struct brig_probe_row r = {.direct = direct,
                               .request_bytes = kib << 10,
                               .depth = depth,
                               .n = n,
                               .n_void = 1,
                               .bytes_s = speed,
                               .least = speed / 1.25,
                               .most = speed * 1.25,
                               .cpu_s_gb = 0.125};
    snprintf(r.how, sizeof r.how, "%s", how);
    return r;
}

static struct brig_probe example(const char *host)
{
    struct brig_probe p = {
        .memory_bytes_s = 12.5e9,
        .memory_median_bytes_s = 12e9,
        .memory_threads = 3,
        .cpus = 4,
        .load = 3.5,
        .disk_bytes_s = 1.25e9,
        .beside_memory_bytes_s = 8e9,
        .beside_disk_bytes_s = 0.75e9,
        .device = "ef53:1234 8:1",
        .disk = "sda",
        .file = "/models/a.gguf",
        .file_bytes = 5000,
        .measured_s = NOW,
        .n_rows = 2,
        .rows = {row("uring", true, 1024, 4, 9, 1.25e9), row("threads", false, 512, 8, 0, 0)}};
    snprintf(p.host, sizeof p.host, "%s", host);
    p.best = p.rows[0];
    return p;
}

static struct brig_probe question(const char *host)
{
    struct brig_probe p = {.device = "ef53:1234 8:1"};
    snprintf(p.host, sizeof p.host, "%s", host);
    return p;
}

static bool recalled(const char *host, uint64_t now_s)
{
    struct brig_probe p = question(host), before = p;
    bool good = brig_probe_recall(&p, now_s);
    if (!good)
        assert_memory_equal(&p, &before, sizeof p);
    return good;
}

static void remember(const struct brig_probe *p)
{
    if (brig_probe_remember(p, &why) != 0)
        fail_msg("%s", why.text);
}

/* More work than CPUs, or memory that was fast for moments only: used, said, and not kept; whatever the disk.
 */
static void busy_is_forgotten_soon(void)
{
    for (unsigned i = 0; i < 4; i++) {
        struct brig_probe p = example("b"), q;
        p.load = (i & 1) == 0 ? 4.1 : 4.0;
        p.memory_median_bytes_s = (i & 1) == 0 ? 12e9 : 8e9;
        if (i >= 2)
            p.best.most = 2.1 * p.best.least;
        remember(&p);
        assert_true(recalled("b", NOW + BRIG_PROBE_BUSY_AGE_S));
        assert_false(recalled("b", NOW + BRIG_PROBE_BUSY_AGE_S + 1));
        q = question("b");
        assert_true(brig_probe_recall(&q, NOW) && brig_probe_busy(&q));
        assert_non_null(strstr(q.note, "other work (load 4."));
    }
    struct brig_probe quiet = example("b"), q = question("b");
    remember(&quiet);
    assert_true(brig_probe_recall(&q, NOW + BRIG_PROBE_MAX_AGE_S) && q.note[0] == '\0');
}

static void remembered(void **state)
{
    (void)state;
    struct brig_probe a = example("a"), b = example("b"), p;
    assert_false(recalled("a", NOW));
    remember(&a);
    remember(&b);
    p = question("a");
    assert_true(brig_probe_recall(&p, NOW + 5));
    assert_true(p.remembered);
    p.remembered = false;
    assert_memory_equal(&p, &a, sizeof p);
    assert_true(recalled("b", NOW));
    assert_false(recalled("c", NOW));
    assert_true(recalled("a", NOW + BRIG_PROBE_MAX_AGE_S));
    assert_false(recalled("a", NOW + BRIG_PROBE_MAX_AGE_S + 1));
    assert_false(recalled("a", NOW - 1)); /* a clock that was set back */
    p = question("a");
    p.device[0] = 'x';
    assert_false(brig_probe_recall(&p, NOW));
    p = b; /* a disk that is slow and fast by turns: not for long, and said */
    p.best.most = 2.1 * p.best.least;
    p.note[0] = '\0';
    remember(&p);
    assert_true(recalled("b", NOW + BRIG_PROBE_NOISY_AGE_S));
    assert_false(recalled("b", NOW + BRIG_PROBE_NOISY_AGE_S + 1));
    p = question("b");
    assert_true(brig_probe_recall(&p, NOW));
    assert_non_null(strstr(p.note, "other work"));
    busy_is_forgotten_soon();
    a.disk_bytes_s = 7e8; /* the newer of one machine and disk takes the place of the older */
    remember(&a);
    p = question("a");
    assert_true(brig_probe_recall(&p, NOW) && p.disk_bytes_s == 7e8);
    assert_true(recalled("b", NOW));
    json_t *root = json_load_file(cache_file, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(root, "probes")), 2);
    json_decref(root);
}

/* An entry with one thing wrong. */
static void distrusted(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value; /* NULL: the key is missing */
        bool of_row;
    } wrong[] = {
        {"measured_s", "-1", false},
        {"measured_s", "1e9", false},
        {"memory_bytes_s", "0", false},
        {"memory_bytes_s", "1e300", false},
        {"memory_bytes_s", "\"1\"", false},
        {"memory_threads", "0", false},
        {"memory_median_bytes_s", NULL, false},
        {"load", "-1", false},
        {"load", NULL, false},
        {"cpus", "0", false},
        {"disk_bytes_s", "null", false},
        {"beside_disk_bytes_s", NULL, false},
        {"beside_memory_bytes_s", "-1", false},
        {"disk_bytes_s", "-5", false},
        {"disk_bytes_s", NULL, false},
        {"file_bytes", "0", false},
        {"rows", "[{}]", false},
        {"best", "null", false},
        {"reader", "\"magic\"", true},
        {"reader", "3", true},
        {"depth", "0", true},
        {"depth", "65", true},
        {"request_bytes", "4095", true},
        {"request_bytes", "1e99", true},
        {"request_bytes", NULL, true},
        {"bytes_s", "-1", true},
        {"cpu_s_gb", NULL, true},
        {"samples", "-1", true},
        {"disk", NULL, false},
        {"file", "[]", false},
        {"host", "7", false},
        {"note", "1", false},
    };
    struct brig_probe a = example("a");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        remember(&a);
        assert_true(recalled("a", NOW));
        json_t *root = json_load_file(cache_file, 0, NULL);
        json_t *o = json_array_get(json_object_get(root, "probes"), 0);
        o = wrong[i].of_row ? json_object_get(o, "best") : o;
        assert_non_null(o);
        if (wrong[i].value == NULL)
            assert_int_equal(json_object_del(o, wrong[i].key), 0);
        else
            json_object_set_new(o, wrong[i].key, json_loads(wrong[i].value, JSON_DECODE_ANY, NULL));
        assert_int_equal(json_dump_file(root, cache_file, 0), 0);
        json_decref(root);
        if (recalled("a", NOW))
            fail_msg("%s %s was believed", wrong[i].key,
                     wrong[i].value != NULL ? wrong[i].value : "(missing)");
    }
}

/* Whole files that are no such file: not believed, and replaced. */
static void nonsense(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "null",
                                        "{\"schema\":1}",
                                        "{\"schema\":2,\"probes\":[]}",
                                        "{\"schema\":1,\"probes\":{}}",
                                        "{\"schema\":1,\"probes\":[1,null,[]]}"};
    struct brig_probe a = example("a");
    remember(&a);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *f = fopen(cache_file, "w");
        assert_non_null(f);
        fputs(texts[i], f);
        fclose(f);
        assert_false(recalled("a", NOW));
        remember(&a);
        assert_true(recalled("a", NOW));
    }
    unlink(cache_file);
    assert_int_equal(mkdir(cache_file, 0700), 0);
    assert_false(recalled("a", NOW));
    assert_true(brig_probe_remember(&a, &why) < 0);
    assert_non_null(strstr(why.text, "probe.json"));
    rmdir(cache_file);
    char folder[96];
    snprintf(folder, sizeof folder, "%s/brigade", cache);
    assert_int_equal(rmdir(folder), 0); /* nothing temporary is left in it */
    int fd = open(folder, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_false(recalled("a", NOW));
    assert_true(brig_probe_remember(&a, &why) < 0);
}

static void best(void **state)
{
    (void)state;
    struct brig_probe p = {
        .n_rows = 6,
        .rows = {row("uring", true, 8192, 2, 10, 1.00e9), row("uring", true, 1024, 4, 10, 0.97e9),
                 row("threads", false, 256, 1, 10, 1.21e9), row("uring", true, 512, 1, 5, 9e9),
                 row("threads", true, 256, 8, 0, 0), row("uring", true, 256, 1, 10, 0.9e9)}};
    assert_ptr_equal(brig_probe_best(&p), &p.rows[0]); /* luck does not count */
    p.rows[1].bytes_s = 1.04e9;
    assert_ptr_equal(brig_probe_best(&p), &p.rows[0]); /* near the best direct, more in flight */
    p.rows[1].bytes_s = 1.1e9;
    assert_ptr_equal(brig_probe_best(&p), &p.rows[1]);
    p.rows[1].bytes_s = 0.97e9;
    p.rows[2].bytes_s = 1.3e9;
    assert_ptr_equal(brig_probe_best(&p), &p.rows[2]); /* much faster, whatever it takes of the CPUs */
    p.rows[3].n = 10;
    assert_ptr_equal(brig_probe_best(&p), &p.rows[3]);
    for (unsigned i = 0; i < 6; i++)
        p.rows[i].n = i == 2;
    assert_ptr_equal(brig_probe_best(&p), &p.rows[2]);
    p.rows[2].n = 0;
    assert_null(brig_probe_best(&p));
}

/* ---- with a disk ---- */

static struct brig_probe measured(const char *path)
{
    struct brig_probe p;
    const struct brig_probe_opts o = {.budget_ms = 60, .threads = 1};
    if (brig_probe_cached(&p, path, &o, &why) != 0)
        fail_msg("%s", why.text);
    return p;
}

static bool in_memory(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == 0x01021994;
}

/* A small file gives a figure that is called rough and never remembered; a larger one is remembered. */
static void small_and_large(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 5000, 3 << 20, 65 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct brig_disk_file f = disk_file(sizes[i], false);
        if (in_memory(f.fd)) {
            print_message("skipped: the build lies in memory\n");
            disk_file_done(&f);
            return;
        }
        struct brig_probe p = measured(f.name);
        assert_true(p.disk_bytes_s > 0 && p.memory_bytes_s > 1e6 && p.memory_threads == 1);
        assert_true(p.best.n > 0 && p.n_rows > 0 && p.best.bytes_s == p.disk_bytes_s);
        assert_true(p.rough == (sizes[i] < 64 << 20) && !p.remembered);
        assert_string_equal(p.file, f.name);
        assert_true(p.file_bytes == sizes[i]);
        assert_true((access(cache_file, F_OK) == 0) == !p.rough);
        for (uint32_t k = 0; k < p.n_rows; k++)
            assert_true(p.rows[k].least <= p.rows[k].bytes_s && p.rows[k].bytes_s <= p.rows[k].most &&
                        p.rows[k].cpu_s_gb >= 0);
        if (!p.rough) {
            struct brig_probe again = measured(f.name);
            assert_true(again.remembered && again.disk_bytes_s == p.disk_bytes_s);
            struct brig_probe_opts o = {.budget_ms = 60, .threads = 2};
            assert_int_equal(brig_probe_cached(&again, f.name, &o, &why), 0);
            assert_true(!again.remembered &&
                        again.memory_threads == 2); /* of other threads nothing is known */
        }
        disk_file_done(&f);
    }
}

/* Pages that stay in memory answer buffered reads: those figures are void, and only those. */
static void answered_by_memory(void **state)
{
    (void)state;
    struct brig_disk_file f = disk_file(2 << 20, false);
    void *map = mmap(NULL, 2 << 20, PROT_READ, MAP_SHARED | MAP_POPULATE, f.fd, 0);
    assert_true(map != MAP_FAILED);
    if (in_memory(f.fd) || mlock(map, 2 << 20) != 0) {
        print_message("skipped: nothing can be locked here\n");
    } else {
        struct brig_probe p = measured(f.name);
        unsigned n_buffered = 0;
        for (uint32_t i = 0; i < p.n_rows; i++) {
            assert_true(p.rows[i].direct ? p.rows[i].n > 0 : p.rows[i].n == 0 && p.rows[i].n_void > 0);
            n_buffered += !p.rows[i].direct;
        }
        assert_true(n_buffered > 0);
        assert_true(p.best.n == 0 || p.best.direct);
        assert_true(p.disk_bytes_s > 0 || strstr(p.why, "page cache") != NULL);
    }
    munmap(map, 2 << 20);
    disk_file_done(&f);
}

/* A folder's largest file is read. */
static void folders(void **state)
{
    (void)state;
    struct brig_disk_file f = disk_file(70000, false);
    char path[128], small[128], folder[96];
    snprintf(folder, sizeof folder, "%s/folder", cache);
    snprintf(path, sizeof path, "%s/large", folder);
    snprintf(small, sizeof small, "%s/small", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    struct brig_probe p;
    assert_int_equal(brig_probe_cached(&p, folder, NULL, &why), -BRIG_EIO);
    assert_non_null(strstr(why.text, folder));
    assert_int_equal(link(f.name, path), 0);
    int fd = open(small, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0 && write(fd, "x", 1) == 1);
    close(fd);
    p = measured(folder);
    assert_string_equal(p.file, path);
    unlink(small);
    unlink(path);
    rmdir(folder);
    disk_file_done(&f);
}

static void refusals(void **state)
{
    (void)state;
    struct brig_probe p;
    struct brig_disk_file f = disk_file(100000, false);
    static const volatile sig_atomic_t yes = 2;
    const struct brig_probe_opts stop = {.budget_ms = 60, .threads = 1, .cancel = &yes};
    assert_int_equal(brig_probe_cached(&p, "build/no-such-file", NULL, &why), -BRIG_EIO);
    assert_non_null(strstr(why.text, "build/no-such-file"));
    if (!in_memory(f.fd))
        assert_int_equal(brig_probe_cached(&p, f.name, &stop, &why), -BRIG_ECANCELLED);
    disk_truncate(&f, 0);
    assert_int_equal(brig_probe_cached(&p, f.name, NULL, &why), -BRIG_EIO);
    assert_non_null(strstr(why.text, "empty"));
    disk_file_done(&f);
    p = measured(NULL); /* the memory alone */
    assert_true(p.memory_bytes_s > 0 && p.disk_bytes_s == 0 && p.why[0] != '\0');
}

/* Where there is no disk there is no figure. */
static void no_disk(void **state)
{
    (void)state;
    char path[] = "/dev/shm/test-probe-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || !in_memory(fd)) {
        print_message("skipped: /dev/shm is no tmpfs\n");
    } else {
        assert_true(write(fd, "abc", 3) == 3);
        struct brig_probe p = measured(path);
        assert_true(p.disk_bytes_s == 0 && strstr(p.why, "tmpfs") != NULL && p.memory_bytes_s > 0);
    }
    if (fd >= 0) {
        unlink(path);
        close(fd);
    }
}

#define WITH_CACHE(test) cmocka_unit_test_setup_teardown(test, make_cache, remove_cache)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CACHE(remembered), WITH_CACHE(distrusted),      WITH_CACHE(nonsense),
        cmocka_unit_test(best), WITH_CACHE(small_and_large), WITH_CACHE(answered_by_memory),
        WITH_CACHE(folders),    WITH_CACHE(refusals),        WITH_CACHE(no_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
