/* The NPY file format, version 1.0, for matrices of f32: magic, a header in the spelling of a Python dict,
 * then the rows. */
#ifndef BRIG_DRIVER_RUN_NPY_H
#define BRIG_DRIVER_RUN_NPY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes the header of a C-ordered little-endian f32 matrix [rows, cols]; the caller then writes rows * cols
 * floats. 0 or -BRIG_EIO. */
int brig_npy_header(FILE *f, uint64_t rows, uint64_t cols);
int brig_npy_values(FILE *f, const float *v, size_t n);

#endif
