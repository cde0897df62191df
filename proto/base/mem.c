/* The one door for heap memory. */
#include "proto/base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base/size.h"

#define HUGE_PAGE   ((uint64_t)2 << 20)
#define LARGE_BYTES (2 * HUGE_PAGE)

static atomic_uint_fast64_t n_allocs;

void *brig_alloc(size_t n, size_t size)
{
    uint64_t bytes;
    if (!brig_mul_u64(n, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    bytes = brig_align_up(bytes == 0 ? 1 : bytes, 64);
    bool large = bytes >= LARGE_BYTES;
    uint64_t align = large ? HUGE_PAGE : 64;
    void *p =
        aligned_alloc(align, brig_align_up(bytes, align)); /* what lies after `bytes` is never touched */
    if (p == NULL)
        return NULL;
    if (large) /* tables that are looked up at random: fewer faults now, fewer address misses later */
        madvise(p, bytes & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
    atomic_fetch_add_explicit(&n_allocs, 1, memory_order_relaxed);
    return memset(p, 0, bytes);
}

void brig_free(void *p)
{
    free(p);
}

char *brig_strndup(const char *s, size_t n)
{
    if (n == SIZE_MAX)
        return NULL;
    char *p = brig_alloc(n + 1, 1);
    if (p != NULL)
        memcpy(p, s, n);
    return p;
}

uint64_t brig_alloc_count(void)
{
    return atomic_load_explicit(&n_allocs, memory_order_relaxed);
}
