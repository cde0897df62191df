/* What was measured before, one entry a machine and file system, in one file of the user's. Nothing in it is
 * trusted: what is not as it must be is as if it were not there. */
#include "launcher/probe_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "proto/base/buf.h"
#include "proto/base/outfile.h"
#include "proto/disk/reader.h"

#define SCHEMA         1
#define MAX_FILE_BYTES (1u << 20)
#define MAX_ENTRIES    64u
#define MAX_BYTES_S    1e13

/* The folder, or the file in it. The specification wants an absolute path; others are ignored. */
static int place(struct brig_buf *ret, bool file, struct brig_fail *fail)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char *tail = file ? "/brigade/probe.json" : "/brigade";
    int r;
    if (cache != NULL && cache[0] == '/')
        r = brig_buf_printf(ret, "%s%s", cache, tail);
    else if (home != NULL && home[0] == '/')
        r = brig_buf_printf(ret, "%s/.cache%s", home, tail);
    else
        return brig_fail_set(fail, BRIG_EIO, "neither XDG_CACHE_HOME nor HOME names a folder");
    return r < 0 ? brig_fail_set(fail, BRIG_ENOMEM, "no memory for the name of the cache") : 0;
}

/* The entries: NULL when there is no file that can be read. */
static json_t *load(void)
{
    struct brig_buf path = {0};
    struct stat st;
    json_t *root = NULL;
    if (place(&path, true, NULL) == 0) {
        int fd = open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MAX_FILE_BYTES)
            root = json_loadfd(fd, 0, NULL);
        if (fd >= 0)
            close(fd);
    }
    brig_buf_release(&path);
    json_t *list = json_integer_value(json_object_get(root, "schema")) == SCHEMA
                       ? json_object_get(root, "probes")
                       : NULL;
    list = json_is_array(list) ? json_incref(list) : NULL;
    json_decref(root);
    return list;
}

static bool is_for(const json_t *entry, const struct brig_probe *p)
{
    const char *host = json_string_value(json_object_get(entry, "host"));
    const char *device = json_string_value(json_object_get(entry, "device"));
    return host != NULL && device != NULL && strcmp(host, p->host) == 0 && strcmp(device, p->device) == 0;
}

/* ---- one entry, out ---- */

static json_t *row_json(const struct brig_probe_row *row)
{
    return json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "reader", row->how, "direct",
                     (int)row->direct, "request_bytes", (json_int_t)row->request_bytes, "depth",
                     (json_int_t)row->depth, "samples", (json_int_t)row->n, "void", (json_int_t)row->n_void,
                     "bytes_s", row->bytes_s, "least", row->least, "most", row->most, "cpu_s_gb",
                     row->cpu_s_gb);
}

json_t *brig_probe_json(const struct brig_probe *p)
{
    json_t *o = json_object(), *rows = json_array();
    for (uint32_t i = 0; i < p->n_rows; i++)
        json_array_append_new(rows, row_json(&p->rows[i]));
    json_object_set_new(o, "host", json_string(p->host));
    json_object_set_new(o, "device", json_string(p->device));
    json_object_set_new(o, "disk", json_string(p->disk));
    json_object_set_new(o, "file", json_string(p->file));
    json_object_set_new(o, "file_bytes", json_integer((json_int_t)p->file_bytes));
    json_object_set_new(o, "measured_s", json_integer((json_int_t)p->measured_s));
    json_object_set_new(o, "memory_bytes_s", json_real(p->memory_bytes_s));
    json_object_set_new(o, "memory_median_bytes_s", json_real(p->memory_median_bytes_s));
    json_object_set_new(o, "memory_threads", json_integer(p->memory_threads));
    json_object_set_new(o, "cpus", json_integer(p->cpus));
    json_object_set_new(o, "load", json_real(p->load));
    json_object_set_new(o, "disk_bytes_s", p->disk_bytes_s > 0 ? json_real(p->disk_bytes_s) : json_null());
    json_object_set_new(o, "beside_memory_bytes_s", json_real(p->beside_memory_bytes_s));
    json_object_set_new(o, "beside_disk_bytes_s", json_real(p->beside_disk_bytes_s));
    json_object_set_new(o, "best", p->disk_bytes_s > 0 ? row_json(&p->best) : json_null());
    json_object_set_new(o, "note", p->note[0] != '\0' ? json_string(p->note) : json_null());
    json_object_set_new(o, "rows", rows);
    return o;
}

/* ---- one entry, in ---- */

static bool take_text(const json_t *o, const char *key, char *ret, size_t room)
{
    const char *s = json_string_value(json_object_get(o, key));
    if (s == NULL || strlen(s) >= room)
        return false;
    snprintf(ret, room, "%s", s);
    return true;
}

static bool take_whole(const json_t *o, const char *key, uint64_t least, uint64_t most, uint64_t *ret)
{
    const json_t *v = json_object_get(o, key);
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < 0 || (uint64_t)n < least || (uint64_t)n > most)
        return false;
    *ret = (uint64_t)n;
    return true;
}

static bool take_speed(const json_t *o, const char *key, double least, double *ret)
{
    double v = json_number_value(json_object_get(o, key));
    if (!json_is_number(json_object_get(o, key)) || !(v >= least) || v > MAX_BYTES_S)
        return false;
    *ret = v;
    return true;
}

static bool take_row(struct brig_probe_row *ret, const json_t *o)
{
    struct brig_probe_row row = {.direct = json_is_true(json_object_get(o, "direct"))};
    uint64_t request, depth, n, n_void;
    if (!take_text(o, "reader", row.how, sizeof row.how) || brig_reader_ops_by_name(row.how) == NULL ||
        !take_whole(o, "request_bytes", 4096, BRIG_READER_MAX_REQUEST_BYTES, &request) ||
        !take_whole(o, "depth", 1, BRIG_READER_MAX_DEPTH, &depth) || !take_whole(o, "samples", 0, 1000, &n) ||
        !take_whole(o, "void", 0, 1000, &n_void) || !take_speed(o, "bytes_s", 0, &row.bytes_s) ||
        !take_speed(o, "least", 0, &row.least) || !take_speed(o, "most", 0, &row.most) ||
        !take_speed(o, "cpu_s_gb", 0, &row.cpu_s_gb))
        return false;
    row.request_bytes = (uint32_t)request;
    row.depth = (uint32_t)depth;
    row.n = (uint32_t)n;
    row.n_void = (uint32_t)n_void;
    *ret = row;
    return true;
}

static bool take_entry(struct brig_probe *p, const json_t *o, uint64_t now_s)
{
    uint64_t threads, cpus;
    const json_t *rows = json_object_get(o, "rows");
    size_t n = json_array_size(rows);
    if (!take_whole(o, "measured_s", 0, now_s, &p->measured_s) ||
        now_s - p->measured_s > BRIG_PROBE_MAX_AGE_S ||
        !take_whole(o, "memory_threads", 1, 65536, &threads) || n > BRIG_PROBE_MAX_ROWS ||
        !take_whole(o, "cpus", 1, 65536, &cpus) || !take_speed(o, "load", 0, &p->load) ||
        !take_speed(o, "memory_bytes_s", 1, &p->memory_bytes_s) ||
        !take_speed(o, "memory_median_bytes_s", 1, &p->memory_median_bytes_s) ||
        !take_speed(o, "disk_bytes_s", 1, &p->disk_bytes_s) ||
        !take_speed(o, "beside_memory_bytes_s", 0, &p->beside_memory_bytes_s) ||
        !take_speed(o, "beside_disk_bytes_s", 0, &p->beside_disk_bytes_s) ||
        !take_row(&p->best, json_object_get(o, "best")) || !take_text(o, "disk", p->disk, sizeof p->disk) ||
        !take_text(o, "file", p->file, sizeof p->file) ||
        !take_whole(o, "file_bytes", 1, INT64_MAX, &p->file_bytes))
        return false;
    if (!json_is_null(json_object_get(o, "note")) && !take_text(o, "note", p->note, sizeof p->note))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!take_row(&p->rows[i], json_array_get(rows, i)))
            return false;
    p->memory_threads = (uint32_t)threads;
    p->cpus = (uint32_t)cpus;
    p->n_rows = (uint32_t)n;
    return true;
}

bool brig_probe_recall(struct brig_probe *p, uint64_t now_s)
{
    json_t *list = load();
    struct brig_probe found = *p;
    bool good = false;
    for (size_t i = 0; !good && i < json_array_size(list); i++)
        if (is_for(json_array_get(list, i), p))
            good = take_entry(&found, json_array_get(list, i), now_s);
    json_decref(list);
    if (good)
        good = now_s - found.measured_s <= brig_probe_age_s(&found);
    if (good) {
        *p = found;
        p->remembered = true;
    }
    return good;
}

/* ---- the file ---- */

/* The folder and, on the way to it, the one above. */
static int make_folder(struct brig_fail *fail)
{
    struct brig_buf path = {0};
    int r = place(&path, false, fail);
    if (r == 0) {
        char *slash = strrchr(path.data, '/');
        *slash = '\0';
        if (mkdir(path.data, 0700) < 0 && errno != EEXIST)
            r = brig_fail_errno(fail, BRIG_EIO, "%s", path.data);
        *slash = '/';
    }
    if (r == 0 && mkdir(path.data, 0700) < 0 && errno != EEXIST)
        r = brig_fail_errno(fail, BRIG_EIO, "%s", path.data);
    brig_buf_release(&path);
    return r;
}

static int store(const json_t *root, struct brig_fail *fail)
{
    struct brig_buf path = {0};
    struct brig_outfile out;
    int r = make_folder(fail);
    if (r == 0)
        r = place(&path, true, fail);
    if (r == 0)
        r = brig_outfile_open(&out, path.data, fail);
    if (r == 0 && (json_dumpf(root, out.stream, JSON_INDENT(1)) < 0 || fputc('\n', out.stream) == EOF)) {
        brig_outfile_abandon(&out);
        r = brig_fail_set(fail, BRIG_EIO, "%s: could not be written whole", path.data);
    } else if (r == 0) {
        r = brig_outfile_commit(&out, fail);
    }
    brig_buf_release(&path);
    return r;
}

/* Two that write at once: one of them is forgotten, and measures again. */
int brig_probe_remember(const struct brig_probe *p, struct brig_fail *fail)
{
    json_t *old = load(), *list = json_array(), *root = json_object();
    json_array_append_new(list, brig_probe_json(p));
    for (size_t i = 0; i < json_array_size(old) && json_array_size(list) < MAX_ENTRIES; i++)
        if (!is_for(json_array_get(old, i), p))
            json_array_append(list, json_array_get(old, i));
    json_object_set_new(root, "schema", json_integer(SCHEMA));
    json_object_set_new(root, "probes", list);
    int r = store(root, fail);
    json_decref(old);
    json_decref(root);
    return r;
}
