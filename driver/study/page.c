/* The page: one file of HTML that needs nothing else, and how the folder of a report is written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "driver/run/json.h"
#include "driver/study/parts.h"
#include "proto/base/outfile.h"
#include "proto/base/version.h"

#define MIB        1048576.0
#define MAX_CHARTS 16u

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:960px;margin:2em auto;padding:0 1em}"
    "h1{font-size:1.6em;margin-bottom:.2em}h2{font-size:1.15em;margin:1.8em 0 .2em}p{margin:.3em 0}"
    "table{border-collapse:collapse;font-size:13px;width:100%;margin:.6em 0}"
    "th,td{padding:.25em .4em;border-bottom:1px solid "
    "#ddd;text-align:right;white-space:nowrap}th{white-space:normal;vertical-align:bottom}"
    "th:nth-child(-n+3),td:nth-child(-n+3){text-align:left}td.why{text-align:left;white-space:normal;color:#"
    "822}"
    "tr.void td,tr.refused td{color:#888}tr.void td.why,tr.refused td.why{color:#822}"
    ".scroll{overflow-x:auto}svg{max-width:100%;height:auto}.note{color:#555;font-size:13px}"
    "code{font-size:13px;overflow-wrap:anywhere}dt{font-weight:600;margin-top:.5em}dd{margin:0 0 0 1.2em}";

/* Text that may hold anything, as text of HTML. */
static void text(struct brig_buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'' || c < ' ')
            brig_buf_printf(out, "&#%u;", c < ' ' ? ' ' : c);
        else
            brig_buf_add(out, s, 1);
    }
}

static void cell(struct brig_buf *out, double v, int digits, double unit)
{
    if (v > 0)
        brig_buf_printf(out, "<td>%.*f</td>", digits, v / unit);
    else
        brig_buf_printf(out, "<td>–</td>");
}

static void row_html(const struct brig_study *s, const struct brig_study_row *row, struct brig_buf *out)
{
    struct brig_study_sample m = brig_study_median(row);
    char label[64];
    brig_study_label(row, label, sizeof label);
    brig_buf_printf(out, "<tr class=\"%s\"><td>", brig_study_state_name(row->state));
    text(out, row->ram);
    if (row->plan.budget_bytes > 0)
        brig_buf_printf(out, " (%.0f MiB)", (double)row->plan.budget_bytes / MIB);
    brig_buf_printf(out, "</td><td>");
    text(out, label);
    brig_buf_printf(out, "</td><td>%s</td>", brig_study_cache_name(row->cache));
    if (row->n_samples == 0) {
        brig_buf_printf(out, "<td class=\"why\" colspan=\"9\">%s: ", brig_study_state_name(row->state));
        text(out, row->why);
        brig_buf_printf(out, "</td></tr>\n");
        return;
    }
    cell(out, m.decode_tok_s, 2, 1);
    cell(out, brig_study_bound(s, row), 2, 1);
    cell(out, row->plan.token_s > 0 ? 1 / row->plan.token_s : 0, 2, 1);
    cell(out, m.ttft_s, 2, 1);
    cell(out, m.start_s, 2, 1);
    cell(out, (double)row->pss_peak_bytes, 0, MIB);
    cell(out, (double)row->cgroup_peak_bytes, 0, MIB);
    brig_buf_printf(out, "<td>%.1f</td>", m.disk_token_bytes / MIB);
    if (row->plan.known)
        brig_buf_printf(out, "<td>%.1f</td>", (double)row->plan.read_bytes / MIB);
    else
        brig_buf_printf(out, "<td>–</td>");
    brig_buf_printf(out, "</tr>\n");
    if (row->why[0] == '\0')
        return;
    brig_buf_printf(out, "<tr class=\"%s\"><td></td><td class=\"why\" colspan=\"11\">%s: ",
                    brig_study_state_name(row->state), brig_study_state_name(row->state));
    text(out, row->why);
    brig_buf_printf(out, "</td></tr>\n");
}

static void table(const struct brig_study *s, struct brig_buf *out)
{
    brig_buf_printf(
        out, "<h2>All figures</h2>\n<div class=\"scroll\"><table>\n<tr><th>budget</th><th>mode, residency"
             "</th><th>page cache</th><th>tok/s</th><th>bound</th><th>plan</th><th>first token s</th>"
             "<th>start s</th><th>PSS MiB</th><th>cgroup MiB</th><th>read MiB</th><th>plan</th></tr>\n");
    for (unsigned i = 0; i < s->n_rows; i++)
        row_html(s, &s->rows[i], out);
    brig_buf_printf(out,
                    "</table></div>\n<dl class=\"note\">\n"
                    "<dt>page cache</dt><dd>what the kernel held of the model's files when a run began, "
                    "looked at with mincore: "
                    "<i>dropped</i>, under 1 %%, or <i>cached</i>, over 99 %%. Under a budget it is always "
                    "dropped: pages that "
                    "somebody else has read are charged to him.</dd>\n"
                    "<dt>bound</dt><dd>1 / max(M / memory speed, (M − P) / disk speed): M bytes of weights "
                    "that a token needs, P of "
                    "them held in memory. Memory is read once before the first round and after each; the "
                    "disk's speed is the "
                    "plan's.</dd>\n"
                    "<dt>PSS, cgroup</dt><dd>the largest sum of PSS over processes alive together; the peak "
                    "that the kernel counted "
                    "for the memory cgroup, page cache and kernel memory included. Never add them.</dd>\n"
                    "<dt>read</dt><dd>bytes that the kernel fetched from the disk for a decoded token, "
                    "beside the plan's.</dd>\n"
                    "<dt>refused, killed, failed, void</dt><dd>the plan says that the budget cannot work; a "
                    "process was killed, "
                    "which is what the kernel does for memory; the run ended with the line shown; the "
                    "figures contradict what was to "
                    "be measured, and are in no chart.</dd>\n</dl>\n");
}

static void head(const struct brig_study *s, struct brig_buf *out)
{
    char now[40] = "";
    struct utsname u;
    time_t t = time(NULL);
    struct tm tm;
    if (gmtime_r(&t, &tm) != NULL)
        strftime(now, sizeof now, "%Y-%m-%d %H:%M UTC", &tm);
    brig_buf_printf(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                         "<meta name=\"viewport\" content=\"width=device-width\"><title>Brigade: ");
    text(out, s->model->path);
    brig_buf_printf(out, "</title>\n<style>%s</style></head><body>\n<h1>What memory costs and buys</h1>\n<p>",
                    style);
    text(out, s->model->path);
    brig_buf_printf(out, ", %.1f MiB; %u prompt tokens, %u generated, median of %u</p>\n",
                    (double)s->model_bytes / MIB, s->n_prompt, s->n_generate, s->rounds);
    brig_buf_printf(out, "<p class=\"note\">Brigade " BRIG_VERSION ", %s", now);
    if (uname(&u) == 0) {
        brig_buf_printf(out, ", ");
        text(out, u.sysname);
        brig_buf_printf(out, " ");
        text(out, u.release);
        brig_buf_printf(out, " ");
        text(out, u.machine);
    }
    brig_buf_printf(out, ", %u threads; memory read once at", s->threads);
    for (unsigned i = 0; i < s->n_probes; i++)
        brig_buf_printf(out, " %.1f", s->probes[i].memory_bytes_s / 1e9);
    brig_buf_printf(out, " GB/s</p>\n");
    if (s->command[0] != '\0') {
        brig_buf_printf(out, "<p><code>");
        text(out, s->command);
        brig_buf_printf(out, "</code></p>\n");
    }
    if (s->blind)
        brig_buf_printf(
            out, "<p class=\"note\">The kernel does not say what it caches of these files to who may not "
                 "write to them: the state of the page cache is what was asked for.</p>\n");
}

int brig_study_page(const struct brig_study *s, const struct brig_buf *svgs, struct brig_buf *out,
                    struct brig_fail *fail)
{
    head(s, out);
    if (s->no_gnuplot)
        brig_buf_printf(out, "<p class=\"note\">Without charts: gnuplot is not installed.</p>\n");
    for (unsigned i = 0; brig_study_chart_at(i) != NULL; i++) {
        const struct brig_study_chart *c = brig_study_chart_at(i);
        if (svgs[i].len == 0)
            continue;
        brig_buf_printf(out, "<h2>%s</h2>\n<p class=\"note\">%s</p>\n", c->title, c->about);
        brig_buf_add(out, svgs[i].data, svgs[i].len);
    }
    table(s, out);
    /* The end is there only if all before it is. */
    if (brig_buf_printf(out, "</body></html>\n") < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the page");
    return 0;
}

static int write_file(const char *dir, const char *name, const char *ending, const struct brig_buf *b,
                      struct brig_fail *fail)
{
    char path[4096];
    struct brig_outfile out;
    int n = snprintf(path, sizeof path, "%s/%s%s", dir, name, ending);
    if (n < 0 || (size_t)n >= sizeof path)
        return brig_fail_set(fail, BRIG_ELIMIT, "--report %.100s...: the path is too long", dir);
    int r = brig_outfile_open(&out, path, fail);
    if (r < 0)
        return r;
    if (b->len > 0 && fwrite(b->data, b->len, 1, out.stream) != 1) {
        r = brig_fail_errno(fail, BRIG_EIO, "%s", path);
        brig_outfile_abandon(&out);
        return r;
    }
    return brig_outfile_commit(&out, fail);
}

static int draw(struct brig_study *s, const char *dir, struct brig_buf *svgs, struct brig_fail *fail)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && !s->no_gnuplot && brig_study_chart_at(i) != NULL; i++) {
        r = brig_study_chart_draw(s, i, &svgs[i], fail);
        if (r == -BRIG_EUNSUPPORTED) {
            s->no_gnuplot = true;
            r = 0;
        } else if (r == 0 && svgs[i].len > 0) {
            r = write_file(dir, brig_study_chart_at(i)->name, ".svg", &svgs[i], fail);
        }
    }
    return r;
}

static int write_json(const struct brig_study *s, const char *dir, struct brig_fail *fail)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/report.json", dir);
    if (n < 0 || (size_t)n >= sizeof path)
        return brig_fail_set(fail, BRIG_ELIMIT, "--report %.100s...: the path is too long", dir);
    json_t *o = brig_study_json(s);
    int r = brig_json_write(o, path, fail);
    json_decref(o);
    return r;
}

int brig_study_folder(const char *dir, struct brig_fail *fail)
{
    struct stat st;
    if (mkdir(dir, 0777) < 0 && errno != EEXIST)
        return brig_fail_errno(fail, BRIG_EIO, "--report %s: the folder cannot be made", dir);
    if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
        return brig_fail_set(fail, BRIG_EIO, "--report %s: not a folder", dir);
    return 0;
}

int brig_study_write(struct brig_study *s, const char *dir, struct brig_fail *fail)
{
    struct brig_buf svgs[MAX_CHARTS] = {0}, page = {0};
    int r = write_json(s, dir, fail);
    if (r == 0)
        r = draw(s, dir, svgs, fail);
    if (r == 0)
        r = brig_study_page(s, svgs, &page, fail);
    if (r == 0)
        r = write_file(dir, "report", ".html", &page, fail);
    brig_buf_release(&page);
    for (unsigned i = 0; i < MAX_CHARTS; i++)
        brig_buf_release(&svgs[i]);
    return r;
}
