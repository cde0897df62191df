/* Searching and cutting strings: what filters and methods share. */
#ifndef BRIG_DRIVER_CHAT_JINJA_LINES_H
#define BRIG_DRIVER_CHAT_JINJA_LINES_H

#include "driver/chat/jinja_core.h"

/* The next line of *rest without its end (Python's splitlines: all of Unicode's line ends); false when *rest
 * is empty. with_end: its end is a part of it. */
bool brig_jinja_line(struct brig_str *rest, bool with_end, struct brig_str *ret);
/* s with at most `count` (negative: all) of `from` replaced by `to`. */
struct brig_jv brig_jinja_replace(struct brig_jinja *j, struct brig_str s, struct brig_str from,
                                  struct brig_str to, int64_t count);
/* s between spaces (or `fill`), `width` characters wide; side: where s goes. */
enum brig_jinja_align { BRIG_JINJA_ALIGN_LEFT, BRIG_JINJA_ALIGN_CENTER, BRIG_JINJA_ALIGN_RIGHT };
struct brig_jv brig_jinja_pad(struct brig_jinja *j, struct brig_str s, int64_t width, struct brig_str fill,
                              enum brig_jinja_align side);
/* Python's capitalize and title. */
struct brig_jv brig_jinja_capitalize(struct brig_jinja *j, struct brig_str s);

#endif
