/*
 * The scaling of the rotary embedding: how a checkpoint states it (GGUF's keys, keys of ours, tensors)
 * becomes a divisor of positions, a factor for each frequency and a magnitude. Computed in double without
 * libm, rounded once.
 *
 * llama3: Hugging Face's description of Llama 3.1. yarn: "YaRN: Efficient Context Window Extension of Large
 * Language Models", sections 3.2 to 3.4, as Hugging Face computes it. longrope: "LongRoPE: Extending LLM
 * Context Window Beyond 2 Million Tokens", as Phi-3 has it.
 */
#include "proto/model/private.h"

#include <math.h>

#include "proto/base/real.h"

#define PI 3.14159265358979323846

/* [rope_dims / 2] each: what frequencies are divided by. */
#define ROPE_FREQS "rope_freqs.weight"
#define ROPE_SHORT "rope_factors_short.weight"
#define ROPE_LONG  "rope_factors_long.weight"

#define ATTENTION_FACTOR "brigade.rope.attention_factor"

struct rope {
    struct brig_model *m;
    struct brig_desc *d;
    const struct brig_meta *meta;
    struct brig_fail *fail;
    float factor;      /* 0: not stated */
    uint32_t original; /* the context that the model was trained with before its scaling */
};

bool brig_family_is_rope(struct brig_str name)
{
    return brig_str_eq(name, ROPE_FREQS) || brig_str_eq(name, ROPE_SHORT) || brig_str_eq(name, ROPE_LONG);
}

static int get_f32(const struct rope *p, const char *key, enum brig_presence presence, float *ret)
{
    return brig_family_f32(p->d, p->meta, key, presence, ret, p->fail);
}

/* A kind that needs a factor and the context before it. */
static int check_stretch(const struct rope *p, const char *kind)
{
    if (!(isfinite(p->factor) && p->factor > 0.0f))
        return brig_fail_set(p->fail, BRIG_EFORMAT, "%s.rope.scaling.factor is %g: %s needs one above 0",
                             p->d->arch, (double)p->factor, kind);
    if (p->original < 2)
        return brig_fail_set(p->fail, BRIG_EFORMAT,
                             "%s.rope.scaling.original_context_length is %u: %s needs at least 2", p->d->arch,
                             p->original, kind);
    return 0;
}

/* One factor for each pair, to be filled. */
static int begin_factors(const struct rope *p)
{
    if (p->d->rope_dims / 2 > BRIG_MAX_ROPE_PAIRS)
        return brig_fail_set(p->fail, BRIG_ELIMIT,
                             "%u rotary dimensions with factors: at most %u are allowed", p->d->rope_dims,
                             2 * BRIG_MAX_ROPE_PAIRS);
    p->d->n_rope_factors = p->d->rope_dims / 2;
    return 0;
}

/* The factor of a frequency that is kept to the part `kept` and divided by `factor` for the rest. */
static float mixed(double kept, double factor)
{
    return (float)(1.0 / ((1.0 - kept) / factor + kept));
}

static int none(struct rope *p)
{
    (void)p;
    return 0;
}

static int linear(struct rope *p)
{
    if (p->factor != 0.0f) /* as the format does: 0 is no scaling */
        p->d->rope_linear = p->factor;
    return 0;
}

static int llama3(struct rope *p)
{
    struct brig_desc *d = p->d;
    float low, high;
    int r;
    if ((r = get_f32(p, "brigade.rope.low_freq_factor", BRIG_REQUIRED, &low)) < 0 ||
        (r = get_f32(p, "brigade.rope.high_freq_factor", BRIG_REQUIRED, &high)) < 0 ||
        (r = check_stretch(p, "llama3")) < 0 || (r = begin_factors(p)) < 0)
        return r;
    if (!(low > 0.0f && high > low && isfinite(high)))
        return brig_fail_set(p->fail, BRIG_EFORMAT,
                             "llama3 rope scaling: low_freq_factor %g and high_freq_factor %g must rise from "
                             "above 0",
                             (double)low, (double)high);
    for (uint32_t i = 0; i < d->n_rope_factors; i++) {
        double wavelength = 2.0 * PI / brig_pow((double)d->rope_base, -2.0 * i / d->rope_dims);
        double turns = p->original / wavelength; /* in the original context */
        double kept = (turns - (double)low) / ((double)high - (double)low);
        d->rope_factors[i] = mixed(kept < 0.0 ? 0.0 : kept > 1.0 ? 1.0 : kept, (double)p->factor);
    }
    return 0;
}

/* The pair, as a fraction, that turns n times in the original context. */
static double pair_of_turns(const struct rope *p, double n)
{
    return p->d->rope_dims * brig_log(p->original / (n * 2.0 * PI)) /
           (2.0 * brig_log((double)p->d->rope_base));
}

static int yarn_magnitude(const struct rope *p)
{
    struct brig_desc *d = p->d;
    float more = 1.0f;
    int r = get_f32(p, "rope.scaling.attn_factor", BRIG_OPTIONAL, &more);
    if (r < 0)
        return r;
    double usual = p->factor > 1.0f ? 0.1 * brig_log((double)p->factor) + 1.0 : 1.0;
    d->rope_mscale = (float)(usual * (double)more);
    return get_f32(p, ATTENTION_FACTOR, BRIG_OPTIONAL, &d->rope_mscale);
}

static int yarn(struct rope *p)
{
    struct brig_desc *d = p->d;
    float fast = 32.0f, slow = 1.0f;
    bool truncate = true;
    int r;
    if ((r = get_f32(p, "rope.scaling.yarn_beta_fast", BRIG_OPTIONAL, &fast)) < 0 ||
        (r = get_f32(p, "rope.scaling.yarn_beta_slow", BRIG_OPTIONAL, &slow)) < 0 ||
        (r = brig_family_bool(d, p->meta, "brigade.rope.yarn_truncate", BRIG_OPTIONAL, &truncate, p->fail)) <
            0 ||
        (r = check_stretch(p, "yarn")) < 0 || (r = begin_factors(p)) < 0)
        return r;
    if (!(slow > 0.0f && fast >= slow && isfinite(fast)) || !(d->rope_base > 1.0f))
        return brig_fail_set(
            p->fail, BRIG_EFORMAT,
            "yarn rope scaling: beta_slow %g, beta_fast %g, base %g: the first must be above "
            "0, the second not below it, the base above 1",
            (double)slow, (double)fast, (double)d->rope_base);
    double first = pair_of_turns(p, (double)fast), last = pair_of_turns(p, (double)slow);
    if (truncate) {
        first = floor(first);
        last = ceil(last);
    }
    first = first > 0.0 ? first : 0.0;
    last = last < d->rope_dims - 1 ? last : d->rope_dims - 1;
    if (first == last)
        last += 0.001; /* a step instead of a ramp */
    for (uint32_t i = 0; i < d->n_rope_factors; i++) {
        double slope = (i - first) / (last - first);
        d->rope_factors[i] = mixed(1.0 - (slope < 0.0 ? 0.0 : slope > 1.0 ? 1.0 : slope), (double)p->factor);
    }
    return yarn_magnitude(p);
}

/* A list of factors: a tensor, or an array of the metadata. */
static int read_factors(const struct rope *p, const char *tensor, const char *key, float *ret)
{
    uint32_t n = p->d->n_rope_factors;
    if (brig_family_has(p->m, tensor))
        return brig_family_read_vector(p->m, tensor, ret, n, p->fail);
    if (brig_meta_f32s(p->meta, key, ret, n))
        return 0;
    return brig_fail_set(p->fail, BRIG_EFORMAT,
                         "longrope needs %u numbers in the tensor %s or the metadata key %s", n, tensor, key);
}

static int longrope(struct rope *p)
{
    struct brig_desc *d = p->d;
    int r;
    p->factor = 1.0f; /* its lists say it all */
    if ((r = check_stretch(p, "longrope")) < 0 || (r = begin_factors(p)) < 0 ||
        (r = read_factors(p, ROPE_SHORT, "brigade.rope.short_factor", d->rope_factors)) < 0 ||
        (r = read_factors(p, ROPE_LONG, "brigade.rope.long_factor", d->rope_long_factors)) < 0)
        return r;
    d->rope_long_from = p->original;
    double stretch = (double)d->ctx_trained / p->original;
    d->rope_mscale = stretch > 1.0 ? (float)sqrt(1.0 + brig_log(stretch) / brig_log(p->original)) : 1.0f;
    if ((r = get_f32(p, "rope.scaling.attn_factor", BRIG_OPTIONAL, &d->rope_mscale)) < 0)
        return r;
    return get_f32(p, ATTENTION_FACTOR, BRIG_OPTIONAL, &d->rope_mscale);
}

static const struct {
    const char *name;
    int (*apply)(struct rope *p);
} kinds[] = {{"none", none}, {"linear", linear}, {"llama3", llama3}, {"yarn", yarn}, {"longrope", longrope}};

static int apply(struct rope *p, struct brig_str type)
{
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (brig_str_eq(type, kinds[i].name))
            return kinds[i].apply(p);
    return brig_fail_set(
        p->fail, BRIG_EUNSUPPORTED,
        "%s.rope.scaling.type '%.*s' is not supported (none, linear, llama3, yarn and longrope "
        "are)",
        p->d->arch, (int)(type.len < 64 ? type.len : 64), type.ptr);
}

int brig_family_rope_scaling(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_desc *d = &m->desc;
    struct rope p = {.m = m, .d = d, .meta = meta, .fail = fail, .original = d->ctx_trained};
    /* Older files state a factor alone, those of Phi-3 bring lists and say nothing. */
    struct brig_str type = {"linear", 6};
    int r;
    if (brig_family_has(m, ROPE_SHORT) || brig_family_has(m, ROPE_LONG))
        type = (struct brig_str){"longrope", 8};
    d->rope_linear = d->rope_mscale = 1.0f;
    if ((r = brig_family_str(d, meta, "rope.scaling.type", BRIG_OPTIONAL, &type, fail)) < 0 ||
        (r = get_f32(&p, "rope.scale_linear", BRIG_OPTIONAL, &p.factor)) < 0 ||
        (r = get_f32(&p, "rope.scaling.factor", BRIG_OPTIONAL, &p.factor)) < 0 ||
        (r = brig_family_u32(d, meta, "rope.scaling.original_context_length", BRIG_OPTIONAL, &p.original,
                             fail)) < 0 ||
        (r = apply(&p, type)) < 0)
        return r;
    if (!brig_family_has(m, ROPE_FREQS))
        return 0;
    if (d->n_rope_factors != 0)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "tensor '%s' beside rope scaling '%.*s'", ROPE_FREQS,
                             (int)type.len, type.ptr);
    if ((r = begin_factors(&p)) < 0)
        return r;
    return brig_family_read_vector(m, ROPE_FREQS, d->rope_factors, d->n_rope_factors, fail);
}
