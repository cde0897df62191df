/*
 * What all parts of the interpreter share: one render (arena, limits, failure) and its values. Everything is
 * allocated in the render's arena and lives as long as it.
 *
 * Failure is sticky: the first one is kept, functions that return values return undefined after it, and loops
 * stop because brig_jinja_step says false. brig_jinja_alloc returns NULL only after a failure.
 */
#ifndef BRIG_DRIVER_CHAT_JINJA_CORE_H
#define BRIG_DRIVER_CHAT_JINJA_CORE_H

#include <stdbool.h>

#include "driver/chat/jinja.h"

struct brig_jinja_chunk; /* of the arena */
struct brig_jnode;
struct brig_jfn;

struct brig_jinja {
    struct brig_jinja_limits limits;
    struct brig_jinja_chunk *chunks;
    size_t memory_used;
    uint64_t steps_left;
    unsigned depth;
    uint32_t line; /* of the template: where the execution is */
    bool failed;
    struct brig_fail fail;
    struct brig_buf *out;          /* where text goes now */
    struct brig_jscope *scope;     /* where names are looked up now */
    const struct brig_jdict *root; /* the context */
};

enum brig_jv_kind {
    BRIG_JV_UNDEFINED, /* what, of, s or i: why */
    BRIG_JV_ABSENT,    /* an optional argument that was not given; no template ever sees it */
    BRIG_JV_NONE,
    BRIG_JV_BOOL, /* b */
    BRIG_JV_INT,  /* i */
    BRIG_JV_FLOAT,
    BRIG_JV_STR,
    BRIG_JV_LIST,      /* list */
    BRIG_JV_TUPLE,     /* list */
    BRIG_JV_VIEW,      /* list: keys, values or items of a dict */
    BRIG_JV_ITER,      /* list: a generator, can be walked once */
    BRIG_JV_RANGE,     /* range */
    BRIG_JV_DICT,      /* dict */
    BRIG_JV_NAMESPACE, /* dict */
    BRIG_JV_LOOP,      /* loop */
    BRIG_JV_MACRO,     /* macro */
    BRIG_JV_FUNCTION,  /* fn */
    BRIG_JV_METHOD,    /* method */
    BRIG_JV_COUNT
};

enum brig_jv_why {                      /* why a value is undefined */
                   BRIG_JV_WHY_NAME,    /* s is a variable that does not exist */
                   BRIG_JV_WHY_ATTR,    /* a value of kind `of` has no attribute s */
                   BRIG_JV_WHY_ELEMENT, /* a value of kind `of` has no element i */
                   BRIG_JV_WHY_UNSAFE,  /* attribute s of a value of kind `of` is out of bounds in the sandbox
                                         */
                   BRIG_JV_WHY_TEXT,    /* s says it */
};

struct brig_jv {
    uint8_t kind, why, of;
    union {
        bool b;
        int64_t i;
        double f;
        struct brig_str s;
        struct brig_jlist *list;
        struct brig_jdict *dict;
        struct brig_jrange *range;
        struct brig_jloop *loop;
        struct brig_jmacro *macro;
        const struct brig_jfn *fn;
        struct brig_jmethod *method;
    };
};

struct brig_jlist {
    struct brig_jv *v;
    size_t n, cap;
};

struct brig_jdict { /* in the order of insertion */
    struct brig_jpair {
        struct brig_jv key, value;
    } * v;
    size_t n, cap;
};

struct brig_jrange {
    int64_t start, stop, step;
    size_t n;
};

struct brig_jmethod {
    struct brig_jv self;
    const struct brig_jfn *fn;
};

enum brig_jinja_error { /* the word that follows the line in the text of a failure */
                        BRIG_JINJA_SYNTAX,
                        BRIG_JINJA_UNDEFINED,
                        BRIG_JINJA_TYPE,
                        BRIG_JINJA_VALUE,
                        BRIG_JINJA_UNSAFE,
                        BRIG_JINJA_RAISED,
                        BRIG_JINJA_LIMIT,
                        BRIG_JINJA_MEMORY,
};

/* Keep the first failure; returns undefined, so that it can be returned at once. */
struct brig_jv brig_jinja_fail(struct brig_jinja *j, enum brig_jinja_error kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* n steps are taken; false when there are none left or something failed before. */
bool brig_jinja_step(struct brig_jinja *j, uint64_t n);
/* One level deeper, to be left again when it said true. */
bool brig_jinja_enter(struct brig_jinja *j);
void brig_jinja_leave(struct brig_jinja *j);

/* n elements of `size` bytes, zeroed. */
void *brig_jinja_alloc(struct brig_jinja *j, size_t n, size_t size);
void brig_jinja_free_all(struct brig_jinja *j);

/* Text for the current output. */
void brig_jinja_put(struct brig_jinja *j, const void *bytes, size_t n);
/* Text that is put goes to *inner until the end of it, which makes it a string and releases inner. */
struct brig_buf *brig_jinja_capture(struct brig_jinja *j, struct brig_buf *inner);
struct brig_jv brig_jinja_captured(struct brig_jinja *j, struct brig_buf *inner, struct brig_buf *outer);

/* Values. Strings of _str are borrowed, of _str_copy copied into the arena. */
static inline struct brig_jv brig_jv_none(void)
{
    return (struct brig_jv){.kind = BRIG_JV_NONE};
}
static inline struct brig_jv brig_jv_bool(bool b)
{
    return (struct brig_jv){.kind = BRIG_JV_BOOL, .b = b};
}
static inline struct brig_jv brig_jv_int(int64_t i)
{
    return (struct brig_jv){.kind = BRIG_JV_INT, .i = i};
}
static inline struct brig_jv brig_jv_float(double f)
{
    return (struct brig_jv){.kind = BRIG_JV_FLOAT, .f = f};
}
static inline struct brig_jv brig_jv_str(const char *ptr, size_t len)
{
    return (struct brig_jv){.kind = BRIG_JV_STR, .s = {ptr, len}};
}
struct brig_jv brig_jv_text(const char *literal);
struct brig_jv brig_jv_str_copy(struct brig_jinja *j, const char *ptr, size_t len);
struct brig_jv brig_jv_undefined(enum brig_jv_why why, enum brig_jv_kind of, struct brig_str name);
struct brig_jv brig_jv_list(struct brig_jinja *j,
                            enum brig_jv_kind kind); /* LIST, TUPLE, VIEW, ITER: empty */
struct brig_jv brig_jv_dict(struct brig_jinja *j, enum brig_jv_kind kind); /* DICT, NAMESPACE: empty */
struct brig_jv brig_jv_pair(struct brig_jinja *j, struct brig_jv a, struct brig_jv b); /* a tuple */
void brig_jv_push(struct brig_jinja *j, struct brig_jlist *list, struct brig_jv v);

/* Keys are compared as == does. find: NULL when there is none. put replaces; an unhashable key fails. */
struct brig_jv *brig_jv_find(struct brig_jinja *j, const struct brig_jdict *d, struct brig_jv key);
struct brig_jv *brig_jv_find_str(const struct brig_jdict *d, struct brig_str key);
bool brig_jv_hashable(struct brig_jinja *j, struct brig_jv v);
void brig_jv_put(struct brig_jinja *j, struct brig_jdict *d, struct brig_jv key, struct brig_jv value);

static inline bool brig_jv_is(struct brig_jv v, enum brig_jv_kind kind)
{
    return v.kind == (uint8_t)kind;
}
static inline bool brig_jv_is_sequence(struct brig_jv v) /* list or tuple */
{
    return v.kind == BRIG_JV_LIST || v.kind == BRIG_JV_TUPLE;
}
static inline bool brig_jv_is_number(struct brig_jv v) /* True is 1, as in Python */
{
    return v.kind == BRIG_JV_BOOL || v.kind == BRIG_JV_INT || v.kind == BRIG_JV_FLOAT;
}
static inline int64_t brig_jv_as_int(struct brig_jv v) /* of a BOOL or INT */
{
    return v.kind == BRIG_JV_BOOL ? (int64_t)v.b : v.i;
}
static inline double brig_jv_as_float(struct brig_jv v) /* of a number */
{
    return v.kind == BRIG_JV_FLOAT ? v.f : (double)brig_jv_as_int(v);
}
const char *brig_jv_type_name(struct brig_jv v); /* as Python calls it: "str", "dict" */
bool brig_jv_truth(struct brig_jv v);

/* The elements of something that can be walked (characters of a string, keys of a dict, nothing of
 * undefined), as a list that must not be changed; NULL after a failure. An ITER is empty afterwards. */
struct brig_jlist *brig_jv_elements(struct brig_jinja *j, struct brig_jv v);

/* Fails with the reason why v, which is undefined, is so. */
struct brig_jv brig_jinja_fail_undefined(struct brig_jinja *j, struct brig_jv v);

/* JSON to values; nested too deep fails. */
struct brig_jv brig_jv_from_json(struct brig_jinja *j, const json_t *json);

#endif
