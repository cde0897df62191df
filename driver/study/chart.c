/* Charts, drawn by gnuplot from a script that holds its data: no file is written on the way. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "driver/study/parts.h"

#define MIB        1048576.0
#define GNUPLOT_MS 60000u
#define MAX_SERIES 16u
#define LABEL      64u

/* What a chart draws against the budget; NAN: nothing. */
typedef double (*value_fn)(const struct brig_study *s, const struct brig_study_row *row);

static double speed(const struct brig_study *s, const struct brig_study_row *row)
{
    (void)s;
    return brig_study_median(row).decode_tok_s;
}

static double bound(const struct brig_study *s, const struct brig_study_row *row)
{
    double v = brig_study_bound(s, row);
    return v > 0 ? v : NAN;
}

static double first(const struct brig_study *s, const struct brig_study_row *row)
{
    (void)s;
    return brig_study_median(row).ttft_s;
}

static double start(const struct brig_study *s, const struct brig_study_row *row)
{
    double v = brig_study_median(row).start_s;
    (void)s;
    return v > 0 ? v : NAN;
}

static double pss(const struct brig_study *s, const struct brig_study_row *row)
{
    (void)s;
    return row->pss_peak_bytes > 0 ? (double)row->pss_peak_bytes / MIB : NAN;
}

static double cgroup(const struct brig_study *s, const struct brig_study_row *row)
{
    (void)s;
    return row->cgroup_peak_bytes > 0 ? (double)row->cgroup_peak_bytes / MIB : NAN;
}

static double bytes_read(const struct brig_study *s, const struct brig_study_row *row)
{
    (void)s;
    return brig_study_median(row).disk_token_bytes / MIB;
}

static double planned(const struct brig_study *s, const struct brig_study_row *row)
{
    (void)s;
    return (double)row->plan.read_bytes / MIB;
}

static const struct chart {
    struct brig_study_chart chart;
    const char *axis; /* of values */
    value_fn value;
    value_fn beside; /* dashed, in the same colour; NULL: nothing */
    const char *beside_name;
    bool reference; /* a dashed line for the same without a budget */
    bool diagonal;  /* a line for the budget itself */
    bool log;       /* when values lie far apart */
    bool bars;      /* of the rows without a budget, both states of the page cache, in place of lines */
} charts[] = {
    {.chart = {"speed", "Tokens a second",
               "The higher, the better. Dotted: what memory and disk allow by the plan."},
     .axis = "tokens/s",
     .value = speed,
     .beside = bound,
     .beside_name = "bound",
     .reference = true,
     .log = true},
    {.chart = {"first", "Time to the first token",
               "From the first process started to the first token: start and prompt."},
     .axis = "seconds",
     .value = first,
     .reference = true,
     .log = true},
    {.chart = {"start", "Start time",
               "Until the line is proven by an empty frame; modes that keep nothing start nothing then."},
     .axis = "seconds",
     .value = start,
     .reference = true,
     .log = true},
    {.chart = {"memory", "Peak memory",
               "Solid: the largest sum of PSS. Dotted: what the kernel counted for the memory cgroup, page "
               "cache and kernel memory included. They overlap and are never added."},
     .axis = "MiB",
     .value = pss,
     .beside = cgroup,
     .beside_name = "cgroup",
     .diagonal = true},
    {.chart = {"read", "Bytes read from the disk for a token",
               "Solid: counted by the kernel. Dotted: the plan."},
     .axis = "MiB a token",
     .value = bytes_read,
     .beside = planned,
     .beside_name = "plan"},
    {.chart = {"reference", "Without a budget: tokens a second",
               "What there is to lose or to gain: the same modes with all the memory that they want."},
     .axis = "tokens/s",
     .value = speed,
     .bars = true},
    {.chart = {"cold", "Without a budget: process-cold and disk-cold",
               "Time to the first token. Page cache full: processes start, and the disk rests. Dropped: "
               "every byte comes from the disk."},
     .axis = "seconds",
     .value = first,
     .bars = true},
};
#define N_CHARTS (sizeof charts / sizeof *charts)

const struct brig_study_chart *brig_study_chart_at(unsigned i)
{
    return i < N_CHARTS ? &charts[i].chart : NULL;
}

static const char *const colours[] = {"#2b6cb0", "#c05621", "#2f855a", "#97266d",
                                      "#b7791f", "#285e61", "#742a2a", "#4a5568"};
#define N_COLOURS (sizeof colours / sizeof *colours)

/* The rows that make one line: equal but for the budget. */
struct series {
    unsigned n;
    char labels[MAX_SERIES][LABEL];
};

/* A title in a script: nothing that could end its quotes. */
static void plain(char *text)
{
    for (; *text != '\0'; text++)
        if (strchr("'\"\\\n", *text) != NULL)
            *text = '?';
}

static unsigned series_of(struct series *all, const struct brig_study_row *row)
{
    char label[LABEL];
    unsigned i = 0;
    brig_study_label(row, label, sizeof label);
    plain(label);
    while (i < all->n && strcmp(all->labels[i], label) != 0)
        i++;
    if (i == all->n && all->n < MAX_SERIES)
        memcpy(all->labels[all->n++], label, sizeof label);
    return i;
}

static bool has_budget(const struct brig_study_row *row)
{
    return row->plan.budget_bytes > 0;
}

static bool drawn(const struct brig_study_row *row)
{
    return row->state == BRIG_STUDY_MEASURED && row->n_samples > 0;
}

/* Data block $PREFIX<series> of budget and value; how many points. */
static unsigned data(const struct brig_study *s, struct series *all, unsigned k, const char *prefix,
                     value_fn value, struct brig_buf *out)
{
    unsigned n = 0;
    brig_buf_printf(out, "$%s%u << EOD\n", prefix, k);
    for (unsigned i = 0; i < s->n_rows; i++) {
        const struct brig_study_row *row = &s->rows[i];
        if (!drawn(row) || !has_budget(row) || series_of(all, row) != k || isnan(value(s, row)))
            continue;
        brig_buf_printf(out, "%.3f %.6g\n", (double)row->plan.budget_bytes / MIB, value(s, row));
        n++;
    }
    brig_buf_printf(out, "EOD\n");
    return n;
}

static void head(const struct chart *c, bool log, struct brig_buf *out)
{
    brig_buf_printf(out,
                    "set terminal svg size 860,380 noenhanced background rgb 'white' font 'sans-serif,13'\n"
                    "set grid back lc rgb '#dddddd'\nset border 3 lc rgb '#555555'\nset tics nomirror\n"
                    "set key outside right top Left reverse\nset ylabel '%s'\n%s",
                    c->axis, log ? "set logscale y\n" : "set yrange [0:*]\n");
}

static bool far_apart(const struct brig_study *s, value_fn value)
{
    double least = INFINITY, most = 0;
    for (unsigned i = 0; i < s->n_rows; i++) {
        double v = drawn(&s->rows[i]) ? value(s, &s->rows[i]) : NAN;
        least = v > 0 && v < least ? v : least;
        most = v > most ? v : most;
    }
    return most > 30 * least;
}

/* The value without a budget, of the full page cache; NAN when there is none. */
static double reference(const struct brig_study *s, struct series *all, unsigned k, value_fn value)
{
    for (unsigned i = 0; i < s->n_rows; i++) {
        const struct brig_study_row *row = &s->rows[i];
        if (drawn(row) && strcmp(row->ram, BRIG_STUDY_NO_BUDGET) == 0 && row->cache == BRIG_STUDY_CACHED &&
            series_of(all, row) == k)
            return value(s, row);
    }
    return NAN;
}

/* Lines against the budget; false: there is nothing to draw. */
static bool lines(const struct brig_study *s, const struct chart *c, struct brig_buf *out)
{
    struct series all = {0};
    struct brig_buf plot = {0};
    unsigned points = 0;
    for (unsigned i = 0; i < s->n_rows; i++)
        if (drawn(&s->rows[i]))
            series_of(&all, &s->rows[i]);
    head(c, c->log && far_apart(s, c->value), out);
    brig_buf_printf(out, "set xlabel 'memory budget, MiB'\nset xrange [0:*]\n");
    for (unsigned k = 0; k < all.n; k++) {
        const char *colour = colours[k % N_COLOURS];
        unsigned n = data(s, &all, k, "a", c->value, out);
        points += n;
        if (n > 0)
            brig_buf_printf(&plot,
                            ", $a%u using 1:2 with linespoints lw 2 pt 7 ps 0.6 lc rgb '%s' title '%s'", k,
                            colour, all.labels[k]);
        if (c->beside != NULL && data(s, &all, k, "b", c->beside, out) > 0)
            brig_buf_printf(
                &plot, ", $b%u using 1:2 with linespoints lw 1.5 dt 3 pt 6 ps 0.5 lc rgb '%s' title '%s, %s'",
                k, colour, all.labels[k], c->beside_name);
        double flat = c->reference ? reference(s, &all, k, c->value) : NAN;
        if (!isnan(flat))
            brig_buf_printf(&plot, ", %.6g with lines lw 1 dt 2 lc rgb '%s' title '%s, no budget'", flat,
                            colour, all.labels[k]);
    }
    if (points > 0 && c->diagonal)
        brig_buf_printf(&plot, ", x with lines lw 1 lc rgb '#999999' title 'the budget'");
    if (points > 0)
        brig_buf_printf(out, "plot %s\n", plot.data + 2);
    brig_buf_release(&plot);
    return points > 0;
}

/* Of the rows without a budget, a group of two bars for each. */
static bool bars(const struct brig_study *s, const struct chart *c, struct brig_buf *out)
{
    struct series all = {0};
    for (unsigned i = 0; i < s->n_rows; i++)
        if (drawn(&s->rows[i]) && strcmp(s->rows[i].ram, BRIG_STUDY_NO_BUDGET) == 0)
            series_of(&all, &s->rows[i]);
    head(c, false, out);
    brig_buf_printf(out, "set style data histograms\nset style histogram clustered gap 1\n"
                         "set style fill solid 0.9 border lc rgb 'white'\nset xtics rotate by -20\nset key "
                         "outside top right horizontal Left reverse\n$d << EOD\n");
    for (unsigned k = 0; k < all.n; k++) {
        double v[2] = {0, 0};
        for (unsigned i = 0; i < s->n_rows; i++) {
            const struct brig_study_row *row = &s->rows[i];
            if (drawn(row) && strcmp(row->ram, BRIG_STUDY_NO_BUDGET) == 0 && series_of(&all, row) == k)
                v[row->cache] = c->value(s, row);
        }
        brig_buf_printf(out, "\"%s\" %.6g %.6g\n", all.labels[k], v[BRIG_STUDY_CACHED],
                        v[BRIG_STUDY_DROPPED]);
    }
    brig_buf_printf(
        out,
        "EOD\nplot $d using 2:xtic(1) lc rgb '%s' title 'page cache full', $d using 3 lc rgb '%s' title "
        "'page cache dropped'\n",
        colours[0], colours[1]);
    return all.n > 0;
}

static int gnuplot(const char *script, struct brig_buf *out, struct brig_fail *fail)
{
    char *argv[] = {(char *)"gnuplot", (char *)"-", NULL};
    const struct brig_child_opts o = {.argv = argv, .input = script, .timeout_ms = GNUPLOT_MS};
    struct brig_child_end e;
    int r = brig_child_run(&o, &e, fail);
    if (r == -BRIG_EIO)
        r = brig_fail_set(fail, BRIG_EUNSUPPORTED, "gnuplot is not installed");
    const char *svg = r < 0 || e.out.len == 0 ? NULL : memmem(e.out.data, e.out.len, "<svg", 4);
    if (r == 0 && (e.wait_status != 0 || svg == NULL)) {
        char words[200];
        brig_child_last_words(&e, words, sizeof words);
        r = brig_fail_set(fail, BRIG_EIO, "gnuplot: %s", words[0] != '\0' ? words : "it drew nothing");
    }
    if (r == 0 && brig_buf_add(out, svg, e.out.len - (size_t)(svg - e.out.data)) < 0)
        r = brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a chart");
    brig_child_release(&e);
    return r;
}

int brig_study_chart_draw(const struct brig_study *s, unsigned i, struct brig_buf *out,
                          struct brig_fail *fail)
{
    struct brig_buf script = {0};
    int r = 0;
    if (charts[i].bars ? bars(s, &charts[i], &script) : lines(s, &charts[i], &script))
        r = gnuplot(script.data, out, fail);
    brig_buf_release(&script);
    return r;
}
