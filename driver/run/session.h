/*
 * A session: one slot of a line and the token ids that its cache holds. It turns ids into passes (embedding
 * rows, batches of rows, cache operations that ride along) and keeps count of what is in the cache.
 */
#ifndef BRIG_DRIVER_RUN_SESSION_H
#define BRIG_DRIVER_RUN_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/run/embed.h"
#include "driver/run/line.h"
#include "driver/token/tokenizer.h"

/* Most rows in a frame that the driver sends. */
#define BRIG_SESSION_MAX_ROWS 512u

struct brig_session;

struct brig_session_opts {
    const struct brig_model *model; /* borrowed, as the next two */
    struct brig_embed *embed;
    struct brig_line *line;
    uint32_t ctx;
    uint32_t batch_rows; /* rows in a frame, 1 to the line's max_rows */
};

/* Called after each batch of a longer feed. */
typedef void brig_session_progress_fn(void *ctx, size_t done, size_t total);

int brig_session_new(struct brig_session **ret, const struct brig_session_opts *opts, struct brig_fail *fail);
void brig_session_free(struct brig_session *s); /* NULL allowed */

/* Make the cache hold a beginning of ids [n], the longest that it has and at most n - 1 tokens (one must be
 * sent to get an answer). Returns its length; the rest is for brig_session_feed. */
size_t brig_session_rewind(struct brig_session *s, const uint32_t *ids, size_t n);

/* Send n >= 1 tokens after those in the cache and get the answer for the last one: top candidates, or the
 * whole row when top is 0. The answer is valid until the next feed. After a failure or cancellation the cache
 * counts as holding what it held before the batch that failed. */
int brig_session_feed(struct brig_session *s, const uint32_t *ids, size_t n, uint32_t top,
                      brig_session_progress_fn *progress, void *progress_ctx, struct brig_answer *ret,
                      struct brig_fail *fail);

/* Send n tokens and get whole rows for all of them, in order, through sink. */
int brig_session_logits(struct brig_session *s, const uint32_t *ids, size_t n,
                        int (*sink)(void *ctx, uint32_t row, const float *logits), void *sink_ctx,
                        brig_session_progress_fn *progress, void *progress_ctx, struct brig_fail *fail);

/* Send n tokens and get the hidden rows at every boundary: sink(ctx, boundary, first, h, n_rows) is called
 * with h [n_rows, hidden] of tokens first to first + n_rows - 1; boundary 0: what enters the first layer, i:
 * what leaves layer i, layers + 1: after the final norm. The line is a star with one layer a stage. */
typedef int brig_session_hidden_fn(void *ctx, uint32_t boundary, size_t first, const float *h,
                                   uint32_t n_rows);
int brig_session_hidden(struct brig_session *s, const uint32_t *ids, size_t n, brig_session_hidden_fn *sink,
                        void *sink_ctx, brig_session_progress_fn *progress, void *progress_ctx,
                        struct brig_fail *fail);

size_t brig_session_length(const struct brig_session *s); /* tokens in the cache */
uint32_t brig_session_ctx(const struct brig_session *s);

#endif
