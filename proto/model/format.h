/*
 * File formats: how metadata and tensor table are read. One row in format.def, one file each.
 */
#ifndef BRIG_PROTO_MODEL_FORMAT_H
#define BRIG_PROTO_MODEL_FORMAT_H

#include "proto/model/model.h"

/* Metadata access for families: by key, with type conversion where it loses nothing. */
struct brig_meta;
bool brig_meta_u64(const struct brig_meta *meta, const char *key, uint64_t *ret);
bool brig_meta_f64(const struct brig_meta *meta, const char *key, double *ret);
bool brig_meta_bool(const struct brig_meta *meta, const char *key, bool *ret);
bool brig_meta_str(const struct brig_meta *meta, const char *key, struct brig_str *ret);
/* An array of n 32-bit floats, n as it must be; false also when it has another length. */
bool brig_meta_f32s(const struct brig_meta *meta, const char *key, float *ret, uint32_t n);
/* What stands there, for error messages ("an array"); NULL when the key is absent. */
const char *brig_meta_kind(const struct brig_meta *meta, const char *key);

struct brig_format {
    const char *name; /* "gguf" */
    const char *help;
    /* The first bytes of the file (or nothing, for a folder: then path tells) are this format's. */
    bool (*probe)(const char *path, const uint8_t *head, size_t n);
    /* Fill files, tensors (without roles), vocab, name (when stated), identity and priv of an empty model;
     * *meta is borrowed from priv and *arch names the family. Failures need not name the path. On failure the
     * caller closes the half-filled model. */
    int (*open)(struct brig_model *m, const struct brig_meta **meta, struct brig_str *arch,
                struct brig_fail *fail);
    void (*close)(struct brig_model *m); /* frees what open made; accepts half-built */
    /* As brig_model_meta. */
    bool (*meta_at)(const struct brig_model *m, unsigned index, const char **key, const char **value);
    /* What the tensor that GGUF calls `name` is called in this checkpoint, whether it has it or not, into
     * ret[n]; false when that can't be said. NULL: as GGUF calls it. */
    bool (*own_name)(const struct brig_model *m, const char *name, char *ret, size_t n);
};

const struct brig_format *brig_format_at(unsigned i); /* NULL after the last row */

#endif
