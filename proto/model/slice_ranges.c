/* The byte ranges of a slice, by whole pages. */
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

int brig_slice_ranges(const struct brig_slice *s, uint64_t page, struct brig_range **ret_ranges,
                      unsigned *ret_n)
{
    struct brig_range *ranges = brig_alloc(s->n_tensors, sizeof *ranges);
    if (ranges == NULL)
        return -BRIG_ENOMEM;
    for (unsigned i = 0; i < s->n_tensors; i++) {
        const struct brig_slice_tensor *t = &s->tensors[i];
        uint64_t first = t->offset & ~(page - 1);
        uint64_t last = brig_align_up(t->offset + t->bytes, page);
        ranges[i] = (struct brig_range){t->file, first, last - first};
    }
    qsort(ranges, s->n_tensors, sizeof *ranges, order);
    unsigned n = 0;
    for (unsigned i = 0; i < s->n_tensors; i++) {
        struct brig_range *last = n > 0 ? &ranges[n - 1] : NULL;
        if (last != NULL && last->file == ranges[i].file && ranges[i].offset <= last->offset + last->bytes) {
            uint64_t end = ranges[i].offset + ranges[i].bytes;
            if (end > last->offset + last->bytes)
                last->bytes = end - last->offset;
        } else {
            ranges[n++] = ranges[i];
        }
    }
    *ret_ranges = ranges;
    *ret_n = n;
    return 0;
}
