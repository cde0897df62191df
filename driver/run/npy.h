/* The NPY file format, version 1.0, for arrays of f32: magic, a header in the spelling of a Python dict,
 * then the values. */
#ifndef BRIG_DRIVER_RUN_NPY_H
#define BRIG_DRIVER_RUN_NPY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define BRIG_NPY_HEADER_BYTES 192 /* where the values begin */

/* Writes the header of a C-ordered little-endian f32 array of n_dims (2 or 3) dimensions; the caller then
 * writes the floats. 0 or -BRIG_EIO. */
int brig_npy_header(FILE *f, const uint64_t *shape, unsigned n_dims);
int brig_npy_values(FILE *f, const float *v, size_t n);

#endif
