/* Added tokens (control and user defined): found in text as a whole, before anything else looks at it. */
#ifndef BRIG_DRIVER_TOKEN_ADDED_H
#define BRIG_DRIVER_TOKEN_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/token/normal.h"
#include "proto/base/err.h"
#include "proto/model/model.h"

struct brig_added_token {
    struct brig_str spelling;
    uint32_t id;
    uint8_t flags; /* enum brig_added_flag */
    bool control;
};

struct brig_added {
    struct brig_added_token *v; /* sorted by spelling, [n] */
    uint32_t n;
    bool first[256];      /* some added token begins with this byte */
    struct brig_buf text; /* spellings that are not the vocabulary's own */
};

struct brig_added_match {
    size_t start, end; /* with the white space that the token takes */
    uint32_t id;
};

/* The tokens that are looked for in text as it came, or (normalized) in normalised text, with their spellings
 * normalised too; normal NULL changes nothing. *a need not be initialised; release accepts a zeroed one. The
 * vocabulary's spellings are borrowed. */
int brig_added_init(struct brig_added *a, const struct brig_vocab *vocab, bool normalized,
                    struct brig_normal *normal, struct brig_fail *fail);
void brig_added_release(struct brig_added *a);

/* The first place at or after `from` where an added token stands, and the longest one there. control: control
 * tokens too, else they are text. */
bool brig_added_find(const struct brig_added *a, const char *text, size_t n, size_t from, bool control,
                     struct brig_added_match *ret);

#endif
