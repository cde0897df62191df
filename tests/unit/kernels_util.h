/* Shared by the tests of shard/kernels: buffers that end where a page ends, bit compare. */
#ifndef BRIG_TESTS_UNIT_KERNELS_UTIL_H
#define BRIG_TESTS_UNIT_KERNELS_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/random_util.h"

/* n bytes whose end is the end of a readable page; the page after it faults. */
struct edge {
    void *map;
    size_t map_bytes;
    void *data;
};

static inline struct edge edge_new(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = (n + page - 1) / page * page;
    struct edge e = {.map_bytes = body + page};
    e.map = mmap(NULL, e.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(e.map != MAP_FAILED);
    assert_int_equal(mprotect((char *)e.map + body, page, PROT_NONE), 0);
    e.data = (char *)e.map + body - n;
    return e;
}

static inline void edge_free(struct edge *e)
{
    munmap(e->map, e->map_bytes);
}

/* Equal bit for bit, or both NaN (which NaN is left open). */
static inline bool same_f32(float a, float b)
{
    return brig_f32_to_bits(a) == brig_f32_to_bits(b) || (a != a && b != b);
}

static inline void assert_same_f32(const float *a, const float *b, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!same_f32(a[i], b[i]))
            fail_msg("%s: element %zu of %zu is %a, the definition gives %a", what, i, n, (double)a[i],
                     (double)b[i]);
}

#endif
