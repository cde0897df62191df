/*
 * A disk that stands still. pread is replaced for this program: it can be held up, as by a disk that takes
 * requests and never answers, and the reader is the one with threads, which calls it.
 */
#include "tests/unit/shard_util.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/model/load.h"

#define STILL_S 8.0 /* after which streaming gives up; docs/running.md says so */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static bool still;

ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
    pthread_mutex_lock(&lock);
    while (still)
        pthread_cond_wait(&moved, &lock);
    pthread_mutex_unlock(&lock);
    return syscall(SYS_pread64, fd, buf, n, offset);
}

static void set_still(bool s)
{
    pthread_mutex_lock(&lock);
    still = s;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
}

static void *move_again(void *arg)
{
    const struct timespec t = {.tv_sec = *(const int *)arg};
    nanosleep(&t, NULL);
    set_still(false);
    return NULL;
}

struct held {
    struct brig_model *m;
    struct brig_slice slice;
    struct brig_weights *w;
    uint32_t last; /* the tensor that is streamed last: far beyond what a small ring has read at the start */
};

static void hold_open(struct held *h)
{
    struct brig_fail fail;
    h->m = open_fixture("f32");
    int fds[1] = {h->m->files[0].fd};
    assert_int_equal(brig_slice_build(&h->slice, h->m, (struct brig_cells){0, h->m->desc.n_layers + 1}, NULL),
                     0);
    brig_slice_hold(&h->slice, BRIG_HOLD_STREAM);
    h->slice.stream = (struct brig_stream_set){.reader = "threads", .depth = 2, .request_bytes = 65536};
    h->slice.stream.ring_bytes = brig_slice_ring_min(&h->slice, 4096);
    h->last = 0;
    for (uint32_t i = 0; i < h->slice.n_tensors; i++)
        if (h->slice.tensors[i].hold == BRIG_HOLD_STREAM &&
            h->slice.tensors[i].layer + 1 == h->m->desc.n_layers)
            h->last = i;
    if (brig_weights_open(&h->w, &h->slice, fds, 1, &fail) < 0)
        fail_msg("%s", fail.text);
}

static int take_last(struct held *h, double *ret_seconds, struct brig_fail *fail)
{
    const struct brig_slice_tensor *t = &h->slice.tensors[h->last];
    struct brig_matrix m, part;
    uint64_t begin = brig_clock_ns();
    assert_true(brig_weights_matrix(h->w, t->role, t->layer, &m));
    int r = brig_weights_take(h->w, &m, 0, true, &part, fail);
    *ret_seconds = (double)(brig_clock_ns() - begin) * 1e-9;
    if (r == 1) {
        uint8_t *want = brig_alloc(m.row_bytes, 1);
        assert_int_equal(pread(h->m->files[0].fd, want, m.row_bytes, (off_t)t->offset), m.row_bytes);
        assert_memory_equal(want, part.data, m.row_bytes);
        brig_free(want);
        brig_weights_give(h->w);
    }
    return r;
}

static void hold_close(struct held *h)
{
    brig_weights_close(h->w);
    brig_slice_release(&h->slice);
    brig_model_close(h->m);
}

/* Longer than any look at the disk, and not for so long that it is given up. */
static void a_pause_is_no_fault(void **state)
{
    (void)state;
    struct held h;
    struct brig_fail fail;
    pthread_t t;
    int pause_s = 2;
    double seconds;
    hold_open(&h);
    set_still(true);
    assert_int_equal(pthread_create(&t, NULL, move_again, &pause_s), 0);
    int r = take_last(&h, &seconds, &fail);
    pthread_join(t, NULL);
    if (r != 1)
        fail_msg("%s", fail.text);
    assert_true(seconds > 1);
    assert_true(brig_weights_stats(h.w).stall_ns > BRIG_NS_PER_S);
    hold_close(&h);
}

static void check_words(const struct held *h, const struct brig_fail *fail)
{
    const struct brig_slice_tensor *t = &h->slice.tensors[h->last];
    char tensor[64];
    snprintf(tensor, sizeof tensor, "tensor %s of layer %u: ", brig_role_name(t->role), t->layer);
    const char *const says[] = {tensor, "the disk stands still since 8 s", "llama/f32.gguf: ", " at offset "};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (strstr(fail->text, says[i]) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", fail->text, says[i]);
    assert_null(strchr(fail->text, '\n'));
}

/* Not before its time, not long after it; and who comes again once the disk moves is served. */
static void a_standstill_is_a_line(void **state)
{
    (void)state;
    struct held h;
    struct brig_fail fail;
    double seconds;
    hold_open(&h);
    set_still(true);
    assert_int_equal(take_last(&h, &seconds, &fail), -BRIG_ETIMEOUT);
    check_words(&h, &fail);
    if (seconds < STILL_S - 0.5 || seconds > 3 * STILL_S)
        fail_msg("given up after %.2f s: %.0f are due", seconds, STILL_S);
    set_still(false);
    if (take_last(&h, &seconds, &fail) != 1)
        fail_msg("%s", fail.text);
    hold_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_is_no_fault),
        cmocka_unit_test(a_standstill_is_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
