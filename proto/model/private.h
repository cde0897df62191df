/*
 * What the files of this room share and nobody else needs: opening files, the index of roles, shapes,
 * identity.
 */
#ifndef BRIG_PROTO_MODEL_PRIVATE_H
#define BRIG_PROTO_MODEL_PRIVATE_H

#include <stddef.h>

#include "proto/model/format.h"
#include "proto/model/model.h"
#include "proto/model/slice.h"

/* ---- files (model_file.c) ---- */

/* What the checkpoint calls the tensor that GGUF calls `name`; it may not have it (model.c). Valid until ret
 * is. */
#define BRIG_OWN_NAME_BYTES 160u
const char *brig_model_own_name(const struct brig_model *m, const char *name, char ret[BRIG_OWN_NAME_BYTES]);

/* Open a regular file for reading, close-on-exec; never blocks. The failure does not name the path. */
int brig_model_file_open(const char *path, int *ret_fd, uint64_t *ret_bytes, struct brig_fail *fail);

/* Exactly n bytes at offset; the end of the file before that is a failure. */
int brig_model_file_read(int fd, void *dst, size_t n, uint64_t offset, struct brig_fail *fail);

/* ---- roles and shapes (role.c) ---- */

/* Rows and columns that desc demands of a role; a vector has rows 1. */
void brig_role_shape(const struct brig_desc *d, enum brig_role role, uint64_t *rows, uint64_t *cols);
bool brig_role_is_vector(enum brig_role role);

/* A type that may hold this role: vectors are stored as floats. */
bool brig_role_takes(enum brig_role role, const struct brig_type *type);

/* All of desc against the caps and itself (desc_check.c). */
int brig_desc_check(const struct brig_desc *d, struct brig_fail *fail);

/* ---- the order of a slice's tensors (slice.c) ---- */

/* A place in the list: cell by cell, role by role, expert by expert. Walk it so:
 *     for (struct brig_slice_place p = {.cell = cells.first}; brig_slice_settle(d, cells, &p); p.expert++) */
struct brig_slice_place {
    uint32_t cell;
    unsigned role; /* enum brig_role, or past it on the way */
    uint32_t expert;
};

/* Move on to the next place that there is, p itself included; false at the end. */
bool brig_slice_settle(const struct brig_desc *d, struct brig_cells cells, struct brig_slice_place *p);

/* ---- the index of a model's roles (model.c) ---- */

/* Called by a family when desc.n_layers and the tensors' roles are set: brig_model_tensor works afterwards.
 * Two tensors with one place are a failure. */
int brig_model_index(struct brig_model *m, struct brig_fail *fail);

/* All metadata of an open model. */
const struct brig_meta *brig_model_metadata(const struct brig_model *m);

/* ---- identity (identity.c) ---- */

/* Fill m->identity from the bytes of metadata and tensor table, the files' sizes, and the ends of the
 * tensors.
 */
int brig_model_identify(struct brig_model *m, const void *head, size_t n, struct brig_fail *fail);

/* ---- tensors that hold several (family_parts.c) ---- */

#define BRIG_SPLIT_PARTS 3u

/* A tensor of a layer that joins several along its outermost dimension. */
struct brig_split {
    const char *whole;                      /* "attn_qkv.weight", behind "blk.N." */
    enum brig_role parts[BRIG_SPLIT_PARTS]; /* in their order; shorter: BRIG_ROLE_COUNT behind the last one */
    bool stacked;                           /* parts[0] alone, of all experts */
};

/* Replace those tensors of m that a row of splits [n] knows, in layers that have the role, by their parts,
 * named as where they lie alone. desc is filled and checked before; before brig_model_index, as m->tensors
 * moves. */
int brig_family_split(struct brig_model *m, const struct brig_split *splits, unsigned n,
                      struct brig_fail *fail);
void brig_part_names_free(struct brig_part_names *names); /* NULL allowed */

/* ---- tensors by the names that GGUF gives them (family_names.c) ---- */

struct brig_role_name {
    const char *name; /* "attn_q.weight"; layer roles stand behind "blk.N." */
    enum brig_role role;
};

/* Give each tensor that `names` [n] knows, and whose role desc has, its role; refuse those that would change
 * the numbers and are not known, check that none is missing and that shapes and types are as desc says. Sets
 * desc.vocab (from the token table) and desc.tied; the rest of desc is filled before. */
int brig_family_place(struct brig_model *m, const struct brig_role_name *names, unsigned n,
                      struct brig_fail *fail);

/* "blk.N.rest" into layer and rest; false for other names. */
bool brig_family_layer_name(struct brig_str name, uint32_t *layer, struct brig_str *rest);

/* GGUF's name of a role (one that it has a name for) without ".weight" and without the expert's number:
 * "ffn_gate" of "blk.0.ffn_gate.weight" and of "blk.0.ffn_gate.7.weight". */
struct brig_str brig_family_stem(enum brig_role role);

/* Ids and arrays of the tokenizer against the token table. */
int brig_family_check_vocab(const struct brig_model *m, struct brig_fail *fail);

/* The two above for a desc that is filled, with the names that GGUF gives to all families, and
 * brig_desc_check before. The last step of a family of GGUF. */
int brig_family_finish(struct brig_model *m, struct brig_fail *fail);
/* The same for a family whose files join tensors of their own kind, beside stacked experts. */
int brig_family_finish_joined(struct brig_model *m, const struct brig_split *joined, unsigned n,
                              struct brig_fail *fail);

/* The n numbers of a tensor that belongs into the description, as f32. n at most BRIG_MAX_ROPE_PAIRS. */
int brig_family_read_vector(const struct brig_model *m, const char *name, float *ret, uint32_t n,
                            struct brig_fail *fail);

/* A tensor of numbers about the rotary embedding, taken into the description (family_rope.c). */
bool brig_family_is_rope(struct brig_str name);

/* Which biases the description has: those that the first layer has. */
void brig_family_biases(struct brig_model *m);

/* The model has a tensor of this name, whole. For what only the tensors say. */
bool brig_family_has(const struct brig_model *m, const char *name);

/* ---- numbers by the keys that GGUF gives them: "<desc.arch>.<key>" (family_keys.c) ----
 * A key that begins with "brigade." is one of ours and stands as it is. */

/* How a key is looked for: its absence is an error, or *ret then keeps what it was set to before. */
enum brig_presence { BRIG_OPTIONAL, BRIG_REQUIRED };

int brig_family_u32(const struct brig_desc *d, const struct brig_meta *meta, const char *key,
                    enum brig_presence presence, uint32_t *ret, struct brig_fail *fail);
int brig_family_f32(const struct brig_desc *d, const struct brig_meta *meta, const char *key,
                    enum brig_presence presence, float *ret, struct brig_fail *fail);

int brig_family_bool(const struct brig_desc *d, const struct brig_meta *meta, const char *key,
                     enum brig_presence presence, bool *ret, struct brig_fail *fail);
int brig_family_str(const struct brig_desc *d, const struct brig_meta *meta, const char *key,
                    enum brig_presence presence, struct brig_str *ret, struct brig_fail *fail);
bool brig_family_stated(const struct brig_desc *d, const struct brig_meta *meta, const char *key);

/* What all families state alike: sizes, heads, windows, rotary embedding. Turned by halves (NEOX) over the
 * whole head unless the file says less, scores scaled by head_dim^-0.5, all layers windowed when there is a
 * window and nothing tells them apart. Whatever differs is set afterwards; desc.norm is set before when it is
 * LayerNorm. */
int brig_family_common(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail);

/* The whole of a family for all that GGUF files call llama (family_llama.c). */
int brig_family_llama_describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail);

/* The scaling of the rotary embedding into rope_linear, rope_mscale and the factors of m->desc, whose other
 * rotary numbers are set (family_rope.c). A part of brig_family_common. */
int brig_family_rope_scaling(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail);

/* Experts: how many there are and are used, their size, the layers that are dense (brigade.dense_layers), how
 * they are weighed: `norm`, unless brigade.norm_topk_prob says it. All stays 0 when they are optional and the
 * file has none. After brig_family_common (family_experts.c). */
int brig_family_experts(struct brig_desc *d, const struct brig_meta *meta, enum brig_presence presence,
                        enum brig_expert_norm norm, struct brig_fail *fail);

#endif
