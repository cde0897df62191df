/* Residency map: the byte ranges of the files, mapped read-only, and nothing else. */
#include <errno.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"
#include "shard/weights/files.h"
#include "shard/weights/parts.h"

#define PREFETCH_STEP_BYTES ((uint64_t)1 << 20)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

struct mapping {
    struct brig_range range;
    uint8_t *map;
};

struct map {
    unsigned n;
    struct mapping *mappings;
    uint64_t bytes;
    unsigned prefetch_number; /* mapping and offset that the next step of prefetching begins at */
    uint64_t prefetch_offset;
};

static int cannot_map(const struct brig_range *r, const int *fds, struct brig_fail *fail)
{
    int number = errno;
    char name[PATH_MAX];
    brig_weights_file_name(fds[r->file], r->file, name, sizeof name);
    errno = number;
    return brig_fail_errno(fail, BRIG_ENOMEM, "%s: %llu bytes cannot be mapped", name,
                           (unsigned long long)r->bytes);
}

static int map_ranges(struct map *m, const struct brig_range *ranges, unsigned n, const int *fds,
                      struct brig_fail *fail)
{
    m->mappings = brig_alloc(n, sizeof *m->mappings);
    if (m->mappings == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u mappings", n);
    for (unsigned i = 0; i < n; i++) {
        void *p =
            mmap(NULL, ranges[i].bytes, PROT_READ, MAP_PRIVATE, fds[ranges[i].file], (off_t)ranges[i].offset);
        if (p == MAP_FAILED)
            return cannot_map(&ranges[i], fds, fail);
        m->mappings[i] = (struct mapping){ranges[i], p};
        m->n = i + 1;
        m->bytes += ranges[i].bytes;
    }
    return 0;
}

static int map_open(struct brig_weights *w, void **state, struct brig_fail *fail)
{
    struct brig_range *ranges = NULL;
    unsigned n = 0;
    int r = brig_slice_ranges(w->slice, (uint64_t)sysconf(_SC_PAGESIZE), &ranges, &n);
    if (r < 0)
        return brig_fail_set(fail, (enum brig_err) - r, "the byte ranges of the slice do not fit");
    struct map *m = n > 0 ? brig_alloc(1, sizeof *m) : NULL;
    *state = m;
    if (m != NULL)
        r = map_ranges(m, ranges, n, w->fds, fail);
    else if (n > 0)
        r = brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the weights");
    brig_free(ranges);
    return r;
}

static void map_close(void *state)
{
    struct map *m = state;
    for (unsigned i = 0; i < m->n; i++)
        munmap(m->mappings[i].map, m->mappings[i].range.bytes);
    brig_free(m->mappings);
    brig_free(m);
}

static const uint8_t *map_address(const void *state, uint32_t tensor, const struct brig_side *range)
{
    const struct map *m = state;
    uint64_t offset = range->offset;
    (void)tensor;
    for (unsigned i = 0; m != NULL && i < m->n; i++) {
        const struct brig_range *r = &m->mappings[i].range;
        if (range->file == r->file && offset >= r->offset &&
            brig_range_ok(offset - r->offset, range->bytes, r->bytes))
            return m->mappings[i].map + (offset - r->offset);
    }
    return NULL;
}

static void map_add_stats(const void *state, struct brig_weights_stats *s)
{
    const struct map *m = state;
    s->held_bytes += m->bytes;
}

static bool map_prefetch(void *state)
{
    struct map *m = state;
    if (m->prefetch_number == m->n)
        return false;
    struct mapping *at = &m->mappings[m->prefetch_number];
    uint64_t left = at->range.bytes - m->prefetch_offset;
    uint64_t bytes = left < PREFETCH_STEP_BYTES ? left : PREFETCH_STEP_BYTES;
    uint8_t *p = at->map + m->prefetch_offset;
    /* Older kernels cannot fill page tables: they read ahead only. Neither is needed for a right result. */
    if (madvise(p, bytes, MADV_POPULATE_READ) < 0 && errno == EINVAL)
        madvise(p, bytes, MADV_WILLNEED);
    m->prefetch_offset += bytes;
    if (m->prefetch_offset == at->range.bytes) {
        m->prefetch_number++;
        m->prefetch_offset = 0;
    }
    return true;
}

extern const struct brig_hold_ops brig_hold_map;

const struct brig_hold_ops brig_hold_map = {
    .hold = BRIG_HOLD_MAP,
    .name = "map",
    .open = map_open,
    .close = map_close,
    .address = map_address,
    .add_stats = map_add_stats,
    .prefetch = map_prefetch,
};
