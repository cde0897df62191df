/* Running the tree: expressions (jinja_eval.c) and statements (jinja_exec.c). */
#ifndef BRIG_DRIVER_CHAT_JINJA_EVAL_H
#define BRIG_DRIVER_CHAT_JINJA_EVAL_H

#include "driver/chat/jinja_fn.h"
#include "driver/chat/jinja_node.h"

struct brig_jscope { /* names of a template, a loop's round, a macro's call */
    struct brig_jscope *parent;
    struct brig_jdict vars;
};

struct brig_jmacro {
    const struct brig_jnode *node;
    struct brig_jscope *scope; /* where it was defined */
};

struct brig_jloop {
    struct brig_jlist *items;
    size_t i;
    int64_t depth; /* of recursion, from 1 */
    const struct brig_jnode *node;
    struct brig_jscope *scope;    /* around the loop */
    struct brig_jv *last_changed; /* what changed() was given, a tuple */
};

/* undefined after a failure. */
struct brig_jv brig_jinja_eval(struct brig_jinja *j, const struct brig_jnode *n);
/* A filter chain over the text of a block (the innermost FILTER node has no operand). */
struct brig_jv brig_jinja_eval_filters(struct brig_jinja *j, const struct brig_jnode *n, struct brig_jv text);
/* Arguments of a CALL, FILTER or TEST. */
void brig_jinja_eval_args(struct brig_jinja *j, const struct brig_jnode *list, struct brig_jargs *args);
struct brig_jv brig_jinja_call(struct brig_jinja *j, struct brig_jv callee, struct brig_jargs *args);

enum brig_jflow { BRIG_JFLOW_ON, BRIG_JFLOW_BREAK, BRIG_JFLOW_CONTINUE };
enum brig_jflow brig_jinja_exec(struct brig_jinja *j, const struct brig_jnode *list);
struct brig_jv brig_jinja_call_macro(struct brig_jinja *j, const struct brig_jmacro *m,
                                     const struct brig_jargs *args);
/* loop(items) in a recursive loop: the text of the loop over them. */
struct brig_jv brig_jinja_call_loop(struct brig_jinja *j, const struct brig_jloop *outer,
                                    const struct brig_jargs *args);
/* loop.index and so on; false when there is none of that name. */
bool brig_jinja_loop_property(struct brig_jinja *j, const struct brig_jloop *loop, struct brig_str name,
                              struct brig_jv *ret);

#endif
