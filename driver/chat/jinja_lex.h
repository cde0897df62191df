/* Template text to tokens, with Jinja's rules for white space around tags (trim_blocks, lstrip_blocks, - and
 * +). */
#ifndef BRIG_DRIVER_CHAT_JINJA_LEX_H
#define BRIG_DRIVER_CHAT_JINJA_LEX_H

#include "driver/chat/jinja_core.h"

enum brig_jtoken_kind {
    BRIG_JT_END,         /* of the template */
    BRIG_JT_ERROR,       /* s: what is wrong from here on */
    BRIG_JT_TEXT,        /* s */
    BRIG_JT_BLOCK_BEGIN, /* {% */
    BRIG_JT_BLOCK_END,
    BRIG_JT_PRINT_BEGIN, /* {{ */
    BRIG_JT_PRINT_END,
    BRIG_JT_NAME,     /* s */
    BRIG_JT_STRING,   /* s: what it means, escapes resolved */
    BRIG_JT_NUMBER,   /* value */
    BRIG_JT_OPERATOR, /* s: its spelling */
};

struct brig_jtoken {
    enum brig_jtoken_kind kind;
    uint32_t line;
    struct brig_str s;
    struct brig_jv value;
};

/* All tokens; the last one is END or ERROR. NULL after a failure (a limit). */
struct brig_jtoken *brig_jinja_lex(struct brig_jinja *j, struct brig_str source);

#endif
