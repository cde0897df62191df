/*
 * Measurements for `brigade bench`: one run of a mode and a number of shards on fixed token ids, so that no
 * tokenizer is needed and every run does the same work.
 */
#ifndef BRIG_DRIVER_RUN_BENCH_H
#define BRIG_DRIVER_RUN_BENCH_H

#include <signal.h>

#include "driver/run/embed.h"
#include "driver/run/line.h"
#include "driver/run/spec.h"

struct brig_bench_opts {
    const struct brig_model *model; /* pointers are borrowed */
    struct brig_embed *embed;
    unsigned keep; /* of modes that pick: how many shards live, at most all; 0: half of them */
    unsigned threads;
    bool hold;
    const struct brig_residency *residency; /* NULL: mapped */
    const struct brig_link *link;           /* NULL: as is best for the mode */
    enum brig_kv_id kv;
    bool exact;
    uint32_t timeout_ms;
    uint32_t n_prompt, n_generate;          /* n_generate >= 2 */
    uint32_t batch_rows;                    /* at most BRIG_SESSION_MAX_ROWS; cut to what there is to send */
    const struct brig_plan *plan;           /* NULL: no budget */
    const struct brig_enclosure *enclosure; /* as in struct brig_line_opts */
    bool random_tokens;                     /* it goes on with made-up ones, not with the likeliest */
    unsigned flights;                       /* frames under way at once; 0: what brig_sched_flights says */
    const struct brig_spec_opts *spec;      /* drafts, for rows of one stream; NULL: none */
    struct brig_line *draft_line;           /* of the draft model, whose memory counts; NULL: none */
    struct brig_routes *routes;             /* the experts that rows choose are written there, or NULL */
    const volatile sig_atomic_t *cancel;
};

struct brig_bench_config {
    const struct brig_mode *mode;
    unsigned n_shards;
    unsigned n_streams; /* sequences that generate at once, each after a prompt of its own */
};

struct brig_bench_sample {
    double start_s; /* opening the line until it is proven; nothing is started then when the mode keeps
                       nothing */
    double ttft_s;  /* opening the line until each stream has a token: start and prompt */
    double prefill_tok_s, decode_tok_s; /* of all streams together */
    /* Fetched from storage by the driver and all shards: until the line was proven, for the prompt, while
     * decoding. */
    uint64_t disk_start_bytes, disk_prompt_bytes, disk_decode_bytes;
    double rows_per_frame;         /* tokens of a frame while decoding: it reads the weights once */
    uint64_t drafted, accepted;    /* tokens */
    bool has_hops;                 /* else the next two are 0: starts and hops cannot be told apart */
    double hop_us_p50, hop_us_p99; /* of the decode passes */
    uint64_t hops_per_token;
    /* While decoding, of streamed experts: used for a token, the share of them that was in memory, bytes read
     * for a token; 0 without any. */
    double experts_per_token, expert_hit_rate, expert_bytes_per_token;
    unsigned threads; /* as the shards say */
    unsigned flights; /* frames under way at once */
};

/* ids [n_streams, n_generate]: what was generated. */
int brig_bench_once(const struct brig_bench_opts *o, struct brig_bench_config c,
                    struct brig_bench_sample *ret, uint32_t *ids, struct brig_fail *fail);

/* The peak of the processes' memory together, in a run of its own: asking for it costs time. ids: scratch,
 * sized as above. */
int brig_bench_pss(const struct brig_bench_opts *o, struct brig_bench_config c, uint32_t *ids,
                   uint64_t *ret_bytes, struct brig_fail *fail);

/* n starts of shard processes of a mode that keeps nothing: spawn until a frame has come back. */
int brig_bench_starts(const struct brig_bench_opts *o, struct brig_bench_config c, unsigned n,
                      uint64_t *ret_ns, struct brig_fail *fail);

#endif
