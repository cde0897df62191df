/* One render: its arena, its limits, its failure, where its text goes. */
#include "driver/chat/jinja_core.h"

#include <stdarg.h>
#include <stdio.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

#define CHUNK_BYTES ((size_t)64 << 10)

const struct brig_jinja_limits brig_jinja_default_limits = {
    .steps = 10000000, .memory_bytes = (size_t)256 << 20, .out_bytes = (size_t)16 << 20, .depth = 1000};

struct brig_jinja_chunk {
    struct brig_jinja_chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

static const struct {
    enum brig_err code;
    const char *word;
} errors[] = {
    [BRIG_JINJA_SYNTAX] = {BRIG_EFORMAT, "syntax: "},
    [BRIG_JINJA_UNDEFINED] = {BRIG_EFORMAT, "undefined: "},
    [BRIG_JINJA_TYPE] = {BRIG_EFORMAT, "wrong type: "},
    [BRIG_JINJA_VALUE] = {BRIG_EFORMAT, "wrong value: "},
    [BRIG_JINJA_UNSAFE] = {BRIG_EFORMAT, "not allowed: "},
    [BRIG_JINJA_RAISED] = {BRIG_EUNSUPPORTED, "it refuses this conversation: "},
    [BRIG_JINJA_LIMIT] = {BRIG_ELIMIT, "limit: "},
    [BRIG_JINJA_MEMORY] = {BRIG_ENOMEM, ""},
};

struct brig_jv brig_jinja_fail(struct brig_jinja *j, enum brig_jinja_error kind, const char *fmt, ...)
{
    char text[sizeof j->fail.text];
    va_list args;
    if (!j->failed) {
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        brig_fail_set(&j->fail, errors[kind].code, "line %u: %s%s", j->line, errors[kind].word, text);
    }
    j->failed = true;
    return (struct brig_jv){.kind = BRIG_JV_UNDEFINED};
}

bool brig_jinja_step(struct brig_jinja *j, uint64_t n)
{
    if (j->failed)
        return false;
    if (n > j->steps_left) {
        brig_jinja_fail(j, BRIG_JINJA_LIMIT, "the template does not end within %llu steps",
                        (unsigned long long)j->limits.steps);
        return false;
    }
    j->steps_left -= n;
    return true;
}

bool brig_jinja_enter(struct brig_jinja *j)
{
    if (!brig_jinja_step(j, 1))
        return false;
    if (j->depth >= j->limits.depth) {
        brig_jinja_fail(j, BRIG_JINJA_LIMIT, "more than %u levels inside each other", j->limits.depth);
        return false;
    }
    j->depth++;
    return true;
}

void brig_jinja_leave(struct brig_jinja *j)
{
    j->depth--;
}

static void *no_memory(struct brig_jinja *j, bool limit)
{
    if (limit)
        brig_jinja_fail(j, BRIG_JINJA_LIMIT, "the template needs more than %zu MiB of memory",
                        j->limits.memory_bytes >> 20);
    else
        brig_jinja_fail(j, BRIG_JINJA_MEMORY, "out of memory for the chat template");
    return NULL;
}

void *brig_jinja_alloc(struct brig_jinja *j, size_t n, size_t size)
{
    uint64_t bytes;
    if (j->failed)
        return NULL;
    if (!brig_mul_u64(n, size, &bytes) || bytes > j->limits.memory_bytes)
        return no_memory(j, true);
    size_t need = (size_t)brig_align_up(bytes == 0 ? 1 : bytes, 16);
    struct brig_jinja_chunk *c = j->chunks;
    if (c == NULL || need > c->size - c->used) {
        size_t room = need > CHUNK_BYTES / 4 ? need : CHUNK_BYTES - sizeof *c;
        if (room + sizeof *c > j->limits.memory_bytes - j->memory_used)
            return no_memory(j, true);
        struct brig_jinja_chunk *fresh = brig_alloc(1, sizeof *c + room);
        if (fresh == NULL)
            return no_memory(j, false);
        fresh->size = room;
        j->memory_used += sizeof *c + room;
        /* A chunk of one large thing goes behind the one that still has room. */
        bool alone = c != NULL && need == room;
        fresh->next = alone ? c->next : c;
        *(alone ? &c->next : &j->chunks) = fresh;
        c = fresh;
    }
    void *p = c->bytes + c->used;
    c->used += need;
    return p;
}

void brig_jinja_free_all(struct brig_jinja *j)
{
    while (j->chunks != NULL) {
        struct brig_jinja_chunk *next = j->chunks->next;
        brig_free(j->chunks);
        j->chunks = next;
    }
}

void brig_jinja_put(struct brig_jinja *j, const void *bytes, size_t n)
{
    if (j->failed || n == 0)
        return;
    int r = brig_buf_add(j->out, bytes, n);
    if (r == -BRIG_ELIMIT)
        brig_jinja_fail(j, BRIG_JINJA_LIMIT, "more than %zu bytes of text", j->limits.out_bytes);
    else if (r < 0)
        no_memory(j, false);
}

struct brig_buf *brig_jinja_capture(struct brig_jinja *j, struct brig_buf *inner)
{
    struct brig_buf *outer = j->out;
    *inner = (struct brig_buf){.max = j->limits.out_bytes};
    j->out = inner;
    return outer;
}

struct brig_jv brig_jinja_captured(struct brig_jinja *j, struct brig_buf *inner, struct brig_buf *outer)
{
    struct brig_jv v = brig_jv_str_copy(j, inner->data == NULL ? "" : inner->data, inner->len);
    brig_buf_release(inner);
    j->out = outer;
    return v;
}
