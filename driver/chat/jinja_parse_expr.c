/* Expressions, from the loosest binding to the tightest. */
#include "driver/chat/jinja_fn.h"
#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_parse.h"

typedef struct brig_jnode *parse_fn(struct brig_jparser *p);

static parse_fn parse_or, parse_unary, parse_not;

static struct brig_jnode *binary(struct brig_jparser *p, enum brig_jnode_kind kind, unsigned op,
                                 struct brig_jnode *a, struct brig_jnode *b, uint32_t line)
{
    struct brig_jnode *n = brig_jp_node_at(p, kind, line);
    if (n != NULL) {
        n->op = (uint8_t)op;
        n->a = a;
        n->b = b;
    }
    return n;
}

/* b if a else c, and on to the next if. */
static struct brig_jnode *conditions(struct brig_jparser *p)
{
    const struct brig_jnode *unknown = p->unknown; /* in a condition they fail when they are run */
    uint32_t line = p->t->line;
    struct brig_jnode *n = parse_or(p);
    while (!p->j->failed && brig_jp_skip_name(p, "if")) {
        struct brig_jnode *test = parse_or(p);
        n = binary(p, BRIG_JN_COND, 0, test, n, line);
        if (n != NULL && brig_jp_skip_name(p, "else"))
            n->c = brig_jp_expression(p);
        p->unknown = unknown;
    }
    return n;
}

struct brig_jnode *brig_jp_expression(struct brig_jparser *p)
{
    struct brig_jnode *n = NULL;
    if (brig_jinja_enter(p->j)) {
        n = conditions(p);
        brig_jinja_leave(p->j);
    }
    return n;
}

static struct brig_jnode *parse_and(struct brig_jparser *p)
{
    uint32_t line = p->t->line;
    struct brig_jnode *n = parse_not(p);
    while (!p->j->failed && brig_jp_skip_name(p, "and"))
        n = binary(p, BRIG_JN_AND, 0, n, parse_not(p), line);
    return n;
}

static struct brig_jnode *parse_or(struct brig_jparser *p)
{
    uint32_t line = p->t->line;
    struct brig_jnode *n = parse_and(p);
    while (!p->j->failed && brig_jp_skip_name(p, "or"))
        n = binary(p, BRIG_JN_OR, 0, n, parse_and(p), line);
    return n;
}

struct operator_row {
    const char *spelling;
    enum brig_jop op;
};

/* The row of the current token, which is skipped; or NULL. */
static const struct operator_row *take_operator(struct brig_jparser *p, const struct operator_row *rows)
{
    for (; rows->spelling != NULL; rows++)
        if (brig_jp_skip_op(p, rows->spelling))
            return rows;
    return NULL;
}

static struct brig_jnode *left_chain(struct brig_jparser *p, const struct operator_row *rows,
                                     parse_fn *tighter)
{
    const struct operator_row *row;
    uint32_t line = p->t->line;
    struct brig_jnode *n = tighter(p);
    while (!p->j->failed && (row = take_operator(p, rows)) != NULL)
        n = binary(p, BRIG_JN_BINARY, row->op, n, tighter(p), line);
    return n;
}

static struct brig_jnode *parse_power(struct brig_jparser *p)
{
    static const struct operator_row rows[] = {{"**", BRIG_JOP_POW}, {NULL, 0}};
    return left_chain(p, rows, parse_unary);
}

static struct brig_jnode *parse_product(struct brig_jparser *p)
{
    static const struct operator_row rows[] = {
        {"*", BRIG_JOP_MUL}, {"/", BRIG_JOP_DIV}, {"//", BRIG_JOP_FLOORDIV}, {"%", BRIG_JOP_MOD}, {NULL, 0}};
    return left_chain(p, rows, parse_power);
}

static struct brig_jnode *parse_concat(struct brig_jparser *p)
{
    struct brig_jnode *first = parse_product(p);
    if (first == NULL || !brig_jp_is_op(p, "~"))
        return first;
    struct brig_jnode *n = brig_jp_node_at(p, BRIG_JN_CONCAT, first->line);
    if (n == NULL)
        return NULL;
    n->a = first;
    struct brig_jnode **tail = &first->next;
    while (!p->j->failed && brig_jp_skip_op(p, "~"))
        brig_jp_append(&tail, parse_product(p));
    return n;
}

static struct brig_jnode *parse_sum(struct brig_jparser *p)
{
    static const struct operator_row rows[] = {{"+", BRIG_JOP_ADD}, {"-", BRIG_JOP_SUB}, {NULL, 0}};
    return left_chain(p, rows, parse_concat);
}

/* An operator of a comparison, skipped: its enum brig_jop, or -1. */
static int take_comparison(struct brig_jparser *p)
{
    static const struct operator_row rows[] = {
        {"==", BRIG_JOP_EQ}, {"!=", BRIG_JOP_NE}, {"<", BRIG_JOP_LT}, {"<=", BRIG_JOP_LE},
        {">", BRIG_JOP_GT},  {">=", BRIG_JOP_GE}, {NULL, 0}};
    const struct operator_row *row = take_operator(p, rows);
    if (row != NULL)
        return (int)row->op;
    if (brig_jp_skip_name(p, "in"))
        return BRIG_JOP_IN;
    if (brig_jp_is_name(p, "not") && p->t[1].kind == BRIG_JT_NAME && brig_str_eq(p->t[1].s, "in")) {
        brig_jp_next(p);
        brig_jp_next(p);
        return BRIG_JOP_NOT_IN;
    }
    return -1;
}

static struct brig_jnode *parse_comparison(struct brig_jparser *p)
{
    struct brig_jnode *first = parse_sum(p), *n = first, **tail = NULL;
    int op;
    while (!p->j->failed && (op = take_comparison(p)) >= 0) {
        if (n == first) {
            n = brig_jp_node_at(p, BRIG_JN_COMPARE, first->line);
            if (n == NULL)
                return NULL;
            n->a = first;
            tail = &n->b;
        }
        brig_jp_append(&tail, binary(p, BRIG_JN_OPERAND, (unsigned)op, parse_sum(p), NULL, p->t->line));
    }
    return n;
}

static struct brig_jnode *parse_not(struct brig_jparser *p)
{
    uint32_t line = p->t->line;
    if (!brig_jp_is_name(p, "not"))
        return parse_comparison(p);
    brig_jp_next(p);
    struct brig_jnode *n = NULL;
    if (brig_jinja_enter(p->j)) {
        n = binary(p, BRIG_JN_NOT, 0, parse_not(p), NULL, line);
        brig_jinja_leave(p->j);
    }
    return n;
}

/* *args, **kwargs, name=value or a value. */
static struct brig_jnode *argument(struct brig_jparser *p)
{
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_ARG);
    if (n == NULL)
        return NULL;
    if (brig_jp_skip_op(p, "*")) {
        n->op = BRIG_JARG_STAR;
    } else if (brig_jp_skip_op(p, "**")) {
        n->op = BRIG_JARG_STARS;
    } else if (brig_jp_is(p, BRIG_JT_NAME) && p->t[1].kind == BRIG_JT_OPERATOR &&
               brig_str_eq(p->t[1].s, "=")) {
        n->op = BRIG_JARG_KEYWORD;
        n->s = p->t->s;
        brig_jp_next(p);
        brig_jp_next(p);
    }
    n->a = brig_jp_expression(p);
    return n;
}

/* ( ... ): plain ones, then named ones, then * and ** at most once each. */
static struct brig_jnode *arguments(struct brig_jparser *p)
{
    struct brig_jnode *first = NULL, **tail = &first;
    unsigned seen = BRIG_JARG_PLAIN;
    if (!brig_jp_expect_op(p, "("))
        return NULL;
    while (!p->j->failed && !brig_jp_is_op(p, ")")) {
        if (first != NULL && !brig_jp_expect_op(p, ","))
            return NULL;
        if (brig_jp_is_op(p, ")"))
            break;
        struct brig_jnode *n = argument(p);
        if (n == NULL)
            return NULL;
        bool twice = n->op == seen && n->op >= BRIG_JARG_STAR;
        if (twice || (n->op < seen && !(n->op == BRIG_JARG_KEYWORD && seen == BRIG_JARG_STAR)))
            return brig_jp_fail(p, "the arguments of a call are in a wrong order");
        seen = n->op > seen ? n->op : seen;
        brig_jp_append(&tail, n);
    }
    brig_jp_next(p);
    return first;
}

static struct brig_jnode *call(struct brig_jparser *p, struct brig_jnode *callee)
{
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_CALL);
    if (n != NULL) {
        n->a = callee;
        n->b = arguments(p);
    }
    return n;
}

static bool slice_ends(const struct brig_jparser *p)
{
    return brig_jp_is_op(p, ":") || brig_jp_is_op(p, "]") || brig_jp_is_op(p, ",");
}

/* What is in []: an expression, or start:stop:step. */
static struct brig_jnode *subscript(struct brig_jparser *p, struct brig_jnode *of)
{
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_ITEM);
    if (n == NULL)
        return NULL;
    n->a = of;
    if (!brig_jp_is_op(p, ":"))
        n->b = brig_jp_expression(p);
    if (!brig_jp_skip_op(p, ":"))
        return n;
    n->kind = BRIG_JN_SLICE;
    if (!slice_ends(p))
        n->c = brig_jp_expression(p);
    if (brig_jp_skip_op(p, ":") && !slice_ends(p))
        n->d = brig_jp_expression(p);
    return n;
}

/* x[a, b] has a tuple for a key. */
static struct brig_jnode *subscripts(struct brig_jparser *p, struct brig_jnode *of)
{
    struct brig_jnode *n = subscript(p, of);
    if (n == NULL || !brig_jp_is_op(p, ","))
        return n;
    if (n->kind == BRIG_JN_SLICE)
        return brig_jp_fail(p, "one slice is expected");
    struct brig_jnode *tuple = brig_jp_node(p, BRIG_JN_TUPLE);
    if (tuple == NULL)
        return NULL;
    tuple->a = n->b;
    n->b = tuple;
    struct brig_jnode **tail = &tuple->a->next;
    while (!p->j->failed && brig_jp_skip_op(p, ","))
        brig_jp_append(&tail, brig_jp_expression(p));
    return n;
}

static struct brig_jnode *dotted(struct brig_jparser *p, struct brig_jnode *of)
{
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_ATTR);
    if (n == NULL)
        return NULL;
    n->a = of;
    if (brig_jp_is(p, BRIG_JT_NUMBER) && p->t->value.kind == BRIG_JV_INT) { /* x.0 */
        n->kind = BRIG_JN_ITEM;
        n->b = brig_jp_primary(p);
    } else if (brig_jp_is(p, BRIG_JT_NAME)) {
        n->s = brig_jp_expect_name(p);
    } else {
        return brig_jp_fail(p, "a name or number is expected");
    }
    return n;
}

static struct brig_jnode *postfix(struct brig_jparser *p, struct brig_jnode *n)
{
    while (!p->j->failed) {
        if (brig_jp_skip_op(p, ".")) {
            n = dotted(p, n);
        } else if (brig_jp_skip_op(p, "[")) {
            n = subscripts(p, n);
            if (n == NULL || !brig_jp_expect_op(p, "]"))
                return NULL;
        } else if (brig_jp_is_op(p, "(")) {
            n = call(p, n);
        } else {
            break;
        }
    }
    return n;
}

static struct brig_jnode *one_filter(struct brig_jparser *p, struct brig_jnode *of)
{
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_FILTER);
    struct brig_str name = brig_jp_expect_name(p);
    if (n == NULL || p->j->failed)
        return NULL;
    n->a = of;
    n->s = name;
    n->fn = brig_jfn_filter(name);
    if (n->fn == NULL && p->unknown == NULL)
        p->unknown = n;
    if (brig_jp_is_op(p, "("))
        n->b = arguments(p);
    return n;
}

struct brig_jnode *brig_jp_filters(struct brig_jparser *p, struct brig_jnode *node, bool first_inline)
{
    while (!p->j->failed && (first_inline || brig_jp_skip_op(p, "|"))) {
        node = one_filter(p, node);
        first_inline = false;
    }
    return node;
}

/* A test without parentheses may have one argument: a simple value right behind its name. */
static struct brig_jnode *bare_argument(struct brig_jparser *p)
{
    bool value = brig_jp_is(p, BRIG_JT_STRING) || brig_jp_is(p, BRIG_JT_NUMBER) || brig_jp_is_op(p, "[") ||
                 brig_jp_is_op(p, "{") || brig_jp_is(p, BRIG_JT_NAME);
    if (!value || brig_jp_is_name(p, "else") || brig_jp_is_name(p, "or") || brig_jp_is_name(p, "and"))
        return NULL;
    if (brig_jp_is_name(p, "is"))
        return brig_jp_fail(p, "tests cannot be chained");
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_ARG);
    if (n != NULL)
        n->a = postfix(p, brig_jp_primary(p));
    return n;
}

static struct brig_jnode *test(struct brig_jparser *p, struct brig_jnode *of)
{
    uint32_t line = p->t->line;
    bool negated = brig_jp_skip_name(p, "not");
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_TEST);
    struct brig_str name = brig_jp_expect_name(p);
    if (n == NULL || p->j->failed)
        return NULL;
    n->a = of;
    n->s = name;
    n->fn = brig_jfn_test(name);
    if (n->fn == NULL && p->unknown == NULL)
        p->unknown = n;
    n->b = brig_jp_is_op(p, "(") ? arguments(p) : bare_argument(p);
    return negated ? binary(p, BRIG_JN_NOT, 0, n, NULL, line) : n;
}

/* Filters, tests, and calls of what they give. */
static struct brig_jnode *filters_and_tests(struct brig_jparser *p, struct brig_jnode *n)
{
    while (!p->j->failed) {
        if (brig_jp_is_op(p, "|"))
            n = brig_jp_filters(p, n, false);
        else if (brig_jp_skip_name(p, "is"))
            n = test(p, n);
        else if (brig_jp_is_op(p, "("))
            n = call(p, n);
        else
            break;
    }
    return n;
}

static struct brig_jnode *signed_or_primary(struct brig_jparser *p)
{
    uint32_t line = p->t->line;
    bool minus = brig_jp_is_op(p, "-");
    struct brig_jnode *n = NULL;
    if (!minus && !brig_jp_is_op(p, "+"))
        return postfix(p, brig_jp_primary(p));
    brig_jp_next(p);
    if (brig_jinja_enter(p->j)) {
        n = binary(p, minus ? BRIG_JN_NEG : BRIG_JN_POS, 0, signed_or_primary(p), NULL, line);
        brig_jinja_leave(p->j);
    }
    return postfix(p, n);
}

static struct brig_jnode *parse_unary(struct brig_jparser *p)
{
    return filters_and_tests(p, signed_or_primary(p));
}

static struct brig_jnode *list_or_dict(struct brig_jparser *p, bool dict)
{
    struct brig_jnode *n = brig_jp_node(p, dict ? BRIG_JN_DICT : BRIG_JN_LIST);
    const char *close = dict ? "}" : "]";
    brig_jp_next(p);
    if (n == NULL)
        return NULL;
    struct brig_jnode **tail = &n->a;
    while (!p->j->failed && !brig_jp_is_op(p, close)) {
        if (n->a != NULL && !brig_jp_expect_op(p, ","))
            return NULL;
        if (brig_jp_is_op(p, close))
            break;
        brig_jp_append(&tail, brig_jp_expression(p));
        if (dict && brig_jp_expect_op(p, ":"))
            brig_jp_append(&tail, brig_jp_expression(p));
    }
    brig_jp_next(p);
    return n;
}

/* Names that macros and loops treat in a special way are written down where they are mentioned. */
static struct brig_jnode *name_or_constant(struct brig_jparser *p)
{
    static const struct {
        const char *name;
        struct brig_jv value;
    } constants[] = {
        {"true", {.kind = BRIG_JV_BOOL, .b = true}},
        {"True", {.kind = BRIG_JV_BOOL, .b = true}},
        {"false", {.kind = BRIG_JV_BOOL, .b = false}},
        {"False", {.kind = BRIG_JV_BOOL, .b = false}},
        {"none", {.kind = BRIG_JV_NONE}},
        {"None", {.kind = BRIG_JV_NONE}},
    };
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_NAME);
    if (n == NULL)
        return NULL;
    n->s = p->t->s;
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        if (brig_jp_is_name(p, constants[i].name)) {
            n->kind = BRIG_JN_CONST;
            n->value = constants[i].value;
        }
    }
    p->macro_uses |= brig_jp_is_name(p, "varargs")  ? BRIG_JMACRO_VARARGS
                     : brig_jp_is_name(p, "kwargs") ? BRIG_JMACRO_KWARGS
                     : brig_jp_is_name(p, "caller") ? BRIG_JMACRO_CALLER
                                                    : 0;
    brig_jp_next(p);
    return n;
}

/* Literals beside each other are one. */
static struct brig_jnode *string_constant(struct brig_jparser *p)
{
    struct brig_jnode *n = brig_jp_node(p, BRIG_JN_CONST);
    if (n == NULL)
        return NULL;
    n->value = brig_jv_str(p->t->s.ptr, p->t->s.len);
    for (brig_jp_next(p); brig_jp_is(p, BRIG_JT_STRING) && !p->j->failed; brig_jp_next(p))
        n->value = brig_jv_arithmetic(p->j, BRIG_JOP_ADD, n->value, brig_jv_str(p->t->s.ptr, p->t->s.len));
    return n;
}

struct brig_jnode *brig_jp_primary(struct brig_jparser *p)
{
    struct brig_jnode *n;
    if (brig_jp_is(p, BRIG_JT_NAME))
        return name_or_constant(p);
    if (brig_jp_is(p, BRIG_JT_STRING))
        return string_constant(p);
    if (brig_jp_is(p, BRIG_JT_NUMBER)) {
        n = brig_jp_node(p, BRIG_JN_CONST);
        if (n != NULL)
            n->value = p->t->value;
        brig_jp_next(p);
        return n;
    }
    if (brig_jp_is_op(p, "[") || brig_jp_is_op(p, "{"))
        return list_or_dict(p, brig_jp_is_op(p, "{"));
    if (!brig_jp_skip_op(p, "("))
        return brig_jp_fail(p, "an expression is expected");
    n = brig_jp_tuple(p, BRIG_JP_PARENTHESES);
    return n != NULL && brig_jp_expect_op(p, ")") ? n : NULL;
}

static struct brig_jnode *tuple_element(struct brig_jparser *p, unsigned how)
{
    struct brig_jnode *n = NULL;
    if ((how & (BRIG_JP_TARGET | BRIG_JP_NO_CONDITION)) == 0)
        return brig_jp_expression(p);
    if (brig_jinja_enter(p->j)) {
        n = (how & BRIG_JP_TARGET) != 0 ? brig_jp_primary(p) : parse_or(p);
        brig_jinja_leave(p->j);
    }
    return n;
}

static bool tuple_ends(const struct brig_jparser *p, unsigned how)
{
    return brig_jp_is(p, BRIG_JT_BLOCK_END) || brig_jp_is(p, BRIG_JT_PRINT_END) || brig_jp_is_op(p, ")") ||
           ((how & BRIG_JP_TARGET) != 0 && brig_jp_is_name(p, "in")) ||
           ((how & BRIG_JP_NO_CONDITION) != 0 && brig_jp_is_name(p, "recursive"));
}

struct brig_jnode *brig_jp_tuple(struct brig_jparser *p, unsigned how)
{
    struct brig_jnode *first = NULL, **tail = &first;
    uint32_t line = p->t->line;
    bool tuple = false;
    while (!p->j->failed && !tuple_ends(p, how)) {
        struct brig_jnode *n = tuple_element(p, how);
        if (n == NULL)
            return NULL;
        brig_jp_append(&tail, n);
        if (!brig_jp_skip_op(p, ","))
            break;
        tuple = true;
    }
    if (p->j->failed)
        return NULL;
    if (!tuple && first != NULL)
        return first;
    if (!tuple && (how & BRIG_JP_PARENTHESES) == 0)
        return brig_jp_fail(p, "an expression is expected");
    struct brig_jnode *n = brig_jp_node_at(p, BRIG_JN_TUPLE, line);
    if (n != NULL)
        n->a = first;
    return n;
}
