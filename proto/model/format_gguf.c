/* The GGUF row of the table of formats: versions 2 and 3, little-endian, one file or a split set. */
#include "proto/model/gguf.h"

#include <string.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/model/private.h"
#include "proto/model/sha256.h"

static bool probe(const char *path, const uint8_t *head, size_t n)
{
    (void)path;
    return n >= 4 && memcmp(head, "GGUF", 4) == 0;
}

static int read_arch(const struct brig_meta *meta, struct brig_str *arch, struct brig_fail *fail)
{
    const char *kind = brig_meta_kind(meta, "general.architecture");
    if (kind == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key general.architecture is missing");
    if (!brig_meta_str(meta, "general.architecture", arch))
        return brig_fail_set(fail, BRIG_EFORMAT, "general.architecture is %s, a string is wanted", kind);
    return 0;
}

/* Of one file its head; of several the SHA-256 of each head, one after the other. */
static int identify(const struct brig_gguf *parts, struct brig_model *m, struct brig_fail *fail)
{
    if (m->n_files == 1)
        return brig_model_identify(m, parts[0].head.data, parts[0].head.len, fail);
    uint8_t *digests = brig_alloc(m->n_files, BRIG_SHA256_BYTES);
    if (digests == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    for (unsigned i = 0; i < m->n_files; i++) {
        struct brig_sha256 sha;
        brig_sha256_init(&sha);
        brig_sha256_add(&sha, parts[i].head.data, parts[i].head.len);
        brig_sha256_finish(&sha, digests + (size_t)i * BRIG_SHA256_BYTES);
    }
    int r = brig_model_identify(m, digests, (size_t)m->n_files * BRIG_SHA256_BYTES, fail);
    brig_free(digests);
    return r;
}

int brig_gguf_open(struct brig_model *m, const char *path, const struct brig_meta **meta,
                   struct brig_str *arch, struct brig_fail *fail)
{
    int r = brig_gguf_open_set(m, path, fail);
    if (r < 0)
        return r;
    struct brig_gguf *parts = m->priv;
    if ((r = read_arch(&parts[0].meta, arch, fail)) < 0 || (r = brig_gguf_read_tensors(parts, m, fail)) < 0 ||
        (r = brig_gguf_read_vocab(&parts[0], m, fail)) < 0 || (r = identify(parts, m, fail)) < 0)
        return r;
    brig_meta_str(&parts[0].meta, "general.name", &m->name);
    *meta = &parts[0].meta;
    return 0;
}

static int open_gguf(struct brig_model *m, const struct brig_meta **meta, struct brig_str *arch,
                     struct brig_fail *fail)
{
    return brig_gguf_open(m, m->path, meta, arch, fail);
}

static void release(struct brig_gguf *g)
{
    brig_buf_release(&g->head);
    brig_buf_release(&g->key_text);
    brig_buf_release(&g->value_text);
    brig_free(g->meta.entries);
    brig_free(g->meta.by_key);
    brig_free(g->tokens);
    brig_free(g->merges);
    brig_free(g->token_types);
    brig_free(g->scores);
}

void brig_gguf_close(struct brig_model *m)
{
    struct brig_gguf *parts = m->priv;
    for (unsigned i = 0; i < m->n_files; i++) {
        if (m->files[i].path != NULL && m->files[i].fd >= 0)
            close(m->files[i].fd);
        brig_free(m->files[i].path);
        release(&parts[i]);
    }
    brig_free(m->files);
    brig_free(m->tensors);
    brig_free(parts);
}

const struct brig_format brig_format_gguf = {
    .name = "gguf",
    .help = "GGUF files, versions 2 and 3, little-endian, split ones too",
    .probe = probe,
    .open = open_gguf,
    .close = brig_gguf_close,
    .meta_at = brig_gguf_meta_at,
};
