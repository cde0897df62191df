/* The row of the table of formats for folders as they lie on the Hugging Face hub: config.json, and
 * safetensors files alone or with an index. */
#include "proto/model/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/model/json.h"
#include "proto/model/private.h"

#define CONFIG           "config.json"
#define MAX_CONFIG_BYTES (1u << 20)

/* A folder (no first bytes) with a config.json, or one of its weight files. */
static bool probe(const char *path, const uint8_t *head, size_t n)
{
    if (n > 0)
        return brig_st_probe(head, n);
    char *config = brig_st_path(path, CONFIG);
    bool found = config != NULL && access(config, F_OK) == 0;
    brig_free(config);
    return found;
}

/* A JSON file of the folder onto the end of s->head and, parsed, into *ret. */
static int load_json(struct brig_st *s, const char *name, json_t **ret, struct brig_fail *fail)
{
    char *path = brig_st_path(s->folder, name);
    uint64_t bytes;
    int fd = -1, r;
    if (path == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    r = brig_model_file_open(path, &fd, &bytes, fail);
    brig_free(path);
    if (r < 0)
        return r;
    if (bytes > MAX_CONFIG_BYTES)
        r = brig_fail_set(fail, BRIG_ELIMIT, "it has %" PRIu64 " bytes, more than %u", bytes,
                          MAX_CONFIG_BYTES);
    else if (brig_buf_reserve(&s->head, bytes) < 0)
        r = brig_fail_set(fail, BRIG_ENOMEM, "no memory for its %" PRIu64 " bytes", bytes);
    char *text = s->head.data + s->head.len;
    if (r == 0 && (r = brig_model_file_read(fd, text, (size_t)bytes, 0, fail)) == 0)
        r = brig_json_parse(ret, text, (size_t)bytes, fail);
    close(fd);
    if (r == 0)
        s->head.len += (size_t)bytes;
    return r;
}

/* Older quantisers say what they did in a file beside config.json. */
static int read_quant(struct brig_st *s, struct brig_fail *fail)
{
    static const struct {
        const char *name;
        enum brig_hub_method method;
    } files[] = {{"quantize_config.json", BRIG_HUB_GPTQ}, {"quant_config.json", BRIG_HUB_AWQ}};
    int r = 0;
    for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *path = brig_st_path(s->folder, files[i].name);
        bool found = path != NULL && access(path, F_OK) == 0;
        brig_free(path);
        if (!found || s->config.quant.method != BRIG_HUB_FLOATS)
            continue;
        json_t *quant = NULL;
        if ((r = load_json(s, files[i].name, &quant, fail)) == 0)
            r = brig_hub_quant_read(&s->config.quant, quant, files[i].method, fail);
        json_decref(quant);
        if (r < 0)
            return brig_fail_prefix(fail, "%s", files[i].name);
    }
    return 0;
}

static int read_config(struct brig_st *s, struct brig_fail *fail)
{
    json_t *config = NULL;
    int r = load_json(s, CONFIG, &config, fail);
    if (r == 0)
        r = brig_hub_config_read(&s->config, config, fail);
    json_decref(config);
    return r < 0 ? brig_fail_prefix(fail, "%s", CONFIG) : read_quant(s, fail);
}

static int read_headers(struct brig_st *s, struct brig_model *m, struct brig_fail *fail)
{
    json_t *index = NULL;
    int r = brig_st_open_files(s, m, &index, fail);
    for (uint32_t i = 0; i < m->n_files && r == 0; i++)
        if ((r = brig_st_read_header(s, m, i, fail)) < 0)
            brig_fail_prefix(fail, "%s", brig_st_base_name(m->files[i].path));
    if (r == 0 && (r = brig_st_sort(s, m, fail)) == 0)
        r = brig_st_check_index(s, m, index, fail);
    json_decref(index);
    return r;
}

static int set_plain(struct brig_tensor *t, const struct brig_st_tensor *from, struct brig_fail *fail)
{
    t->type = brig_type_by_name(from->dtype->name);
    if (t->type == NULL)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "tensor '%.200s' has dtype %s, which is not supported (F32, F16 and BF16 are)",
                             from->name, from->dtype->name);
    if (from->n_dims < 1 || from->n_dims > 4 || from->bytes == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%.200s' has %u dimensions and %" PRIu64 " bytes",
                             from->name, from->n_dims, from->bytes);
    t->n_dims = from->n_dims;
    for (uint32_t d = 0; d < from->n_dims; d++)
        t->dims[from->n_dims - 1 - d] = from->dims[d];
    return 0;
}

/* The tensor as families know it. */
static int convert(struct brig_st *s, const struct brig_model *m, struct brig_tensor *t,
                   const struct brig_st_tensor *from, enum brig_st_part part, const char *canonical,
                   struct brig_fail *fail)
{
    char *name = brig_strndup(canonical, strlen(canonical));
    if (name == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    s->names[s->n_names++] = name;
    *t = (struct brig_tensor){.name = {name, strlen(name)},
                              .own_name = {from->name, strlen(from->name)},
                              .dims = {1, 1, 1, 1},
                              .file = from->file,
                              .offset = from->offset,
                              .bytes = from->bytes,
                              .role = BRIG_ROLE_COUNT};
    return part == BRIG_ST_WORDS ? brig_st_take_packed(s, m, from, t, fail) : set_plain(t, from, fail);
}

struct placed {
    uint64_t order;
    struct brig_tensor tensor;
};

static int by_order(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

/* One tensor of the files into placed[*n], unless it is none of the text model's. */
static int translate(struct brig_st *s, const struct brig_model *m, const struct brig_st_tensor *from,
                     struct placed *placed, unsigned *n, struct brig_fail *fail)
{
    struct brig_hub_place place;
    char matrix[BRIG_HUB_NAME_BYTES];
    enum brig_st_part part;
    int r = brig_st_part_of(s, m, from, &part, matrix, fail);
    if (r < 0 || part == BRIG_ST_BESIDE)
        return r;
    const char *own = part == BRIG_ST_WORDS ? matrix : from->name;
    enum brig_hub_fate fate =
        brig_hub_translate(s->config.arch->names, s->base, (struct brig_str){own, strlen(own)}, &place);
    if (fate == BRIG_HUB_UNKNOWN)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "tensor '%.200s' is not supported in this architecture (%s)", from->name,
                             s->config.arch->model_type);
    if (fate == BRIG_HUB_LEFT || (s->config.tied && place.order == UINT64_MAX))
        return 0; /* with tie_word_embeddings an output table would be a copy, or not used */
    placed[*n].order = place.order;
    r = convert(s, m, &placed[*n].tensor, from, part, place.name, fail);
    *n += r == 0;
    return r;
}

static int make_tensors(struct brig_st *s, struct brig_model *m, struct brig_fail *fail)
{
    const struct brig_hub_names *names = s->config.arch->names;
    unsigned n = 0;
    s->base = names->bases[0];
    for (unsigned i = 0; i < s->n; i++) {
        const char *base =
            brig_hub_base(names, (struct brig_str){s->tensors[i].name, strlen(s->tensors[i].name)});
        if (base != NULL)
            s->base = base;
    }
    struct placed *placed = brig_alloc(s->n, sizeof *placed);
    m->tensors = brig_alloc(s->n, sizeof *m->tensors);
    s->names = brig_alloc(s->n, sizeof *s->names);
    int r = placed != NULL && m->tensors != NULL && s->names != NULL
                ? 0
                : brig_fail_set(fail, BRIG_ENOMEM, "no memory for %u tensors", s->n);
    for (unsigned i = 0; i < s->n && r == 0; i++)
        r = translate(s, m, &s->tensors[i], placed, &n, fail);
    if (r == 0 && n > 0)
        qsort(placed, n, sizeof *placed, by_order);
    for (unsigned i = 0; i < n && r == 0; i++)
        m->tensors[m->n_tensors++] = placed[i].tensor;
    brig_free(placed);
    return r;
}

static int check_said(const struct brig_model *m, int said, const char *key, const char *tensor,
                      struct brig_fail *fail)
{
    bool there = brig_family_has(m, tensor);
    if (said < 0 || there == (said == 1))
        return 0;
    return brig_fail_set(fail, BRIG_EFORMAT, "%s: %s is %s, and there are %s biases in the weights", CONFIG,
                         key, said == 1 ? "true" : "false", there ? "such" : "no such");
}

/* What config.json says about tensors, against those that are there. */
static int check_config(const struct brig_st *s, const struct brig_model *m, struct brig_fail *fail)
{
    const struct brig_hub_config *c = &s->config;
    int r;
    if (c->untied && !brig_family_has(m, "output.weight"))
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "tensor 'lm_head.weight' is missing, and %s says tie_word_embeddings false",
                             CONFIG);
    if ((r = check_said(m, c->attn_bias, "attention_bias", "blk.0.attn_q.bias", fail)) < 0 ||
        (r = check_said(m, c->mlp_bias, "mlp_bias", "blk.0.ffn_down.bias", fail)) < 0)
        return r;
    if (c->vocab > 0 && m->n_tensors > 0 && brig_str_eq(m->tensors[0].name, "token_embd.weight") &&
        m->tensors[0].dims[1] != c->vocab)
        return brig_fail_set(
            fail, BRIG_EFORMAT, "%s: vocab_size is %u, and tensor '%.*s' has %" PRIu64 " rows", CONFIG,
            c->vocab, (int)m->tensors[0].own_name.len, m->tensors[0].own_name.ptr, m->tensors[0].dims[1]);
    return 0;
}

static int open_folder(struct brig_model *m, const struct brig_meta **meta, struct brig_str *arch,
                       struct brig_fail *fail)
{
    struct brig_st *s = brig_alloc(1, sizeof *s);
    int r;
    if (s == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    m->priv = s;
    if ((r = brig_st_folder(s, m, fail)) < 0 || (r = read_config(s, fail)) < 0 ||
        (r = read_headers(s, m, fail)) < 0 || (r = make_tensors(s, m, fail)) < 0 ||
        (r = check_config(s, m, fail)) < 0 ||
        (r = brig_model_identify(m, s->head.data, s->head.len, fail)) < 0)
        return r;
    brig_buf_release(&s->head);
    m->vocab.bos = m->vocab.eos = m->vocab.eot = m->vocab.pad = m->vocab.unk = -1;
    m->name = (struct brig_str){s->title, strlen(s->title)};
    *arch = (struct brig_str){s->config.arch->arch, strlen(s->config.arch->arch)};
    *meta = &s->config.make.meta;
    return 0;
}

static void close_folder(struct brig_model *m)
{
    struct brig_st *s = m->priv;
    for (unsigned i = 0; i < m->n_files; i++) {
        if (m->files[i].fd >= 0)
            close(m->files[i].fd);
        brig_free(m->files[i].path);
    }
    brig_free(m->files);
    brig_free(m->tensors);
    if (s == NULL)
        return;
    for (unsigned i = 0; i < s->n; i++)
        brig_free(s->tensors[i].name);
    for (unsigned i = 0; i < s->n_names; i++)
        brig_free(s->names[i]);
    brig_free(s->tensors);
    brig_free(s->names);
    brig_free(s->folder);
    brig_free(s->title);
    brig_meta_make_release(&s->config.make);
    brig_buf_release(&s->head);
    brig_buf_release(&s->key_text);
    brig_buf_release(&s->value_text);
    brig_free(s);
}

static bool meta_at(const struct brig_model *m, unsigned index, const char **key, const char **value)
{
    struct brig_st *s = m->priv;
    if (!brig_meta_text(&s->config.make.meta, index, &s->key_text, &s->value_text))
        return false;
    *key = s->key_text.data;
    *value = s->value_text.data;
    return true;
}

/* As files name them: families say it when a tensor is missing. */
static bool own_name(const struct brig_model *m, const char *name, char *ret, size_t n)
{
    const struct brig_st *s = m->priv;
    char text[BRIG_HUB_NAME_BYTES];
    if (!brig_hub_own_name(s->config.arch->names, s->base, name, text))
        return false;
    snprintf(ret, n, "%s", text);
    return true;
}

const struct brig_format brig_format_safetensors = {
    .name = "safetensors",
    .help =
        "folders as on the Hugging Face hub: config.json and safetensors files (F32, F16, BF16, GPTQ, AWQ)",
    .probe = probe,
    .open = open_folder,
    .close = close_folder,
    .meta_at = meta_at,
    .own_name = own_name,
};
