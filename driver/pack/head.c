/*
 * The heads of a bundle's files. Each says by itself what it is: a part of which pack of which model, which
 * cells it holds, and the hash of all its bytes.
 */
#include <inttypes.h>
#include <stdio.h>

#include "driver/pack/plan.h"
#include "proto/model/gguf_write.h"

#define HASH_DIGITS "0000000000000000000000000000000000000000000000000000000000000000"

static struct brig_str str(const char *s)
{
    return (struct brig_str){s, strlen(s)};
}

static bool starts_with(struct brig_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && memcmp(s.ptr, prefix, n) == 0;
}

/* What this pack says anew. */
static bool skip_key(struct brig_str key, const void *arg)
{
    const struct brig_pack_request *r = arg;
    static const char *const own[] = {"general.alignment", "general.architecture", "brigade.sha256",
                                      "brigade.source",    "brigade.pack",         "brigade.cells"};
    for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
        if (brig_str_eq(key, own[i]))
            return true;
    bool other_types = r->quant != NULL || r->head_quant != NULL || r->interleave;
    return starts_with(key, "split.") || (other_types && brig_str_eq(key, "general.file_type"));
}

static void put_source(struct brig_gguf_writer *w, const struct brig_pack_request *r)
{
    char hex[2 * BRIG_IDENTITY_BYTES + 1];
    struct brig_buf words = {0};
    for (unsigned i = 0; i < BRIG_IDENTITY_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", r->model->identity[i]);
    int err = brig_pack_words(r, &words);
    if (err < 0)
        w->err = err;
    brig_gguf_put_str(w, "brigade.source", str(hex));
    brig_gguf_put_str(w, "brigade.pack", (struct brig_str){words.data, words.len});
    brig_buf_release(&words);
}

/* Rows and norms in the hub's layout under GGUF's name of the family would mislead other programs: they would
 * load the file and compute wrong numbers. */
static void put_arch(struct brig_gguf_writer *w, const struct brig_model *m)
{
    char arch[sizeof m->desc.arch + sizeof BRIG_HUB_ARCH_PREFIX];
    snprintf(arch, sizeof arch, "%s%s", m->hub_layout ? BRIG_HUB_ARCH_PREFIX : "", m->desc.arch);
    brig_gguf_put_str(w, "general.architecture", str(arch));
}

static void put_keys(struct brig_gguf_writer *w, const struct brig_pack_plan *p, unsigned part)
{
    const struct brig_model *m = p->request.model;
    char cells[32];
    put_arch(w, m);
    if (part == 0)
        brig_gguf_put_meta(w, m, skip_key, &p->request);
    brig_gguf_put_u32(w, "general.alignment", BRIG_GGUF_ALIGNMENT);
    put_source(w, &p->request);
    if (part > 0) {
        snprintf(cells, sizeof cells, "%u:%u", p->cells[part - 1].first, p->cells[part - 1].last);
        brig_gguf_put_str(w, "brigade.cells", str(cells));
    }
    brig_gguf_put_u16(w, "split.no", (uint16_t)part);
    brig_gguf_put_u16(w, "split.count", (uint16_t)p->n_parts);
    brig_gguf_put_i32(w, "split.tensors.count", (int32_t)p->n_items);
}

int brig_pack_head(const struct brig_pack_plan *p, unsigned part, struct brig_buf *out, uint64_t *ret_hash_at,
                   struct brig_fail *fail)
{
    struct brig_gguf_writer w = {0};
    uint64_t at = brig_gguf_put_str(&w, "brigade.sha256", str(HASH_DIGITS));
    put_keys(&w, p, part);
    for (unsigned i = 0; i < p->n_items; i++) {
        const struct brig_pack_item *item = &p->items[i];
        if (item->part == part)
            brig_gguf_put_tensor(&w, item->from->name, item->type, item->from->n_dims, item->from->dims,
                                 item->bytes);
    }
    int r = brig_gguf_head(&w, out, fail);
    brig_gguf_writer_release(&w);
    if (r == 0)
        *ret_hash_at = at;
    return r;
}
