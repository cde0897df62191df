/* What config.json says about single layers: which see a window, which have experts. */
#include "proto/model/hub.h"

#include <string.h>

#include "proto/model/json.h"

#define WINDOWED 'w'
#define GLOBAL   'g'

/* The letter of a layer's kind in the words of config.json; 0 when it is neither. */
static char letter_of(struct brig_str kind)
{
    if (brig_str_eq(kind, "sliding_attention") || brig_str_eq(kind, "local"))
        return WINDOWED;
    return brig_str_eq(kind, "full_attention") || brig_str_eq(kind, "global") ? GLOBAL : '\0';
}

static int add_kind(const struct brig_hub_config *c, char *letters, uint32_t *n, const json_t *kind,
                    const char *key, struct brig_fail *fail)
{
    struct brig_str s;
    int r = brig_json_as_str(kind, key, &s, fail);
    if (r < 0)
        return r;
    char letter = letter_of(s);
    if (letter == '\0')
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "%s: layers of kind '%.*s' are not supported", key,
                             (int)(s.len < 64 ? s.len : 64), s.ptr);
    if (*n == c->n_layers)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s has more kinds than the model has layers (%u)", key,
                             c->n_layers);
    letters[(*n)++] = letter;
    return 0;
}

/* A list with one kind a layer. 1: read, 0: there is none. */
static int read_list(const struct brig_hub_config *c, const json_t *config, const char *key, char *letters,
                     struct brig_fail *fail)
{
    const json_t *list = NULL, *kind;
    uint32_t n = 0;
    size_t i;
    int r = brig_json_array(config, key, &list, fail);
    if (r <= 0)
        return r;
    json_array_foreach(list, i, kind) if ((r = add_kind(c, letters, &n, kind, key, fail)) < 0) return r;
    if (n != c->n_layers)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s has %u kinds, and the model %u layers", key, n,
                             c->n_layers);
    return 1;
}

/* One [[kinds], times] of attention_types. */
static int add_group(const struct brig_hub_config *c, char *letters, uint32_t *n, const json_t *group,
                     struct brig_fail *fail)
{
    const json_t *kinds = json_array_get(group, 0);
    uint64_t times;
    int r = brig_json_as_u64(json_array_get(group, 1), "the second part of a group of attention_types",
                             &times, fail);
    if (r < 0)
        return r;
    if (json_array_size(kinds) == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "attention_types: a group without kinds");
    for (uint64_t t = 0; t < times && r == 0; t++)
        for (size_t i = 0; i < json_array_size(kinds) && r == 0; i++)
            r = add_kind(c, letters, n, json_array_get(kinds, i), "attention_types", fail);
    return r;
}

/* gpt_neo: attention_layers, else attention_types, else global and local in turn. */
static int read_local(const struct brig_hub_config *c, const json_t *config, char *letters,
                      struct brig_fail *fail)
{
    const json_t *groups = NULL;
    uint32_t n = 0;
    int r = read_list(c, config, "attention_layers", letters, fail);
    if (r != 0)
        return r < 0 ? r : 0;
    if ((r = brig_json_array(config, "attention_types", &groups, fail)) < 0)
        return r;
    if (r == 0) {
        for (; n < c->n_layers; n++)
            letters[n] = n % 2 == 0 ? GLOBAL : WINDOWED;
        return 0;
    }
    r = 0;
    for (size_t i = 0; i < json_array_size(groups) && r == 0; i++)
        r = add_group(c, letters, &n, json_array_get(groups, i), fail);
    if (r == 0 && n != c->n_layers)
        return brig_fail_set(fail, BRIG_EFORMAT, "attention_types has %u kinds, and the model %u layers", n,
                             c->n_layers);
    return r;
}

/* gemma3: each pattern-th layer is global. */
static int read_pattern(const struct brig_hub_config *c, const json_t *config, char *letters,
                        struct brig_fail *fail)
{
    static const char *const keys[] = {"sliding_window_pattern", "_sliding_window_pattern"};
    uint32_t pattern = 6;
    int r = 0;
    for (unsigned i = 0; i < 2 && r == 0; i++)
        if (json_object_get(config, keys[i]) != NULL)
            r = brig_hub_u32(config, keys[i], 0, &pattern, fail);
    if (r < 0)
        return r;
    if (pattern == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "sliding_window_pattern is 0 or null");
    for (uint32_t i = 0; i < c->n_layers; i++)
        letters[i] = (i + 1) % pattern == 0 ? GLOBAL : WINDOWED;
    return 0;
}

/* Layers below max_window_layers are global. */
static int read_upper(const struct brig_hub_config *c, const json_t *config, char *letters,
                      struct brig_fail *fail)
{
    uint32_t first;
    int r = brig_hub_u32(config, "max_window_layers", 28, &first, fail);
    for (uint32_t i = 0; i < c->n_layers && r == 0; i++)
        letters[i] = i < first ? GLOBAL : WINDOWED;
    return r;
}

static int read_letters(const struct brig_hub_config *c, const json_t *config, char *letters,
                        struct brig_fail *fail)
{
    enum brig_hub_window kind = c->arch->window;
    if (kind == BRIG_HUB_WINDOW_LOCAL)
        return read_local(c, config, letters, fail);
    if (kind == BRIG_HUB_WINDOW_ALL || kind == BRIG_HUB_WINDOW_ASKED) {
        memset(letters, WINDOWED, c->n_layers);
        return 0;
    }
    int r = read_list(c, config, "layer_types", letters, fail); /* newer files have it */
    if (r != 0)
        return r < 0 ? r : 0;
    return kind == BRIG_HUB_WINDOW_PATTERN ? read_pattern(c, config, letters, fail)
                                           : read_upper(c, config, letters, fail);
}

int brig_hub_window(struct brig_hub_config *c, const json_t *config, struct brig_fail *fail)
{
    enum brig_hub_window kind = c->arch->window;
    char letters[BRIG_MAX_LAYERS];
    bool use = kind != BRIG_HUB_WINDOW_NONE;
    uint32_t window;
    int r = 0;
    if (kind == BRIG_HUB_WINDOW_ASKED || kind == BRIG_HUB_WINDOW_UPPER) {
        use = false;
        r = brig_json_bool(config, "use_sliding_window", &use, fail);
    }
    if (r < 0 || !use)
        return r < 0 ? r : 0;
    const char *key = kind == BRIG_HUB_WINDOW_LOCAL ? "window_size" : "sliding_window";
    if ((r = brig_hub_u32(config, key, c->arch->window_size, &window, fail)) < 0 || window == 0)
        return r;
    if ((r = read_letters(c, config, letters, fail)) < 0)
        return r;
    if (memchr(letters, WINDOWED, c->n_layers) == NULL)
        return 0;
    brig_meta_put_u64(&c->make, ".attention.sliding_window", window);
    if (memchr(letters, GLOBAL, c->n_layers) != NULL)
        brig_meta_put_str(&c->make, "brigade.layer_types", (struct brig_str){letters, c->n_layers});
    return 0;
}

static int read_dense(struct brig_hub_config *c, const json_t *config, struct brig_fail *fail)
{
    char digits[BRIG_MAX_LAYERS];
    const json_t *list = NULL, *layer;
    uint32_t step;
    size_t i;
    int r = brig_hub_u32(config, "decoder_sparse_step", 1, &step, fail);
    if (r < 0)
        return r;
    if (step == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "decoder_sparse_step is 0 or null");
    for (uint32_t n = 0; n < c->n_layers; n++)
        digits[n] = (n + 1) % step != 0 ? '1' : '0';
    if ((r = brig_json_array(config, "mlp_only_layers", &list, fail)) < 0)
        return r;
    json_array_foreach(list, i, layer)
    {
        uint64_t n;
        if ((r = brig_json_as_u64(layer, "a layer of mlp_only_layers", &n, fail)) < 0)
            return r;
        if (n < c->n_layers)
            digits[n] = '1';
    }
    if (memchr(digits, '1', c->n_layers) != NULL)
        brig_meta_put_str(&c->make, "brigade.dense_layers", (struct brig_str){digits, c->n_layers});
    return 0;
}

int brig_hub_moe(struct brig_hub_config *c, const json_t *config, struct brig_fail *fail)
{
    const struct brig_hub_moe *moe = c->arch->moe;
    uint32_t n_experts, n_used, width;
    bool normed = false;
    int r;
    if (moe == NULL)
        return 0;
    const char *count = json_object_get(config, "num_experts") != NULL ? "num_experts" : "num_local_experts";
    if ((r = brig_hub_u32(config, count, moe->n_experts, &n_experts, fail)) < 0 ||
        (r = brig_hub_u32(config, "num_experts_per_tok", moe->n_used, &n_used, fail)) < 0 ||
        (r = brig_hub_u32(config, moe->width_key, 0, &width, fail)) < 0 ||
        (r = brig_json_bool(config, "norm_topk_prob", &normed, fail)) < 0)
        return r;
    if (n_experts == 0 || n_used == 0 || n_used > n_experts || width == 0)
        return brig_fail_set(
            fail, BRIG_EFORMAT,
            "%u of %u experts of width %u (%s) are used: each must be at least 1, and no more "
            "are used than there are",
            n_used, n_experts, width, moe->width_key);
    brig_meta_put_u64(&c->make, ".expert_count", n_experts);
    brig_meta_put_u64(&c->make, ".expert_used_count", n_used);
    brig_meta_put_u64(&c->make, ".expert_feed_forward_length", width);
    brig_meta_put_bool(&c->make, "brigade.norm_topk_prob", moe->always_normed || normed);
    return read_dense(c, config, fail);
}
