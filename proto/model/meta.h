/*
 * Metadata of a checkpoint in memory: what a format fills and a family asks (through format.h). Private to
 * this room. Keys and strings are borrowed from the format's own memory.
 */
#ifndef BRIG_PROTO_MODEL_META_H
#define BRIG_PROTO_MODEL_META_H

#include "proto/base/buf.h"
#include "proto/model/format.h"

enum brig_meta_kind {
    BRIG_META_U64,
    BRIG_META_I64,
    BRIG_META_F32,
    BRIG_META_F64,
    BRIG_META_BOOL,
    BRIG_META_STR,
    BRIG_META_ARRAY,
    BRIG_META_KIND_COUNT
};

struct brig_meta_entry {
    struct brig_str key;
    enum brig_meta_kind kind;
    union {
        uint64_t u64;
        int64_t i64;
        double f64; /* F32 too */
        bool b;
        struct brig_str str;
        struct {
            uint32_t elem; /* GGUF's number for the elements' kind (gguf.h) */
            uint64_t n;
            struct brig_str bytes; /* as they lie in a GGUF file */
        } array;
    };
};

struct brig_meta {
    unsigned n;
    struct brig_meta_entry *entries;       /* in the file's order */
    const struct brig_meta_entry **by_key; /* sorted */
};

/* Sort by_key (from brig_alloc, by the caller, [n]) and refuse a key that comes twice. */
int brig_meta_index(struct brig_meta *meta, struct brig_fail *fail);

/* NULL when there is none. */
const struct brig_meta_entry *brig_meta_find(const struct brig_meta *meta, const char *key);

/* Entry `index` as printable text, in two buffers of the caller's (gguf_print.c). False after the last one.
 */
bool brig_meta_text(const struct brig_meta *meta, unsigned index, struct brig_buf *key,
                    struct brig_buf *value);

/* Byte-wise order, shorter first. */
int brig_str_order(struct brig_str a, struct brig_str b);

#endif
