/* Expressions. */
#include "driver/chat/jinja_eval.h"

#include <stdio.h>

#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_text.h"

static struct brig_jv eval_name(struct brig_jinja *j, struct brig_str name)
{
    const struct brig_jv *v = NULL;
    uint64_t looked_at = 0;
    for (const struct brig_jscope *s = j->scope; s != NULL && v == NULL; s = s->parent) {
        v = brig_jv_find_str(&s->vars, name);
        looked_at += 1 + s->vars.n / 16;
    }
    if (v == NULL)
        v = brig_jv_find_str(j->root, name);
    brig_jinja_step(j, looked_at / 8);
    if (v != NULL)
        return *v;
    const struct brig_jfn *fn = brig_jfn_global(name);
    if (fn != NULL)
        return (struct brig_jv){.kind = BRIG_JV_FUNCTION, .fn = fn};
    return brig_jv_undefined(BRIG_JV_WHY_NAME, BRIG_JV_UNDEFINED, name);
}

static struct brig_jv eval_list(struct brig_jinja *j, const struct brig_jnode *n, enum brig_jv_kind kind)
{
    struct brig_jv made = brig_jv_list(j, kind);
    for (const struct brig_jnode *e = n->a; e != NULL && !j->failed; e = e->next)
        brig_jv_push(j, made.list, brig_jinja_eval(j, e));
    return made;
}

static struct brig_jv eval_dict(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jv made = brig_jv_dict(j, BRIG_JV_DICT);
    for (const struct brig_jnode *e = n->a; e != NULL && !j->failed; e = e->next->next) {
        struct brig_jv key = brig_jinja_eval(j, e);
        brig_jv_put(j, made.dict, key, brig_jinja_eval(j, e->next));
    }
    return made;
}

static struct brig_jv eval_or_none(struct brig_jinja *j, const struct brig_jnode *n)
{
    return n == NULL ? brig_jv_none() : brig_jinja_eval(j, n);
}

static struct brig_jv eval_slice(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jv of = brig_jinja_eval(j, n->a), start = eval_or_none(j, n->b);
    struct brig_jv stop = eval_or_none(j, n->c), step = eval_or_none(j, n->d);
    return brig_jv_slice(j, of, start, stop, step);
}

static void spread_list(struct brig_jinja *j, struct brig_jargs *args, struct brig_jv v)
{
    const struct brig_jlist *list = brig_jv_elements(j, v);
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++)
        brig_jv_push(j, &args->pos, list->v[i]);
}

static void spread_dict(struct brig_jinja *j, struct brig_jargs *args, struct brig_jv v)
{
    if (v.kind != BRIG_JV_DICT) {
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "argument after ** must be a mapping, not %s",
                        brig_jv_type_name(v));
        return;
    }
    for (size_t i = 0; i < v.dict->n && brig_jinja_step(j, 1); i++) {
        if (v.dict->v[i].key.kind != BRIG_JV_STR)
            brig_jinja_fail(j, BRIG_JINJA_TYPE, "keywords must be strings");
        else if (brig_jv_find(j, &args->kw, v.dict->v[i].key) != NULL)
            brig_jinja_fail(j, BRIG_JINJA_TYPE, "an argument is given twice");
        brig_jv_put(j, &args->kw, v.dict->v[i].key, v.dict->v[i].value);
    }
}

void brig_jinja_eval_args(struct brig_jinja *j, const struct brig_jnode *list, struct brig_jargs *args)
{
    for (const struct brig_jnode *n = list; n != NULL && !j->failed; n = n->next) {
        struct brig_jv v = brig_jinja_eval(j, n->a);
        struct brig_jv name = brig_jv_str(n->s.ptr, n->s.len);
        switch ((enum brig_jarg)n->op) {
        case BRIG_JARG_PLAIN:
            brig_jv_push(j, &args->pos, v);
            break;
        case BRIG_JARG_KEYWORD:
            if (brig_jv_find(j, &args->kw, name) != NULL)
                brig_jinja_fail(j, BRIG_JINJA_SYNTAX, "an argument is given twice");
            brig_jv_put(j, &args->kw, name, v);
            break;
        case BRIG_JARG_STAR:
            spread_list(j, args, v);
            break;
        case BRIG_JARG_STARS:
            spread_dict(j, args, v);
        }
    }
}

struct brig_jv brig_jinja_call(struct brig_jinja *j, struct brig_jv callee, struct brig_jargs *args)
{
    struct brig_jv none = {.kind = BRIG_JV_NONE};
    if (j->failed)
        return none;
    switch ((enum brig_jv_kind)callee.kind) {
    case BRIG_JV_FUNCTION:
        return brig_jfn_call(j, callee.fn, none, args);
    case BRIG_JV_METHOD:
        return brig_jfn_call(j, callee.method->fn, callee.method->self, args);
    case BRIG_JV_MACRO:
        return brig_jinja_call_macro(j, callee.macro, args);
    case BRIG_JV_LOOP:
        return brig_jinja_call_loop(j, callee.loop, args);
    case BRIG_JV_UNDEFINED:
        return brig_jinja_fail_undefined(j, callee);
    default:
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "'%s' object is not callable", brig_jv_type_name(callee));
    }
}

static struct brig_jv eval_call(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jargs args = {0};
    struct brig_jv callee = brig_jinja_eval(j, n->a);
    brig_jinja_eval_args(j, n->b, &args);
    j->line = n->line;
    return brig_jinja_call(j, callee, &args);
}

/* A filter or test applied to v. */
static struct brig_jv apply(struct brig_jinja *j, const struct brig_jnode *n, struct brig_jv v)
{
    struct brig_jargs args = {0};
    brig_jinja_eval_args(j, n->b, &args);
    j->line = n->line;
    if (n->fn == NULL)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "there is no %s named '%.*s'",
                               n->kind == BRIG_JN_TEST ? "test" : "filter",
                               (int)(n->s.len < 60 ? n->s.len : 60), n->s.ptr);
    v = brig_jfn_call(j, n->fn, v, &args);
    return n->kind == BRIG_JN_TEST ? brig_jv_bool(brig_jv_truth(v)) : v;
}

struct brig_jv brig_jinja_eval_filters(struct brig_jinja *j, const struct brig_jnode *n, struct brig_jv text)
{
    if (n == NULL || !brig_jinja_enter(j))
        return text;
    text = apply(j, n, brig_jinja_eval_filters(j, n->a, text));
    brig_jinja_leave(j);
    return text;
}

static struct brig_jv eval_comparison(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jv left = brig_jinja_eval(j, n->a);
    bool holds = true;
    for (const struct brig_jnode *o = n->b; o != NULL && holds && !j->failed; o = o->next) {
        struct brig_jv right = brig_jinja_eval(j, o->a);
        j->line = o->line;
        holds = brig_jv_compare(j, (enum brig_jop)o->op, left, right);
        left = right;
    }
    return brig_jv_bool(holds);
}

static struct brig_jv eval_concat(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jv parts = eval_list(j, n, BRIG_JV_LIST);
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    for (size_t i = 0; !j->failed && i < parts.list->n; i++)
        brig_jinja_put_str(j, parts.list->v[i]);
    return brig_jinja_captured(j, &inner, outer);
}

static struct brig_jv eval_condition(struct brig_jinja *j, const struct brig_jnode *n)
{
    if (brig_jv_truth(brig_jinja_eval(j, n->a)))
        return brig_jinja_eval(j, n->b);
    if (n->c != NULL)
        return brig_jinja_eval(j, n->c);
    return brig_jv_undefined(BRIG_JV_WHY_TEXT, BRIG_JV_UNDEFINED,
                             brig_jv_text("an inline if without else was false").s);
}

static struct brig_jv eval_binary(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jv a = brig_jinja_eval(j, n->a), b = brig_jinja_eval(j, n->b);
    j->line = n->line;
    return brig_jv_arithmetic(j, (enum brig_jop)n->op, a, b);
}

static struct brig_jv eval_item(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jv of = brig_jinja_eval(j, n->a), key = brig_jinja_eval(j, n->b);
    return brig_jv_item(j, of, key);
}

static struct brig_jv eval_kind(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jv v;
    switch ((enum brig_jnode_kind)n->kind) {
    case BRIG_JN_CONST:
        return n->value;
    case BRIG_JN_NAME:
        return eval_name(j, n->s);
    case BRIG_JN_LIST:
        return eval_list(j, n, BRIG_JV_LIST);
    case BRIG_JN_TUPLE:
        return eval_list(j, n, BRIG_JV_TUPLE);
    case BRIG_JN_DICT:
        return eval_dict(j, n);
    case BRIG_JN_ATTR:
        return brig_jv_attr(j, brig_jinja_eval(j, n->a), n->s);
    case BRIG_JN_ITEM:
        return eval_item(j, n);
    case BRIG_JN_SLICE:
        return eval_slice(j, n);
    case BRIG_JN_CALL:
        return eval_call(j, n);
    case BRIG_JN_FILTER:
    case BRIG_JN_TEST:
        return apply(j, n, brig_jinja_eval(j, n->a));
    case BRIG_JN_NOT:
        return brig_jv_bool(!brig_jv_truth(brig_jinja_eval(j, n->a)));
    case BRIG_JN_NEG:
        return brig_jv_negative(j, brig_jinja_eval(j, n->a));
    case BRIG_JN_POS:
        return brig_jv_positive(j, brig_jinja_eval(j, n->a));
    case BRIG_JN_BINARY:
        return eval_binary(j, n);
    case BRIG_JN_AND:
        v = brig_jinja_eval(j, n->a);
        return brig_jv_truth(v) ? brig_jinja_eval(j, n->b) : v;
    case BRIG_JN_OR:
        v = brig_jinja_eval(j, n->a);
        return brig_jv_truth(v) ? v : brig_jinja_eval(j, n->b);
    case BRIG_JN_COMPARE:
        return eval_comparison(j, n);
    case BRIG_JN_CONCAT:
        return eval_concat(j, n);
    default:
        return eval_condition(j, n); /* COND: the others are no expressions */
    }
}

struct brig_jv brig_jinja_eval(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jv v = {.kind = BRIG_JV_UNDEFINED};
    if (!brig_jinja_enter(j))
        return v;
    j->line = n->line;
    v = eval_kind(j, n);
    brig_jinja_leave(j);
    return j->failed ? (struct brig_jv){.kind = BRIG_JV_UNDEFINED} : v;
}
