/* The byte ranges that a slice maps, by whole pages. */
#include "proto/model/slice.h"

#include <stdlib.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

static int order(const void *a, const void *b)
{
    const struct brig_range *x = a, *y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The range of whole pages that n bytes lie in. */
static struct brig_range whole_pages(uint32_t file, uint64_t offset, uint64_t n, uint64_t page)
{
    uint64_t first = offset & ~(page - 1);
    return (struct brig_range){file, first, brig_align_up(offset + n, page) - first};
}

static unsigned tensor_ranges(const struct brig_slice_tensor *t, uint64_t page, struct brig_range *ret)
{
    unsigned n = 0;
    ret[n++] = whole_pages(t->file, t->offset, t->bytes, page);
    for (unsigned i = 0; i < BRIG_SIDE_COUNT; i++) {
        const struct brig_side *side = &t->sides.side[i];
        if (side->bytes != 0)
            ret[n++] = whole_pages(side->file, side->offset, side->bytes, page);
    }
    return n;
}

/* Sorted ranges that touch or overlap become one; returns how many are left. */
static unsigned join(struct brig_range *ranges, unsigned n_all)
{
    unsigned n = 0;
    for (unsigned i = 0; i < n_all; i++) {
        struct brig_range *last = n > 0 ? &ranges[n - 1] : NULL;
        if (last != NULL && last->file == ranges[i].file && ranges[i].offset <= last->offset + last->bytes) {
            uint64_t end = ranges[i].offset + ranges[i].bytes;
            if (end > last->offset + last->bytes)
                last->bytes = end - last->offset;
        } else {
            ranges[n++] = ranges[i];
        }
    }
    return n;
}

int brig_slice_ranges(const struct brig_slice *s, uint64_t page, struct brig_range **ret_ranges,
                      unsigned *ret_n)
{
    unsigned n = 0;
    struct brig_range *ranges = brig_alloc((size_t)s->n_tensors * (1 + BRIG_SIDE_COUNT), sizeof *ranges);
    if (ranges == NULL)
        return -BRIG_ENOMEM;
    for (unsigned i = 0; i < s->n_tensors; i++)
        if (s->tensors[i].hold == BRIG_HOLD_MAP)
            n += tensor_ranges(&s->tensors[i], page, ranges + n);
    qsort(ranges, n, sizeof *ranges, order);
    *ret_ranges = ranges;
    *ret_n = join(ranges, n);
    return 0;
}
