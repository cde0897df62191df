/*
 * The order of candidates: (logit descending, id ascending). A few best by a heap, all by a radix sort, so
 * that no row of logits takes longer than another.
 */
#include <stdbool.h>
#include <string.h>

#include "driver/sample/stage.h"

#define RADIX_BITS  11
#define RADIX_SIZE  (1u << RADIX_BITS)
#define HEAP_FACTOR 16 /* a heap for up to one in so many */

static bool before(struct brig_sample_entry a, struct brig_sample_entry b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* heap[0] is the last in order of the n; put e where it belongs from i down. */
static void sift(struct brig_sample_entry *heap, uint32_t n, uint32_t i, struct brig_sample_entry e)
{
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(heap[child], heap[child + 1]))
            child++;
        if (!before(e, heap[child]))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = e;
}

static void order_few(struct brig_sample_entry *v, uint32_t n, uint32_t k)
{
    for (uint32_t i = k / 2; i-- > 0;)
        sift(v, k, i, v[i]);
    for (uint32_t i = k; i < n; i++)
        if (before(v[i], v[0])) {
            struct brig_sample_entry out = v[0];
            sift(v, k, 0, v[i]);
            v[i] = out;
        }
    for (uint32_t m = k; m > 1; m--) {
        struct brig_sample_entry last = v[0];
        sift(v, m - 1, 0, v[m - 1]);
        v[m - 1] = last;
    }
}

/* Bits that ascend as (logit descending, id ascending) does: 32 of the logit over 32 of the id. */
static uint64_t key_of(struct brig_sample_entry e)
{
    uint32_t bits;
    memcpy(&bits, &e.logit, sizeof bits);
    bits = (bits >> 31) != 0 ? bits : ~bits & 0x7fffffffu;
    return (uint64_t)bits << 32 | e.id;
}

static void order_all(struct brig_sample_list *list)
{
    uint64_t used = 0; /* bits in which entries differ: passes over others are left out */
    for (uint32_t i = 1; i < list->n; i++)
        used |= key_of(list->entries[i]) ^ key_of(list->entries[0]);
    for (unsigned shift = 0; shift < 64; shift += RADIX_BITS) {
        if ((used >> shift & (RADIX_SIZE - 1)) == 0)
            continue;
        uint32_t place[RADIX_SIZE] = {0}, sum = 0;
        for (uint32_t i = 0; i < list->n; i++)
            place[key_of(list->entries[i]) >> shift & (RADIX_SIZE - 1)]++;
        for (uint32_t d = 0; d < RADIX_SIZE; d++) {
            uint32_t count = place[d];
            place[d] = sum;
            sum += count;
        }
        for (uint32_t i = 0; i < list->n; i++)
            list->spare[place[key_of(list->entries[i]) >> shift & (RADIX_SIZE - 1)]++] = list->entries[i];
        struct brig_sample_entry *sorted = list->spare;
        list->spare = list->entries;
        list->entries = sorted;
    }
}

void brig_sample_order(struct brig_sample_list *list, uint32_t n)
{
    if (n <= list->n / HEAP_FACTOR || n == 1 || list->n <= 2048)
        order_few(list->entries, list->n, n);
    else
        order_all(list);
}
