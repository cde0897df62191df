/* What a frame of n rows costs. */
#include "driver/run/spec_cost.h"

/* A new figure counts 1/n at first and 1/8 later. One that is far off (a machine that was busy elsewhere, a
 * process that was stopped) counts as this many times what was expected. */
#define MEMORY  8u
#define OUTLIER 3.0

/* Share of the first row's time that each further one costs where nothing is known yet and a disk decides. */
#define DISK_ROW 0.02

static void learn(double *mean, unsigned *n, double x, double most)
{
    if (*n > 0 && x > most)
        x = most;
    *n += *n < MEMORY;
    *mean += (x - *mean) / *n;
}

static void learn_one(struct brig_spec_cost *c, double ns)
{
    learn(&c->one_ns, &c->n_one, ns, OUTLIER * c->one_ns);
}

static unsigned group_of(uint32_t further)
{
    unsigned g = 0;
    while (further >> (g + 1) != 0 && g + 1 < BRIG_SPEC_COST_GROUPS)
        g++;
    return g;
}

void brig_spec_cost_prompt(struct brig_spec_cost *c, uint32_t rows, uint64_t ns)
{
    if (rows > 1 && rows >= c->prompt_rows) {
        c->prompt_rows = rows;
        c->prompt_ns = (double)ns;
    }
}

void brig_spec_cost_frame(struct brig_spec_cost *c, uint32_t rows, uint64_t ns)
{
    double x = (double)ns;
    if (rows <= 1) {
        learn_one(c, x);
        return;
    }
    if (c->n_one == 0)
        return; /* nothing to compare it with */
    /* More rows in less time: one row takes no longer than that. */
    if (x < c->one_ns)
        learn_one(c, x);
    unsigned g = group_of(rows - 1);
    double more = x > c->one_ns ? (x - c->one_ns) / (rows - 1) : 0;
    double most = c->n_row[g] > 0 ? OUTLIER * c->row_ns[g] : 0;
    most = most > c->one_ns ? most : c->one_ns;
    learn(&c->row_ns[g], &c->n_row[g], more < most ? more : most, most);
}

/* A further row before any was measured: as in the prompt, never more than a row alone. */
static double guess(const struct brig_spec_cost *c)
{
    if (c->disk_bound)
        return DISK_ROW * c->one_ns;
    if (c->prompt_rows == 0)
        return c->one_ns;
    double more = (c->prompt_ns - c->one_ns) / (c->prompt_rows - 1);
    return more < 0 ? 0 : more < c->one_ns ? more : c->one_ns;
}

/* As measured in the group, else in the nearest smaller one, else in the nearest larger one. */
static double row_ns(const struct brig_spec_cost *c, unsigned group)
{
    for (unsigned g = group + 1; g-- > 0;)
        if (c->n_row[g] > 0)
            return c->row_ns[g];
    for (unsigned g = group + 1; g < BRIG_SPEC_COST_GROUPS; g++)
        if (c->n_row[g] > 0)
            return c->row_ns[g];
    return guess(c);
}

double brig_spec_cost_ns(const struct brig_spec_cost *c, uint32_t further)
{
    return further == 0 ? c->one_ns : c->one_ns + further * row_ns(c, group_of(further));
}
