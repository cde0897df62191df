/* What the page cache holds of a file, dropping it, and files opened past it. */
#include "tests/unit/disk_util.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "proto/disk/pages.h"
#include "proto/disk/reader.h"

#define PAGE  4096u
#define PAGES 64u
#define BYTES (PAGES * PAGE - 100)

static struct brig_fail why;

static uint64_t resident(const struct brig_disk_file *f, uint64_t offset, uint64_t bytes)
{
    uint64_t n = UINT64_MAX;
    if (brig_pages_resident(f->fd, f->name, offset, bytes, &n, &why) != 0)
        fail_msg("%s", why.text);
    return n;
}

static void drop(const struct brig_disk_file *f)
{
    uint64_t left = UINT64_MAX;
    if (brig_pages_drop(f->fd, f->name, &left, &why) != 0)
        fail_msg("%s", why.text);
    assert_true(left == 0);
}

static void counted_and_dropped(void **state)
{
    (void)state;
    struct brig_disk_file f = disk_file(BYTES, false);
    uint8_t *buf = disk_buffer(BYTES);
    assert_true(resident(&f, 0, 0) == BYTES); /* just written */
    drop(&f);
    assert_true(resident(&f, 0, 0) == 0);
    posix_fadvise(f.fd, 0, 0, POSIX_FADV_RANDOM); /* no read-ahead: pages come one by one */
    assert_true(pread(f.fd, buf, 1, 10 * PAGE + 5) == 1);
    assert_true(pread(f.fd, buf, 1, BYTES - 1) == 1);
    assert_true(resident(&f, 0, 0) == 2 * PAGE - 100);
    assert_true(resident(&f, 10 * PAGE, PAGE) == PAGE);
    assert_true(resident(&f, 10 * PAGE + 4000, PAGE) == 96); /* cut to the range on both sides */
    assert_true(resident(&f, 9 * PAGE + 4000, PAGE) == 4000);
    assert_true(resident(&f, 11 * PAGE, 5 * PAGE) == 0);
    assert_true(resident(&f, BYTES, 0) == 0);
    drop(&f);
    disk_file_done(&f);
    free(buf);
}

/* Pages that somebody has mapped stay, and that is said. */
static void mapped_stay(void **state)
{
    (void)state;
    struct brig_disk_file f = disk_file(BYTES, false);
    uint64_t left = 0;
    void *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED | MAP_POPULATE, f.fd, 0);
    assert_true(map != MAP_FAILED);
    if (mlock(map, BYTES) != 0) {
        print_message("skipped: nothing can be locked here\n");
    } else {
        assert_int_equal(brig_pages_drop(f.fd, f.name, &left, &why), 0);
        assert_true(left == BYTES);
    }
    munmap(map, BYTES);
    disk_file_done(&f);
}

static void refusals(void **state)
{
    (void)state;
    struct brig_disk_file f = disk_file(BYTES, false), g = {.fd = 7};
    uint64_t n = 5;
    assert_int_equal(brig_pages_resident(f.fd, f.name, 0, BYTES + 1, &n, &why), -BRIG_EUSAGE);
    assert_int_equal(brig_pages_resident(f.fd, f.name, UINT64_MAX, 1, &n, &why), -BRIG_EUSAGE);
    assert_int_equal(brig_pages_resident(f.fd, f.name, BYTES + 1, 0, &n, &why), -BRIG_EUSAGE);
    assert_int_equal(brig_pages_resident(-1, "nothing", 0, 0, &n, &why), -BRIG_EIO);
    assert_int_equal(brig_pages_drop(-1, "nothing", &n, &why), -BRIG_EIO);
    assert_true(n == 5);
    assert_int_equal(brig_disk_file_open(&g, "build/no-such-file", true, &why), -BRIG_EIO);
    assert_non_null(strstr(why.text, "build/no-such-file"));
    assert_int_equal(brig_disk_file_open(&g, "build", false, &why), -BRIG_EIO);
    assert_non_null(strstr(why.text, "not a regular file"));
    assert_int_equal(brig_disk_file_open(&g, "/dev/zero", false, &why), -BRIG_EIO);
    assert_true(g.fd == 7);
    disk_file_done(&f);
}

/* A descriptor of one's own: direct, while the one that it was made from stays as it is. */
static void reopened(void **state)
{
    (void)state;
    struct brig_disk_file f = disk_file(BYTES, false), g;
    if (brig_disk_file_reopen(&g, f.fd, "a name", true, &why) != 0)
        fail_msg("%s", why.text);
    assert_true(g.fd != f.fd && g.bytes == BYTES && !f.direct);
    assert_string_equal(g.name, "a name");
    assert_true((fcntl(f.fd, F_GETFL) & O_DIRECT) == 0);
    assert_true(((fcntl(g.fd, F_GETFL) & O_DIRECT) != 0) == g.direct);
    assert_true((fcntl(g.fd, F_GETFL) & O_NONBLOCK) == 0);
    assert_true(g.align != 0 && (g.align & (g.align - 1)) == 0);
    assert_true(g.direct || (g.align == 1 && g.buf_align == 1));
    brig_disk_file_close(&g);
    brig_disk_file_close(&g);
    disk_file_done(&f);
}

/* Reading direct leaves the page cache empty, and so does reading through it when what was read is dropped.
 */
static void nothing_left(void **state)
{
    (void)state;
    for (unsigned direct = 0; direct < 2; direct++) {
        struct brig_disk_file f = disk_file(PAGES * PAGE, direct);
        uint8_t *buf = disk_buffer(PAGES * PAGE);
        struct brig_reader_opts o = {.request_bytes = 16 * PAGE, .depth = 2, .drop = true};
        struct brig_reader *r = NULL;
        uint64_t tag;
        drop(&f);
        assert_int_equal(brig_reader_open(&r, &o, &why), 0);
        struct brig_extent e = {.file = &f, .bytes = PAGES * PAGE, .buf = buf};
        assert_int_equal(brig_reader_submit(r, &e, &why), 0);
        assert_int_equal(brig_reader_wait(r, 20000, &tag, &why), 0);
        disk_check(buf, 0, PAGES * PAGE);
        assert_int_equal(brig_reader_close(r, 20000), 0);
        assert_true(resident(&f, 0, 0) == 0);
        free(buf);
        disk_file_done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counted_and_dropped),
        cmocka_unit_test(mapped_stay),
        cmocka_unit_test(refusals),
        cmocka_unit_test(reopened),
        cmocka_unit_test(nothing_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
