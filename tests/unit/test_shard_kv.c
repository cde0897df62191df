/* The KV cache: layout, growth by pages, operations, what outlives a mapping, and refusals in words. */
#include "shard_util.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CTX 4000u

static struct brig_slice slice_of(uint32_t first, uint32_t last)
{
    struct brig_slice s = {.desc = {.n_layers = 4, .n_heads = 6, .n_kv_heads = 3, .head_dim = 16},
                           .cells = {first, last}};
    memset(s.identity, 7, sizeof s.identity);
    return s;
}

static const struct brig_kv_shape SHAPE = {.slots = 3, .ctx = CTX};

/* A second descriptor of the same file: open takes the one it is given. */
static struct brig_kv *open_kv(int fd, const struct brig_slice *s, struct brig_kv_shape shape)
{
    struct brig_kv *kv;
    struct brig_fail fail;
    if (brig_kv_open(&kv, fd < 0 ? -1 : dup(fd), s, shape, &fail) < 0)
        fail_msg("%s", fail.text);
    return kv;
}

static int refused(int fd, const struct brig_slice *s, struct brig_kv_shape shape, const char *word)
{
    struct brig_kv *kv;
    struct brig_fail fail = {.text = ""};
    int r = brig_kv_open(&kv, dup(fd), s, shape, &fail);
    assert_true(r < 0);
    if (strstr(fail.text, word) == NULL)
        fail_msg("\"%s\" is not in: %s", word, fail.text);
    return -r;
}

static uint64_t allocated(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

static void reserve(struct brig_kv *kv, uint32_t slot, uint32_t pos, uint32_t count)
{
    struct brig_fail fail;
    if (brig_kv_reserve(kv, slot, pos, count, &fail) < 0)
        fail_msg("%s", fail.text);
}

static void apply(struct brig_kv *kv, enum brig_cache_op_kind kind, uint32_t slot, uint32_t arg)
{
    struct brig_fail fail;
    struct brig_cache_op op = {kind, slot, arg};
    if (brig_kv_apply(kv, &op, 1, &fail) < 0)
        fail_msg("%s", fail.text);
}

/* Fill positions [0, n) of a slot with numbers that tell every place apart, or compare them. */
static void visit(struct brig_kv *kv, uint32_t slot, uint32_t n, uint32_t salt, bool write)
{
    for (uint32_t layer = 1; layer < 3; layer++)
        for (uint32_t head = 0; head < 3; head++) {
            uint16_t *k = brig_kv_k(kv, slot, layer, head), *v = brig_kv_v(kv, slot, layer, head);
            for (uint32_t pos = 0; pos < n; pos++) {
                size_t at = pos * brig_kv_stride(kv) / sizeof *k;
                uint16_t x = (uint16_t)(salt + pos * 31 + layer * 7 + head);
                if (write) {
                    k[at] = x;
                    v[at + 15] = (uint16_t)~x;
                } else {
                    assert_int_equal(k[at], x);
                    assert_int_equal(v[at + 15], (uint16_t)~x);
                }
            }
        }
}

static void planes_do_not_overlap_and_outlive_the_mapping(void **state)
{
    (void)state;
    struct brig_slice s = slice_of(1, 3);
    int fd = memfd_create("test-kv", 0);
    struct brig_kv *kv = open_kv(fd, &s, SHAPE);
    assert_int_equal(brig_kv_stride(kv), 32);
    assert_int_equal(brig_kv_shape_of(kv).ctx, CTX);
    for (uint32_t slot = 0; slot < 3; slot++) {
        reserve(kv, slot, 0, CTX);
        visit(kv, slot, CTX, slot * 1000, true);
    }
    for (uint32_t slot = 0; slot < 3; slot++)
        visit(kv, slot, CTX, slot * 1000, false);
    brig_kv_close(kv);
    kv = open_kv(fd, &s, SHAPE);
    for (uint32_t slot = 0; slot < 3; slot++)
        visit(kv, slot, CTX, slot * 1000, false);
    brig_kv_close(kv);
    close(fd);
}

static void pages_come_and_go(void **state)
{
    (void)state;
    struct brig_slice s = slice_of(1, 3);
    int fd = memfd_create("test-kv", 0);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), planes = 2 * 2 * 3, header = page;
    uint64_t per_page = page / 32; /* positions: 16 halves each */
    struct brig_kv *kv = open_kv(fd, &s, SHAPE);
    assert_int_equal(allocated(fd), header);
    reserve(kv, 0, 0, 1);
    assert_int_equal(allocated(fd), header + planes * page);
    reserve(kv, 0, 1, (uint32_t)per_page - 1);
    assert_int_equal(allocated(fd), header + planes * page);
    reserve(kv, 0, (uint32_t)per_page, 1);
    assert_int_equal(allocated(fd), header + 2 * planes * page);
    /* a row reads all positions before its own: these get pages too */
    reserve(kv, 1, 2 * (uint32_t)per_page, 1);
    assert_int_equal(allocated(fd), header + 5 * planes * page);
    apply(kv, BRIG_CACHE_TRUNCATE, 1, 1);
    assert_int_equal(allocated(fd), header + 3 * planes * page);
    apply(kv, BRIG_CACHE_DROP, 0, 0);
    apply(kv, BRIG_CACHE_TRUNCATE, 1, 0);
    assert_int_equal(allocated(fd), header);
    brig_kv_close(kv);
    close(fd);
}

/* Rows of q8 do not fill a page evenly: one that lies in two has both, grown one position at a time. */
static void rows_may_lie_in_two_pages(void **state)
{
    (void)state;
    enum { N = 500, ROW = 36 };
    const struct brig_kv_shape shape = {.type = BRIG_KV_Q8, .slots = 2, .ctx = CTX};
    struct brig_slice s = slice_of(1, 3);
    int fd = memfd_create("test-kv", 0);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), planes = 2 * 2 * 3;
    struct brig_kv *kv = open_kv(fd, &s, shape);
    assert_int_equal(brig_kv_stride(kv), ROW);
    for (uint32_t pos = 0; pos < N; pos++) {
        reserve(kv, 1, pos, 1);
        assert_int_equal(allocated(fd), page + planes * (((pos + 1) * ROW + page - 1) / page * page));
        for (unsigned is_v = 0; is_v < 2; is_v++) {
            uint8_t *plane = is_v ? brig_kv_v(kv, 1, 2, 2) : brig_kv_k(kv, 1, 2, 2);
            memset(plane + pos * ROW, (int)(pos + is_v), ROW);
        }
    }
    apply(kv, BRIG_CACHE_TRUNCATE, 1, N - 120);
    assert_int_equal(allocated(fd), page + planes * (((N - 120) * ROW + page - 1) / page * page));
    const uint8_t *k = brig_kv_k(kv, 1, 2, 2), *v = brig_kv_v(kv, 1, 2, 2);
    for (uint32_t i = 0; i < (N - 120) * ROW; i++) {
        assert_int_equal(k[i], (uint8_t)(i / ROW));
        assert_int_equal(v[i], (uint8_t)(i / ROW + 1));
    }
    brig_kv_close(kv);
    close(fd);
}

/* A new process does not know what a slot holds; its operations still reach all of it. */
static void operations_after_reopening(void **state)
{
    (void)state;
    struct brig_slice s = slice_of(1, 3);
    int fd = memfd_create("test-kv", 0);
    struct brig_kv *kv = open_kv(fd, &s, SHAPE);
    uint64_t empty = allocated(fd);
    reserve(kv, 0, 0, 300);
    visit(kv, 0, 300, 5, true);
    reserve(kv, 2, 0, CTX);
    visit(kv, 2, CTX, 9, true);
    brig_kv_close(kv);

    kv = open_kv(fd, &s, SHAPE);
    apply(kv, BRIG_CACHE_COPY, 2, 0);
    visit(kv, 2, 300, 5, false);
    reserve(kv, 2, 300, 10);
    visit(kv, 2, 300, 5, false);
    visit(kv, 0, 300, 5, false);
    apply(kv, BRIG_CACHE_COPY, 2, 2);
    visit(kv, 2, 300, 5, false);
    apply(kv, BRIG_CACHE_TRUNCATE, 0, 100);
    visit(kv, 0, 100, 5, false);
    brig_kv_close(kv);

    kv = open_kv(fd, &s, SHAPE);
    for (uint32_t slot = 0; slot < 3; slot++)
        apply(kv, BRIG_CACHE_DROP, slot, 0);
    assert_int_equal(allocated(fd), empty);
    brig_kv_close(kv);
    close(fd);
}

static void a_header_must_match(void **state)
{
    (void)state;
    struct brig_slice s = slice_of(1, 3), other = slice_of(1, 4), stranger = slice_of(1, 3);
    struct brig_kv_shape f32 = SHAPE, longer = SHAPE;
    int fd = memfd_create("test-kv", 0);
    brig_kv_close(open_kv(fd, &s, SHAPE));
    stranger.identity[31] = 8;
    f32.type = BRIG_KV_F32;
    longer.ctx++;
    assert_int_equal(refused(fd, &other, SHAPE, "cells 1:3"), BRIG_EMISMATCH);
    assert_int_equal(refused(fd, &stranger, SHAPE, "another model"), BRIG_EMISMATCH);
    assert_int_equal(refused(fd, &s, f32, "f32"), BRIG_EMISMATCH);
    assert_int_equal(refused(fd, &s, longer, "4001"), BRIG_EMISMATCH);
    assert_int_equal(ftruncate(fd, 5000), 0);
    assert_int_equal(refused(fd, &s, SHAPE, "5000 bytes"), BRIG_EFORMAT);
    uint32_t version = 77, type = 99;
    assert_int_equal(pwrite(fd, &type, 4, 12), 4);
    assert_int_equal(refused(fd, &s, SHAPE, "in unknown"), BRIG_EMISMATCH);
    assert_int_equal(pwrite(fd, &version, 4, 8), 4);
    assert_int_equal(refused(fd, &s, SHAPE, "version 77"), BRIG_EVERSION);
    assert_int_equal(pwrite(fd, "GGUF", 4, 0), 4);
    assert_int_equal(refused(fd, &s, SHAPE, "something else"), BRIG_EFORMAT);
    close(fd);
}

static void out_of_range_is_refused(void **state)
{
    (void)state;
    struct brig_slice s = slice_of(1, 3), huge = slice_of(0, 4);
    struct brig_kv_shape big = {.type = BRIG_KV_F32, .slots = 4096, .ctx = BRIG_MAX_CTX};
    struct brig_fail fail;
    int fd = memfd_create("test-kv", 0);
    huge.desc.n_kv_heads = BRIG_MAX_HEADS;
    huge.desc.head_dim = 1u << 20;
    assert_int_equal(refused(fd, &huge, big, "1 TiB"), BRIG_ELIMIT);
    big.slots = 0;
    assert_int_equal(refused(fd, &s, big, "out of range"), BRIG_ELIMIT);
    struct brig_kv *kv = open_kv(fd, &s, SHAPE);
    const struct brig_cache_op wrong[] = {{BRIG_CACHE_DROP, 3, 0}, {BRIG_CACHE_COPY, 0, 3}, {99, 0, 0}};
    for (unsigned i = 0; i < 3; i++)
        assert_true(brig_kv_apply(kv, &wrong[i], 1, &fail) < 0);
    assert_int_equal(brig_kv_reserve(kv, 3, 0, 1, &fail), -BRIG_ELIMIT);
    assert_int_equal(brig_kv_reserve(kv, 0, CTX, 1, &fail), -BRIG_ELIMIT);
    assert_int_equal(brig_kv_reserve(kv, 0, 1, UINT32_MAX, &fail), -BRIG_ELIMIT);
    brig_kv_close(kv);
    close(fd);
}

static void a_size_limit_is_a_line_of_text(void **state)
{
    (void)state;
    struct brig_slice s = slice_of(1, 3);
    struct rlimit before, small = {.rlim_cur = 1 << 16};
    struct brig_fail fail;
    struct brig_kv *kv;
    int fd = memfd_create("test-kv", 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int r = brig_kv_open(&kv, dup(fd), &s, SHAPE, &fail);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(r, -BRIG_EIO);
    assert_non_null(strstr(fail.text, "KV cache"));

    close(fd);
}

enum { CHILD_GOOD, CHILD_WRONG, CHILD_MAY_NOT };

/* In a child: a file system of 64 KiB that nobody else sees. */
static int grow_in_a_small_file_system(void)
{
    struct brig_slice s = slice_of(1, 3);
    struct brig_fail fail = {.text = ""};
    struct brig_kv *kv;
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", "/tmp", "tmpfs", 0, "size=65536") < 0)
        return CHILD_MAY_NOT;
    int fd = open("/tmp/kv", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || brig_kv_open(&kv, fd, &s, SHAPE, &fail) < 0)
        return CHILD_WRONG;
    bool good = brig_kv_reserve(kv, 0, 0, 1, &fail) == 0 &&
                brig_kv_reserve(kv, 0, 1, 500, &fail) == -BRIG_ENOMEM &&
                strstr(fail.text, "no space for the KV cache") != NULL;
    struct brig_cache_op drop = {BRIG_CACHE_DROP, 0, 0}; /* and it goes on when space is given back */
    good = good && brig_kv_apply(kv, &drop, 1, &fail) == 0 && brig_kv_reserve(kv, 1, 0, 1, &fail) == 0;
    brig_kv_close(kv);
    return good ? CHILD_GOOD : CHILD_WRONG;
}

static void a_full_memory_is_a_line_of_text(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(grow_in_a_small_file_system());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CHILD_MAY_NOT) {
        print_message("no file system of its own may be mounted here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), CHILD_GOOD);
}

static void a_slice_without_layers_needs_none(void **state)
{
    (void)state;
    struct brig_slice s = slice_of(4, 5);
    struct brig_kv *kv = open_kv(-1, &s, SHAPE);
    struct brig_fail fail;
    reserve(kv, 2, 0, CTX);
    apply(kv, BRIG_CACHE_DROP, 2, 0);
    apply(kv, BRIG_CACHE_COPY, 1, 2);
    apply(kv, BRIG_CACHE_TRUNCATE, 1, 5);
    assert_int_equal(brig_kv_reserve(kv, 3, 0, 1, &fail), -BRIG_ELIMIT);
    brig_kv_close(kv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_do_not_overlap_and_outlive_the_mapping),
        cmocka_unit_test(pages_come_and_go),
        cmocka_unit_test(rows_may_lie_in_two_pages),
        cmocka_unit_test(operations_after_reopening),
        cmocka_unit_test(a_header_must_match),
        cmocka_unit_test(out_of_range_is_refused),
        cmocka_unit_test(a_size_limit_is_a_line_of_text),
        cmocka_unit_test(a_full_memory_is_a_line_of_text),
        cmocka_unit_test(a_slice_without_layers_needs_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
