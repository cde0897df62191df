/*
 * The Jinja that chat templates are written in: a small interpreter of the subset that they use, with the
 * meaning of Jinja 3.1 in a sandbox whose built-in values cannot be changed, trim_blocks and lstrip_blocks
 * on, the loop controls on (break, continue) and the tag `generation` of transformers taken as nothing.
 * Nothing outside can be reached: no files, no attributes of the interpreter, no clock. Not in the subset:
 * include, import, extends, block, autoescape (syntax errors that say so); integers beyond 64 bits; `safe` is
 * a plain string, for nothing is escaped.
 *
 * lex -> parse (a tree in an arena) -> execute. Steps, memory, output and depth are bounded, so that every
 * template ends. A failure is sticky, said once, and names the line of the template.
 */
#ifndef BRIG_DRIVER_CHAT_JINJA_H
#define BRIG_DRIVER_CHAT_JINJA_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "proto/base/buf.h"
#include "proto/base/err.h"
#include "proto/base/str.h"

struct brig_jinja_limits {
    uint64_t steps;      /* statements, expressions, elements looked at */
    size_t memory_bytes; /* of all values and the tree: nothing is freed before the end */
    size_t out_bytes;    /* of the result, and of each string on the way */
    unsigned depth;      /* of expressions, statements, calls and values inside each other */
};

/* What a template of a model can need many times over: 10 million steps, 256 MiB, 16 MiB, 1,000 levels. */
extern const struct brig_jinja_limits brig_jinja_default_limits;

/* What the template can know of time (strftime_now): always this moment, for the same conversation is to be
 * the same prompt on every day. 2024-07-26 00:00:00 UTC, the day that Llama 3 templates name themselves. */
#define BRIG_JINJA_NOW 1721952000

/* Render `source` with the members of the object `context` as variables; the text is added to *out, which is
 * left as it was on failure. Strings of the context may hold NULs and invalid UTF-8. Failures:
 * -BRIG_EFORMAT: the template is wrong, or does not go together with the context;
 * -BRIG_EUNSUPPORTED: the template itself refused (raise_exception);
 * -BRIG_ELIMIT, -BRIG_ENOMEM. The text begins with "line N: ". */
int brig_jinja_render(struct brig_str source, const json_t *context, const struct brig_jinja_limits *limits,
                      struct brig_buf *out, struct brig_fail *fail);

#endif
