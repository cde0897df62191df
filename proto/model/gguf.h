/*
 * GGUF in pieces: the reader of its head (gguf_read.c), metadata (gguf_meta.c), tensor table
 * (gguf_tensors.c), tokenizer (gguf_vocab.c) and printing (gguf_print.c); gguf_set.c joins the parts of a
 * split model, format_gguf.c everything. Private to this room.
 *
 * The head (everything before the tensor data) is read into memory of our own while it is walked for the
 * first time, with every length checked against what remains of the file. The second walk meets only what the
 * first has accepted and may keep pointers, for the memory no longer moves.
 */
#ifndef BRIG_PROTO_MODEL_GGUF_H
#define BRIG_PROTO_MODEL_GGUF_H

#include "proto/base/buf.h"
#include "proto/model/meta.h"

enum brig_gguf_kind {
    BRIG_GGUF_U8,
    BRIG_GGUF_I8,
    BRIG_GGUF_U16,
    BRIG_GGUF_I16,
    BRIG_GGUF_U32,
    BRIG_GGUF_I32,
    BRIG_GGUF_F32,
    BRIG_GGUF_BOOL,
    BRIG_GGUF_STRING,
    BRIG_GGUF_ARRAY,
    BRIG_GGUF_U64,
    BRIG_GGUF_I64,
    BRIG_GGUF_F64,
    BRIG_GGUF_KIND_COUNT
};

/* Bytes of a scalar; 0 for strings, arrays and kinds that do not exist. */
unsigned brig_gguf_kind_bytes(uint32_t kind);
const char *brig_gguf_kind_name(uint32_t kind);

/* One file. priv of a model points to an array of them, one for each of m->files; the first has the
 * metadata that count. */
struct brig_gguf {
    struct brig_buf head; /* the file up to the end of the tensor table */
    uint64_t n_keys, n_tensors;
    uint64_t table; /* where in the head the tensor table begins */
    uint64_t alignment;
    struct brig_meta meta;
    struct brig_str *tokens, *merges;
    int32_t *token_types;
    float *scores;
    struct brig_buf key_text, value_text; /* what meta_at last gave */
};

/* A place in the head. what names the thing being read, for failures. */
struct brig_gguf_reader {
    int fd;
    uint64_t file_bytes;
    struct brig_buf *head;
    uint64_t pos;
    struct brig_str what;
    struct brig_fail *fail;
};

/* All return 0 or a failure that is already in words; pos moves on success only. */
int brig_gguf_u32(struct brig_gguf_reader *r, uint32_t *ret);
int brig_gguf_u64(struct brig_gguf_reader *r, uint64_t *ret);
int brig_gguf_bytes(struct brig_gguf_reader *r, uint64_t n,
                    struct brig_str *ret);                              /* ret valid until more is read */
int brig_gguf_string(struct brig_gguf_reader *r, struct brig_str *ret); /* the same */
int brig_gguf_skip(struct brig_gguf_reader *r, uint32_t kind);          /* a value */
int brig_gguf_array(struct brig_gguf_reader *r, uint32_t *ret_elem, uint64_t *ret_n); /* an array's head */
/* A key or a tensor's name: printable ASCII of at most `most` bytes; it becomes what. */
int brig_gguf_name(struct brig_gguf_reader *r, const char *kind, size_t most, struct brig_str *ret);

/* First walk: magic, version, counts, everything else skipped. On success g->head is whole and ends with the
 * table. */
int brig_gguf_scan(struct brig_gguf *g, int fd, uint64_t file_bytes, struct brig_fail *fail);

/* Second walk, in this order; r is at the first key and ends at the tensor table. */
int brig_gguf_read_meta(struct brig_gguf *g, struct brig_gguf_reader *r);
/* The tables of all of m->files, whose heads are in parts [m->n_files], into m->tensors. */
int brig_gguf_read_tensors(struct brig_gguf *parts, struct brig_model *m, struct brig_fail *fail);

/* The file at `path` and, when it is one of a split set, all others: fills m->files and m->priv up to the
 * metadata of each. Any part may be named. */
int brig_gguf_open_set(struct brig_model *m, const char *path, struct brig_fail *fail);
/* All of a model whose first part (or any other) is at `path`: what brig_format's open does. */
int brig_gguf_open(struct brig_model *m, const char *path, const struct brig_meta **meta,
                   struct brig_str *arch, struct brig_fail *fail);
void brig_gguf_close(struct brig_model *m);
/* The last component of a path. */
const char *brig_gguf_file_name(const char *path);

/* One value of a kind that the first walk has accepted. */
int brig_gguf_value(struct brig_meta_entry *e, uint32_t kind, struct brig_gguf_reader *r);

/* Tokenizer from metadata into m->vocab. */
int brig_gguf_read_vocab(struct brig_gguf *g, struct brig_model *m, struct brig_fail *fail);

bool brig_gguf_meta_at(const struct brig_model *m, unsigned index, const char **key, const char **value);

#define BRIG_GGUF_HEAD_START 24u /* magic, version, two counts */

#endif
