/*
 * Writing the head of a GGUF file (version 3): keys, then the tensor table, then zeros up to the data. The
 * caller writes the tensors behind it, in the order in which they were put, each at the next multiple of
 * BRIG_GGUF_ALIGNMENT. Nothing in it depends on time, place or memory: the same calls give the same bytes.
 */
#ifndef BRIG_PROTO_MODEL_GGUF_WRITE_H
#define BRIG_PROTO_MODEL_GGUF_WRITE_H

#include "proto/base/buf.h"
#include "proto/base/err.h"
#include "proto/model/model.h"

#define BRIG_GGUF_ALIGNMENT                                                                                  \
    4096u /* of tensors in the files that we write: whole pages for a shard to map                           \
           */

/* {0} is empty. What fails is remembered and said by brig_gguf_head. */
struct brig_gguf_writer {
    struct brig_buf keys, table;
    uint64_t n_keys, n_tensors;
    uint64_t data_bytes; /* of the tensors so far, each with its padding */
    int err;
};

void brig_gguf_writer_release(struct brig_gguf_writer *w);

void brig_gguf_put_u16(struct brig_gguf_writer *w, const char *key, uint16_t v);
void brig_gguf_put_i32(struct brig_gguf_writer *w, const char *key, int32_t v);
void brig_gguf_put_u32(struct brig_gguf_writer *w, const char *key, uint32_t v);
/* The byte of the file at which the string will begin. */
uint64_t brig_gguf_put_str(struct brig_gguf_writer *w, const char *key, struct brig_str v);

/* All metadata of an open model in its order, but for keys that `skip` says true of. Whole numbers become u32
 * or i32, u64 or i64 when they do not fit, whatever width they had. */
void brig_gguf_put_meta(struct brig_gguf_writer *w, const struct brig_model *m,
                        bool (*skip)(struct brig_str key, const void *arg), const void *arg);

/* A row of the table; returns where its data begin, counted from the end of the head. bytes: as they follow
 * from type and dims. */
uint64_t brig_gguf_put_tensor(struct brig_gguf_writer *w, struct brig_str name, const struct brig_type *type,
                              unsigned n_dims, const uint64_t *dims, uint64_t bytes);

/* The whole head, a multiple of BRIG_GGUF_ALIGNMENT long. The key general.alignment must have been put. */
int brig_gguf_head(const struct brig_gguf_writer *w, struct brig_buf *out, struct brig_fail *fail);

#endif
