/* NPY 1.0 arrays of f32. */
#include "driver/run/npy.h"

#include <inttypes.h>
#include <string.h>

#include "proto/base/err.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are written as they lie in memory");

int brig_npy_header(FILE *f, const uint64_t *shape, unsigned n_dims)
{
    enum { PRELUDE = 10, ROOM = BRIG_NPY_HEADER_BYTES - PRELUDE }; /* the values begin at a multiple of 64 */
    char head[BRIG_NPY_HEADER_BYTES + 1];
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = (char)ROOM;
    head[9] = 0;
    int n = snprintf(head + PRELUDE, ROOM, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (unsigned i = 0; i < n_dims; i++)
        n += snprintf(head + PRELUDE + n, (size_t)(ROOM - n), "%s%" PRIu64, i == 0 ? "" : ", ", shape[i]);
    n += snprintf(head + PRELUDE + n, (size_t)(ROOM - n), "), }");
    memset(head + PRELUDE + n, ' ', (size_t)(ROOM - n));
    head[BRIG_NPY_HEADER_BYTES - 1] = '\n';
    return fwrite(head, 1, BRIG_NPY_HEADER_BYTES, f) == BRIG_NPY_HEADER_BYTES ? 0 : -BRIG_EIO;
}

int brig_npy_values(FILE *f, const float *v, size_t n)
{
    return fwrite(v, sizeof *v, n, f) == n ? 0 : -BRIG_EIO;
}
