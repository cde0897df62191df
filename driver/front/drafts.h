/* What --lookup, --draft and --draft-len ask for: a draft model in a line of its own, and who decides. */
#ifndef BRIG_DRIVER_FRONT_DRAFTS_H
#define BRIG_DRIVER_FRONT_DRAFTS_H

#include "driver/front/settings.h"
#include "driver/run/session.h"
#include "driver/run/spec.h"
#include "driver/token/folder.h"

struct brig_drafts {
    struct brig_model *model; /* the draft model and what it needs; NULL without --draft */
    struct brig_folder *folder;
    struct brig_embed *embed;
    struct brig_line *line;
    struct brig_session *session;
    /* What a struct brig_spec is made of; points into this struct, which stays where it is. */
    struct brig_sample_opts sample;
    struct brig_draft_opts draft;
    struct brig_spec_opts opts;
    bool any; /* else nothing is drafted */
};

/* Open the draft model and compare its tokens with those of m, whose vocabulary is there; inside the
 * enclosure of a budget that has been done, by this very command line before it was executed anew, and
 * neither vocabulary needs to be there. Starts nothing. Release in every case. */
int brig_drafts_open(struct brig_drafts *d, const struct brig_settings *s, const struct brig_model *m,
                     struct brig_fail *fail);

/* Its line, as that of the model (context, threads, numbers, time-outs) but for what lives: one shard, to the
 * end, with a plan held and sized as that says; and the options. sample: how tokens are drawn. disk_bound as
 * in struct brig_spec_opts: it decides about
 * --lookup auto. Called by the thread that opened the line. */
int brig_drafts_start(struct brig_drafts *d, const struct brig_settings *s, const struct brig_line_opts *line,
                      const struct brig_sample_opts *sample, bool disk_bound, struct brig_fail *fail);

void brig_drafts_release(struct brig_drafts *d);

#endif
