/* Tensors by the names that GGUF gives them: "blk.N." and a name from the family's table for those of a
 * layer, the whole name for the others. Families that are named this way share it. */
#include "proto/model/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct brig_role_name gguf_names[] = {
    {"attn_norm.weight", BRIG_ROLE_ATTN_NORM},
    {"attn_q.weight", BRIG_ROLE_ATTN_Q},
    {"attn_k.weight", BRIG_ROLE_ATTN_K},
    {"attn_v.weight", BRIG_ROLE_ATTN_V},
    {"attn_output.weight", BRIG_ROLE_ATTN_OUT},
    {"ffn_norm.weight", BRIG_ROLE_FFN_NORM},
    {"ffn_gate.weight", BRIG_ROLE_FFN_GATE},
    {"ffn_up.weight", BRIG_ROLE_FFN_UP},
    {"ffn_down.weight", BRIG_ROLE_FFN_DOWN},
    {"attn_q.bias", BRIG_ROLE_ATTN_Q_BIAS},
    {"attn_k.bias", BRIG_ROLE_ATTN_K_BIAS},
    {"attn_v.bias", BRIG_ROLE_ATTN_V_BIAS},
    {"attn_output.bias", BRIG_ROLE_ATTN_OUT_BIAS},
    {"attn_q_norm.weight", BRIG_ROLE_ATTN_Q_NORM},
    {"attn_k_norm.weight", BRIG_ROLE_ATTN_K_NORM},
    {"ffn_gate.bias", BRIG_ROLE_FFN_GATE_BIAS},
    {"ffn_up.bias", BRIG_ROLE_FFN_UP_BIAS},
    {"ffn_down.bias", BRIG_ROLE_FFN_DOWN_BIAS},
    {"token_embd.weight", BRIG_ROLE_TOKEN_TABLE},
    {"output_norm.weight", BRIG_ROLE_OUTPUT_NORM},
    {"ffn_gate_inp.weight", BRIG_ROLE_ROUTER},
    {"ffn_gate.*.weight", BRIG_ROLE_EXPERT_GATE},
    {"ffn_up.*.weight", BRIG_ROLE_EXPERT_UP},
    {"ffn_down.*.weight", BRIG_ROLE_EXPERT_DOWN},
    {"output.weight", BRIG_ROLE_OUTPUT},
    {"attn_norm.bias", BRIG_ROLE_ATTN_NORM_BIAS},
    {"ffn_norm.bias", BRIG_ROLE_FFN_NORM_BIAS},
    {"post_attention_norm.weight", BRIG_ROLE_ATTN_POST_NORM},
    {"post_ffw_norm.weight", BRIG_ROLE_FFN_POST_NORM},
    {"output_norm.bias", BRIG_ROLE_OUTPUT_NORM_BIAS},
    {"position_embd.weight", BRIG_ROLE_POSITION_TABLE},
};

/* All experts of a layer in one tensor. */
static const struct brig_split stacks[] = {
    {"ffn_gate_exps.weight", {BRIG_ROLE_EXPERT_GATE}, true},
    {"ffn_up_exps.weight", {BRIG_ROLE_EXPERT_UP}, true},
    {"ffn_down_exps.weight", {BRIG_ROLE_EXPERT_DOWN}, true},
};

static bool starts_with(struct brig_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && memcmp(s.ptr, prefix, n) == 0;
}

#define NUMBER_DIGITS 7u

/* Digits at *at without leading zeros, so that a layer or an expert has one name. */
static bool take_number(struct brig_str s, size_t *at, uint32_t *ret)
{
    size_t i = *at;
    uint32_t n = 0;
    while (i < s.len && i - *at < NUMBER_DIGITS && s.ptr[i] >= '0' && s.ptr[i] <= '9')
        n = n * 10 + (uint32_t)(s.ptr[i++] - '0');
    if (i == *at || (s.ptr[*at] == '0' && i > *at + 1))
        return false;
    *at = i;
    *ret = n;
    return true;
}

bool brig_family_layer_name(struct brig_str name, uint32_t *layer, struct brig_str *rest)
{
    size_t i = 4;
    if (!starts_with(name, "blk.") || !take_number(name, &i, layer) || i >= name.len || name.ptr[i] != '.')
        return false;
    *rest = (struct brig_str){name.ptr + i + 1, name.len - i - 1};
    return true;
}

/* A star in the pattern is a number. */
static bool matches(struct brig_str name, const char *pattern, uint32_t *number)
{
    size_t i = 0;
    *number = 0;
    for (const char *p = pattern; *p != '\0'; p++) {
        if (*p == '*') {
            if (!take_number(name, &i, number))
                return false;
        } else if (i >= name.len || name.ptr[i++] != *p) {
            return false;
        }
    }
    return i == name.len;
}

static const struct brig_role_name *find(const struct brig_role_name *names, unsigned n, struct brig_str name,
                                         bool of_layer, uint32_t *expert)
{
    for (unsigned i = 0; i < n; i++)
        if ((names[i].role < BRIG_ROLE_LAYER_COUNT) == of_layer && matches(name, names[i].name, expert))
            return &names[i];
    return NULL;
}

/* A tensor that the family does not know: without it the numbers would be wrong, unless it stands aside of
 * the path from token table to output. */
static int check_unknown(const struct brig_tensor *t, struct brig_fail *fail)
{
    static const char *const path[] = {"blk.", "token_embd", "position_embd", "output", "rope_"};
    if (brig_family_is_rope(t->name))
        return 0; /* numbers, taken into the description */
    for (unsigned i = 0; i < sizeof path / sizeof path[0]; i++)
        if (starts_with(t->name, path[i]))
            return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                                 "tensor '%.*s' is not supported in this architecture", (int)t->own_name.len,
                                 t->own_name.ptr);
    return 0;
}

/* How many tensors of this role the description has, in this layer if it is of layers. */
static uint32_t count_of(const struct brig_desc *d, enum brig_role role, uint32_t layer)
{
    if (role == BRIG_ROLE_TOKEN_TABLE)
        return 1;
    if (role == BRIG_ROLE_POSITION_TABLE)
        return d->learned_positions;
    return brig_desc_count(d, role, role < BRIG_ROLE_LAYER_COUNT ? layer : d->n_layers);
}

static int give_role(const struct brig_model *m, struct brig_tensor *t, const struct brig_role_name *names,
                     unsigned n, struct brig_fail *fail)
{
    struct brig_str rest = t->name;
    uint32_t layer = 0, expert;
    bool of_layer = brig_family_layer_name(t->name, &layer, &rest);
    if (of_layer && layer >= m->desc.n_layers)
        return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%.*s' belongs to no layer: the model has %u",
                             (int)t->own_name.len, t->own_name.ptr, m->desc.n_layers);
    const struct brig_role_name *hit = find(names, n, rest, of_layer, &expert);
    uint32_t count = hit != NULL ? count_of(&m->desc, hit->role, layer) : 0;
    if (hit == NULL || count == 0)
        return check_unknown(t, fail);
    if (expert >= count)
        return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%.*s' belongs to no expert: the layer has %u",
                             (int)t->own_name.len, t->own_name.ptr, count);
    t->role = hit->role;
    t->layer = layer;
    t->expert = expert;
    return 0;
}

static int check_shape(const struct brig_model *m, const struct brig_tensor *t, struct brig_fail *fail)
{
    uint64_t rows, cols;
    brig_role_shape(&m->desc, t->role, &rows, &cols);
    if (t->dims[0] != cols || t->dims[1] != rows || t->dims[2] != 1 || t->dims[3] != 1)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "tensor '%.*s' has the shape %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                             ", the model needs %" PRIu64 " x %" PRIu64 " (columns x rows)",
                             (int)t->own_name.len, t->own_name.ptr, t->dims[0], t->dims[1], t->dims[2],
                             t->dims[3], cols, rows);
    if (!brig_role_takes(t->role, t->type))
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "tensor '%.*s' has type %s: %s", (int)t->own_name.len,
                             t->own_name.ptr, t->type->name,
                             brig_type_has_rows(t->type)
                                 ? "it must be F32, F16 or BF16"
                                 : "single rows are read from it, which those do not have");
    return 0;
}

/* "blk.2.ffn_up.3.weight", or as the checkpoint calls it. */
static int missing(const struct brig_model *m, const struct brig_role_name *name, uint32_t layer,
                   uint32_t expert, struct brig_fail *fail)
{
    char full[BRIG_OWN_NAME_BYTES], own[BRIG_OWN_NAME_BYTES];
    const char *star = strchr(name->name, '*');
    int stem = (int)strcspn(name->name, "*");
    if (name->role >= BRIG_ROLE_LAYER_COUNT)
        snprintf(full, sizeof full, "%s", name->name);
    else if (star == NULL)
        snprintf(full, sizeof full, "blk.%u.%s", layer, name->name);
    else
        snprintf(full, sizeof full, "blk.%u.%.*s%u%s", layer, stem, name->name, expert, star + 1);
    const char *shown = brig_model_own_name(m, full, own);
    if (star == NULL || shown != full)
        return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%s' is missing", shown);
    return brig_fail_set(fail, BRIG_EFORMAT,
                         "tensor '%s' is missing (or all experts in one: 'blk.%u.%.*s_exps%s')", shown, layer,
                         stem - 1, name->name, star + 1);
}

static int check_layer(const struct brig_model *m, uint32_t layer, const struct brig_role_name *names,
                       unsigned n, struct brig_fail *fail)
{
    int r = 0;
    for (unsigned i = 0; i < n; i++) {
        if (names[i].role >= BRIG_ROLE_LAYER_COUNT)
            continue;
        for (uint32_t e = 0; e < brig_desc_count(&m->desc, names[i].role, layer) && r == 0; e++) {
            const struct brig_tensor *t = brig_model_expert(m, names[i].role, layer, e);
            r = t != NULL ? check_shape(m, t, fail) : missing(m, &names[i], layer, e, fail);
        }
    }
    return r;
}

static int check_whole(const struct brig_model *m, const struct brig_role_name *names, unsigned n,
                       struct brig_fail *fail)
{
    int r = 0;
    for (unsigned i = 0; i < n && r == 0; i++) {
        if (names[i].role < BRIG_ROLE_LAYER_COUNT || count_of(&m->desc, names[i].role, 0) == 0)
            continue;
        const struct brig_tensor *t = brig_model_tensor(m, names[i].role, 0);
        if (t != NULL)
            r = check_shape(m, t, fail);
        else
            r = missing(m, &names[i], 0, 0, fail);
    }
    return r;
}

/* The token table's rows are the vocabulary; without an output table it is the output table too. */
static int set_vocab(struct brig_model *m, struct brig_fail *fail)
{
    const struct brig_tensor *table = brig_model_tensor(m, BRIG_ROLE_TOKEN_TABLE, 0);
    m->desc.vocab = 0;
    if (table != NULL && table->dims[1] > BRIG_MAX_VOCAB)
        return brig_fail_set(fail, BRIG_ELIMIT, "tensor '%.*s' has %" PRIu64 " rows, more than %u",
                             (int)table->own_name.len, table->own_name.ptr, table->dims[1], BRIG_MAX_VOCAB);
    if (table != NULL)
        m->desc.vocab = (uint32_t)table->dims[1];
    m->desc.tied = brig_model_tensor(m, BRIG_ROLE_OUTPUT, 0) == NULL;
    return 0;
}

int brig_family_place(struct brig_model *m, const struct brig_role_name *names, unsigned n,
                      struct brig_fail *fail)
{
    int r = 0;
    for (unsigned i = 0; i < m->n_tensors && r == 0; i++)
        r = give_role(m, &m->tensors[i], names, n, fail);
    if (r < 0 || (r = brig_model_index(m, fail)) < 0 || (r = set_vocab(m, fail)) < 0 ||
        (r = check_whole(m, names, n, fail)) < 0)
        return r;
    for (uint32_t layer = 0; layer < m->desc.n_layers && r == 0; layer++)
        r = check_layer(m, layer, names, n, fail);
    return r;
}

int brig_family_check_vocab(const struct brig_model *m, struct brig_fail *fail)
{
    const struct brig_vocab *v = &m->vocab;
    if (v->n_tokens != 0 && v->n_tokens != m->desc.vocab)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "a vocabulary that does not fit: %u tokens, and a token table of %u rows",
                             v->n_tokens, m->desc.vocab);
    const struct {
        const char *name;
        int64_t id;
    } ids[] = {{"bos", v->bos}, {"eos", v->eos}, {"eot", v->eot}, {"padding", v->pad}, {"unknown", v->unk}};
    for (unsigned i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (ids[i].id >= (int64_t)m->desc.vocab)
            return brig_fail_set(fail, BRIG_EFORMAT,
                                 "a vocabulary that does not fit: the %s token is %" PRId64
                                 ", and the token table has %u rows",
                                 ids[i].name, ids[i].id, m->desc.vocab);
    return 0;
}

static const struct brig_tensor *by_name(const struct brig_model *m, const char *name)
{
    for (unsigned i = 0; i < m->n_tensors; i++)
        if (brig_str_eq(m->tensors[i].name, name))
            return &m->tensors[i];
    return NULL;
}

int brig_family_read_vector(const struct brig_model *m, const char *name, float *ret, uint32_t n,
                            struct brig_fail *fail)
{
    uint8_t bytes[BRIG_MAX_ROPE_PAIRS * sizeof(float)];
    const struct brig_tensor *t = by_name(m, name);
    if (t == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%s' is missing", name);
    if (n > BRIG_MAX_ROPE_PAIRS || t->dims[0] != n || t->dims[1] != 1 || t->dims[2] != 1 || t->dims[3] != 1)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "tensor '%s' has the shape %" PRIu64 " x %" PRIu64 ", %u numbers are wanted",
                             name, t->dims[0], t->dims[1], n);
    if (t->type->block_elems != 1 || t->bytes > sizeof bytes)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "tensor '%s' has type %s: it must be F32, F16 or BF16",
                             name, t->type->name);
    int r = brig_model_file_read(m->files[t->file].fd, bytes, (size_t)t->bytes, t->offset, fail);
    if (r == 0)
        t->type->dequant(bytes, ret, n);
    return r;
}

int brig_family_finish_joined(struct brig_model *m, const struct brig_split *joined, unsigned n,
                              struct brig_fail *fail)
{
    m->desc.vocab = 1; /* until the token table says it: the other numbers are checked before shapes are */
    int r = brig_desc_check(&m->desc, fail);
    if (r == 0)
        r = brig_family_split(m, joined, n, fail);
    if (r == 0)
        r = brig_family_split(m, stacks, sizeof stacks / sizeof stacks[0], fail);
    if (r == 0)
        r = brig_family_place(m, gguf_names, sizeof gguf_names / sizeof gguf_names[0], fail);
    return r < 0 ? r : brig_family_check_vocab(m, fail);
}

int brig_family_finish(struct brig_model *m, struct brig_fail *fail)
{
    return brig_family_finish_joined(m, NULL, 0, fail);
}

struct brig_str brig_family_stem(enum brig_role role)
{
    unsigned i = 0;
    while (gguf_names[i].role != role)
        i++;
    return (struct brig_str){gguf_names[i].name, strcspn(gguf_names[i].name, ".")};
}

bool brig_family_has(const struct brig_model *m, const char *name)
{
    return by_name(m, name) != NULL;
}

void brig_family_biases(struct brig_model *m)
{
    m->desc.qkv_bias = brig_family_has(m, "blk.0.attn_q.bias");
    m->desc.out_bias = brig_family_has(m, "blk.0.attn_output.bias");
    m->desc.mlp_bias = brig_family_has(m, "blk.0.ffn_down.bias");
}
