/*
 * Matrices of GPTQ and AWQ checkpoints: what lies in a file as X.qweight, X.qzeros, X.scales and X.g_idx
 * becomes one tensor X.weight (packed.h). Everything else of such a checkpoint lies as in any other.
 */
#include "proto/model/safetensors.h"

#include <inttypes.h>
#include <string.h>

#include "proto/base/mem.h"
#include "proto/model/private.h"

#define WORDS ".qweight"

static const char *const endings[BRIG_SIDE_COUNT] = {
    [BRIG_SIDE_SCALES] = ".scales",
    [BRIG_SIDE_ZEROS] = ".qzeros",
    [BRIG_SIDE_GROUPS] = ".g_idx",
};

/* The part of a name before an ending; 0: it ends otherwise. */
static size_t stem_of(const char *name, const char *ending)
{
    size_t n = strlen(name), end = strlen(ending);
    return n > end && strcmp(name + n - end, ending) == 0 ? n - end : 0;
}

/* The tensor of that stem with another ending; NULL: there is none. */
static const struct brig_st_tensor *sibling(const struct brig_st *s, const char *name, size_t stem,
                                            const char *ending)
{
    char other[BRIG_HUB_NAME_BYTES];
    int n = snprintf(other, sizeof other, "%.*s%s", (int)(stem < sizeof other ? stem : sizeof other), name,
                     ending);
    return n > 0 && (size_t)n < sizeof other ? brig_st_find(s, other) : NULL;
}

static int read_all(const struct brig_model *m, const struct brig_st_tensor *t, uint8_t **ret,
                    struct brig_fail *fail)
{
    uint8_t *bytes = brig_alloc((size_t)t->bytes, 1);
    if (bytes == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for tensor '%.200s'", t->name);
    int r = brig_model_file_read(m->files[t->file].fd, bytes, (size_t)t->bytes, t->offset, fail);
    if (r < 0) {
        brig_free(bytes);
        return brig_fail_prefix(fail, "tensor '%.200s'", t->name);
    }
    *ret = bytes;
    return 0;
}

/* Quantisers have written biases of zeros for layers that have none. */
static int is_idle_bias(const struct brig_st *s, const struct brig_model *m, const struct brig_st_tensor *t,
                        bool *ret, struct brig_fail *fail)
{
    size_t stem = stem_of(t->name, ".bias");
    uint8_t *bytes;
    if (stem == 0 || sibling(s, t->name, stem, WORDS) == NULL || s->config.attn_bias == 1 ||
        s->config.mlp_bias == 1)
        return 0;
    int r = read_all(m, t, &bytes, fail);
    if (r < 0)
        return r;
    uint8_t any = 0;
    for (uint64_t i = 0; i < t->bytes; i++)
        any |= bytes[i];
    brig_free(bytes);
    *ret = any == 0;
    return 0;
}

int brig_st_part_of(const struct brig_st *s, const struct brig_model *m, const struct brig_st_tensor *t,
                    enum brig_st_part *ret, char name[BRIG_HUB_NAME_BYTES], struct brig_fail *fail)
{
    size_t stem = stem_of(t->name, WORDS);
    bool idle = false;
    *ret = BRIG_ST_WHOLE;
    if (stem > 0 && s->config.quant.method == BRIG_HUB_FLOATS)
        return brig_fail_set(
            fail, BRIG_EFORMAT,
            "tensor '%.200s' is quantised, and neither quantization_config in config.json nor "
            "quantize_config.json says how",
            t->name);
    if (s->config.quant.method == BRIG_HUB_FLOATS)
        return 0;
    if (stem > 0) {
        int n = snprintf(name, BRIG_HUB_NAME_BYTES, "%.*s.weight",
                         (int)(stem < BRIG_HUB_NAME_BYTES ? stem : BRIG_HUB_NAME_BYTES), t->name);
        if (n < 0 || (size_t)n >= BRIG_HUB_NAME_BYTES)
            return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%.200s' has too long a name", t->name);
        *ret = BRIG_ST_WORDS;
        return 0;
    }
    for (unsigned i = 0; i < BRIG_SIDE_COUNT; i++) {
        stem = stem_of(t->name, endings[i]);
        if (stem > 0 && sibling(s, t->name, stem, WORDS) == NULL)
            return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%.200s' stands without a '%s'", t->name, WORDS);
        if (stem > 0)
            *ret = BRIG_ST_BESIDE;
    }
    int r = is_idle_bias(s, m, t, &idle, fail);
    if (r == 0 && idle)
        *ret = BRIG_ST_BESIDE;
    return r;
}

/* A side that must be there, with so many rows and columns. */
static int take_side(const struct brig_st *s, const struct brig_st_tensor *words, enum brig_side_id id,
                     uint64_t rows, uint64_t cols, struct brig_tensor *t, struct brig_fail *fail)
{
    size_t stem = stem_of(words->name, WORDS);
    const struct brig_st_tensor *side = sibling(s, words->name, stem, endings[id]);
    if (side == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%.*s%s' is missing", (int)(stem < 200 ? stem : 200),
                             words->name, endings[id]);
    if (side->n_dims != 2 || side->dims[0] != rows || side->dims[1] != cols)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "tensor '%.150s' has the shape %" PRIu64 " x %" PRIu64 ", and %" PRIu64
                             " columns in groups of %u need %" PRIu64 " x %" PRIu64,
                             side->name, side->n_dims > 0 ? side->dims[0] : 0,
                             side->n_dims > 1 ? side->dims[1] : 0, t->dims[0], t->sides.group_cols, rows,
                             cols);
    const struct brig_type *type = brig_type_by_name(side->dtype->name);
    bool scales = id == BRIG_SIDE_SCALES;
    if (scales ? type == NULL || type->block_elems != 1 : strcmp(side->dtype->name, "I32") != 0)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "tensor '%.200s' has dtype %s, it must be %s",
                             side->name, side->dtype->name, scales ? "F16, BF16 or F32" : "I32");
    if (scales)
        t->sides.scale_type = type;
    t->sides.side[id] = (struct brig_side){side->file, side->offset, side->bytes};
    return 0;
}

/* Whether all groups are those that columns have anyway. */
static int check_groups(const struct brig_model *m, const struct brig_st_tensor *side,
                        const struct brig_sides *sides, uint32_t n_groups, bool *ret_plain,
                        struct brig_fail *fail)
{
    uint8_t *bytes;
    int r = read_all(m, side, &bytes, fail);
    if (r < 0)
        return r;
    bool plain = true;
    for (uint64_t c = 0; c < side->bytes / 4 && r == 0; c++) {
        uint32_t g;
        memcpy(&g, bytes + 4 * c, sizeof g);
        plain = plain && g == c / sides->group_cols;
        if (g >= n_groups)
            r = brig_fail_set(fail, BRIG_EFORMAT,
                              "tensor '%.200s': column %" PRIu64 " has group %d, there are %u", side->name, c,
                              (int)g, n_groups);
    }
    brig_free(bytes);
    *ret_plain = plain;
    return r;
}

static int take_groups(const struct brig_st *s, const struct brig_model *m,
                       const struct brig_st_tensor *words, uint32_t n_groups, struct brig_tensor *t,
                       struct brig_fail *fail)
{
    size_t stem = stem_of(words->name, WORDS);
    const struct brig_st_tensor *side = sibling(s, words->name, stem, endings[BRIG_SIDE_GROUPS]);
    bool plain;
    if (side == NULL || side->bytes == 0) {
        if (!s->config.quant.act_order || n_groups == 1)
            return 0;
        return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%.*s%s' is missing, and desc_act is true",
                             (int)(stem < 200 ? stem : 200), words->name, endings[BRIG_SIDE_GROUPS]);
    }
    if (side->n_dims != 1 || side->dims[0] != t->dims[0] || strcmp(side->dtype->name, "I32") != 0)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "tensor '%.200s' must hold one I32 for each of the %" PRIu64 " columns",
                             side->name, t->dims[0]);
    int r = check_groups(m, side, &t->sides, n_groups, &plain, fail);
    if (r == 0 && !plain)
        t->sides.side[BRIG_SIDE_GROUPS] = (struct brig_side){side->file, side->offset, side->bytes};
    return r;
}

int brig_st_take_packed(const struct brig_st *s, const struct brig_model *m,
                        const struct brig_st_tensor *words, struct brig_tensor *t, struct brig_fail *fail)
{
    const struct brig_hub_quant *q = &s->config.quant;
    const struct brig_type *type = brig_type_by_name(q->type);
    uint32_t in_word = 32 / type->packing->bits;
    bool by_rows = type->packing->by_rows;
    if (words->n_dims != 2 || words->bytes == 0 || strcmp(words->dtype->name, "I32") != 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%.200s' is no matrix of I32", words->name);
    uint64_t cols = words->dims[0] * (by_rows ? 1 : in_word), rows = words->dims[1] * (by_rows ? in_word : 1);
    if (cols > UINT32_MAX || rows > UINT32_MAX) /* dims are below 2^61: their bytes lie in a file */
        return brig_fail_set(fail, BRIG_ELIMIT, "tensor '%.200s' is larger than any matrix", words->name);
    t->type = type;
    t->n_dims = 2;
    t->dims[0] = cols;
    t->dims[1] = rows;
    t->sides.group_cols = q->group_cols != 0 && q->group_cols < cols ? q->group_cols : (uint32_t)cols;
    t->sides.zero_bias = q->zero_bias;
    uint64_t groups = brig_packed_groups(cols, t->sides.group_cols);
    int r;
    if (rows % in_word != 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%.200s' has %" PRIu64 " rows, no multiple of %u",
                             words->name, rows, in_word);
    if ((r = take_side(s, words, BRIG_SIDE_SCALES, groups, rows, t, fail)) < 0 ||
        (r = take_side(s, words, BRIG_SIDE_ZEROS, groups, rows / in_word, t, fail)) < 0 ||
        (r = take_groups(s, m, words, (uint32_t)groups, t, fail)) < 0)
        return r;
    r = brig_sides_check(&t->sides, type, rows, cols, fail);
    return r < 0 ? brig_fail_prefix(fail, "tensor '%.200s'", words->name) : 0;
}
