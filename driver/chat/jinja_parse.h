/* What the two halves of the parser share: the tokens, and what is being parsed. */
#ifndef BRIG_DRIVER_CHAT_JINJA_PARSE_H
#define BRIG_DRIVER_CHAT_JINJA_PARSE_H

#include "driver/chat/jinja_lex.h"
#include "driver/chat/jinja_node.h"

struct brig_jparser {
    struct brig_jinja *j;
    const struct brig_jtoken *t; /* the current token */
    unsigned loops;              /* around this place, inside the current macro */
    unsigned macro_uses;         /* enum brig_jmacro_uses of what was parsed so far */
    const struct brig_jnode
        *unknown; /* a filter or test that does not exist, where that fails before the run */
};

/* Append to a chain: *tail is where the next one goes. */
static inline void brig_jp_append(struct brig_jnode ***tail, struct brig_jnode *node)
{
    if (node != NULL) {
        **tail = node;
        *tail = &node->next;
    }
}

/* A node at the current line; NULL after a failure, as all that follow. */
struct brig_jnode *brig_jp_node(struct brig_jparser *p, enum brig_jnode_kind kind);
struct brig_jnode *brig_jp_node_at(struct brig_jparser *p, enum brig_jnode_kind kind, uint32_t line);
struct brig_jnode *brig_jp_fail(struct brig_jparser *p, const char *what); /* NULL */

void brig_jp_next(struct brig_jparser *p);
bool brig_jp_is(const struct brig_jparser *p, enum brig_jtoken_kind kind);
bool brig_jp_is_name(const struct brig_jparser *p, const char *name);
bool brig_jp_is_op(const struct brig_jparser *p, const char *op);
bool brig_jp_skip_name(struct brig_jparser *p, const char *name);
bool brig_jp_skip_op(struct brig_jparser *p, const char *op);
bool brig_jp_expect_op(struct brig_jparser *p, const char *op);
struct brig_str brig_jp_expect_name(struct brig_jparser *p); /* any name */

enum brig_jp_tuple {
    BRIG_JP_TARGET = 1,       /* only names and such, up to `in` */
    BRIG_JP_NO_CONDITION = 2, /* a following `if` belongs to somebody else */
    BRIG_JP_PARENTHESES = 4,  /* () is a tuple */
};
struct brig_jnode *brig_jp_expression(struct brig_jparser *p);
struct brig_jnode *brig_jp_tuple(struct brig_jparser *p, unsigned how);
/* | name(...) ...; node NULL: the text of a block. inline: the first | was not written. */
struct brig_jnode *brig_jp_filters(struct brig_jparser *p, struct brig_jnode *node, bool first_inline);
struct brig_jnode *brig_jp_primary(struct brig_jparser *p);

#endif
