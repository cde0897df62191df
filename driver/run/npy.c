/* NPY 1.0 matrices of f32. */
#include "driver/run/npy.h"

#include <inttypes.h>
#include <string.h>

#include "proto/base/err.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are written as they lie in memory");

int brig_npy_header(FILE *f, uint64_t rows, uint64_t cols)
{
    enum { PRELUDE = 10, TOTAL = 128 }; /* the data must begin at a multiple of 64 */
    char head[TOTAL + 1];
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = TOTAL - PRELUDE;
    head[9] = 0;
    int n = snprintf(head + PRELUDE, TOTAL - PRELUDE,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRIu64 ", %" PRIu64 "), }", rows,
                     cols);
    memset(head + PRELUDE + n, ' ', (size_t)(TOTAL - PRELUDE - n));
    head[TOTAL - 1] = '\n';
    return fwrite(head, 1, TOTAL, f) == TOTAL ? 0 : -BRIG_EIO;
}

int brig_npy_values(FILE *f, const float *v, size_t n)
{
    return fwrite(v, sizeof *v, n, f) == n ? 0 : -BRIG_EIO;
}
