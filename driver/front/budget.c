/* Settings to plans. */
#include "driver/front/budget.h"

#include <limits.h>
#include <sched.h>

#include "driver/front/interrupt.h"
#include "driver/front/lineup.h"
#include "driver/front/progress.h"

static unsigned cpus(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (unsigned)n : 1;
}

static void progress(void *arg, uint64_t done_ms, uint64_t total_ms)
{
    brig_progress_update(arg, (size_t)done_ms, (size_t)total_ms);
}

#define NOTE_MAX 256

/* What is known of the machine; with measure it is measured when nothing is remembered, and what is to be
 * known of the figures is put into note. */
static int speed_of(struct brig_plan_speed *ret, const struct brig_settings *s, const struct brig_model *m,
                    bool measure, char note[NOTE_MAX], struct brig_fail *fail)
{
    struct brig_probe p;
    struct brig_progress bar;
    brig_progress_init(&bar, "measuring memory and disk", s->quiet);
    const struct brig_probe_opts o = {
        .progress = progress, .arg = &bar, .only_remembered = !measure, .cancel = brig_interrupt_flag()};
    *ret = (struct brig_plan_speed){.threads = s->threads != 0 ? (unsigned)s->threads : cpus()};
    int r = brig_probe_cached(&p, m->files[0].path, &o, fail);
    brig_progress_wipe(&bar);
    if (r < 0)
        return r;
    if (!p.remembered && !p.rough)
        snprintf(note, NOTE_MAX, "%.255s", p.note);
    ret->memory_bytes_s = p.memory_bytes_s;
    ret->disk_bytes_s = p.disk_bytes_s;
    ret->beside_memory_bytes_s = p.beside_memory_bytes_s;
    ret->beside_disk_bytes_s = p.beside_disk_bytes_s;
    if (p.disk_bytes_s > 0) {
        snprintf(ret->reading.reader, sizeof ret->reading.reader, "%.15s", p.best.how);
        ret->reading.buffered = !p.best.direct;
        ret->reading.request_bytes = p.best.request_bytes;
        ret->reading.depth = p.best.depth;
    }
    return 0;
}

/* With what is remembered; when that leaves open how fast the disk is, and the plan is to read from it or to
 * be shown, the machine is measured. Not inside the enclosure: the probe takes more memory than a budget may
 * have. */
static int plan_and_measure(struct brig_plan *ret, struct brig_plan_wish *wish, const struct brig_settings *s,
                            bool measure, struct brig_fail *fail)
{
    char note[NOTE_MAX] = "";
    int r = speed_of(&wish->speed, s, wish->model, measure, note, fail);
    if (r == 0)
        r = brig_plan_make(ret, wish, fail);
    if (r == 0 && !measure && ret->hold == BRIG_HOLD_STREAM && wish->speed.disk_bytes_s <= 0 &&
        brig_enclosed_bytes() == 0) {
        brig_plan_release(ret);
        r = speed_of(&wish->speed, s, wish->model, true, note, fail);
        if (r == 0)
            r = brig_plan_make(ret, wish, fail);
    }
    if (r == 0 && note[0] != '\0' && !s->quiet) /* beside a failure it would be a second line */
        fprintf(stderr, "brigade: speeds of memory and disk: %s\n", note);
    return r;
}

int brig_budget_plan(struct brig_plan *ret, const struct brig_settings *s, const struct brig_model *m,
                     const struct brig_budget_need *need, struct brig_fail *fail)
{
    uint32_t ctx = need->ctx != 0 ? need->ctx : (uint32_t)s->ctx;
    struct brig_plan_wish wish = {
        .model = m,
        .draft = need->draft,
        .mode = s->mode,
        .ctx = ctx,
        .slots = 1,
        .max_rows = ctx != 0 && ctx < BRIG_SESSION_MAX_ROWS ? ctx : BRIG_SESSION_MAX_ROWS,
        .whole_rows = need->whole_rows,
        .exact = s->exact,
        .kv = s->kv,
        .keep = (unsigned)s->keep,
        .tokenizer = need->tokenizer,
        .residency = s->residency,
        .n_shards = need->n_shards,
    };
    wish.budget_bytes = brig_enclosed_bytes(); /* of this very run: what is free has changed since */
    int r = wish.budget_bytes != 0 ? 0 : brig_ram_resolve(&s->ram, m, &wish.budget_bytes, fail);
    if (wish.n_shards == UINT_MAX)
        wish.n_shards = m->desc.n_layers + 1;
    if (r == 0 && wish.n_shards == 0 && s->shards_given)
        r = brig_lineup_count(m, s->shards, &wish.n_shards, fail);
    if (r < 0)
        return r;
    if (need->speed != NULL) {
        wish.speed = *need->speed;
        r = brig_plan_make(ret, &wish, fail);
    } else {
        r = plan_and_measure(ret, &wish, s, need->measure, fail);
    }
    return r < 0 && fail->code == BRIG_ELIMIT ? brig_fail_prefix(fail, "--ram") : r;
}

int brig_budget_enclose(const struct brig_settings *s, uint64_t bytes, struct brig_fail *fail)
{
    int r = brig_enclose(s->enclosure, bytes, s->argv, fail);
    if (r < 0)
        return brig_fail_prefix(fail, "--ram");
    if (s->enclosure->note[0] != '\0' && !s->quiet)
        fprintf(stderr, "brigade: %s\n", s->enclosure->note);
    return 0;
}

static void print_memory(FILE *out, const struct brig_plan *p)
{
    char text[BRIG_RAM_TEXT];
    for (unsigned i = 0; i < BRIG_PLAN_KINDS; i++)
        if (p->bytes[i] != 0)
            fprintf(out, "  %-10s %10s  %s\n", brig_plan_kind_name(i), brig_ram_text(p->bytes[i], text),
                    brig_plan_kind_help(i));
    fprintf(out, "  %-10s %10s\n", "together", brig_ram_text(p->total_bytes, text));
}

static const char *how_held(const struct brig_plan *p)
{
    static const char *const words[] = {
        [BRIG_HOLD_MAP] = "mapped: all fits",
        [BRIG_HOLD_LOCK] = "in private memory, locked: all fits, with little to spare",
        [BRIG_HOLD_STREAM] = "a part held, the rest read for each token",
    };
    return words[p->hold];
}

static void print_speed(FILE *out, const struct brig_plan *p)
{
    char token[BRIG_RAM_TEXT], held[BRIG_RAM_TEXT], read[BRIG_RAM_TEXT];
    fprintf(out, "a token     needs %s of weights: %s held, %s read from the disk\n",
            brig_ram_text(p->token_bytes, token), brig_ram_text(p->held_bytes, held),
            brig_ram_text(brig_plan_read_bytes(p), read));
    if (p->hit_rate > 0)
        fprintf(out, "experts     %.0f %% found in their cache, if all are chosen equally often\n",
                100 * p->hit_rate);
    if (p->speed.memory_bytes_s > 0)
        fprintf(out, "measured    memory %.1f GB/s", p->speed.memory_bytes_s / 1e9);
    if (p->speed.memory_bytes_s > 0 && p->speed.disk_bytes_s > 0)
        fprintf(out, ", disk %.2f GB/s", p->speed.disk_bytes_s / 1e9);
    if (p->speed.beside_disk_bytes_s > 0)
        fprintf(out, "; at once %.1f and %.2f GB/s", p->speed.beside_memory_bytes_s / 1e9,
                p->speed.beside_disk_bytes_s / 1e9);
    if (p->speed.memory_bytes_s > 0)
        fputc('\n', out);
    if (p->seconds_a_token > 0)
        fprintf(out, "speed       %.3g tokens/s, %s\n", 1 / p->seconds_a_token,
                brig_plan_regime_name(p->regime));
    else
        fprintf(out, "speed       not known: the disk has not been measured\n");
}

void brig_budget_print(FILE *out, const struct brig_plan *p, const struct brig_model *m)
{
    char a[BRIG_RAM_TEXT], b[BRIG_RAM_TEXT];
    fprintf(out, "model       %s, files of %s, weights of %s\n", m->path,
            brig_ram_text(brig_ram_model_bytes(m), a), brig_ram_text(m->weights_bytes, b));
    if (p->budget_bytes == 0)
        fprintf(out, "budget      none\n");
    else
        fprintf(out, "budget      %s (%llu bytes, %.1f %% of the files)\n", brig_ram_text(p->budget_bytes, a),
                (unsigned long long)p->budget_bytes,
                100.0 * (double)p->budget_bytes / (double)brig_ram_model_bytes(m));
    fprintf(out, "smallest    %s (%llu bytes, %.1f %%)\n", brig_ram_text(p->least_bytes, a),
            (unsigned long long)p->least_bytes,
            100.0 * (double)p->least_bytes / (double)brig_ram_model_bytes(m));
    fprintf(out, "line        %u process%s, %u alive at once; context of %u tokens, frames of %u\n",
            p->n_shards, p->n_shards == 1 ? "" : "es", p->n_alive, p->ctx, p->max_rows);
    fprintf(out, "weights     %s\n", how_held(p));
    fprintf(out, "memory\n");
    print_memory(out, p);
    print_speed(out, p);
}
