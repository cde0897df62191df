/* How a GPTQ or AWQ checkpoint says that it is quantised. What would change the numbers and is not known is
 * refused. */
#include "proto/model/hub.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "proto/model/json.h"

#define MAX_SHOWN 64u

static int shown(struct brig_str s)
{
    return (int)(s.len < MAX_SHOWN ? s.len : MAX_SHOWN);
}

static bool same_word(struct brig_str s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(s.ptr, word, s.len) == 0;
}

static int read_method(const json_t *o, enum brig_hub_method *ret, struct brig_fail *fail)
{
    struct brig_str method;
    int r = brig_json_str(o, "quant_method", &method, fail);
    if (r < 0)
        return r;
    if (r == 0 && *ret == BRIG_HUB_FLOATS)
        return brig_fail_set(fail, BRIG_EFORMAT, "quant_method is missing");
    if (r == 0)
        return 0;
    if (!brig_str_eq(method, "gptq") && !brig_str_eq(method, "awq"))
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "weights quantised by '%.*s' are not supported (gptq and awq are)",
                             shown(method), method.ptr);
    *ret = brig_str_eq(method, "gptq") ? BRIG_HUB_GPTQ : BRIG_HUB_AWQ;
    return 0;
}

/* The value of a key that has two spellings. */
static const char *spelled(const json_t *o, const char *key, const char *other)
{
    return json_object_get(o, key) == NULL && json_object_get(o, other) != NULL ? other : key;
}

static int read_bits(struct brig_hub_quant *q, const json_t *o, struct brig_fail *fail)
{
    const char *key = spelled(o, "bits", "w_bit");
    uint64_t bits;
    int r = brig_json_u64(o, key, &bits, fail);
    if (r < 0)
        return r;
    if (r == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s is missing", key);
    bool gptq = q->method == BRIG_HUB_GPTQ;
    if (bits != 4 && !(gptq && bits == 8))
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "%s is %" PRIu64 ": %s of so many bits is not supported (%s)", key, bits,
                             gptq ? "GPTQ" : "AWQ", gptq ? "4 and 8 are" : "4 is");
    q->type = !gptq ? "AWQ4" : bits == 4 ? "GPTQ4" : "GPTQ8";
    return 0;
}

/* -1: all columns. */
static int read_group(struct brig_hub_quant *q, const json_t *o, struct brig_fail *fail)
{
    const char *key = spelled(o, "group_size", "q_group_size");
    double v;
    int r = brig_json_f64(o, key, &v, fail);
    if (r < 0)
        return r;
    if (r == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s is missing", key);
    if (v == -1.0)
        return 0;
    if (!(v >= 1.0 && v <= (double)INT32_MAX) || v != (double)(uint32_t)v)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s is %g: it must be -1 or a number of columns", key, v);
    q->group_cols = (uint32_t)v;
    return 0;
}

/* GPTQ's zeros are stored less one, but for version 2. */
static int read_gptq(struct brig_hub_quant *q, const json_t *o, struct brig_fail *fail)
{
    struct brig_str format = {"gptq", 4}, words = {"int32", 5};
    bool marlin = false;
    int r;
    if ((r = brig_json_str(o, spelled(o, "checkpoint_format", "format"), &format, fail)) < 0 ||
        (r = brig_json_str(o, "pack_dtype", &words, fail)) < 0 ||
        (r = brig_json_bool(o, "is_marlin_format", &marlin, fail)) < 0 ||
        (r = brig_json_bool(o, "desc_act", &q->act_order, fail)) < 0)
        return r;
    q->zero_bias = !brig_str_eq(format, "gptq_v2");
    if ((q->zero_bias == 1 && !brig_str_eq(format, "gptq")) || marlin)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "checkpoint_format '%.*s'%s is not supported (gptq and gptq_v2 are)",
                             shown(format), format.ptr, marlin ? " with is_marlin_format" : "");
    if (!brig_str_eq(words, "int32"))
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "pack_dtype '%.*s' is not supported (int32 is)",
                             shown(words), words.ptr);
    const json_t *dynamic = json_object_get(o, "dynamic"); /* other settings for some modules */
    if (json_is_object(dynamic) ? json_object_size(dynamic) > 0 : dynamic != NULL && !json_is_null(dynamic))
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "dynamic: settings by module are not supported");
    return 0;
}

static int read_awq(const json_t *o, struct brig_fail *fail)
{
    struct brig_str version = {"gemm", 4}, backend = {"autoawq", 7};
    int r;
    if ((r = brig_json_str(o, "version", &version, fail)) < 0 ||
        (r = brig_json_str(o, "backend", &backend, fail)) < 0)
        return r;
    if (!same_word(version, "gemm"))
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "version '%.*s' of AWQ is not supported (gemm is)",
                             shown(version), version.ptr);
    if (!same_word(backend, "autoawq"))
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "backend '%.*s' of AWQ is not supported (autoawq is)",
                             shown(backend), backend.ptr);
    return 0;
}

int brig_hub_quant_read(struct brig_hub_quant *ret, const json_t *object, enum brig_hub_method method,
                        struct brig_fail *fail)
{
    struct brig_hub_quant q = {.method = method};
    int r;
    if ((r = read_method(object, &q.method, fail)) < 0 || (r = read_bits(&q, object, fail)) < 0 ||
        (r = read_group(&q, object, fail)) < 0 ||
        (r = q.method == BRIG_HUB_GPTQ ? read_gptq(&q, object, fail) : read_awq(object, fail)) < 0)
        return r;
    *ret = q;
    return 0;
}
