/*
 * What a bundle will hold: which tensor goes into which file, stored as which type. Part 0 is the driver's:
 * the metadata, the tokenizer, the token table, and whatever else no slice has to itself; a tied table lies
 * there once, and the shard with the head maps it from there. Parts 1 and up are the slices in the order of
 * the line.
 */
#ifndef BRIG_DRIVER_PACK_PLAN_H
#define BRIG_DRIVER_PACK_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/buf.h"
#include "proto/base/err.h"
#include "proto/model/slice.h"

struct brig_pack_request {
    const struct brig_model *model; /* stays open while the plan lives */
    unsigned n_slices;
    const struct brig_type *quant;      /* for matrices of the layers; NULL: as they are stored */
    const struct brig_type *head_quant; /* for the output table, or the tied table; NULL: as quant */
    bool interleave;                    /* layout r16: 16 rows interleaved, where type and shape allow it */
    bool requantize;                    /* also what is quantised already */
};

struct brig_pack_item {
    const struct brig_tensor *from; /* of the model */
    const struct brig_type *type;   /* as it is written */
    uint64_t bytes;                 /* of it */
    unsigned part;
};

struct brig_pack_plan {
    struct brig_pack_request request;
    unsigned n_parts;         /* n_slices + 1 */
    struct brig_cells *cells; /* [n_slices]: of part i cells[i - 1] */
    unsigned n_items;
    struct brig_pack_item *items; /* in the model's order */
    uint64_t bytes;               /* of all of them */
    /* Matrices that should have become another type and cannot, for their rows are no multiple of its block.
     */
    unsigned n_kept;
    const struct brig_tensor *kept; /* the first */
    /* Matrices that should have been interleaved and cannot. */
    unsigned n_native;
    const struct brig_pack_item *native; /* the first */
};

/* A tensor that is quantised already is refused without requantize. Release frees. */
int brig_pack_plan(struct brig_pack_plan *ret, const struct brig_pack_request *request,
                   struct brig_fail *fail);
void brig_pack_plan_release(struct brig_pack_plan *p);

/* The head of a part: everything before its tensors. The 64 digits of its hash are zeros, at *ret_hash_at. */
int brig_pack_head(const struct brig_pack_plan *p, unsigned part, struct brig_buf *out, uint64_t *ret_hash_at,
                   struct brig_fail *fail);

/* "3 slices, matrices Q4_0, head Q8_0, layout native": what was asked for, in words that any pack of the same
 * request says alike. */
int brig_pack_words(const struct brig_pack_request *r, struct brig_buf *out);

/* The name of a part's file; out has room for 40 bytes. */
void brig_pack_name(unsigned part, unsigned n_parts, char *out);

#endif
