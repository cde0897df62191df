/* The tree of a template. All nodes have one shape; which fields mean what is said beside each kind. Lists
 * are chained by `next`. */
#ifndef BRIG_DRIVER_CHAT_JINJA_NODE_H
#define BRIG_DRIVER_CHAT_JINJA_NODE_H

#include "driver/chat/jinja_core.h"

enum brig_jnode_kind {
    /* expressions */
    BRIG_JN_CONST,   /* value */
    BRIG_JN_NAME,    /* s */
    BRIG_JN_LIST,    /* a: elements */
    BRIG_JN_TUPLE,   /* a: elements */
    BRIG_JN_DICT,    /* a: key, value, key, value ... */
    BRIG_JN_ATTR,    /* a.s */
    BRIG_JN_ITEM,    /* a[b] */
    BRIG_JN_SLICE,   /* a[b:c:d], each of the three may be NULL */
    BRIG_JN_CALL,    /* a(b ...) with ARG nodes */
    BRIG_JN_ARG,     /* op: enum brig_jarg; a: the value; s: the name of a keyword */
    BRIG_JN_FILTER,  /* a | s(b ...); a NULL in a filter block: its text; fn NULL: unknown, fails when run */
    BRIG_JN_TEST,    /* a is s(b ...) */
    BRIG_JN_NOT,     /* not a */
    BRIG_JN_NEG,     /* -a */
    BRIG_JN_POS,     /* +a */
    BRIG_JN_BINARY,  /* a op b, op: enum brig_jop */
    BRIG_JN_AND,     /* a and b */
    BRIG_JN_OR,      /* a or b */
    BRIG_JN_COMPARE, /* a, then b: OPERAND nodes */
    BRIG_JN_OPERAND, /* op a, op: enum brig_jop */
    BRIG_JN_CONCAT,  /* a ~ ... */
    BRIG_JN_COND,    /* b if a else c; c may be NULL */
    BRIG_JN_NSREF,   /* s.name as a target; b: a CONST with the name */
    /* statements */
    BRIG_JN_TEXT,      /* s */
    BRIG_JN_PRINT,     /* a: expressions */
    BRIG_JN_IF,        /* a: test, b: body, c: else (a list, perhaps of one IF) */
    BRIG_JN_FOR,       /* a: target, b: what, c: body, d: else, e: test or NULL; op 1: recursive */
    BRIG_JN_SET,       /* a: target, b: value */
    BRIG_JN_SET_BLOCK, /* a: target, b: filter chain or NULL, c: body */
    BRIG_JN_MACRO, /* s: name, a: NAME nodes with a default in their a, b: body; op: enum brig_jmacro_uses */
    BRIG_JN_CALL_BLOCK,   /* a: a MACRO without a name, b: the CALL */
    BRIG_JN_FILTER_BLOCK, /* a: filter chain, b: body */
    BRIG_JN_WITH,         /* a: targets, b: values (evaluated outside), c: body */
    BRIG_JN_GENERATION,   /* a: body */
    BRIG_JN_BREAK,
    BRIG_JN_CONTINUE,
};

enum brig_jarg { BRIG_JARG_PLAIN, BRIG_JARG_KEYWORD, BRIG_JARG_STAR, BRIG_JARG_STARS };

enum brig_jmacro_uses { /* special names that the body of a macro mentions: only then it takes them */
                        BRIG_JMACRO_VARARGS = 1,
                        BRIG_JMACRO_KWARGS = 2,
                        BRIG_JMACRO_CALLER = 4,
};

struct brig_jnode {
    uint8_t kind, op;
    uint32_t line;
    struct brig_jnode *next, *a, *b, *c, *d, *e;
    struct brig_str s;
    struct brig_jv value;
    const struct brig_jfn *fn;
};

/* The statements of a template; NULL for an empty one and after a failure. */
struct brig_jnode *brig_jinja_parse(struct brig_jinja *j, struct brig_str source);

#endif
