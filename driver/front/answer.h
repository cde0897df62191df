/* What run and chat share: the sampler of the settings, and one answer whose text goes to standard output. */
#ifndef BRIG_DRIVER_FRONT_ANSWER_H
#define BRIG_DRIVER_FRONT_ANSWER_H

#include "driver/front/lineup.h"
#include "driver/run/generate.h"

struct brig_answer_job {
    struct brig_lineup *lineup;
    struct brig_sample_opts sample; /* with the seed */
    struct brig_ids prompt;         /* the whole of it */
    uint64_t first_index;           /* as in struct brig_generate */
    struct brig_buf *keep;          /* the text is added here too; or NULL */
    bool open_line;                 /* out: text was written, and no newline stands at its end */
};

/* Check the sampling flags, choose a seed when none was given. */
int brig_answer_sample(const struct brig_settings *s, struct brig_sample_opts *ret, struct brig_fail *fail);

/* As brig_generate_run. */
int brig_answer_run(struct brig_answer_job *job, struct brig_generated *ret, struct brig_fail *fail);

#endif
