/*
 * Chrome trace events. They are gathered in memory and written at the end, so that a run that is killed
 * leaves no half-written file behind.
 */
#include "proto/stat/trace.h"

#include <inttypes.h>
#include <string.h>

#include "proto/base/buf.h"
#include "proto/base/mem.h"
#include "proto/base/outfile.h"

/* About two million events; what comes later is counted and said in the file. */
#define TRACE_MAX_BYTES ((size_t)256 << 20)

struct brig_trace {
    char *path;
    struct brig_buf json;
    uint64_t n_lost;
};

int brig_trace_open(struct brig_trace **ret, const char *path, struct brig_fail *fail)
{
    struct brig_outfile probe; /* a path that cannot be written should fail before the work, not after it */
    int r = brig_outfile_open(&probe, path, fail);
    if (r < 0)
        return r;
    brig_outfile_abandon(&probe);
    struct brig_trace *t = brig_alloc(1, sizeof *t);
    if (t == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory", path);
    t->json.max = TRACE_MAX_BYTES;
    t->path = brig_strndup(path, strlen(path));
    if (t->path == NULL || brig_buf_printf(&t->json, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[") < 0) {
        brig_free(t->path);
        brig_free(t);
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory", path);
    }
    *ret = t;
    return 0;
}

/* Names are ours or a host's: quotes, backslashes and control characters must not break the JSON. */
static void escape(const char *name, char *out, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    size_t len = 0;
    for (; *name != '\0' && len + 7 < n; name++) {
        unsigned char c = (unsigned char)*name;
        if (c == '"' || c == '\\') {
            out[len++] = '\\';
            out[len++] = (char)c;
        } else if (c < 0x20 || c > 0x7e) {
            out[len++] = '\\';
            out[len++] = 'u';
            out[len++] = '0';
            out[len++] = '0';
            out[len++] = hex[c >> 4];
            out[len++] = hex[c & 15];
        } else {
            out[len++] = (char)c;
        }
    }
    out[len] = '\0';
}

static const char *separator(const struct brig_trace *t)
{
    return t->json.data[t->json.len - 1] == '[' ? "\n" : ",\n";
}

void brig_trace_track(struct brig_trace *t, uint32_t track, const char *name)
{
    char safe[256];
    escape(name, safe, sizeof safe);
    if (brig_buf_printf(&t->json,
                        "%s{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRIu32
                        ",\"tid\":0,\"args\":{\"name\":\"%s\"}},\n"
                        "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%" PRIu32
                        ",\"tid\":0,\"args\":{\"sort_index\":%" PRIu32 "}}",
                        separator(t), track, safe, track, track) < 0)
        t->n_lost++;
}

void brig_trace_event(struct brig_trace *t, uint32_t track, const char *name, uint64_t begin_ns,
                      uint64_t length_ns, uint64_t frame_id, uint32_t rows)
{
    char safe[256];
    escape(name, safe, sizeof safe);
    /* The format counts in microseconds; the decimals keep the nanoseconds. */
    if (brig_buf_printf(&t->json,
                        "%s{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":0,\"ts\":%" PRIu64
                        ".%03u,\"dur\":%" PRIu64 ".%03u,\"args\":{\"frame\":%" PRIu64 ",\"rows\":%" PRIu32
                        "}}",
                        separator(t), safe, track, begin_ns / 1000, (unsigned)(begin_ns % 1000),
                        length_ns / 1000, (unsigned)(length_ns % 1000), frame_id, rows) < 0)
        t->n_lost++;
}

static int write_file(const struct brig_trace *t, struct brig_fail *fail)
{
    struct brig_outfile out;
    int r = brig_outfile_open(&out, t->path, fail);
    if (r < 0)
        return r;
    fwrite(t->json.data, 1, t->json.len, out.stream);
    fprintf(out.stream, "\n],\"otherData\":{\"lost_events\":%" PRIu64 "}}\n", t->n_lost);
    return brig_outfile_commit(&out, fail);
}

int brig_trace_close(struct brig_trace *t, struct brig_fail *fail)
{
    if (t == NULL)
        return 0;
    int r = write_file(t, fail);
    brig_buf_release(&t->json);
    brig_free(t->path);
    brig_free(t);
    return r;
}
