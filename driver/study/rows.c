/* Which combinations a study measures, and what they are called. */
#include <stdio.h>
#include <string.h>

#include "driver/study/study.h"

static const char *const state_names[] = {"waiting", "measured", "refused", "failed", "killed", "void"};
static const char *const cache_names[] = {"dropped", "cached"};

const char *brig_study_state_name(enum brig_study_state s)
{
    return state_names[s];
}

const char *brig_study_cache_name(enum brig_study_cache c)
{
    return cache_names[c];
}

/* The word at *p up to a comma; *p is moved behind it, to NULL after the last. */
static int next_word(const char **p, const char *option, char out[BRIG_STUDY_WORD], struct brig_fail *fail)
{
    const char *list = *p;
    size_t n = strcspn(list, ",");
    if (n == 0 || n >= BRIG_STUDY_WORD)
        return brig_fail_set(fail, BRIG_EUSAGE, "--%s: \"%.40s\": 1 to %u letters between commas are needed",
                             option, list, BRIG_STUDY_WORD - 1);
    memcpy(out, list, n);
    out[n] = '\0';
    *p = list[n] == ',' ? list + n + 1 : NULL;
    return 0;
}

static bool same(const struct brig_study_row *a, const struct brig_study_row *b)
{
    return strcmp(a->ram, b->ram) == 0 && a->mode == b->mode && strcmp(a->residency, b->residency) == 0 &&
           strcmp(a->shards, b->shards) == 0 && a->cache == b->cache;
}

static int add(struct brig_study *s, const struct brig_study_row *row, struct brig_fail *fail)
{
    for (unsigned i = 0; i < s->n_rows; i++)
        if (same(&s->rows[i], row))
            return 0;
    if (s->n_rows == BRIG_STUDY_MAX_ROWS)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "--ram, --modes, --residency, --shards: more than %u combinations",
                             BRIG_STUDY_MAX_ROWS);
    s->rows[s->n_rows++] = *row;
    return 0;
}

/* Pages that others have read are charged to them: a full page cache would be memory outside the budget. */
static int add_states(struct brig_study *s, struct brig_study_row row, struct brig_fail *fail)
{
    row.cache = BRIG_STUDY_DROPPED;
    int r = add(s, &row, fail);
    if (r < 0 || strcmp(row.ram, BRIG_STUDY_NO_BUDGET) != 0)
        return r;
    row.cache = BRIG_STUDY_CACHED;
    return add(s, &row, fail);
}

static int add_shards(struct brig_study *s, const struct brig_study_axes *axes, struct brig_study_row row,
                      struct brig_fail *fail)
{
    int r = 0;
    for (const char *p = axes->shards; r == 0 && p != NULL;) {
        r = next_word(&p, "shards", row.shards, fail);
        if (r == 0)
            r = add_states(s, row, fail);
    }
    return r;
}

static int add_residencies(struct brig_study *s, const struct brig_study_axes *axes,
                           struct brig_study_row row, struct brig_fail *fail)
{
    int r = 0;
    for (const char *p = axes->residency; r == 0 && p != NULL;) {
        r = next_word(&p, "residency", row.residency, fail);
        if (r == 0 && brig_residency_by_name(row.residency) == NULL && strcmp(row.residency, "auto") != 0)
            r = brig_fail_set(
                fail, BRIG_EUSAGE,
                "--residency: no residency %s; `brigade list residencies` has them, auto chooses",
                row.residency);
        if (r == 0)
            r = add_shards(s, axes, row, fail);
    }
    return r;
}

static int add_modes(struct brig_study *s, const struct brig_study_axes *axes, struct brig_study_row row,
                     struct brig_fail *fail)
{
    int r = 0;
    for (const char *p = axes->modes; r == 0 && p != NULL;) {
        char name[BRIG_STUDY_WORD];
        r = next_word(&p, "modes", name, fail);
        if (r < 0)
            return r;
        row.mode = brig_mode_by_name(name);
        if (row.mode == NULL)
            return brig_fail_set(fail, BRIG_EUSAGE, "--modes: no mode %s; `brigade list modes` has them",
                                 name);
        r = add_residencies(s, axes, row, fail);
    }
    return r;
}

int brig_study_rows(struct brig_study *s, const struct brig_study_axes *axes, struct brig_fail *fail)
{
    struct brig_study_row row = {.ram = BRIG_STUDY_NO_BUDGET};
    int r = add_modes(s, axes, row, fail);
    for (const char *p = axes->ram; r == 0 && p != NULL;) {
        r = next_word(&p, "ram", row.ram, fail);
        if (r == 0)
            r = add_modes(s, axes, row, fail);
    }
    return r;
}

void brig_study_label(const struct brig_study_row *row, char *out, size_t n)
{
    bool one = strcmp(row->shards, "1") == 0, by_default = strcmp(row->residency, "auto") == 0;
    snprintf(out, n, "%s%s%s%s%s", row->mode->name, by_default ? "" : " ", by_default ? "" : row->residency,
             one ? "" : ", shards ", one ? "" : row->shards);
}

double brig_study_bound(const struct brig_study *s, const struct brig_study_row *row)
{
    double memory = row->plan.memory_bytes_s, sum = 0;
    for (unsigned i = 0; i < s->n_probes; i++)
        sum += s->probes[i].memory_bytes_s;
    if (s->n_probes > 0)
        memory = sum / s->n_probes;
    double read = (double)row->plan.read_bytes, disk = row->plan.disk_bytes_s;
    if (!row->plan.known || memory <= 0 || (read > 0 && disk <= 0))
        return 0;
    double a = (double)row->plan.token_bytes / memory, b = read > 0 ? read / disk : 0;
    return a > b ? 1 / a : b > 0 ? 1 / b : 0;
}
