/* The rotary embedding of config.json, in its two spellings: rope_theta with rope_scaling, and
 * rope_parameters (by kind of layer for gemma3). */
#include "proto/model/hub.h"

#include <math.h>

#include "proto/base/mem.h"
#include "proto/model/json.h"

#define MAX_FACTORS 65536u

struct rope {
    struct brig_hub_config *c;
    const json_t *config;
    const json_t *scaling; /* rope_scaling or rope_parameters; an empty object when there is none */
    struct brig_fail *fail;
};

/* A number of the scaling under a canonical key. */
static int copy_f32(const struct rope *p, const char *from, const char *to, bool required)
{
    double v;
    int r = brig_json_f64(p->scaling, from, &v, p->fail);
    if (r == 0 && required)
        return brig_fail_set(p->fail, BRIG_EFORMAT, "rope scaling: %s is missing", from);
    if (r == 1)
        brig_meta_put_f32(&p->c->make, to, v);
    return r < 0 ? r : 0;
}

/* The context before scaling stands in the scaling or, for phi3, beside it. */
static int copy_original(const struct rope *p, bool required)
{
    uint32_t ctx = 0;
    int r = brig_hub_u32(p->scaling, "original_max_position_embeddings", 0, &ctx, p->fail);
    if (r == 0 && ctx == 0)
        r = brig_hub_u32(p->config, "original_max_position_embeddings", 0, &ctx, p->fail);
    if (r < 0)
        return r;
    if (ctx == 0 && required)
        return brig_fail_set(p->fail, BRIG_EFORMAT,
                             "rope scaling: original_max_position_embeddings is missing");
    if (ctx > 0)
        brig_meta_put_u64(&p->c->make, ".rope.scaling.original_context_length", ctx);
    return 0;
}

static int copy_factors(const struct rope *p, const char *from, const char *to)
{
    const json_t *list = NULL, *value;
    size_t i;
    int r = brig_json_array(p->scaling, from, &list, p->fail);
    if (r == 0)
        return brig_fail_set(p->fail, BRIG_EFORMAT, "rope scaling: %s is missing", from);
    if (r < 0)
        return r;
    if (json_array_size(list) == 0 || json_array_size(list) > MAX_FACTORS)
        return brig_fail_set(p->fail, BRIG_EFORMAT, "rope scaling: %s has %zu numbers (1 to %u)", from,
                             json_array_size(list), MAX_FACTORS);
    float *values = brig_alloc(json_array_size(list), sizeof *values);
    if (values == NULL)
        return brig_fail_set(p->fail, BRIG_ENOMEM, "no memory for %s", from);
    r = 0;
    json_array_foreach(list, i, value)
    {
        double v = 0.0;
        if ((r = brig_json_as_f64(value, from, &v, p->fail)) < 0)
            break;
        values[i] = (float)v;
    }
    if (r == 0)
        brig_meta_put_f32s(&p->c->make, to, values, json_array_size(list));
    brig_free(values);
    return r;
}

/* m of "0.1 m ln(factor) + 1", as DeepSeek's YaRN has it. */
static double mscale_of(double factor, double m)
{
    return factor <= 1.0 ? 1.0 : 0.1 * m * log(factor) + 1.0;
}

static int read_yarn(const struct rope *p)
{
    double factor = 1.0, attention, mscale = 0.0, mscale_all = 0.0;
    bool truncate = true;
    int r, stated;
    if ((r = copy_f32(p, "factor", ".rope.scaling.factor", true)) < 0 || (r = copy_original(p, false)) < 0 ||
        (r = copy_f32(p, "beta_fast", ".rope.scaling.yarn_beta_fast", false)) < 0 ||
        (r = copy_f32(p, "beta_slow", ".rope.scaling.yarn_beta_slow", false)) < 0 ||
        (r = brig_json_f64(p->scaling, "factor", &factor, p->fail)) < 0 ||
        (r = brig_json_f64(p->scaling, "mscale", &mscale, p->fail)) < 0 ||
        (r = brig_json_f64(p->scaling, "mscale_all_dim", &mscale_all, p->fail)) < 0 ||
        (r = brig_json_bool(p->scaling, "truncate", &truncate, p->fail)) < 0 ||
        (r = stated = brig_json_f64(p->scaling, "attention_factor", &attention, p->fail)) < 0)
        return r;
    if (!truncate)
        brig_meta_put_bool(&p->c->make, "brigade.rope.yarn_truncate", false);
    if (stated == 0 && mscale != 0.0 && mscale_all != 0.0) {
        attention = mscale_of(factor, mscale) / mscale_of(factor, mscale_all);
        stated = 1;
    }
    if (stated == 1)
        brig_meta_put_f32(&p->c->make, "brigade.rope.attention_factor", attention);
    return 0;
}

static int read_longrope(const struct rope *p)
{
    int r;
    if ((r = copy_original(p, true)) < 0 ||
        (r = copy_f32(p, "attention_factor", "brigade.rope.attention_factor", false)) < 0 ||
        (r = copy_f32(p, "factor", ".rope.scaling.factor", false)) < 0 ||
        (r = copy_factors(p, "short_factor", "brigade.rope.short_factor")) < 0)
        return r;
    return copy_factors(p, "long_factor", "brigade.rope.long_factor");
}

static int read_llama3(const struct rope *p)
{
    int r;
    if ((r = copy_f32(p, "factor", ".rope.scaling.factor", true)) < 0 || (r = copy_original(p, true)) < 0 ||
        (r = copy_f32(p, "low_freq_factor", "brigade.rope.low_freq_factor", true)) < 0)
        return r;
    return copy_f32(p, "high_freq_factor", "brigade.rope.high_freq_factor", true);
}

static int read_type(const json_t *scaling, struct brig_str *ret, struct brig_fail *fail)
{
    int r = brig_json_str(scaling, "rope_type", ret, fail);
    return r == 0 ? brig_json_str(scaling, "type", ret, fail) : r;
}

static int read_scaling(const struct rope *p)
{
    struct brig_str type = {"default", 7};
    int r = read_type(p->scaling, &type, p->fail);
    if (r < 0 || brig_str_eq(type, "default"))
        return r < 0 ? r : 0;
    if (p->c->arch->su_is_longrope && (brig_str_eq(type, "su") || brig_str_eq(type, "yarn")))
        type = (struct brig_str){"longrope", 8};
    brig_meta_put_str(&p->c->make, ".rope.scaling.type", type);
    if (brig_str_eq(type, "linear"))
        return copy_f32(p, "factor", ".rope.scaling.factor", true);
    if (brig_str_eq(type, "llama3"))
        return read_llama3(p);
    if (brig_str_eq(type, "yarn"))
        return read_yarn(p);
    if (brig_str_eq(type, "longrope"))
        return read_longrope(p);
    return brig_fail_set(p->fail, BRIG_EUNSUPPORTED,
                         "rope scaling '%.*s' is not supported (linear, llama3, yarn and longrope are)",
                         (int)(type.len < 64 ? type.len : 64), type.ptr);
}

/* rope_theta: in the scaling, else beside it, else as the class has it. */
static int read_base(const struct rope *p)
{
    double base = p->c->arch->rope_base;
    int r = brig_json_f64(p->scaling, "rope_theta", &base, p->fail);
    if (r == 0)
        r = brig_json_f64(p->config, "rope_theta", &base, p->fail);
    if (r < 0)
        return r;
    brig_meta_put_f32(&p->c->make, ".rope.freq_base", base);
    return 0;
}

static int read_dims(const struct rope *p)
{
    double part = 1.0;
    int r = brig_json_f64(p->scaling, "partial_rotary_factor", &part, p->fail);
    if (r == 0)
        r = brig_json_f64(p->config, "partial_rotary_factor", &part, p->fail);
    if (r < 0)
        return r;
    if (!(part > 0.0 && part <= 1.0))
        return brig_fail_set(p->fail, BRIG_EFORMAT,
                             "partial_rotary_factor is %g, it must be above 0 and at most 1", part);
    brig_meta_put_u64(&p->c->make, ".rope.dimension_count", (uint64_t)(p->c->head_dim * part));
    return 0;
}

/* The base of the layers with a window, where it is another one (gemma3). */
static int read_local(const struct rope *p, const json_t *sliding)
{
    double base = 10000.0;
    struct brig_str type = {"default", 7};
    int r = sliding != NULL ? brig_json_f64(sliding, "rope_theta", &base, p->fail)
                            : brig_json_f64(p->config, "rope_local_base_freq", &base, p->fail);
    if (r < 0 || (sliding != NULL && (r = read_type(sliding, &type, p->fail)) < 0))
        return r;
    if (!brig_str_eq(type, "default"))
        return brig_fail_set(p->fail, BRIG_EUNSUPPORTED,
                             "rope_parameters: sliding_attention with rope_type '%.*s' is not supported",
                             (int)(type.len < 64 ? type.len : 64), type.ptr);
    brig_meta_put_f32(&p->c->make, ".rope.freq_base_swa", base);
    return 0;
}

static int read_all(struct rope *p)
{
    const json_t *full = NULL, *sliding = NULL;
    int r = brig_json_object(p->config, "rope_parameters", &p->scaling, p->fail);
    if (r == 0)
        r = brig_json_object(p->config, "rope_scaling", &p->scaling, p->fail);
    if (r < 0 || (r = brig_json_object(p->scaling, "sliding_attention", &sliding, p->fail)) < 0 ||
        (r = brig_json_object(p->scaling, "full_attention", &full, p->fail)) < 0)
        return r;
    bool local = p->c->arch->window == BRIG_HUB_WINDOW_PATTERN;
    if (sliding != NULL && !local)
        return brig_fail_set(p->fail, BRIG_EUNSUPPORTED,
                             "rope_parameters by kind of layer are not supported for this model");
    if (local && (r = read_local(p, sliding)) < 0)
        return r;
    if (full != NULL)
        p->scaling = full;
    if ((r = read_base(p)) < 0 || (r = read_dims(p)) < 0)
        return r;
    return read_scaling(p);
}

int brig_hub_rope(struct brig_hub_config *c, const json_t *config, struct brig_fail *fail)
{
    if (c->arch->rope_base == 0.0)
        return 0;
    json_t *nothing = json_object();
    if (nothing == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    struct rope p = {c, config, nothing, fail};
    int r = read_all(&p);
    json_decref(nothing);
    return r;
}
