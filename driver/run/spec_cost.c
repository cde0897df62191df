/* What a frame of n rows costs. */
#include "driver/run/spec_cost.h"

#include <math.h>

/* Share of the first row's time that each further one costs where nothing is known yet and a disk decides. */
#define DISK_ROW 0.02
/* Of what was measured of further rows, with each frame that had none. */
#define HOPE 0.98

/* What a frame says of a further row, when one row takes one_ns: more than that is no draft's fault. */
static double per_row(double frame_ns, uint32_t further, double one_ns)
{
    if (further == 0)
        return frame_ns;
    double more = frame_ns > one_ns ? (frame_ns - one_ns) / further : 0;
    return more < one_ns ? more : one_ns;
}

static void take_figure(struct brig_spec_figure *f, double one_ns)
{
    double sorted[BRIG_SPEC_COST_NEWEST];
    unsigned n = 0;
    for (unsigned i = 0; i < BRIG_SPEC_COST_NEWEST && i < f->n; i++) {
        double x = per_row(f->newest[i].ns, f->newest[i].further, one_ns);
        unsigned at = n++;
        for (; at > 0 && sorted[at - 1] > x; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = x;
    }
    if (n > 0)
        f->ns = sorted[(n - 1) / 3];
}

static void remember(struct brig_spec_figure *f, double ns, uint32_t further)
{
    unsigned at = f->n++ % BRIG_SPEC_COST_NEWEST;
    f->newest[at].ns = ns;
    f->newest[at].further = further;
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
    uint32_t further = rows > 0 ? rows - 1 : 0;
    if (further > 0 && c->one.n == 0)
        return; /* nothing to compare it with */
    /* More rows in less time: one row takes no longer than that. */
    if (further == 0 || x < c->one.ns)
        remember(&c->one, x, 0);
    c->without = further == 0 ? c->without + 1 : 0;
    if (further > 0)
        remember(&c->more[group_of(further)], x, further);
    c->most = further > c->most ? further : c->most;
    take_figure(&c->one, 0);
    for (unsigned g = 0; g < BRIG_SPEC_COST_GROUPS; g++)
        take_figure(&c->more[g], c->one.ns);
}

/* A further row before any was measured: as in the prompt, never more than a row alone. */
static double guess(const struct brig_spec_cost *c)
{
    if (c->disk_bound)
        return DISK_ROW * c->one.ns;
    if (c->prompt_rows == 0)
        return c->one.ns;
    double more = (c->prompt_ns - c->one.ns) / (c->prompt_rows - 1);
    return more < 0 ? 0 : more < c->one.ns ? more : c->one.ns;
}

/* As measured in the group, or in one of fewer rows if that is less: in a larger frame a further row costs no
 * more. */
static double row_ns(const struct brig_spec_cost *c, unsigned group)
{
    double least = -1;
    for (unsigned g = 0; g < BRIG_SPEC_COST_GROUPS; g++) {
        const struct brig_spec_figure *f = &c->more[g];
        bool counts = f->n > 0 && (g <= group || least < 0);
        if (counts && (least < 0 || f->ns < least))
            least = f->ns;
    }
    return least < 0 ? guess(c) : least;
}

double brig_spec_cost_ns(const struct brig_spec_cost *c, uint32_t further)
{
    return further == 0 ? c->one.ns : c->one.ns + further * row_ns(c, group_of(further));
}

double brig_spec_cost_hoped_ns(const struct brig_spec_cost *c, uint32_t further)
{
    return c->one.ns + pow(HOPE, c->without) * (brig_spec_cost_ns(c, further) - c->one.ns);
}
