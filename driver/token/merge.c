/*
 * Merging of pairs with a heap of (rank, position). Pairs that have changed since they were pushed are left
 * in the heap and known by their rank when they come up. A megabyte of one letter is no special case.
 */
#include "driver/token/merge.h"

#include "proto/base/err.h"
#include "proto/base/mem.h"

#define GONE UINT32_MAX /* next[] of a symbol that was merged away */
#define END  BRIG_MERGE_END

int brig_merge_reserve(struct brig_merge *m, size_t n)
{
    if (n <= m->cap)
        return 0;
    size_t cap = m->cap < 128 ? 256 : m->cap * 2;
    if (cap < n)
        cap = n;
    brig_merge_release(m);
    m->ids = brig_alloc(cap, sizeof *m->ids);
    m->prev = brig_alloc(cap, sizeof *m->prev);
    m->next = brig_alloc(cap, sizeof *m->next);
    m->rank = brig_alloc(cap, sizeof *m->rank);
    /* n - 1 pairs at first and two new ones for each of at most n - 1 merges. */
    m->heap = brig_alloc(cap, 3 * sizeof *m->heap);
    if (m->ids == NULL || m->prev == NULL || m->next == NULL || m->rank == NULL || m->heap == NULL) {
        brig_merge_release(m);
        return -BRIG_ENOMEM;
    }
    m->cap = cap;
    return 0;
}

void brig_merge_release(struct brig_merge *m)
{
    brig_free(m->ids);
    brig_free(m->prev);
    brig_free(m->next);
    brig_free(m->rank);
    brig_free(m->heap);
    *m = (struct brig_merge){0};
}

static void push(struct brig_merge *m, uint64_t entry)
{
    size_t i = m->n_heap++;
    while (i > 0 && m->heap[(i - 1) / 2] > entry) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = entry;
}

static uint64_t pop(struct brig_merge *m)
{
    uint64_t top = m->heap[0], last = m->heap[--m->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= m->n_heap)
            break;
        if (child + 1 < m->n_heap && m->heap[child + 1] < m->heap[child])
            child++;
        if (m->heap[child] >= last)
            break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return top;
}

/* The pair (i, next[i]) is new or has changed. */
static void look(struct brig_merge *m, uint32_t i, brig_merge_rank_fn rank, const void *ctx)
{
    uint32_t right = m->next[i];
    m->rank[i] = right == END ? BRIG_NO_RANK : rank(ctx, m, i, right);
    if (m->rank[i] != BRIG_NO_RANK)
        push(m, (uint64_t)m->rank[i] << 32 | i);
}

size_t brig_merge_run(struct brig_merge *m, size_t n, brig_merge_rank_fn rank, const void *ctx,
                      const uint32_t *made)
{
    if (n == 0)
        return 0;
    m->n_heap = 0;
    for (uint32_t i = 0; i < n; i++) {
        m->prev[i] = i == 0 ? END : i - 1;
        m->next[i] = i + 1 == n ? END : i + 1;
    }
    for (uint32_t i = 0; i < n; i++)
        look(m, i, rank, ctx);
    while (m->n_heap > 0) {
        uint64_t entry = pop(m);
        uint32_t i = (uint32_t)entry, best = (uint32_t)(entry >> 32);
        if (m->next[i] == GONE || m->rank[i] != best)
            continue;
        uint32_t right = m->next[i], after = m->next[right];
        if (made != NULL)
            m->ids[i] = made[best];
        m->next[i] = after;
        m->next[right] = GONE;
        if (after != END)
            m->prev[after] = i;
        look(m, i, rank, ctx);
        if (m->prev[i] != END)
            look(m, m->prev[i], rank, ctx);
    }
    size_t left = 0;
    for (uint32_t i = 0; i != END; i = m->next[i])
        m->ids[left++] = m->ids[i];
    return left;
}
