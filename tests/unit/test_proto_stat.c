/* Samples, percentiles, memory figures and the trace writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "proto/base/err.h"
#include "proto/base/mem.h"
#include "proto/stat/stat.h"
#include "proto/stat/trace.h"

static void samples_keep_the_newest(void **state)
{
    (void)state;
    struct brig_samples s;
    assert_int_equal(brig_samples_init(&s, 3), 0);
    assert_int_equal(s.n, 0);
    for (uint64_t i = 1; i <= 5; i++)
        brig_samples_add(&s, i);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.v[0] + s.v[1] + s.v[2], 3 + 4 + 5);
    brig_samples_release(&s);
    brig_samples_add(&s, 1);
    assert_int_equal(s.n, 0);
}

static void percentile_is_nearest_rank(void **state)
{
    (void)state;
    const uint64_t v[] = {50, 15, 40, 20, 35};
    assert_int_equal(brig_percentile(v, 0, 50), 0);
    assert_int_equal(brig_percentile(v, 1, 99), 50);
    assert_int_equal(brig_percentile(v, 5, 0), 15);
    assert_int_equal(brig_percentile(v, 5, 5), 15);
    assert_int_equal(brig_percentile(v, 5, 30), 20);
    assert_int_equal(brig_percentile(v, 5, 40), 20);
    assert_int_equal(brig_percentile(v, 5, 50), 35);
    assert_int_equal(brig_percentile(v, 5, 100), 50);
    assert_int_equal(v[0], 50); /* untouched */
}

/* Where files lie in memory nothing is fetched: that is said, and not passed over. */
static void reading_from_storage_is_counted(void **state)
{
    (void)state;
    enum { N = 4 << 20 };
    char name[] = "stat-test-XXXXXX";
    struct statfs fs;
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    char *bytes = brig_alloc(N, 1);
    assert_non_null(bytes);
    assert_int_equal(write(fd, bytes, N), N);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    uint64_t before = brig_disk_read_bytes(getpid());
    assert_int_equal(pread(fd, bytes, N, 0), N);
    uint64_t read = brig_disk_read_bytes(getpid()) - before;
    assert_int_equal(fstatfs(fd, &fs), 0);
    close(fd);
    brig_free(bytes);
    assert_int_equal(brig_disk_read_bytes(-1), 0);
    if (fs.f_type == TMPFS_MAGIC) {
        print_message("files lie in memory here: nothing to count\n");
        skip();
    }
    assert_true(read >= N);
}

static void pss_is_of_this_process(void **state)
{
    (void)state;
    uint64_t before = brig_pss_bytes();
    if (access("/proc/self/smaps_rollup", R_OK) != 0)
        skip();
    assert_true(before > 100000);
    const size_t n = 64u << 20;
    char *p = brig_alloc(n, 1); /* zeroed, so every page is there */
    assert_non_null(p);
    assert_true(brig_pss_bytes() > before + n / 2);
    brig_free(p);
}

static void pss_allocates_nothing(void **state)
{
    (void)state;
    uint64_t n = brig_alloc_count();
    brig_pss_bytes();
    brig_cgroup_peak_bytes();
    assert_int_equal(brig_alloc_count(), n);
}

static void trace_is_json_with_tracks_and_events(void **state)
{
    (void)state;
    char path[] = "/tmp/brigade-trace-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct brig_fail fail;
    struct brig_trace *t = NULL;
    assert_int_equal(brig_trace_open(&t, path, &fail), 0);
    brig_trace_track(t, 0, "driver");
    brig_trace_track(t, 1, "shard \"0\" \\ \x01\xff");
    brig_trace_event(t, 1, "frame", 12345678, 1002, 7, 3);
    assert_int_equal(brig_trace_close(t, &fail), 0);

    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    json_t *events = json_object_get(root, "traceEvents");
    assert_int_equal(json_array_size(events), 5);
    json_t *named = json_object_get(json_array_get(events, 2), "args");
    assert_string_equal(json_string_value(json_object_get(named, "name")), "shard \"0\" \\ \x01\xc3\xbf");
    json_t *e = json_array_get(events, 4);
    assert_string_equal(json_string_value(json_object_get(e, "ph")), "X");
    assert_int_equal(json_integer_value(json_object_get(e, "pid")), 1);
    assert_float_equal(json_real_value(json_object_get(e, "ts")), 12345.678, 1e-6);
    assert_float_equal(json_real_value(json_object_get(e, "dur")), 1.002, 1e-9);
    json_t *args = json_object_get(e, "args");
    assert_int_equal(json_integer_value(json_object_get(args, "frame")), 7);
    assert_int_equal(json_integer_value(json_object_get(args, "rows")), 3);
    json_decref(root);
    unlink(path);
}

static void an_empty_trace_is_json_too(void **state)
{
    (void)state;
    char path[] = "/tmp/brigade-trace-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct brig_fail fail;
    struct brig_trace *t = NULL;
    assert_int_equal(brig_trace_open(&t, path, &fail), 0);
    assert_int_equal(brig_trace_close(t, &fail), 0);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_array_size(json_object_get(root, "traceEvents")), 0);
    json_decref(root);
    unlink(path);
}

static void a_trace_that_cannot_be_written_fails_at_open(void **state)
{
    (void)state;
    struct brig_fail fail;
    struct brig_trace *t = NULL;
    assert_int_equal(brig_trace_open(&t, "/nonexistent/folder/trace.json", &fail), -BRIG_EIO);
    assert_non_null(strstr(fail.text, "/nonexistent/folder/trace.json"));
    assert_null(t);
    assert_int_equal(brig_trace_close(NULL, &fail), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_keep_the_newest),
        cmocka_unit_test(percentile_is_nearest_rank),
        cmocka_unit_test(reading_from_storage_is_counted),
        cmocka_unit_test(pss_is_of_this_process),
        cmocka_unit_test(pss_allocates_nothing),
        cmocka_unit_test(trace_is_json_with_tracks_and_events),
        cmocka_unit_test(an_empty_trace_is_json_too),
        cmocka_unit_test(a_trace_that_cannot_be_written_fails_at_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
