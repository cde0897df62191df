/* Files and reader of a shard's weights. */
#include "shard/weights/feed.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/disk/reader.h"
#include "shard/weights/files.h"

#define MAX_ALIGN ((uint64_t)64 << 10)
#define LOOK_MS   250u /* between looks whether anything moves */
/* So many looks in a row without a byte: below the 10 s that a driver waits for progress, so that it is told
 * why. Looks are counted, not time: a process that was stopped has not waited. */
#define MAX_LOOKS 32u
#define CLOSE_MS  2000u

struct brig_feed {
    struct brig_reader *reader;
    unsigned n_files;
    struct brig_disk_file *files;
    uint64_t align, stall_ns;
    struct brig_fail why; /* of the last fetch that failed */
    atomic_uint_fast64_t progress;
};

static int open_files(struct brig_feed *f, const struct brig_slice *slice, const int *fds,
                      struct brig_fail *fail)
{
    char name[PATH_MAX];
    f->files = brig_alloc(slice->n_files, sizeof *f->files);
    if (f->files == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u files", slice->n_files);
    f->align = 4096;
    for (unsigned i = 0; i < slice->n_files; i++) {
        struct brig_disk_file *file = &f->files[i];
        brig_weights_file_name(fds[i], i, name, sizeof name);
        int r = brig_disk_file_reopen(file, fds[i], name, !slice->stream.buffered, fail);
        if (r < 0)
            return r;
        f->n_files = i + 1;
        if (file->bytes != slice->file_bytes[i])
            return brig_fail_set(fail, BRIG_EMISMATCH, "%s has %llu bytes, it had %llu when it was described",
                                 name, (unsigned long long)file->bytes,
                                 (unsigned long long)slice->file_bytes[i]);
        uint64_t align = file->align > file->buf_align ? file->align : file->buf_align;
        f->align = align > f->align ? align : f->align;
        if (f->align > MAX_ALIGN)
            return brig_fail_set(fail, BRIG_EUNSUPPORTED, "%s: direct reads need multiples of %llu bytes",
                                 name, (unsigned long long)f->align);
    }
    return 0;
}

static int open_reader(struct brig_feed *f, const struct brig_stream_set *set, uint32_t max_fetches,
                       struct brig_fail *fail)
{
    struct brig_reader_opts o = {
        .request_bytes = set->request_bytes, .depth = set->depth, .max_extents = max_fetches, .drop = true};
    if (set->reader[0] != '\0') {
        o.how = brig_reader_ops_by_name(set->reader);
        if (o.how == NULL)
            return brig_fail_set(fail, BRIG_EUNSUPPORTED, "no reader \"%s\"", set->reader);
    }
    return brig_reader_open(&f->reader, &o, fail);
}

int brig_feed_open(struct brig_feed **ret, const struct brig_slice *slice, const int *fds,
                   uint32_t max_fetches, struct brig_fail *fail)
{
    struct brig_feed *f = brig_alloc(1, sizeof *f);
    if (f == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for reading");
    int r = open_files(f, slice, fds, fail);
    if (r == 0)
        r = open_reader(f, &slice->stream, max_fetches, fail);
    if (r < 0) {
        brig_feed_close(f);
        return r;
    }
    *ret = f;
    return 0;
}

bool brig_feed_close(struct brig_feed *f)
{
    if (f == NULL)
        return true;
    if (brig_reader_close(f->reader, CLOSE_MS) < 0)
        return false; /* the files are in use too */
    for (unsigned i = 0; i < f->n_files; i++)
        brig_disk_file_close(&f->files[i]);
    brig_free(f->files);
    brig_free(f);
    return true;
}

uint64_t brig_feed_align(const struct brig_feed *f)
{
    return f->align;
}

int brig_feed_fetch(struct brig_feed *f, uint32_t file, uint64_t offset, uint64_t bytes, void *buf,
                    bool urgent, struct brig_fetch *fetch, struct brig_fail *fail)
{
    const struct brig_extent e = {.file = &f->files[file],
                                  .offset = offset,
                                  .bytes = bytes,
                                  .buf = buf,
                                  .tag = (uint64_t)(uintptr_t)fetch,
                                  .urgent = urgent};
    int r = brig_reader_submit(f->reader, &e, fail);
    if (r == 0)
        fetch->state = BRIG_FETCH_READING;
    return r;
}

/* One fetch that has ended; false when none has in time: fail then says what is awaited. */
static bool take_one(struct brig_feed *f, uint32_t timeout_ms, struct brig_fail *fail)
{
    uint64_t tag;
    int r = brig_reader_wait(f->reader, timeout_ms, &tag, fail);
    if (r == -BRIG_ETIMEOUT || r == -BRIG_EUSAGE)
        return false;
    struct brig_fetch *fetch = (struct brig_fetch *)(uintptr_t)tag;
    fetch->state = r < 0 ? BRIG_FETCH_FAILED : BRIG_FETCH_READY;
    if (r < 0)
        f->why = *fail;
    atomic_fetch_add(&f->progress, 1);
    return true;
}

void brig_feed_poll(struct brig_feed *f)
{
    struct brig_fail fail;
    while (brig_reader_pending(f->reader) > 0 && take_one(f, 0, &fail))
        ;
}

static uint64_t bytes_read(const struct brig_feed *f)
{
    struct brig_reader_stats s;
    brig_reader_stats(f->reader, &s);
    return s.bytes;
}

int brig_feed_wait(struct brig_feed *f, const struct brig_fetch *fetch, struct brig_fail *fail)
{
    uint64_t begin = brig_clock_ns(), bytes = bytes_read(f);
    struct brig_fail last;
    unsigned looks = 0;
    while (fetch->state == BRIG_FETCH_READING && looks < MAX_LOOKS) {
        if (take_one(f, LOOK_MS, &last)) {
            looks = 0;
            continue;
        }
        uint64_t now = bytes_read(f);
        looks = now != bytes ? 0 : looks + 1;
        if (now != bytes)
            atomic_fetch_add(&f->progress, 1);
        bytes = now;
    }
    f->stall_ns += brig_clock_ns() - begin;
    if (fetch->state == BRIG_FETCH_READING)
        return brig_fail_set(fail, BRIG_ETIMEOUT, "the disk stands still since %u s: %s",
                             LOOK_MS * MAX_LOOKS / 1000, last.text);
    return fetch->state == BRIG_FETCH_FAILED ? brig_fail_set(fail, f->why.code, "%s", f->why.text) : 0;
}

struct brig_feed_stats brig_feed_stats(const struct brig_feed *f)
{
    return (struct brig_feed_stats){bytes_read(f), f->stall_ns};
}

uint64_t brig_feed_progress(const struct brig_feed *f)
{
    return atomic_load(&f->progress);
}
