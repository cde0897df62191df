/*
 * The order of reading: extents wait in two lines (urgent, and not), are cut into requests when a row takes
 * them, and stand in a third line when all their requests are finished. One mutex guards it all; requests are
 * large, so it is taken some thousand times a second.
 */
#include "proto/disk/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/base/size.h"
#include "proto/disk/parts.h"

#define DEFAULT_REQUEST_BYTES (1u << 20)
#define DEFAULT_DEPTH         4u
#define DEFAULT_EXTENTS       256u
#define MAX_EXTENTS           65536u
#define MAX_TRIES             100u

#define BRIG_READER(object) extern const struct brig_reader_ops object;
#include "proto/disk/reader.def"
#undef BRIG_READER

static const struct brig_reader_ops *const rows[] = {
#define BRIG_READER(object) &object,
#include "proto/disk/reader.def"
#undef BRIG_READER
};
#define N_ROWS (sizeof rows / sizeof *rows)

struct brig_reader_slot {
    struct brig_extent e;
    uint64_t end;       /* of what is asked for: the extent's, cut after the file's, whole alignments */
    uint64_t next;      /* offset of the next request; end: all were taken */
    uint32_t in_flight; /* requests */
    int error;          /* errno of the first failure; 0: none */
    bool cut;           /* the failure: the file ends before it should */
    uint64_t error_offset;
    struct brig_reader_slot *link;          /* the next in its line */
    struct brig_reader_slot *older, *newer; /* all that are under way, by submission */
};

struct line {
    struct brig_reader_slot *first, *last;
};

struct brig_reader {
    const struct brig_reader_ops *ops;
    void *own; /* the row's */
    uint32_t request_bytes, depth, n_slots;
    bool drop;
    char note[sizeof((struct brig_fail *)0)->text];
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    /* under the lock */
    struct brig_reader_slot *slots, *spare;
    struct line urgent, plain, finished;
    struct brig_reader_slot *oldest, *newest;
    uint32_t pending, in_flight;
    bool stops;
    uint64_t busy_since_ns;
    struct brig_reader_stats stats;
};

static void line_add(struct line *l, struct brig_reader_slot *s)
{
    s->link = NULL;
    if (l->last != NULL)
        l->last->link = s;
    else
        l->first = s;
    l->last = s;
}

static struct brig_reader_slot *line_take(struct line *l)
{
    struct brig_reader_slot *s = l->first;
    if (s != NULL)
        l->first = s->link;
    if (l->first == NULL)
        l->last = NULL;
    return s;
}

static void line_remove(struct line *l, struct brig_reader_slot *s)
{
    struct brig_reader_slot **at = &l->first, *before = NULL;
    while (*at != s) {
        before = *at;
        at = &before->link;
    }
    *at = s->link;
    if (l->last == s)
        l->last = before;
}

/* ---- the table ---- */

const struct brig_reader_ops *brig_reader_ops_by_name(const char *name)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

const char *brig_reader_at(unsigned i, const char **ret_help)
{
    if (i >= N_ROWS)
        return NULL;
    *ret_help = rows[i]->help;
    return rows[i]->name;
}

const char *brig_reader_name(const struct brig_reader *r)
{
    return r->ops->name;
}

const char *brig_reader_note(const struct brig_reader *r)
{
    return r->note[0] != '\0' ? r->note : NULL;
}

/* ---- open and close ---- */

static int check_opts(struct brig_reader_opts *o, struct brig_fail *fail)
{
    o->request_bytes = o->request_bytes == 0 ? DEFAULT_REQUEST_BYTES : o->request_bytes;
    o->depth = o->depth == 0 ? DEFAULT_DEPTH : o->depth;
    o->max_extents = o->max_extents == 0 ? DEFAULT_EXTENTS : o->max_extents;
    if (o->request_bytes < 4096 || o->request_bytes > BRIG_READER_MAX_REQUEST_BYTES)
        return brig_fail_set(fail, BRIG_EUSAGE, "requests of %u bytes: from 4096 to %u can be read",
                             o->request_bytes, BRIG_READER_MAX_REQUEST_BYTES);
    if (o->depth > BRIG_READER_MAX_DEPTH || o->max_extents > MAX_EXTENTS)
        return brig_fail_set(fail, BRIG_EUSAGE, "%u requests in flight of %u extents: at most %u of %u",
                             o->depth, o->max_extents, BRIG_READER_MAX_DEPTH, MAX_EXTENTS);
    return 0;
}

static struct brig_reader *make(const struct brig_reader_opts *o)
{
    struct brig_reader *r = brig_alloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->slots = brig_alloc(o->max_extents, sizeof *r->slots);
    if (r->slots == NULL) {
        brig_free(r);
        return NULL;
    }
    r->n_slots = o->max_extents;
    for (uint32_t i = o->max_extents; i-- > 0;) {
        r->slots[i].link = r->spare;
        r->spare = &r->slots[i];
    }
    r->request_bytes = o->request_bytes / 4096 * 4096;
    r->depth = o->depth;
    r->drop = o->drop;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->work, NULL);
    pthread_cond_init(&r->done, NULL);
    return r;
}

static void destroy(struct brig_reader *r)
{
    pthread_cond_destroy(&r->work);
    pthread_cond_destroy(&r->done);
    pthread_mutex_destroy(&r->lock);
    brig_free(r->slots);
    brig_free(r);
}

static int start(struct brig_reader *r, const struct brig_reader_ops *how, struct brig_fail *fail)
{
    if (how != NULL) {
        r->ops = how;
        return how->open(&r->own, r, r->depth, fail);
    }
    int status = 0;
    for (size_t i = 0; i < N_ROWS; i++) {
        struct brig_fail why;
        r->ops = rows[i];
        status = rows[i]->open(&r->own, r, r->depth, &why);
        if (status == 0)
            return 0;
        if (fail != NULL)
            *fail = why;
        if (status != -BRIG_EUNSUPPORTED)
            break;
        memcpy(r->note, why.text, sizeof r->note);
    }
    return status;
}

int brig_reader_open(struct brig_reader **ret, const struct brig_reader_opts *opts, struct brig_fail *fail)
{
    struct brig_reader_opts o = *opts;
    int status = check_opts(&o, fail);
    if (status < 0)
        return status;
    struct brig_reader *r = make(&o);
    if (r == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a reader of %u extents", o.max_extents);
    status = start(r, o.how, fail);
    if (status < 0) {
        destroy(r);
        return status;
    }
    *ret = r;
    return 0;
}

static void wake(struct brig_reader *r)
{
    if (r->ops->wake != NULL)
        r->ops->wake(r->own);
    else
        pthread_cond_broadcast(&r->work);
}

/* False when the time is over. The lock is held. */
static bool sleep_until(struct brig_reader *r, uint64_t deadline_ns)
{
    struct timespec t = {.tv_sec = (time_t)(deadline_ns / BRIG_NS_PER_S),
                         .tv_nsec = (long)(deadline_ns % BRIG_NS_PER_S)};
    return pthread_cond_clockwait(&r->done, &r->lock, CLOCK_MONOTONIC, &t) == 0;
}

int brig_reader_close(struct brig_reader *r, uint32_t timeout_ms)
{
    if (r == NULL)
        return 0;
    uint64_t deadline = brig_clock_ns() + timeout_ms * BRIG_NS_PER_MS;
    pthread_mutex_lock(&r->lock);
    r->stops = true;
    pthread_mutex_unlock(&r->lock);
    wake(r);
    pthread_mutex_lock(&r->lock);
    while (r->in_flight > 0 && sleep_until(r, deadline))
        ;
    bool idle = r->in_flight == 0;
    pthread_mutex_unlock(&r->lock);
    if (!idle)
        return -BRIG_ETIMEOUT;
    r->ops->close(r->own);
    destroy(r);
    return 0;
}

/* ---- the caller's side ---- */

static int check_extent(const struct brig_reader *r, const struct brig_extent *e, struct brig_fail *fail)
{
    const struct brig_disk_file *f = e->file;
    uint64_t end;
    if (e->bytes == 0 || e->offset >= f->bytes || !brig_add_u64(e->offset, e->bytes, &end) ||
        end > (uint64_t)INT64_MAX)
        return brig_fail_set(fail, BRIG_EUSAGE, "%s: %llu bytes at offset %llu: the file has %llu", f->name,
                             (unsigned long long)e->bytes, (unsigned long long)e->offset,
                             (unsigned long long)f->bytes);
    if (e->offset % f->align != 0 || e->bytes % f->align != 0 || (uintptr_t)e->buf % f->buf_align != 0)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "%s: %llu bytes at offset %llu into address %p: direct reads need multiples of "
                             "%u in the file and of %u in memory",
                             f->name, (unsigned long long)e->bytes, (unsigned long long)e->offset, e->buf,
                             f->align, f->buf_align);
    if (r->pending == r->n_slots)
        return brig_fail_set(fail, BRIG_ELIMIT, "%s: %u extents are under way already", f->name, r->n_slots);
    return 0;
}

int brig_reader_submit(struct brig_reader *r, const struct brig_extent *e, struct brig_fail *fail)
{
    int status = check_extent(r, e, fail);
    if (status < 0)
        return status;
    uint64_t end = e->offset + e->bytes;
    if (end > e->file->bytes)
        end = brig_align_up(e->file->bytes, e->file->align); /* not above the extent's: that is aligned */
    pthread_mutex_lock(&r->lock);
    struct brig_reader_slot *s = r->spare;
    r->spare = s->link;
    *s = (struct brig_reader_slot){.e = *e, .end = end, .next = e->offset, .older = r->newest};
    if (r->newest != NULL)
        r->newest->newer = s;
    else
        r->oldest = s;
    r->newest = s;
    r->pending++;
    line_add(e->urgent ? &r->urgent : &r->plain, s);
    pthread_mutex_unlock(&r->lock);
    wake(r);
    return 0;
}

static int describe(const struct brig_reader_slot *s, struct brig_fail *fail)
{
    const struct brig_disk_file *f = s->e.file;
    struct stat st;
    if (s->cut && fstat(f->fd, &st) == 0 && (uint64_t)st.st_size < f->bytes)
        return brig_fail_set(
            fail, BRIG_EIO,
            "%s: nothing to read at offset %llu: the file has %llu bytes now, it had %llu when "
            "it was opened",
            f->name, (unsigned long long)s->error_offset, (unsigned long long)st.st_size,
            (unsigned long long)f->bytes);
    if (s->cut)
        return brig_fail_set(fail, BRIG_EIO, "%s: nothing to read at offset %llu of %llu", f->name,
                             (unsigned long long)s->error_offset, (unsigned long long)f->bytes);
    errno = s->error;
    return brig_fail_errno(fail, BRIG_EIO, "%s: reading at offset %llu", f->name,
                           (unsigned long long)s->error_offset);
}

static void give_back(struct brig_reader *r, struct brig_reader_slot *s)
{
    *(s->older != NULL ? &s->older->newer : &r->oldest) = s->newer;
    *(s->newer != NULL ? &s->newer->older : &r->newest) = s->older;
    s->link = r->spare;
    r->spare = s;
    r->pending--;
}

static int nothing_yet(const struct brig_reader *r, uint32_t timeout_ms, struct brig_fail *fail)
{
    const struct brig_reader_slot *s = r->oldest;
    if (s == NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "no read is under way");
    return brig_fail_set(fail, BRIG_ETIMEOUT, "%s: %llu bytes at offset %llu did not come within %u ms",
                         s->e.file->name, (unsigned long long)s->e.bytes, (unsigned long long)s->e.offset,
                         timeout_ms);
}

int brig_reader_wait(struct brig_reader *r, uint32_t timeout_ms, uint64_t *ret_tag, struct brig_fail *fail)
{
    uint64_t deadline = brig_clock_ns() + timeout_ms * BRIG_NS_PER_MS;
    int status;
    pthread_mutex_lock(&r->lock);
    while (r->finished.first == NULL && r->pending > 0 && timeout_ms > 0 && sleep_until(r, deadline))
        ;
    struct brig_reader_slot *s = line_take(&r->finished);
    if (s == NULL) {
        status = nothing_yet(r, timeout_ms, fail);
    } else {
        *ret_tag = s->e.tag;
        status = s->error != 0 || s->cut ? describe(s, fail) : 0;
        give_back(r, s);
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}

uint32_t brig_reader_pending(const struct brig_reader *r)
{
    return r->pending; /* only the caller's thread changes it */
}

void brig_reader_stats(struct brig_reader *r, struct brig_reader_stats *ret)
{
    pthread_mutex_lock(&r->lock);
    *ret = r->stats;
    if (r->in_flight > 0)
        ret->busy_ns += brig_clock_ns() - r->busy_since_ns;
    pthread_mutex_unlock(&r->lock);
}

/* ---- the rows' side ---- */

/* Under the lock, after a request. */
static void finish_if_done(struct brig_reader *r, struct brig_reader_slot *s)
{
    if (s->in_flight > 0 || s->next < s->end)
        return;
    line_add(&r->finished, s);
    pthread_cond_broadcast(&r->done);
}

static bool take(struct brig_reader *r, struct brig_request *ret)
{
    if (r->stops || r->in_flight == r->depth)
        return false;
    struct line *l = r->urgent.first != NULL ? &r->urgent : &r->plain;
    struct brig_reader_slot *s = l->first;
    if (s == NULL)
        return false;
    uint32_t align = s->e.file->align;
    uint64_t most = r->request_bytes < align ? align : r->request_bytes / align * align;
    uint64_t bytes = s->end - s->next < most ? s->end - s->next : most;
    *ret = (struct brig_request){.slot = s,
                                 .file = s->e.file,
                                 .offset = s->next,
                                 .bytes = (uint32_t)bytes,
                                 .buf = (uint8_t *)s->e.buf + (s->next - s->e.offset)};
    s->next += bytes;
    if (s->next == s->end) /* an extent stands in one line at a time */
        line_take(l);
    s->in_flight++;
    if (r->in_flight++ == 0)
        r->busy_since_ns = brig_clock_ns();
    return true;
}

bool brig_reader_take(struct brig_reader *r, struct brig_request *ret, bool block)
{
    pthread_mutex_lock(&r->lock);
    bool got;
    while (!(got = take(r, ret)) && block && !r->stops)
        pthread_cond_wait(&r->work, &r->lock);
    pthread_mutex_unlock(&r->lock);
    return got;
}

bool brig_reader_stops(struct brig_reader *r)
{
    pthread_mutex_lock(&r->lock);
    bool stops = r->stops;
    pthread_mutex_unlock(&r->lock);
    return stops;
}

/* After a failed request: what of the extent was not asked for yet is not asked for any more. error 0: the
 * file was cut. Under the lock. */
static void give_up(struct brig_reader *r, struct brig_reader_slot *s, uint64_t offset, int error)
{
    bool first = s->error == 0 && !s->cut;
    if (first ||
        offset < s->error_offset) { /* of several the one nearest to the beginning, whichever came first */
        s->error = error;
        s->cut = error == 0;
        s->error_offset = offset;
    }
    if (s->next < s->end)
        line_remove(s->e.urgent ? &r->urgent : &r->plain, s);
    s->next = s->end;
}

/* What a result means for *q. */
enum outcome { WHOLE, AGAIN, BAD, CUT };

static enum outcome judge(struct brig_request *q, int64_t result)
{
    const struct brig_disk_file *f = q->file;
    if (result == -EINTR || result == -EAGAIN)
        return ++q->tries < MAX_TRIES ? AGAIN : BAD;
    if (result < 0)
        return BAD;
    if (result >= q->bytes || q->offset + (uint64_t)result >= f->bytes)
        return WHOLE;
    /* Short, and not at the end that the file had: ask for the rest. A file that is shorter now gives
     * nothing. */
    uint32_t part = (uint32_t)result / f->align * f->align;
    if (part == 0) {
        q->offset += (uint64_t)result;
        return CUT;
    }
    q->offset += part;
    q->buf += part;
    q->bytes -= part;
    q->tries = 0;
    return AGAIN;
}

/* A request is over, read or failed. Under the lock. */
static void count_out(struct brig_reader *r, struct brig_reader_slot *s)
{
    r->stats.requests++;
    s->in_flight--;
    if (--r->in_flight == 0) {
        r->stats.busy_ns += brig_clock_ns() - r->busy_since_ns;
        pthread_cond_broadcast(&r->done); /* close may wait for it */
    }
    if (!r->stops)
        finish_if_done(r, s);
}

bool brig_reader_done(struct brig_reader *r, struct brig_request *q, int64_t result)
{
    struct brig_reader_slot *s = q->slot;
    if (result > 0 && r->drop && !q->file->direct)
        posix_fadvise(q->file->fd, (off_t)q->offset, (off_t)result, POSIX_FADV_DONTNEED);
    enum outcome o = judge(q, result);
    pthread_mutex_lock(&r->lock);
    r->stats.bytes += result > 0 ? (uint64_t)result : 0;
    bool again = o == AGAIN && !r->stops;
    if (!again) {
        if (o == BAD || o == CUT)
            give_up(r, s, q->offset, o == BAD ? (int)-result : 0);
        count_out(r, s);
    }
    pthread_mutex_unlock(&r->lock);
    return again;
}

int brig_reader_thread(pthread_t *ret, void *(*fn)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(ret, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
