/* Statements. */
#include "driver/chat/jinja_parse.h"

#include <stdio.h>
#include <string.h>

static struct brig_jnode *body(struct brig_jparser *p, const char *const *ends);

struct brig_jnode *brig_jp_node_at(struct brig_jparser *p, enum brig_jnode_kind kind, uint32_t line)
{
    struct brig_jnode *n = brig_jinja_alloc(p->j, 1, sizeof *n);
    if (n != NULL) {
        n->kind = (uint8_t)kind;
        n->line = line;
    }
    return n;
}

struct brig_jnode *brig_jp_node(struct brig_jparser *p, enum brig_jnode_kind kind)
{
    return brig_jp_node_at(p, kind, p->t->line);
}

struct brig_jnode *brig_jp_fail(struct brig_jparser *p, const char *what)
{
    const struct brig_jtoken *t = p->t;
    int n = t->s.len < 60 ? (int)t->s.len : 60;
    p->j->line = t->line;
    switch (t->kind) {
    case BRIG_JT_ERROR:
        brig_jinja_fail(p->j, BRIG_JINJA_SYNTAX, "%.*s", (int)t->s.len, t->s.ptr);
        break;
    case BRIG_JT_END:
        brig_jinja_fail(p->j, BRIG_JINJA_SYNTAX, "%s, and the template ends", what);
        break;
    case BRIG_JT_NAME:
    case BRIG_JT_OPERATOR:
    case BRIG_JT_NUMBER:
        brig_jinja_fail(p->j, BRIG_JINJA_SYNTAX, "%s, at '%.*s'", what, n, t->s.ptr);
        break;
    default:
        brig_jinja_fail(p->j, BRIG_JINJA_SYNTAX, "%s", what);
    }
    return NULL;
}

void brig_jp_next(struct brig_jparser *p)
{
    if (p->t->kind != BRIG_JT_END && p->t->kind != BRIG_JT_ERROR)
        p->t++;
}

bool brig_jp_is(const struct brig_jparser *p, enum brig_jtoken_kind kind)
{
    return p->t->kind == kind;
}

bool brig_jp_is_name(const struct brig_jparser *p, const char *name)
{
    return p->t->kind == BRIG_JT_NAME && brig_str_eq(p->t->s, name);
}

bool brig_jp_is_op(const struct brig_jparser *p, const char *op)
{
    return p->t->kind == BRIG_JT_OPERATOR && brig_str_eq(p->t->s, op);
}

bool brig_jp_skip_name(struct brig_jparser *p, const char *name)
{
    bool is = brig_jp_is_name(p, name);
    if (is)
        brig_jp_next(p);
    return is;
}

bool brig_jp_skip_op(struct brig_jparser *p, const char *op)
{
    bool is = brig_jp_is_op(p, op);
    if (is)
        brig_jp_next(p);
    return is;
}

bool brig_jp_expect_op(struct brig_jparser *p, const char *op)
{
    char what[32];
    if (brig_jp_skip_op(p, op))
        return true;
    snprintf(what, sizeof what, "'%s' is expected", op);
    brig_jp_fail(p, what);
    return false;
}

struct brig_str brig_jp_expect_name(struct brig_jparser *p)
{
    struct brig_str s = p->t->s;
    if (brig_jp_is(p, BRIG_JT_NAME))
        brig_jp_next(p);
    else
        brig_jp_fail(p, "a name is expected");
    return s;
}

static bool assignable(struct brig_jparser *p, const struct brig_jnode *target)
{
    if (target == NULL)
        return false;
    if (target->kind == BRIG_JN_NAME)
        return true;
    if (target->kind == BRIG_JN_TUPLE) {
        for (const struct brig_jnode *n = target->a; n != NULL; n = n->next)
            if (!assignable(p, n))
                return false;
        return true;
    }
    p->j->line = target->line;
    brig_jinja_fail(p->j, BRIG_JINJA_SYNTAX, "only names can be set");
    return false;
}

static struct brig_jnode *target(struct brig_jparser *p)
{
    struct brig_jnode *n = brig_jp_tuple(p, BRIG_JP_TARGET);
    return assignable(p, n) ? n : NULL;
}

static struct brig_jnode *name_target(struct brig_jparser *p)
{
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_NAME);
    struct brig_str s = brig_jp_expect_name(p);
    if (n != NULL)
        n->s = s;
    return n;
}

/* The end of the opening tag (a colon before it is allowed), the body, and the name of the tag that ended it.
 */
static struct brig_jnode *tag_body(struct brig_jparser *p, const char *const *ends)
{
    brig_jp_skip_op(p, ":");
    if (!brig_jp_is(p, BRIG_JT_BLOCK_END))
        return brig_jp_fail(p, "the end of the tag is expected");
    brig_jp_next(p);
    return body(p, ends);
}

static struct brig_jnode *parse_if(struct brig_jparser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif", NULL};
    const struct brig_jnode *unknown = p->unknown; /* inside of an if they fail when they are run */
    struct brig_jnode *first = brig_jp_node(p, BRIG_JN_IF), *n = first;
    while (n != NULL) {
        brig_jp_next(p); /* if, elif */
        n->a = brig_jp_tuple(p, BRIG_JP_NO_CONDITION);
        n->b = tag_body(p, ends);
        if (p->j->failed || brig_jp_skip_name(p, "endif"))
            break;
        if (brig_jp_is_name(p, "elif")) {
            n->c = brig_jp_node(p, BRIG_JN_IF);
            n = n->c;
            continue;
        }
        brig_jp_next(p);
        n->c = tag_body(p, last);
        brig_jp_next(p);
        break;
    }
    p->unknown = unknown;
    return first;
}

static void fail_unknown(struct brig_jparser *p)
{
    if (p->unknown == NULL || p->j->failed)
        return;
    p->j->line = p->unknown->line;
    brig_jinja_fail(p->j, BRIG_JINJA_SYNTAX, "there is no %s named '%.*s'",
                    p->unknown->kind == BRIG_JN_FILTER ? "filter" : "test",
                    (int)(p->unknown->s.len < 60 ? p->unknown->s.len : 60), p->unknown->s.ptr);
}

static struct brig_jnode *parse_for(struct brig_jparser *p)
{
    static const char *const ends[] = {"endfor", "else", NULL}, *const last[] = {"endfor", NULL};
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_FOR);
    brig_jp_next(p);
    struct brig_jnode *to = target(p);
    if (n == NULL || to == NULL)
        return NULL;
    n->a = to;
    if (!brig_jp_skip_name(p, "in"))
        return brig_jp_fail(p, "'in' is expected");
    n->b = brig_jp_tuple(p, BRIG_JP_NO_CONDITION);
    if (brig_jp_skip_name(p, "if"))
        n->e = brig_jp_expression(p);
    n->op = brig_jp_skip_name(p, "recursive");
    const struct brig_jnode *unknown = p->unknown;
    p->unknown = NULL;
    p->loops++;
    n->c = tag_body(p, ends);
    p->loops--;
    if (!p->j->failed && brig_jp_skip_name(p, "else"))
        n->d = tag_body(p, last);
    brig_jp_next(p);
    fail_unknown(p);
    p->unknown = unknown;
    return n;
}

static struct brig_jnode *parse_set(struct brig_jparser *p)
{
    static const char *const ends[] = {"endset", NULL};
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_SET);
    brig_jp_next(p);
    if (n == NULL)
        return NULL;
    if (brig_jp_is(p, BRIG_JT_NAME) && p->t[1].kind == BRIG_JT_OPERATOR && brig_str_eq(p->t[1].s, ".")) {
        n->a = brig_jp_node(p, BRIG_JN_NSREF);
        struct brig_str object = brig_jp_expect_name(p);
        brig_jp_next(p);
        struct brig_str attribute = brig_jp_expect_name(p);
        if (n->a == NULL || p->j->failed || (n->a->b = brig_jp_node(p, BRIG_JN_CONST)) == NULL)
            return NULL;
        n->a->s = object;
        n->a->b->value = brig_jv_str(attribute.ptr, attribute.len);
    } else if ((n->a = target(p)) == NULL) {
        return NULL;
    }
    if (brig_jp_skip_op(p, "=")) {
        n->b = brig_jp_tuple(p, 0);
        return n;
    }
    n->kind = BRIG_JN_SET_BLOCK;
    n->b = brig_jp_filters(p, NULL, false);
    n->c = tag_body(p, ends);
    brig_jp_next(p);
    return n;
}

static void parse_signature(struct brig_jparser *p, struct brig_jnode *macro)
{
    struct brig_jnode **tail = &macro->a;
    bool defaults = false;
    if (!brig_jp_expect_op(p, "("))
        return;
    while (!p->j->failed && !brig_jp_is_op(p, ")")) {
        if (macro->a != NULL && !brig_jp_expect_op(p, ","))
            return;
        struct brig_jnode *n = name_target(p);
        if (n == NULL)
            return;
        if (brig_jp_skip_op(p, "=")) {
            n->a = brig_jp_expression(p);
            defaults = true;
        } else if (defaults) {
            brig_jp_fail(p, "an argument without a default follows one with a default");
        }
        brig_jp_append(&tail, n);
    }
    brig_jp_next(p);
}

/* Body of a macro or call block: loops outside do not count, and what it mentions is written down. */
static void macro_body(struct brig_jparser *p, struct brig_jnode *macro, const char *const *ends)
{
    unsigned loops = p->loops, uses = p->macro_uses;
    const struct brig_jnode *unknown = p->unknown;
    p->loops = p->macro_uses = 0;
    p->unknown = NULL;
    macro->b = tag_body(p, ends);
    macro->op = (uint8_t)p->macro_uses;
    brig_jp_next(p);
    fail_unknown(p);
    p->unknown = unknown;
    p->loops = loops;
    p->macro_uses |= uses;
}

static struct brig_jnode *parse_macro(struct brig_jparser *p)
{
    static const char *const ends[] = {"endmacro", NULL};
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_MACRO);
    brig_jp_next(p);
    struct brig_str name = brig_jp_expect_name(p);
    if (n == NULL || p->j->failed)
        return NULL;
    n->s = name;
    parse_signature(p, n);
    macro_body(p, n, ends);
    return n;
}

static struct brig_jnode *parse_call_block(struct brig_jparser *p)
{
    static const char *const ends[] = {"endcall", NULL};
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_CALL_BLOCK), *caller = brig_jp_node(p, BRIG_JN_MACRO);
    brig_jp_next(p);
    if (n == NULL || caller == NULL)
        return NULL;
    caller->s = (struct brig_str){"caller", 6};
    if (brig_jp_is_op(p, "("))
        parse_signature(p, caller);
    n->a = caller;
    n->b = brig_jp_expression(p);
    if (n->b != NULL && n->b->kind != BRIG_JN_CALL)
        return brig_jp_fail(p, "a call is expected");
    macro_body(p, caller, ends);
    return n;
}

static struct brig_jnode *parse_filter_block(struct brig_jparser *p)
{
    static const char *const ends[] = {"endfilter", NULL};
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_FILTER_BLOCK);
    brig_jp_next(p);
    if (n == NULL)
        return NULL;
    n->a = brig_jp_filters(p, NULL, true);
    n->b = tag_body(p, ends);
    brig_jp_next(p);
    return n;
}

static struct brig_jnode *parse_with(struct brig_jparser *p)
{
    static const char *const ends[] = {"endwith", NULL};
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_WITH);
    brig_jp_next(p);
    if (n == NULL)
        return NULL;
    struct brig_jnode **targets = &n->a, **values = &n->b;
    while (!p->j->failed && !brig_jp_is(p, BRIG_JT_BLOCK_END)) {
        if (n->a != NULL && !brig_jp_expect_op(p, ","))
            return NULL;
        struct brig_jnode *to = brig_jp_primary(p); /* a tuple needs its parentheses here */
        if (!assignable(p, to) || !brig_jp_expect_op(p, "="))
            return NULL;
        brig_jp_append(&targets, to);
        brig_jp_append(&values, brig_jp_expression(p));
    }
    n->c = tag_body(p, ends);
    brig_jp_next(p);
    return n;
}

static struct brig_jnode *parse_print(struct brig_jparser *p)
{
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_PRINT);
    brig_jp_next(p);
    struct brig_jnode **tail = n == NULL ? NULL : &n->a;
    while (!p->j->failed && !brig_jp_is(p, BRIG_JT_BLOCK_END)) {
        if (n->a != NULL && !brig_jp_expect_op(p, ","))
            return NULL;
        brig_jp_append(&tail, brig_jp_expression(p));
    }
    return n;
}

static struct brig_jnode *parse_generation(struct brig_jparser *p)
{
    static const char *const ends[] = {"endgeneration", NULL};
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_GENERATION);
    brig_jp_next(p);
    if (n == NULL)
        return NULL;
    n->a = tag_body(p, ends);
    brig_jp_next(p);
    return n;
}

static struct brig_jnode *loop_control(struct brig_jparser *p, enum brig_jnode_kind kind)
{
    struct brig_jnode *n = brig_jp_node(p, kind);
    if (p->loops == 0)
        return brig_jp_fail(p, "outside of a loop");
    brig_jp_next(p);
    return n;
}

static struct brig_jnode *parse_break(struct brig_jparser *p)
{
    return loop_control(p, BRIG_JN_BREAK);
}

static struct brig_jnode *parse_continue(struct brig_jparser *p)
{
    return loop_control(p, BRIG_JN_CONTINUE);
}

static struct brig_jnode *parse_refused(struct brig_jparser *p)
{
    return brig_jp_fail(p, "not in the subset of Jinja that chat templates have");
}

static const struct {
    const char *name;
    struct brig_jnode *(*parse)(struct brig_jparser *p); /* begins at the name, ends at the tag's end */
} tags[] = {
    {"if", parse_if},
    {"for", parse_for},
    {"set", parse_set},
    {"macro", parse_macro},
    {"call", parse_call_block},
    {"filter", parse_filter_block},
    {"with", parse_with},
    {"print", parse_print},
    {"generation", parse_generation},
    {"break", parse_break},
    {"continue", parse_continue},
    {"include", parse_refused},
    {"import", parse_refused},
    {"from", parse_refused},
    {"extends", parse_refused},
    {"block", parse_refused},
    {"autoescape", parse_refused},
};

static struct brig_jnode *statement(struct brig_jparser *p)
{
    struct brig_jnode *n = NULL;
    size_t i = 0;
    while (i < sizeof tags / sizeof tags[0] && !brig_jp_is_name(p, tags[i].name))
        i++;
    if (i == sizeof tags / sizeof tags[0])
        return brig_jp_fail(p, "an unknown tag");
    if (brig_jinja_enter(p->j)) {
        n = tags[i].parse(p);
        brig_jinja_leave(p->j);
    }
    if (p->j->failed)
        return NULL;
    if (!brig_jp_is(p, BRIG_JT_BLOCK_END))
        return brig_jp_fail(p, "the end of the tag is expected");
    brig_jp_next(p);
    return n;
}

static struct brig_jnode *print_tag(struct brig_jparser *p)
{
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_PRINT);
    brig_jp_next(p);
    if (n == NULL)
        return NULL;
    n->a = brig_jp_tuple(p, 0);
    if (p->j->failed)
        return NULL;
    if (!brig_jp_is(p, BRIG_JT_PRINT_END))
        return brig_jp_fail(p, "'}}' is expected");
    brig_jp_next(p);
    return n;
}

static bool is_end(const struct brig_jparser *p, const char *const *ends)
{
    for (; ends != NULL && *ends != NULL; ends++)
        if (brig_jp_is_name(p, *ends))
            return true;
    return false;
}

/* Statements up to a tag that is one of `ends`, whose name is then the current token; NULL: to the end. */
static struct brig_jnode *body(struct brig_jparser *p, const char *const *ends)
{
    struct brig_jnode *first = NULL, **tail = &first;
    char what[64];
    while (!p->j->failed && !brig_jp_is(p, BRIG_JT_END)) {
        if (brig_jp_is(p, BRIG_JT_TEXT)) {
            struct brig_jnode *n = brig_jp_node(p, BRIG_JN_TEXT);
            if (n != NULL)
                n->s = p->t->s;
            brig_jp_next(p);
            brig_jp_append(&tail, n);
        } else if (brig_jp_is(p, BRIG_JT_PRINT_BEGIN)) {
            brig_jp_append(&tail, print_tag(p));
        } else if (brig_jp_is(p, BRIG_JT_BLOCK_BEGIN)) {
            brig_jp_next(p);
            if (is_end(p, ends))
                return first;
            brig_jp_append(&tail, statement(p));
        } else {
            return brig_jp_fail(p, "a tag is expected");
        }
    }
    if (p->j->failed || ends == NULL)
        return first;
    snprintf(what, sizeof what, "'%s' is expected", *ends);
    return brig_jp_fail(p, what);
}

struct brig_jnode *brig_jinja_parse(struct brig_jinja *j, struct brig_str source)
{
    struct brig_jparser p = {.j = j, .t = brig_jinja_lex(j, source)};
    if (p.t == NULL)
        return NULL;
    struct brig_jnode *first = body(&p, NULL);
    fail_unknown(&p);
    return j->failed ? NULL : first;
}
