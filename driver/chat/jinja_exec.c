/* Statements, and a whole render. */
#include <stdio.h>
#include <string.h>

#include "driver/chat/jinja_eval.h"
#include "driver/chat/jinja_text.h"

static void set(struct brig_jinja *j, struct brig_str name, struct brig_jv v)
{
    brig_jv_put(j, &j->scope->vars, brig_jv_str(name.ptr, name.len), v);
}

/* A new scope inside `parent` becomes the current one; returns the one that was. */
static struct brig_jscope *push_scope(struct brig_jinja *j, struct brig_jscope *parent)
{
    struct brig_jscope *was = j->scope, *fresh = brig_jinja_alloc(j, 1, sizeof *fresh);
    if (fresh != NULL) {
        fresh->parent = parent;
        j->scope = fresh;
    }
    return was;
}

static void set_attribute(struct brig_jinja *j, const struct brig_jnode *target, struct brig_jv v)
{
    struct brig_jnode name = {.kind = BRIG_JN_NAME, .line = target->line, .s = target->s};
    struct brig_jv object = brig_jinja_eval(j, &name);
    if (object.kind == BRIG_JV_NAMESPACE)
        brig_jv_put(j, object.dict, target->b->value, v);
    else
        brig_jinja_fail(j, BRIG_JINJA_VALUE, "cannot assign attribute on non-namespace object");
}

static void assign(struct brig_jinja *j, const struct brig_jnode *target, struct brig_jv v)
{
    if (j->failed)
        return;
    if (target->kind == BRIG_JN_NAME) {
        set(j, target->s, v);
        return;
    }
    if (target->kind == BRIG_JN_NSREF) {
        set_attribute(j, target, v);
        return;
    }
    const struct brig_jlist *list = brig_jv_elements(j, v);
    size_t n = 0;
    for (const struct brig_jnode *t = target->a; t != NULL; t = t->next)
        n++;
    if (list != NULL && list->n != n)
        brig_jinja_fail(j, BRIG_JINJA_VALUE, "%zu values for %zu names", list->n, n);
    size_t i = 0;
    for (const struct brig_jnode *t = target->a; t != NULL && !j->failed; t = t->next)
        assign(j, t, list->v[i++]);
}

/* The text of statements that run in a scope of their own. */
static struct brig_jv text_of(struct brig_jinja *j, const struct brig_jnode *body)
{
    struct brig_jscope *was = push_scope(j, j->scope);
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    brig_jinja_exec(j, body);
    j->scope = was;
    return brig_jinja_captured(j, &inner, outer);
}

/* ---- loops ---- */

/* Those that the loop's test lets through. */
static struct brig_jlist *filtered(struct brig_jinja *j, const struct brig_jnode *n, struct brig_jlist *items)
{
    struct brig_jv kept = brig_jv_list(j, BRIG_JV_LIST);
    if (n->e == NULL)
        return items;
    for (size_t i = 0; i < items->n && !j->failed; i++) {
        struct brig_jscope *was = push_scope(j, j->scope);
        assign(j, n->a, items->v[i]);
        if (brig_jv_truth(brig_jinja_eval(j, n->e)))
            brig_jv_push(j, kept.list, items->v[i]);
        j->scope = was;
    }
    return j->failed ? NULL : kept.list;
}

/* Rounds of a loop; true when one of them came to its end (then there is no else). */
static bool rounds(struct brig_jinja *j, struct brig_jloop *loop)
{
    const struct brig_jnode *n = loop->node;
    bool completed = false;
    for (; loop->i < loop->items->n && !j->failed; loop->i++) {
        struct brig_jscope *was = push_scope(j, loop->scope);
        assign(j, n->a, loop->items->v[loop->i]);
        set(j, (struct brig_str){"loop", 4}, (struct brig_jv){.kind = BRIG_JV_LOOP, .loop = loop});
        enum brig_jflow flow = brig_jinja_exec(j, n->c);
        j->scope = was;
        completed |= flow == BRIG_JFLOW_ON;
        if (flow == BRIG_JFLOW_BREAK)
            break;
    }
    return completed;
}

static void run_loop(struct brig_jinja *j, const struct brig_jnode *n, struct brig_jv over, int64_t depth,
                     struct brig_jscope *scope)
{
    struct brig_jscope *was = j->scope;
    struct brig_jlist *items = brig_jv_elements(j, over);
    struct brig_jloop *loop = brig_jinja_alloc(j, 1, sizeof *loop);
    if (items == NULL || loop == NULL)
        return;
    j->scope = scope;
    items = filtered(j, n, items);
    if (items != NULL) {
        *loop = (struct brig_jloop){.items = items, .depth = depth, .node = n, .scope = scope};
        if (!rounds(j, loop) && n->d != NULL) {
            push_scope(j, scope);
            brig_jinja_exec(j, n->d);
        }
    }
    j->scope = was;
}

struct brig_jv brig_jinja_call_loop(struct brig_jinja *j, const struct brig_jloop *outer,
                                    const struct brig_jargs *args)
{
    struct brig_buf inner, *was;
    if (!outer->node->op)
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "the loop must have the 'recursive' marker to be called");
    if (args->pos.n != 1 || args->kw.n != 0)
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "loop() takes one argument");
    was = brig_jinja_capture(j, &inner);
    if (brig_jinja_enter(j)) {
        run_loop(j, outer->node, args->pos.v[0], outer->depth + 1, outer->scope);
        brig_jinja_leave(j);
    }
    return brig_jinja_captured(j, &inner, was);
}

bool brig_jinja_loop_property(struct brig_jinja *j, const struct brig_jloop *loop, struct brig_str name,
                              struct brig_jv *ret)
{
    int64_t i = (int64_t)loop->i, n = (int64_t)loop->items->n;
    const struct {
        const char *name;
        struct brig_jv value;
    } rows[] = {
        {"index", brig_jv_int(i + 1)},
        {"index0", brig_jv_int(i)},
        {"revindex", brig_jv_int(n - i)},
        {"revindex0", brig_jv_int(n - i - 1)},
        {"first", brig_jv_bool(i == 0)},
        {"last", brig_jv_bool(i + 1 == n)},
        {"length", brig_jv_int(n)},
        {"depth", brig_jv_int(loop->depth)},
        {"depth0", brig_jv_int(loop->depth - 1)},
    };
    (void)j;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        if (brig_str_eq(name, rows[k].name)) {
            *ret = rows[k].value;
            return true;
        }
    }
    bool previous = brig_str_eq(name, "previtem");
    if (!previous && !brig_str_eq(name, "nextitem"))
        return false;
    if (previous ? i > 0 : i + 1 < n)
        *ret = loop->items->v[previous ? i - 1 : i + 1];
    else
        *ret = brig_jv_undefined(
            BRIG_JV_WHY_TEXT, BRIG_JV_LOOP,
            brig_jv_text(previous ? "there is no previous item" : "there is no next item").s);
    return true;
}

/* ---- macros ---- */

static void define_macro(struct brig_jinja *j, const struct brig_jnode *n, struct brig_jv *ret)
{
    struct brig_jmacro *m = brig_jinja_alloc(j, 1, sizeof *m);
    if (m == NULL)
        return;
    *m = (struct brig_jmacro){n, j->scope};
    *ret = (struct brig_jv){.kind = BRIG_JV_MACRO, .macro = m};
}

/* One parameter: from its position, its name, its default. */
static void set_parameter(struct brig_jinja *j, const struct brig_jnode *param, size_t i,
                          const struct brig_jargs *args, size_t *named)
{
    const struct brig_jv *by_name = i < args->pos.n ? NULL : brig_jv_find_str(&args->kw, param->s);
    struct brig_jv v = brig_jv_undefined(BRIG_JV_WHY_TEXT, BRIG_JV_UNDEFINED,
                                         brig_jv_text("a parameter of a macro was not provided").s);
    if (i < args->pos.n)
        v = args->pos.v[i];
    else if (by_name != NULL)
        v = *by_name;
    else if (param->a != NULL)
        v = brig_jinja_eval(j, param->a);
    *named += by_name != NULL;
    set(j, param->s, v);
}

static bool is_parameter(const struct brig_jnode *n, struct brig_str name)
{
    for (const struct brig_jnode *p = n->a; p != NULL; p = p->next)
        if (p->s.len == name.len && memcmp(p->s.ptr, name.ptr, name.len) == 0)
            return true;
    return false;
}

/* What is left of the arguments goes to varargs, kwargs and caller when the body mentions them. */
static void set_rest(struct brig_jinja *j, const struct brig_jnode *n, size_t n_params, size_t named,
                     const struct brig_jargs *args)
{
    const struct brig_jv *caller = brig_jv_find_str(&args->kw, (struct brig_str){"caller", 6});
    struct brig_jv kwargs = brig_jv_dict(j, BRIG_JV_DICT), varargs = brig_jv_list(j, BRIG_JV_TUPLE);
    struct brig_str caller_name = {"caller", 6};
    if ((n->op & BRIG_JMACRO_CALLER) != 0 && !is_parameter(n, caller_name)) {
        named += caller != NULL;
        set(j, caller_name,
            caller != NULL ? *caller
                           : brig_jv_undefined(BRIG_JV_WHY_TEXT, BRIG_JV_UNDEFINED,
                                               brig_jv_text("No caller defined").s));
    }
    for (size_t i = 0; i < args->kw.n && !j->failed; i++) {
        struct brig_str name = args->kw.v[i].key.s;
        bool used =
            is_parameter(n, name) || ((n->op & BRIG_JMACRO_CALLER) != 0 && brig_str_eq(name, "caller"));
        if (!used)
            brig_jv_put(j, kwargs.dict, args->kw.v[i].key, args->kw.v[i].value);
    }
    for (size_t i = n_params; i < args->pos.n; i++)
        brig_jv_push(j, varargs.list, args->pos.v[i]);
    if ((n->op & BRIG_JMACRO_KWARGS) != 0)
        set(j, (struct brig_str){"kwargs", 6}, kwargs);
    else if (named < args->kw.n)
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "macro '%.*s' does not take one of its named arguments",
                        (int)(n->s.len < 60 ? n->s.len : 60), n->s.ptr);
    if ((n->op & BRIG_JMACRO_VARARGS) != 0)
        set(j, (struct brig_str){"varargs", 7}, varargs);
    else if (args->pos.n > n_params)
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "macro '%.*s' takes not more than %zu argument(s)",
                        (int)(n->s.len < 60 ? n->s.len : 60), n->s.ptr, n_params);
}

struct brig_jv brig_jinja_call_macro(struct brig_jinja *j, const struct brig_jmacro *m,
                                     const struct brig_jargs *args)
{
    struct brig_jv r = {.kind = BRIG_JV_UNDEFINED};
    size_t i = 0, named = 0;
    if (!brig_jinja_enter(j))
        return r;
    struct brig_jscope *was = push_scope(j, m->scope);
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    for (const struct brig_jnode *p = m->node->a; p != NULL && !j->failed; p = p->next)
        set_parameter(j, p, i++, args, &named);
    set_rest(j, m->node, i, named, args);
    brig_jinja_exec(j, m->node->b);
    j->scope = was;
    r = brig_jinja_captured(j, &inner, outer);
    brig_jinja_leave(j);
    return r;
}

static void exec_call_block(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jargs args = {0};
    struct brig_jv caller = {.kind = BRIG_JV_UNDEFINED}, callee = brig_jinja_eval(j, n->b->a);
    brig_jinja_eval_args(j, n->b->b, &args);
    define_macro(j, n->a, &caller);
    brig_jv_put(j, &args.kw, brig_jv_text("caller"), caller);
    brig_jinja_put_str(j, brig_jinja_call(j, callee, &args));
}

/* ---- the rest ---- */

static enum brig_jflow exec_with(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jv values = brig_jv_list(j, BRIG_JV_LIST);
    for (const struct brig_jnode *v = n->b; v != NULL && !j->failed; v = v->next)
        brig_jv_push(j, values.list, brig_jinja_eval(j, v));
    struct brig_jscope *was = push_scope(j, j->scope);
    size_t i = 0;
    for (const struct brig_jnode *t = n->a; t != NULL && !j->failed; t = t->next)
        assign(j, t, values.list->v[i++]);
    enum brig_jflow flow = brig_jinja_exec(j, n->c);
    j->scope = was;
    return flow;
}

static enum brig_jflow exec_in_scope(struct brig_jinja *j, const struct brig_jnode *body)
{
    struct brig_jscope *was = push_scope(j, j->scope);
    enum brig_jflow flow = brig_jinja_exec(j, body);
    j->scope = was;
    return flow;
}

static enum brig_jflow exec_if(struct brig_jinja *j, const struct brig_jnode *n)
{
    /* A long row of elif is a loop here, not a recursion. */
    for (;;) {
        j->line = n->line;
        if (brig_jv_truth(brig_jinja_eval(j, n->a)))
            return brig_jinja_exec(j, n->b);
        if (j->failed || n->c == NULL)
            return BRIG_JFLOW_ON;
        if (n->c->kind != BRIG_JN_IF || n->c->next != NULL)
            return brig_jinja_exec(j, n->c);
        n = n->c;
    }
}

static enum brig_jflow exec_one(struct brig_jinja *j, const struct brig_jnode *n)
{
    struct brig_jv v = {.kind = BRIG_JV_UNDEFINED};
    switch ((enum brig_jnode_kind)n->kind) {
    case BRIG_JN_TEXT:
        brig_jinja_put(j, n->s.ptr, n->s.len);
        break;
    case BRIG_JN_PRINT:
        for (const struct brig_jnode *e = n->a; e != NULL && !j->failed; e = e->next)
            brig_jinja_put_str(j, brig_jinja_eval(j, e));
        break;
    case BRIG_JN_IF:
        return exec_if(j, n);
    case BRIG_JN_FOR:
        run_loop(j, n, brig_jinja_eval(j, n->b), 1, j->scope);
        break;
    case BRIG_JN_SET:
        assign(j, n->a, brig_jinja_eval(j, n->b));
        break;
    case BRIG_JN_SET_BLOCK:
        v = text_of(j, n->c);
        assign(j, n->a, brig_jinja_eval_filters(j, n->b, v));
        break;
    case BRIG_JN_MACRO:
        define_macro(j, n, &v);
        set(j, n->s, v);
        break;
    case BRIG_JN_CALL_BLOCK:
        exec_call_block(j, n);
        break;
    case BRIG_JN_FILTER_BLOCK:
        v = text_of(j, n->b);
        brig_jinja_put_str(j, brig_jinja_eval_filters(j, n->a, v));
        break;
    case BRIG_JN_WITH:
        return exec_with(j, n);
    case BRIG_JN_GENERATION:
        return exec_in_scope(j, n->a);
    case BRIG_JN_BREAK:
        return BRIG_JFLOW_BREAK;
    default: /* CONTINUE */
        return BRIG_JFLOW_CONTINUE;
    }
    return BRIG_JFLOW_ON;
}

enum brig_jflow brig_jinja_exec(struct brig_jinja *j, const struct brig_jnode *list)
{
    enum brig_jflow flow = BRIG_JFLOW_ON;
    if (!brig_jinja_enter(j))
        return BRIG_JFLOW_BREAK;
    for (const struct brig_jnode *n = list; n != NULL && flow == BRIG_JFLOW_ON && brig_jinja_step(j, 1);
         n = n->next) {
        j->line = n->line;
        flow = exec_one(j, n);
    }
    brig_jinja_leave(j);
    return j->failed ? BRIG_JFLOW_BREAK : flow;
}

int brig_jinja_render(struct brig_str source, const json_t *context, const struct brig_jinja_limits *limits,
                      struct brig_buf *out, struct brig_fail *fail)
{
    struct brig_buf text = {.max = limits->out_bytes};
    struct brig_jscope top = {0};
    struct brig_jinja j = {
        .limits = *limits, .steps_left = limits->steps, .line = 1, .out = &text, .scope = &top};
    struct brig_jv root = brig_jv_from_json(&j, context);
    const struct brig_jnode *tree = j.failed ? NULL : brig_jinja_parse(&j, source);
    if (!j.failed) {
        j.root = root.dict;
        brig_jinja_exec(&j, tree);
    }
    if (!j.failed && brig_buf_add(out, text.data == NULL ? "" : text.data, text.len) < 0)
        brig_jinja_fail(&j, BRIG_JINJA_LIMIT, "the text does not fit");
    if (j.failed && fail != NULL)
        *fail = j.fail;
    int r = j.failed ? -(int)j.fail.code : 0;
    brig_buf_release(&text);
    brig_jinja_free_all(&j);
    return r;
}
