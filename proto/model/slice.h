/*
 * Slices: what one shard holds. The line of a model is its layers and then the head: n_layers + 1 cells; a
 * slice is a half-open range of cells. Here also: the byte ranges that a slice needs of the files, how a
 * model is cut into slices, and the slice description that a launcher hands to a shard, so that a started
 * shard never parses a checkpoint.
 */
#ifndef BRIG_PROTO_MODEL_SLICE_H
#define BRIG_PROTO_MODEL_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/buf.h"
#include "proto/model/model.h"
#include "proto/model/residency.h"

struct brig_cells {
    uint32_t first, last; /* [first, last), cell n_layers is the head */
};

struct brig_slice_tensor {
    enum brig_role role;
    uint32_t layer, expert;
    const struct brig_type *type;
    uint64_t rows, cols; /* a vector has rows 1 */
    uint32_t file;
    uint64_t offset, bytes;  /* bytes = rows * row bytes of the type */
    struct brig_sides sides; /* as the model's tensor has them */
    enum brig_hold hold; /* STREAM for matrices only; what lies beside a streamed one is held as by LOCK */
};

#define BRIG_READER_NAME_MAX 16u /* with NUL */

/* How a shard reads what is not mapped, and with how much memory. Zeros: the shard's own choice. */
struct brig_stream_set {
    char reader[BRIG_READER_NAME_MAX]; /* a row of `brigade list readers`, "": the best that works */
    bool buffered;                     /* through the page cache, which is emptied behind it; else O_DIRECT */
    uint32_t request_bytes, depth;     /* of one request, a multiple of 4096; requests under way at once */
    uint64_t ring_bytes;               /* buffers of what is streamed */
    uint64_t expert_cache_bytes;       /* memory for streamed experts, apart from the ring */
};
#define BRIG_STREAM_MAX_REQUEST ((uint32_t)64 << 20)
#define BRIG_STREAM_MAX_DEPTH   64u
#define BRIG_STREAM_MAX_MEMORY  ((uint64_t)1 << 46)

struct brig_slice {
    struct brig_desc desc;
    uint8_t identity[BRIG_IDENTITY_BYTES];
    struct brig_cells cells;
    unsigned n_files;
    uint64_t *file_bytes; /* [n_files] size of each file when described: checked when it is mapped */
    unsigned n_tensors;
    struct brig_slice_tensor *tensors;
    struct brig_stream_set stream;
};

struct brig_range {
    uint32_t file;
    uint64_t offset, bytes;
};

/* True when the slice holds the head. */
static inline bool brig_cells_has_head(struct brig_cells c, uint32_t n_layers)
{
    return c.last == n_layers + 1;
}

/* Cut the line into n consecutive runs of cells, 1 <= n <= n_layers + 1, none empty, so that the largest
 * run's bytes are as small as possible; ties: the largest run of more than one cell as small as possible,
 * then the earliest cuts. cells[n] is written. */
int brig_slice_cut(const struct brig_model *m, unsigned n, struct brig_cells *cells, struct brig_fail *fail);

/* The same for cells of given sizes, whose sums fit u64. */
int brig_slice_cut_sizes(const uint64_t *cell_bytes, unsigned n_cells, unsigned n, struct brig_cells *cells,
                         struct brig_fail *fail);

/* Bytes of weights that a range of cells has. */
uint64_t brig_slice_cells_bytes(const struct brig_model *m, struct brig_cells cells);

/* Bytes of weights that a range of cells reads for one token: of experts only those that are used, on
 * average. */
uint64_t brig_slice_token_bytes(const struct brig_model *m, struct brig_cells cells);

/* Describe a range of cells of an open model, all of it mapped. Nothing in it points into the model. Release
 * frees. */
int brig_slice_build(struct brig_slice *ret, const struct brig_model *m, struct brig_cells cells,
                     struct brig_fail *fail);
void brig_slice_release(struct brig_slice *s);

/* Hold all tensors so. STREAM: matrices are streamed, vectors and routers locked. */
void brig_slice_hold(struct brig_slice *s, enum brig_hold hold);

/* NULL when the slice has none. */
const struct brig_slice_tensor *brig_slice_tensor_of(const struct brig_slice *s, enum brig_role role,
                                                     uint32_t layer);

/* The description as bytes (msgpack, versioned) and back; decode checks everything against the caps and
 * itself: each tensor's size follows from type and shape, lies inside its file, and has the shape that desc
 * demands. */
int brig_slice_encode(const struct brig_slice *s, struct brig_buf *out);
int brig_slice_decode(struct brig_slice *ret, const void *bytes, size_t n, struct brig_fail *fail);

/* The byte ranges of the slice's tensors that are mapped, widened to whole pages (page: a power of two; a
 * range's end may pass the end of the file by less than a page), sorted by (file, offset), touching or
 * overlapping ones joined. *ret_ranges is from brig_alloc, the caller frees. */
int brig_slice_ranges(const struct brig_slice *s, uint64_t page, struct brig_range **ret_ranges,
                      unsigned *ret_n);

#endif
