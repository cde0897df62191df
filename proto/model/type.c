/* The table of stored types, and what others call the numbers that stand in files. */
#include "proto/model/type.h"

#include <string.h>
#include <strings.h>

#include "proto/base/size.h"
#include "proto/model/r16.h"

#define BRIG_TYPE(id, object) extern const struct brig_type object;
#include "proto/model/type.def"
#undef BRIG_TYPE

static const struct brig_type *const rows[] = {
#define BRIG_TYPE(id, object) &object,
#include "proto/model/type.def"
#undef BRIG_TYPE
};

/* By ggml's number, those that left the format again included. */
static const char *const gguf_names[] = {
    [0] = "F32",     [1] = "F16",         [2] = "Q4_0",        [3] = "Q4_1",        [4] = "Q4_2",
    [5] = "Q4_3",    [6] = "Q5_0",        [7] = "Q5_1",        [8] = "Q8_0",        [9] = "Q8_1",
    [10] = "Q2_K",   [11] = "Q3_K",       [12] = "Q4_K",       [13] = "Q5_K",       [14] = "Q6_K",
    [15] = "Q8_K",   [16] = "IQ2_XXS",    [17] = "IQ2_XS",     [18] = "IQ3_XXS",    [19] = "IQ1_S",
    [20] = "IQ4_NL", [21] = "IQ3_S",      [22] = "IQ2_S",      [23] = "IQ4_XS",     [24] = "I8",
    [25] = "I16",    [26] = "I32",        [27] = "I64",        [28] = "F64",        [29] = "IQ1_M",
    [30] = "BF16",   [31] = "Q4_0_4_4",   [32] = "Q4_0_4_8",   [33] = "Q4_0_8_8",   [34] = "TQ1_0",
    [35] = "TQ2_0",  [36] = "IQ4_NL_4_4", [37] = "IQ4_NL_4_8", [38] = "IQ4_NL_8_8", [39] = "MXFP4",
};

const struct brig_type *brig_type_at(unsigned i)
{
    return i < BRIG_TYPE_COUNT ? rows[i] : NULL;
}

const struct brig_type *brig_type_by_gguf(uint32_t gguf_id)
{
    for (unsigned i = 0; i < BRIG_TYPE_COUNT; i++)
        if (rows[i]->gguf_id == gguf_id)
            return rows[i];
    return NULL;
}

const struct brig_type *brig_type_by_name(const char *name)
{
    for (unsigned i = 0; i < BRIG_TYPE_COUNT; i++)
        if (strcasecmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

bool brig_type_has_rows(const struct brig_type *t)
{
    return t->packing == NULL && t->native == NULL;
}

const struct brig_type *brig_type_native(const struct brig_type *t)
{
    return t->native != NULL ? t->native : t;
}

const struct brig_type *brig_type_interleaved(const struct brig_type *t)
{
    for (unsigned i = 0; i < BRIG_TYPE_COUNT; i++)
        if (rows[i]->native == t)
            return rows[i];
    return NULL;
}

uint32_t brig_type_panel_rows(const struct brig_type *t)
{
    return t->native != NULL ? BRIG_R16_ROWS : 1;
}

const char *brig_type_gguf_name(uint32_t gguf_id)
{
    if (gguf_id < sizeof gguf_names / sizeof gguf_names[0])
        return gguf_names[gguf_id];
    const struct brig_type *t = brig_type_by_gguf(gguf_id);
    return t != NULL ? t->name : NULL;
}

uint64_t brig_type_row_bytes(const struct brig_type *t, uint64_t n_cols)
{
    uint64_t bytes;
    if (n_cols == 0 || n_cols % t->block_elems != 0 ||
        !brig_mul_u64(n_cols / t->block_elems, t->block_bytes, &bytes))
        return 0;
    return bytes;
}
