/* brigade verify: is what lies on the disk what was packed? */
#include <inttypes.h>
#include <stdio.h>

#include "driver/front/interrupt.h"
#include "driver/front/progress.h"
#include "driver/front/verb.h"
#include "driver/pack/beside.h"
#include "driver/pack/verify.h"

static void progress(void *arg, uint64_t done, uint64_t total)
{
    brig_progress_update(arg, (size_t)(done >> 20), (size_t)(total >> 20) + 1);
}

static int verify(const struct brig_settings *s, const struct brig_model *m, struct brig_fail *fail)
{
    struct brig_progress bar;
    unsigned hashed = 0, beside = 0;
    uint64_t bytes = 0;
    brig_progress_init(&bar, "reading, MiB", s->quiet);
    const struct brig_verify_watch watch = {progress, &bar, brig_interrupt_flag()};
    int r = brig_pack_beside_verify(m, &beside, fail);
    if (r == 0)
        r = brig_verify(m, &watch, &hashed, fail);
    brig_progress_wipe(&bar);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < m->n_files; i++)
        bytes += m->files[i].bytes;
    printf("%s: %u file%s, %" PRIu64 " bytes, %u tensors in their places; ", m->path, m->n_files,
           m->n_files == 1 ? "" : "s", bytes, m->n_tensors);
    if (beside > 0)
        printf("%u of a tokenizer; ", beside);
    if (hashed == m->n_files)
        printf("every byte is as it was packed\n");
    else
        printf("no hash in %u of them, so whether their bytes have changed cannot be told\n",
               m->n_files - hashed);
    return 0;
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_model *m = NULL;
    int r = brig_model_open(&m, s->operand, fail);
    if (r == 0)
        r = verify(s, m, fail);
    if (r == 0 && fflush(stdout) != 0)
        r = brig_fail_errno(fail, BRIG_EIO, "standard output");
    brig_model_close(m);
    return r;
}

const struct brig_verb brig_verb_verify = {
    .name = "verify",
    .help = "read a model whole and compare it with the hashes that it carries",
    .usage = "MODEL",
    .about =
        "Checks that every tensor lies inside its file and that the files belong together, reads them whole, "
        "and\n"
        "compares each with the hash that `brigade pack` has put into it. Files from elsewhere carry none.\n"
        "\n"
        "examples:\n"
        "  brigade verify BUNDLE\n",
    .operand = "MODEL",
    .operand_needed = true,
    .run = run,
};
