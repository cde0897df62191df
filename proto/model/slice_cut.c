/*
 * Cutting the line: the smallest possible largest run; then the smallest possible largest run of several
 * cells (one heavy cell, as a head with a large vocabulary is, must not make the rest lopsided); then the
 * earliest cuts.
 *
 * Both at once: the limit holds for runs of several cells, a single cell may pass it. The largest run is then
 * the limit or the heaviest cell, and no cut can be below either.
 *
 * A run costs the sum of its cells. Both ends only ever add, so "how many runs of at most `limit` does the
 * rest need" is answered by filling runs greedily, the answer never grows as the rest shrinks, and the least
 * feasible limit is found by bisection.
 */
#include "proto/model/slice.h"

#include "proto/base/mem.h"

struct line {
    const uint64_t *sum; /* [n + 1] bytes before each cell */
    unsigned n;
    unsigned *need; /* [n + 1] runs that the cells from here on need */
};

static uint64_t cost(const struct line *l, unsigned first, unsigned last)
{
    return l->sum[last] - l->sum[first];
}

/* Fill need for a limit: from the end, with the furthest end of a run that begins at i. A cell that alone is
 * over the limit is a run of its own. */
static void fill_need(const struct line *l, uint64_t limit)
{
    unsigned end = l->n;
    l->need[l->n] = 0;
    for (unsigned i = l->n; i-- > 0;) {
        while (end > i && cost(l, i, end) > limit)
            end--;
        l->need[i] = 1 + l->need[end > i ? end : i + 1];
    }
}

static uint64_t least_limit(const struct line *l, unsigned n)
{
    uint64_t lo = 0, hi = l->sum[l->n];
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        fill_need(l, mid);
        if (l->need[0] <= n)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Each run ends as early as the runs after it allow: they are enough for the rest, and none of them is empty
 * (the rest can always be cut finer, for that makes no run larger). */
static void cut(const struct line *l, unsigned n, struct brig_cells *cells)
{
    unsigned first = 0;
    for (unsigned k = 0; k < n; k++) {
        unsigned left = n - k - 1, last = first + 1;
        while (l->need[last] > left)
            last++;
        cells[k] = (struct brig_cells){first, last};
        first = last;
    }
}

int brig_slice_cut_sizes(const uint64_t *cell_bytes, unsigned n_cells, unsigned n, struct brig_cells *cells,
                         struct brig_fail *fail)
{
    if (n < 1 || n > n_cells)
        return brig_fail_set(fail, BRIG_EUSAGE, "%u shards: the model has %u layers and the head, so 1 to %u",
                             n, n_cells - 1, n_cells);
    uint64_t *sum = brig_alloc((size_t)n_cells + 1, sizeof *sum);
    unsigned *need = brig_alloc((size_t)n_cells + 1, sizeof *need);
    int r = 0;
    if (sum == NULL || need == NULL) {
        r = brig_fail_set(fail, BRIG_ENOMEM, "no memory to cut %u cells", n_cells);
    } else {
        struct line l = {sum, n_cells, need};
        for (unsigned i = 0; i < n_cells; i++)
            sum[i + 1] = sum[i] + cell_bytes[i];
        fill_need(&l, least_limit(&l, n));
        cut(&l, n, cells);
    }
    brig_free(sum);
    brig_free(need);
    return r;
}
