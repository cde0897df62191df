/* Every row of the table of readers, direct and through the page cache: what is read, in which order, how it
 * ends. And rows of this file's own, whose disks are short, slow, broken or dead. */
#include "tests/unit/disk_util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/disk/parts.h"

#define LONG 20000u
#define BIG  (3u << 20)

static struct brig_fail why;

static struct brig_reader *reader(const struct brig_reader_ops *how, uint32_t request_bytes, uint32_t depth)
{
    struct brig_reader *r = NULL;
    struct brig_reader_opts o = {
        .how = how, .request_bytes = request_bytes, .depth = depth, .max_extents = 64};
    if (brig_reader_open(&r, &o, &why) != 0)
        fail_msg("%s", why.text);
    return r;
}

static void submit(struct brig_reader *r, const struct brig_disk_file *f, uint64_t offset, uint64_t bytes,
                   void *buf, uint64_t tag)
{
    struct brig_extent e = {.file = f, .offset = offset, .bytes = bytes, .buf = buf, .tag = tag};
    if (brig_reader_submit(r, &e, &why) != 0)
        fail_msg("%s", why.text);
}

static uint64_t next(struct brig_reader *r)
{
    uint64_t tag = UINT64_MAX;
    if (brig_reader_wait(r, LONG, &tag, &why) != 0)
        fail_msg("%s", why.text);
    return tag;
}

static void finish(struct brig_reader *r)
{
    assert_int_equal(brig_reader_pending(r), 0);
    assert_int_equal(brig_reader_close(r, LONG), 0);
}

/* Calls what for each row of the table, or says that this machine has it not. */
static unsigned each_row(void (*what)(const struct brig_reader_ops *how, bool direct))
{
    unsigned n = 0;
    const char *name, *help;
    for (unsigned i = 0; (name = brig_reader_at(i, &help)) != NULL; i++) {
        struct brig_reader *r = NULL;
        struct brig_reader_opts o = {.how = brig_reader_ops_by_name(name)};
        assert_non_null(o.how);
        assert_true(help[0] != '\0');
        int status = brig_reader_open(&r, &o, &why);
        if (status == -BRIG_EUNSUPPORTED) {
            print_message("%s: skipped: %s\n", name, why.text);
            continue;
        }
        assert_int_equal(status, 0);
        assert_string_equal(brig_reader_name(r), name);
        assert_int_equal(brig_reader_close(r, LONG), 0);
        what(o.how, false);
        what(o.how, true);
        n++;
    }
    return n;
}

/* ---- what is read ---- */

/* Sizes around those of requests and of alignments, to the end of a file that ends anywhere. */
static void sizes_of(const struct brig_reader_ops *how, bool direct)
{
    static const uint64_t files[] = {1, 511, 4096, 4097, 100000, BIG, BIG + 1, BIG - 1};
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        struct brig_disk_file f = disk_file(files[k], direct);
        uint64_t room = brig_align_up(files[k], 4096);
        uint8_t *buf = disk_buffer(room);
        struct brig_reader *r = reader(how, 65536, 3);
        submit(r, &f, 0, brig_align_up(files[k], f.align), buf, k);
        assert_int_equal(next(r), k);
        disk_check(buf, 0, files[k]);
        uint64_t middle = files[k] / 2 / f.align * f.align;
        memset(buf, 0, room);
        submit(r, &f, middle, brig_align_up(files[k] - middle, f.align), buf, 7);
        assert_int_equal(next(r), 7);
        disk_check(buf, middle, files[k] - middle);
        struct brig_reader_stats s;
        brig_reader_stats(r, &s);
        assert_true(s.bytes == files[k] + files[k] - middle && s.busy_ns > 0);
        finish(r);
        free(buf);
        disk_file_done(&f);
    }
}

static void sizes(void **state)
{
    (void)state;
    assert_true(each_row(sizes_of) > 0);
}

/* Unaligned offsets and lengths are good where the page cache is between, and refused, not read wrongly,
 * where not. */
static void unaligned_of(const struct brig_reader_ops *how, bool direct)
{
    struct brig_disk_file f = disk_file(BIG, direct);
    uint8_t *buf = disk_buffer(BIG);
    struct brig_reader *r = reader(how, 100000, 2); /* rounded to 24 pages */
    if (!f.direct) {
        submit(r, &f, 12345, 777777, buf + 1, 1);
        assert_int_equal(next(r), 1);
        disk_check(buf + 1, 12345, 777777);
    } else {
        const struct brig_extent bad[] = {{.file = &f, .offset = 1, .bytes = 4096, .buf = buf},
                                          {.file = &f, .offset = 0, .bytes = 4097, .buf = buf},
                                          {.file = &f, .offset = 0, .bytes = 4096, .buf = buf + 1}};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            assert_int_equal(brig_reader_submit(r, &bad[i], &why), -BRIG_EUSAGE);
            assert_non_null(strstr(why.text, f.name));
        }
    }
    const struct brig_extent outside[] = {
        {.file = &f, .offset = BIG, .bytes = 4096, .buf = buf},
        {.file = &f, .offset = 0, .bytes = 0, .buf = buf},
        {.file = &f, .offset = 4096, .bytes = UINT64_MAX - 4095, .buf = buf}};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_int_equal(brig_reader_submit(r, &outside[i], &why), -BRIG_EUSAGE);
    finish(r);
    free(buf);
    disk_file_done(&f);
}

static void unaligned(void **state)
{
    (void)state;
    assert_true(each_row(unaligned_of) > 0);
}

/* Far more requests than may be in flight, extents in any order, all that there is room for; then one too
 * many. */
static void queue_of(const struct brig_reader_ops *how, bool direct)
{
    enum { N = 64, EACH = 49152 };
    struct brig_disk_file f = disk_file(N * EACH, direct);
    uint8_t *buf = disk_buffer(N * EACH);
    bool seen[N] = {false};
    struct brig_reader *r = reader(how, 4096, 2);
    uint64_t allocations = brig_alloc_count();
    for (unsigned round = 0; round < 3; round++) {
        memset(buf, 0, N * EACH);
        memset(seen, 0, sizeof seen);
        for (unsigned i = 0; i < N; i++) {
            unsigned at = i * 37 % N;
            submit(r, &f, (uint64_t)at * EACH, EACH, buf + at * EACH, at);
        }
        struct brig_extent more = {.file = &f, .bytes = EACH, .buf = buf};
        assert_int_equal(brig_reader_pending(r), N);
        assert_int_equal(brig_reader_submit(r, &more, &why), -BRIG_ELIMIT);
        for (unsigned i = 0; i < N; i++) {
            uint64_t tag = next(r);
            assert_true(tag < N && !seen[tag]);
            seen[tag] = true;
        }
        disk_check(buf, 0, N * EACH);
    }
    assert_true(brig_alloc_count() == allocations); /* all memory is there from the start */
    uint64_t tag = 99;
    assert_int_equal(brig_reader_wait(r, 1, &tag, &why), -BRIG_EUSAGE); /* nothing is under way */
    assert_true(tag == 99);
    finish(r);
    free(buf);
    disk_file_done(&f);
}

static void queue(void **state)
{
    (void)state;
    assert_true(each_row(queue_of) > 0);
}

/* ---- failures ---- */

/* Cut while it is open: a failure that says where, for every extent that lies behind the cut, and for no
 * other. */
static void truncated_of(const struct brig_reader_ops *how, bool direct)
{
    struct brig_disk_file f = disk_file(BIG, direct);
    uint8_t *buf = disk_buffer(BIG);
    struct brig_reader *r = reader(how, 65536, 4);
    uint64_t tag, half = BIG / 2;
    disk_truncate(&f, half + 100);
    submit(r, &f, 0, half, buf, 1);
    assert_int_equal(next(r), 1);
    disk_check(buf, 0, half);
    submit(r, &f, 0, BIG, buf, 2);
    assert_int_equal(brig_reader_wait(r, LONG, &tag, &why), -BRIG_EIO);
    assert_int_equal(tag, 2);
    assert_non_null(strstr(why.text, f.name));
    assert_non_null(strstr(why.text, "1572964 bytes now"));
    assert_non_null(strstr(why.text, "it had 3145728"));
    submit(r, &f, 0, half, buf, 3); /* the reader goes on */
    assert_int_equal(next(r), 3);
    finish(r);
    free(buf);
    disk_file_done(&f);
}

static void truncated(void **state)
{
    (void)state;
    assert_true(each_row(truncated_of) > 0);
}

/* What the kernel refuses reaches the caller with file and offset: a descriptor that is not for reading. */
static void refused_of(const struct brig_reader_ops *how, bool direct)
{
    struct brig_disk_file f = disk_file(BIG, direct), unreadable = f;
    uint8_t *buf = disk_buffer(BIG);
    uint64_t tag;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", f.fd);
    unreadable.fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(unreadable.fd >= 0);
    struct brig_reader *r = reader(how, 65536, 2);
    submit(r, &unreadable, 65536, BIG - 65536, buf, 1);
    assert_int_equal(brig_reader_wait(r, LONG, &tag, &why), -BRIG_EIO);
    assert_int_equal(tag, 1);
    assert_non_null(strstr(why.text, f.name));
    assert_non_null(strstr(why.text, "offset 65536: Bad file descriptor"));
    finish(r);
    close(unreadable.fd);
    free(buf);
    disk_file_done(&f);
}

static void refused(void **state)
{
    (void)state;
    assert_true(each_row(refused_of) > 0);
}

/* Closing with work under way: nobody writes into the buffers afterwards. */
static void closing_of(const struct brig_reader_ops *how, bool direct)
{
    struct brig_disk_file f = disk_file(BIG, direct);
    for (unsigned k = 0; k < 20; k++) {
        uint8_t *buf = disk_buffer(2 * BIG);
        struct brig_reader *r = reader(how, 4096, 8);
        submit(r, &f, 0, BIG, buf, 1);
        submit(r, &f, 0, BIG, buf + BIG, 2);
        assert_int_equal(brig_reader_close(r, LONG), 0);
        free(buf); /* the sanitizers' business */
    }
    disk_file_done(&f);
    assert_int_equal(brig_reader_close(NULL, 0), 0);
}

static void closing(void **state)
{
    (void)state;
    assert_true(each_row(closing_of) > 0);
}

/* ---- disks of our own ---- */

/* Requests are answered in the test's own thread, when and how the test likes. */
static struct brig_reader *mine;

static int my_open(void **ret_own, struct brig_reader *r, uint32_t depth, struct brig_fail *fail)
{
    (void)depth;
    (void)fail;
    *ret_own = mine = r;
    return 0;
}

static void my_wake(void *own)
{
    (void)own;
}

static const struct brig_reader_ops by_hand = {
    .name = "by hand", .help = "-", .open = my_open, .wake = my_wake, .close = my_wake};

static int my_refusal(void **ret_own, struct brig_reader *r, uint32_t depth, struct brig_fail *fail)
{
    (void)ret_own;
    (void)r;
    (void)depth;
    return brig_fail_set(fail, BRIG_EUNSUPPORTED, "refused by the test");
}

static const struct brig_reader_ops never = {
    .name = "never", .help = "-", .open = my_refusal, .wake = my_wake, .close = my_wake};

static struct brig_request taken(uint64_t offset, uint32_t bytes)
{
    struct brig_request q;
    assert_true(brig_reader_take(mine, &q, false));
    assert_true(q.offset == offset && q.bytes == bytes);
    return q;
}

static void none_to_take(void)
{
    struct brig_request q;
    assert_false(brig_reader_take(mine, &q, false));
}

static void order(void **state)
{
    (void)state;
    struct brig_disk_file f = disk_file(100000, false);
    uint8_t *buf = disk_buffer(100000);
    struct brig_reader *r = reader(&by_hand, 8192, 3);
    uint64_t tag = 0;
    submit(r, &f, 0, 20000, buf, 1);
    submit(r, &f, 50000, 8192, buf, 2);
    struct brig_request a = taken(0, 8192);
    struct brig_extent e = {
        .file = &f, .offset = 90000, .bytes = 10000, .buf = buf, .tag = 3, .urgent = true};
    assert_int_equal(brig_reader_submit(r, &e, &why), 0);
    struct brig_request b = taken(90000, 8192), c = taken(98192, 1808); /* before what is not urgent */
    none_to_take();                                                     /* three are in flight */
    assert_int_equal(brig_reader_wait(r, 0, &tag, &why), -BRIG_ETIMEOUT);
    assert_false(brig_reader_done(r, &c, 1808));
    assert_int_equal(brig_reader_wait(r, 0, &tag, &why), -BRIG_ETIMEOUT); /* half of it is no extent */
    struct brig_request d = taken(8192, 8192);
    assert_false(brig_reader_done(r, &b, 8192));
    assert_int_equal(brig_reader_wait(r, 0, &tag, &why), 0);
    assert_int_equal(tag, 3);
    struct brig_request g = taken(16384, 3616);
    assert_false(brig_reader_done(r, &g, 3616));
    struct brig_request h = taken(50000, 8192);
    assert_false(brig_reader_done(r, &h, 8192));
    assert_int_equal(next(r), 2); /* overtook the first */
    assert_false(brig_reader_done(r, &d, 8192));
    assert_false(brig_reader_done(r, &a, 8192));
    assert_int_equal(next(r), 1);
    none_to_take();
    finish(r);
    free(buf);
    disk_file_done(&f);
}

/* Short reads are asked for again, from where whole alignments end; interrupted ones too, but not for ever.
 */
static void short_reads(void **state)
{
    (void)state;
    struct brig_disk_file f = disk_file(100000, true);
    uint8_t *buf = disk_buffer(102400);
    uint64_t tag;
    struct brig_reader *r = reader(&by_hand, 65536, 1);
    uint32_t a = f.align; /* 1 where direct reads are refused */
    submit(r, &f, 0, 65536, buf, 1);
    struct brig_request q = taken(0, 65536);
    assert_true(brig_reader_done(r, &q, -EINTR));
    assert_true(q.offset == 0 && q.bytes == 65536);
    assert_true(brig_reader_done(r, &q, 4096 + a / 2));
    uint32_t got = a == 1 ? 4096 : 4096 / a * a;
    assert_true(q.offset == got && q.bytes == 65536 - got && q.buf == buf + got);
    assert_false(brig_reader_done(r, &q, q.bytes));
    assert_int_equal(next(r), 1);

    /* The last request may be as short as the file. */
    uint64_t start = 65536;
    submit(r, &f, start, brig_align_up(100000 - start, f.align), buf, 2);
    q = taken(start, (uint32_t)brig_align_up(100000 - start, f.align));
    assert_false(brig_reader_done(r, &q, (int64_t)(100000 - start)));
    assert_int_equal(next(r), 2);

    /* Nothing at all is a failure, though nobody has cut the file. */
    submit(r, &f, 0, 65536, buf, 3);
    q = taken(0, 65536);
    assert_false(brig_reader_done(r, &q, 0));
    assert_int_equal(brig_reader_wait(r, LONG, &tag, &why), -BRIG_EIO);
    assert_non_null(strstr(why.text, "nothing to read at offset 0 of 100000"));

    submit(r, &f, 0, 65536, buf, 4);
    q = taken(0, 65536);
    unsigned n = 0;
    while (n < 1000 && brig_reader_done(r, &q, -EAGAIN))
        n++;
    assert_in_range(n, 1, 999);
    assert_int_equal(brig_reader_wait(r, LONG, &tag, &why), -BRIG_EIO);
    finish(r);
    free(buf);
    disk_file_done(&f);
}

/* A bad sector: one extent fails and says where, and is not asked for further; others come. */
static void bad_sector(void **state)
{
    (void)state;
    struct brig_disk_file f = disk_file(100000, false);
    uint8_t *buf = disk_buffer(100000);
    uint64_t tag;
    struct brig_reader *r = reader(&by_hand, 8192, 2);
    submit(r, &f, 0, 80000, buf, 1);
    submit(r, &f, 80000, 20000, buf, 2);
    submit(r, &f, 0, 100, buf, 3);
    struct brig_request a = taken(0, 8192), b = taken(8192, 8192);
    assert_false(brig_reader_done(r, &b, -EIO));
    assert_int_equal(brig_reader_wait(r, 0, &tag, &why), -BRIG_ETIMEOUT); /* its buffer is still written to */
    b = taken(80000, 8192);
    assert_false(brig_reader_done(r, &a, 8192));
    assert_int_equal(brig_reader_wait(r, 0, &tag, &why), -BRIG_EIO);
    assert_int_equal(tag, 1);
    assert_non_null(strstr(why.text, f.name));
    assert_non_null(strstr(why.text, "offset 8192: Input/output error"));
    a = taken(88192, 8192);
    assert_false(brig_reader_done(r, &b, 8192));
    b = taken(96384, 3616);
    assert_false(brig_reader_done(r, &a, 8192));
    assert_false(brig_reader_done(r, &b, 3616));
    assert_int_equal(next(r), 2);
    a = taken(0, 100);
    assert_false(brig_reader_done(r, &a, 100));
    assert_int_equal(next(r), 3);
    submit(r, &f, 0, 16384, buf, 4); /* of two failures the one nearer to the beginning is told */
    a = taken(0, 8192);
    b = taken(8192, 8192);
    assert_false(brig_reader_done(r, &b, -EIO));
    assert_false(brig_reader_done(r, &a, -EREMOTEIO));
    assert_int_equal(brig_reader_wait(r, 0, &tag, &why), -BRIG_EIO);
    assert_non_null(strstr(why.text, "offset 0: Remote I/O error"));
    finish(r);
    free(buf);
    disk_file_done(&f);
}

/* A disk that never answers: wait and close come back in time, with words. */
static void dead_disk(void **state)
{
    (void)state;
    struct brig_disk_file f = disk_file(100000, false);
    uint8_t *buf = disk_buffer(100000);
    uint64_t tag = 5, begin = brig_clock_ns();
    struct brig_reader *r = reader(&by_hand, 65536, 4);
    submit(r, &f, 4096, 10000, buf, 1);
    struct brig_request q = taken(4096, 10000);
    assert_int_equal(brig_reader_wait(r, 50, &tag, &why), -BRIG_ETIMEOUT);
    assert_true(tag == 5);
    assert_non_null(strstr(why.text, f.name));
    assert_non_null(strstr(why.text, "10000 bytes at offset 4096 did not come within 50 ms"));
    assert_int_equal(brig_reader_close(r, 50), -BRIG_ETIMEOUT);
    uint64_t ms = (brig_clock_ns() - begin) / BRIG_NS_PER_MS;
    assert_in_range(ms, 100, LONG);
    assert_false(brig_reader_done(r, &q, 10000)); /* it answers after all: then closing is possible */
    assert_int_equal(brig_reader_close(r, LONG), 0);
    free(buf);
    disk_file_done(&f);
}

static void refusals(void **state)
{
    (void)state;
    struct brig_reader *r = NULL;
    struct brig_reader_opts o = {.how = &never};
    assert_int_equal(brig_reader_open(&r, &o, &why), -BRIG_EUNSUPPORTED);
    assert_string_equal(why.text, "refused by the test");
    const struct brig_reader_opts bad[] = {
        {.request_bytes = 4095}, {.request_bytes = UINT32_MAX}, {.depth = 65}, {.max_extents = 1u << 30}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(brig_reader_open(&r, &bad[i], &why), -BRIG_EUSAGE);
    assert_null(r);
    assert_null(brig_reader_ops_by_name("nonsense"));
    o.how = NULL;
    assert_int_equal(brig_reader_open(&r, &o, &why), 0); /* the best that works: there is always one */
    const char *help;
    if (strcmp(brig_reader_name(r), brig_reader_at(0, &help)) != 0)
        assert_non_null(strstr(brig_reader_note(r), "refused"));
    else
        assert_null(brig_reader_note(r));
    assert_int_equal(brig_reader_close(r, LONG), 0);
}

/* In a process of its own: io_uring_setup answers with this error from now on. */
static int child_without_uring(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 77;
    struct brig_reader *r = NULL;
    struct brig_reader_opts o = {.how = brig_reader_ops_by_name("uring")};
    if (brig_reader_open(&r, &o, &why) != -BRIG_EUNSUPPORTED || strstr(why.text, strerror(error)) == NULL)
        return 1;
    o.how = NULL;
    if (brig_reader_open(&r, &o, &why) != 0 || strcmp(brig_reader_name(r), "threads") != 0)
        return 2;
    const char *note = brig_reader_note(r);
    if (note == NULL || strstr(note, "io_uring is refused") == NULL || strstr(note, strerror(error)) == NULL)
        return 3;
    return brig_reader_close(r, LONG) == 0 ? 0 : 4;
}

/* Where a filter, a setting or an old kernel refuses io_uring, threads read, and the reason is there to be
 * said. */
static void without_uring(void **state)
{
    (void)state;
    static const int errors[] = {EPERM, ENOSYS, ENOMEM};
#ifdef __SANITIZE_THREAD__
    print_message("skipped: ThreadSanitizer allows no threads after fork\n");
    return;
#endif
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        int status = 0;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(child_without_uring(errors[i]));
        assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
            print_message("skipped: no filter of system calls here\n");
        else
            assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),     cmocka_unit_test(unaligned),   cmocka_unit_test(queue),
        cmocka_unit_test(truncated), cmocka_unit_test(refused),     cmocka_unit_test(closing),
        cmocka_unit_test(order),     cmocka_unit_test(short_reads), cmocka_unit_test(bad_sector),
        cmocka_unit_test(dead_disk), cmocka_unit_test(refusals),    cmocka_unit_test(without_uring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
