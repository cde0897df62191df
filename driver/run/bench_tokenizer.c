/* The text is words in an order that never comes again: a tokenizer that met one word only would look fast.
 */
#include "driver/run/bench_tokenizer.h"

#include <string.h>

#include "proto/base/buf.h"
#include "proto/base/clock.h"
#include "proto/stat/stat.h"

#define N_PASSES 5u

static int make_text(struct brig_buf *text)
{
    static const char *const words[] = {
        "water",     "the",   "line",  "bucket", "passes", "from",    "hand",     "to",   "a",     "person",
        "holds",     "only",  "their", "place",  "and",    "in",      "measured", "1871", "don't", "engine",
        "caf\u00e9", "which", "of",    "layer",  "\u6c34", "weights", "(slowly)", "3.5",  "is",    "fire",
    };
    static const char *const gaps[] = {" ", " ", " ", " ", " ", " ", ", ", ". ", " ", ".\n"};
    uint32_t x = 2463534242u;
    int r = 0;
    while (r == 0 && text->len < BRIG_BENCH_TEXT_BYTES) {
        x = x * 1664525u + 1013904223u;
        const char *word = words[(x >> 16) % (sizeof words / sizeof words[0])];
        const char *gap = gaps[(x >> 8) % (sizeof gaps / sizeof gaps[0])];
        r = brig_buf_add(text, word, strlen(word));
        if (r == 0)
            r = brig_buf_add(text, gap, strlen(gap));
    }
    return r;
}

int brig_bench_tokenizer(struct brig_tokenizer *t, double *ret_mb_s, struct brig_fail *fail)
{
    struct brig_buf text = {0};
    struct brig_ids ids = {0};
    uint64_t ns[N_PASSES];
    int r = make_text(&text);
    if (r < 0)
        brig_fail_set(fail, (enum brig_err) - r, "out of memory for a text to tokenize");
    for (unsigned i = 0; i < N_PASSES && r == 0; i++) {
        uint64_t start = brig_clock_ns();
        ids.n = 0;
        r = brig_tokenizer_encode(t, text.data, text.len, 0, &ids, fail);
        ns[i] = brig_clock_ns() - start;
    }
    if (r == 0) {
        uint64_t median = brig_percentile(ns, N_PASSES, 50);
        *ret_mb_s = (double)text.len * 1e3 / (double)(median > 0 ? median : 1);
    }
    brig_ids_release(&ids);
    brig_buf_release(&text);
    return r;
}
