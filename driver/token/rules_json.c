/* From the types that the tokenizers library writes to steps. */
#include "driver/token/rules_json.h"

#include <string.h>

#include "driver/token/pretoken.h"
#include "driver/token/space.h"
#include "proto/model/json.h"

#define MAX_DEPTH   8u
#define MAX_CONTENT 256u /* bytes that a step puts somewhere: it can be for each character of a text */

/* ASCII's and Unicode's punctuation; words as regular expressions have them. */
#define PUNCTUATION "[\\p{P}\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e]"
#define WORD        "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"

struct reader {
    const char *what; /* "normalizer" */
    const struct row *rows;
    const char *list; /* key of a Sequence's parts */
    struct brig_steps *to;
    struct brig_fail *fail;
};

struct row {
    const char *type, *keys;
    int (*read)(struct reader *r, const json_t *o, enum brig_step_kind kind);
    enum brig_step_kind kind;
};

int brig_rules_only(const json_t *object, const char *what, const char *known, struct brig_fail *fail)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        size_t n = strlen(key);
        bool found = false;
        for (const char *at = known;
             n > 0 && strchr(key, ' ') == NULL && !found && (at = strstr(at, key)) != NULL; at += n)
            found = (at == known || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0');
        if (!found)
            return brig_fail_set(fail, BRIG_EUNSUPPORTED, "%s: '%.64s' is not supported", what, key);
    }
    return 0;
}

static int push(struct reader *r, struct brig_step step)
{
    if (r->to->n == BRIG_MAX_STEPS)
        return brig_fail_set(r->fail, BRIG_ELIMIT, "%s: more than %u steps", r->what, BRIG_MAX_STEPS);
    if (step.content.len > MAX_CONTENT)
        return brig_fail_set(r->fail, BRIG_ELIMIT, "%s: a text of %zu bytes to put in, more than %u", r->what,
                             step.content.len, MAX_CONTENT);
    r->to->v[r->to->n++] = step;
    return 0;
}

static int missing(struct reader *r, const json_t *o, const char *key)
{
    return brig_fail_set(r->fail, BRIG_EFORMAT, "%s: %s has no %s", r->what,
                         json_string_value(json_object_get(o, "type")), key);
}

static int read_str(struct reader *r, const json_t *o, const char *key, struct brig_str *ret)
{
    int got = brig_json_str(o, key, ret, r->fail);
    return got > 0 ? 0 : got < 0 ? got : missing(r, o, key);
}

static int read_pattern(struct reader *r, const json_t *o, struct brig_step *s)
{
    const json_t *pattern = NULL;
    int got = brig_json_object(o, "pattern", &pattern, r->fail);
    if (got == 0)
        return missing(r, o, "pattern");
    if (got < 0 || (got = brig_rules_only(pattern, "pattern", "String Regex", r->fail)) < 0)
        return got;
    s->regex = json_object_get(pattern, "Regex") != NULL;
    return read_str(r, pattern, s->regex ? "Regex" : "String", &s->pattern);
}

static int read_split(struct reader *r, const json_t *o, enum brig_split *ret)
{
    static const char *const names[] = {
        [BRIG_SPLIT_REMOVED] = "Removed",
        [BRIG_SPLIT_ISOLATED] = "Isolated",
        [BRIG_SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
        [BRIG_SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
        [BRIG_SPLIT_CONTIGUOUS] = "Contiguous",
    };
    struct brig_str name;
    int got = read_str(r, o, "behavior", &name);
    if (got < 0)
        return got;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (brig_str_eq(name, names[i])) {
            *ret = (enum brig_split)i;
            return 0;
        }
    return brig_fail_set(r->fail, BRIG_EUNSUPPORTED, "%s: behavior '%.*s' is not supported", r->what,
                         (int)(name.len < 64 ? name.len : 64), name.ptr);
}

static int plain(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    (void)o;
    return push(r, (struct brig_step){.kind = kind});
}

/* ---- normalizers ---- */

static int strip(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    struct brig_step s = {.kind = kind, .left = true, .right = true};
    int got = brig_json_bool(o, "strip_left", &s.left, r->fail);
    if (got >= 0)
        got = brig_json_bool(o, "strip_right", &s.right, r->fail);
    return got < 0 ? got : push(r, s);
}

static int prepend(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    struct brig_step s = {.kind = kind};
    int got = read_str(r, o, "prepend", &s.content);
    return got < 0 ? got : push(r, s);
}

static int replace(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    struct brig_step s = {.kind = kind};
    int got = read_pattern(r, o, &s);
    if (got == 0)
        got = read_str(r, o, "content", &s.content);
    return got < 0 ? got : push(r, s);
}

/* ---- pre-tokenizers ---- */

static struct brig_step split_at(const char *regex, enum brig_split behaviour, bool invert)
{
    return (struct brig_step){.kind = BRIG_STEP_SPLIT,
                              .behaviour = behaviour,
                              .regex = true,
                              .invert = invert,
                              .pattern = {regex, strlen(regex)}};
}

static int byte_level(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    bool prefix = true, regex = true;
    int got = brig_json_bool(o, "add_prefix_space", &prefix, r->fail);
    if (got >= 0)
        got = brig_json_bool(o, "use_regex", &regex, r->fail);
    if (got >= 0 && prefix)
        got = push(r, (struct brig_step){.kind = BRIG_STEP_PREFIX, .content = {" ", 1}});
    if (got >= 0 && regex)
        got = push(r, split_at(brig_pretoken_pattern("gpt-2"), BRIG_SPLIT_ISOLATED, false));
    return got < 0 ? got : push(r, (struct brig_step){.kind = kind});
}

static int split(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    struct brig_step s = {.kind = kind};
    int got = read_pattern(r, o, &s);
    if (got == 0)
        got = read_split(r, o, &s.behaviour);
    if (got == 0)
        got = brig_json_bool(o, "invert", &s.invert, r->fail);
    return got < 0 ? got : push(r, s);
}

static int digits(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    (void)kind;
    bool each = false;
    int got = brig_json_bool(o, "individual_digits", &each, r->fail);
    return got < 0 ? got
                   : push(r, split_at("\\p{N}", each ? BRIG_SPLIT_ISOLATED : BRIG_SPLIT_CONTIGUOUS, false));
}

static int punctuation(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    (void)kind;
    enum brig_split behaviour = BRIG_SPLIT_ISOLATED;
    int got = json_object_get(o, "behavior") != NULL ? read_split(r, o, &behaviour) : 0;
    return got < 0 ? got : push(r, split_at(PUNCTUATION, behaviour, false));
}

static int whitespace(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    (void)o;
    (void)kind;
    return push(r, split_at("[" WORD "]+|[^" WORD "\\s]+", BRIG_SPLIT_REMOVED, true));
}

static int whitespace_split(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    (void)o;
    (void)kind;
    return push(r, split_at("\\s+", BRIG_SPLIT_REMOVED, false));
}

static int delimiter(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    struct brig_step s = {.kind = kind, .behaviour = BRIG_SPLIT_REMOVED};
    int got = read_str(r, o, "delimiter", &s.pattern);
    return got < 0 ? got : push(r, s);
}

/* What Metaspace writes for a space, and where it puts one before a text: "always", "first" or "never". */
static int read_metaspace(struct reader *r, const json_t *o, struct brig_str *space, struct brig_str *scheme)
{
    bool prefix = true;
    int got = read_str(r, o, "replacement", space);
    if (got >= 0)
        got = brig_json_bool(o, "add_prefix_space", &prefix, r->fail);
    *scheme = prefix ? (struct brig_str){"always", 6} : (struct brig_str){"never", 5};
    if (got >= 0)
        got = brig_json_str(o, "prepend_scheme", scheme, r->fail);
    if (got >= 0 && !brig_str_eq(*scheme, "always") && !brig_str_eq(*scheme, "first") &&
        !brig_str_eq(*scheme, "never"))
        return brig_fail_set(r->fail, BRIG_EUNSUPPORTED, "%s: prepend_scheme '%.*s' is not supported",
                             r->what, (int)(scheme->len < 64 ? scheme->len : 64), scheme->ptr);
    return got < 0 ? got : 0;
}

static int metaspace(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    struct brig_str space, scheme;
    bool cut = true;
    int got = read_metaspace(r, o, &space, &scheme);
    if (got >= 0)
        got = brig_json_bool(o, "split", &cut, r->fail);
    if (got >= 0)
        got = push(r, (struct brig_step){.kind = BRIG_STEP_REPLACE, .pattern = {" ", 1}, .content = space});
    if (got >= 0 && !brig_str_eq(scheme, "never"))
        got = push(r, (struct brig_step){
                          .kind = BRIG_STEP_PREFIX, .content = space, .first = brig_str_eq(scheme, "first")});
    if (got >= 0 && cut)
        got = push(
            r, (struct brig_step){.kind = kind, .behaviour = BRIG_SPLIT_MERGED_WITH_NEXT, .pattern = space});
    return got < 0 ? got : 0;
}

/* ---- decoders ---- */

static int trim(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    struct brig_step s = {.kind = kind};
    uint64_t start = 0, stop = 0;
    int got = read_str(r, o, "content", &s.content);
    if (got >= 0)
        got = brig_json_u64(o, "start", &start, r->fail);
    if (got >= 0)
        got = brig_json_u64(o, "stop", &stop, r->fail);
    if (got < 0)
        return got;
    if (stop > 0 || start > 1 || s.content.len == 0)
        return brig_fail_set(r->fail, BRIG_EUNSUPPORTED,
                             "%s: Strip is supported with start 0 or 1 and stop 0", r->what);
    s.most = (uint32_t)start;
    return push(r, s);
}

static int metaspace_decoder(struct reader *r, const json_t *o, enum brig_step_kind kind)
{
    struct brig_str space, scheme;
    int got = read_metaspace(r, o, &space, &scheme);
    if (got >= 0)
        got = push(r, (struct brig_step){.kind = kind, .pattern = space, .content = {" ", 1}});
    if (got >= 0 && !brig_str_eq(scheme, "never"))
        got = push(r, (struct brig_step){
                          .kind = BRIG_STEP_TRIM, .content = {" ", 1}, .most = UINT32_MAX, .first = true});
    return got < 0 ? got : 0;
}

/* ---- chains ---- */

static const struct row normalizers[] = {
    {"NFC", "type", plain, BRIG_STEP_NFC},
    {"NFD", "type", plain, BRIG_STEP_NFD},
    {"NFKC", "type", plain, BRIG_STEP_NFKC},
    {"NFKD", "type", plain, BRIG_STEP_NFKD},
    {"Lowercase", "type", plain, BRIG_STEP_LOWERCASE},
    {"StripAccents", "type", plain, BRIG_STEP_STRIP_ACCENTS},
    {"Strip", "type strip_left strip_right", strip, BRIG_STEP_STRIP},
    {"Prepend", "type prepend", prepend, BRIG_STEP_PREPEND},
    {"Replace", "type pattern content", replace, BRIG_STEP_REPLACE},
    {NULL, NULL, NULL, 0},
};

static const struct row pre_tokenizers[] = {
    {"ByteLevel", "type add_prefix_space trim_offsets use_regex", byte_level, BRIG_STEP_BYTES},
    {"Split", "type pattern behavior invert", split, BRIG_STEP_SPLIT},
    {"Metaspace", "type replacement add_prefix_space prepend_scheme split str_rep", metaspace,
     BRIG_STEP_SPLIT},
    {"Digits", "type individual_digits", digits, BRIG_STEP_SPLIT},
    {"Punctuation", "type behavior", punctuation, BRIG_STEP_SPLIT},
    {"Whitespace", "type", whitespace, BRIG_STEP_SPLIT},
    {"WhitespaceSplit", "type", whitespace_split, BRIG_STEP_SPLIT},
    {"CharDelimiterSplit", "type delimiter", delimiter, BRIG_STEP_SPLIT},
    {NULL, NULL, NULL, 0},
};

static const struct row decoders[] = {
    {"ByteLevel", "type add_prefix_space trim_offsets use_regex", plain, BRIG_STEP_BYTES},
    {"ByteFallback", "type", plain, BRIG_STEP_BYTE_FALLBACK},
    {"Fuse", "type", plain, BRIG_STEP_FUSE},
    {"Strip", "type content start stop", trim, BRIG_STEP_TRIM},
    {"Replace", "type pattern content", replace, BRIG_STEP_REPLACE},
    {"Metaspace", "type replacement add_prefix_space prepend_scheme split str_rep", metaspace_decoder,
     BRIG_STEP_REPLACE},
    {NULL, NULL, NULL, 0},
};

static int read_value(struct reader *r, const json_t *o, unsigned depth);

static int read_sequence(struct reader *r, const json_t *o, unsigned depth)
{
    const json_t *parts = NULL;
    int got = brig_json_array(o, r->list, &parts, r->fail);
    if (got == 0)
        return missing(r, o, r->list);
    if (depth == MAX_DEPTH)
        return brig_fail_set(r->fail, BRIG_ELIMIT, "%s: Sequence within Sequence, more than %u deep", r->what,
                             MAX_DEPTH);
    for (size_t i = 0; got >= 0 && i < json_array_size(parts); i++)
        got = read_value(r, json_array_get(parts, i), depth + 1);
    return got < 0 ? got : 0;
}

static int read_value(struct reader *r, const json_t *o, unsigned depth)
{
    struct brig_str type = {"", 0};
    int got = json_is_object(o) ? brig_json_str(o, "type", &type, r->fail)
                                : brig_fail_set(r->fail, BRIG_EFORMAT, "%s is %s, an object is wanted",
                                                r->what, brig_json_kind(o));
    if (got < 0)
        return got;
    if (brig_str_eq(type, "Sequence"))
        return read_sequence(r, o, depth);
    for (const struct row *row = r->rows; row->type != NULL; row++)
        if (brig_str_eq(type, row->type)) {
            got = brig_rules_only(o, row->type, row->keys, r->fail);
            return got < 0 ? got : row->read(r, o, row->kind);
        }
    return brig_fail_set(r->fail, BRIG_EUNSUPPORTED, "%s '%.*s' is not supported", r->what,
                         (int)(type.len < 64 ? type.len : 64), type.ptr);
}

/* A chain that is not there is empty. */
static int read_chain(const json_t *root, const char *key, const struct row *rows, const char *list,
                      struct brig_steps *to, struct brig_fail *fail)
{
    struct reader r = {key, rows, list, to, fail};
    const json_t *o = json_object_get(root, key);
    return o == NULL || json_is_null(o) ? 0 : read_value(&r, o, 0);
}

/* Symbols are bytes after BYTES, which no step here treats. */
static int check_pre(const struct brig_steps *s, struct brig_fail *fail)
{
    for (unsigned i = 0; i + 1 < s->n; i++)
        if (s->v[i].kind == BRIG_STEP_BYTES)
            return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                                 "pre_tokenizer: ByteLevel is supported as the last");
    return 0;
}

/* Each token is decoded on its own: that comes to the same as the file's chain only in the usual order. */
static int check_decode(const struct brig_steps *s, struct brig_fail *fail)
{
    bool whole = false, bytes = false, trimmed = false;
    for (unsigned i = 0; i < s->n; i++) {
        const struct brig_step *v = &s->v[i];
        bool strange = trimmed && v->kind != BRIG_STEP_FUSE;
        if (v->kind == BRIG_STEP_REPLACE)
            strange = strange || (bytes && v->regex) || (whole && (v->regex || v->pattern.len > 1));
        if (v->kind == BRIG_STEP_BYTES || v->kind == BRIG_STEP_BYTE_FALLBACK)
            strange = strange || whole || bytes;
        if (strange)
            return brig_fail_set(fail, BRIG_EUNSUPPORTED, "decoder: this order of steps is not supported");
        whole = whole || v->kind == BRIG_STEP_FUSE || v->kind == BRIG_STEP_BYTES;
        bytes = bytes || v->kind == BRIG_STEP_BYTE_FALLBACK || v->kind == BRIG_STEP_BYTES;
        trimmed = trimmed || v->kind == BRIG_STEP_TRIM;
    }
    return 0;
}

int brig_rules_read(struct brig_rules *rules, const json_t *root, struct brig_fail *fail)
{
    int r = read_chain(root, "normalizer", normalizers, "normalizers", &rules->normal, fail);
    if (r == 0)
        r = read_chain(root, "pre_tokenizer", pre_tokenizers, "pretokenizers", &rules->pre, fail);
    if (r == 0)
        r = read_chain(root, "decoder", decoders, "decoders", &rules->decode, fail);
    if (r == 0)
        r = check_pre(&rules->pre, fail);
    if (r == 0)
        r = check_decode(&rules->decode, fail);
    const json_t *decoder = json_object_get(root, "decoder");
    rules->joined = decoder == NULL || json_is_null(decoder);
    return r;
}
