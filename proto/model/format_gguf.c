/* The GGUF row of the table of formats: versions 2 and 3, little-endian, one file. */
#include "proto/model/gguf.h"

#include <string.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/model/private.h"

static bool probe(const char *path, const uint8_t *head, size_t n)
{
    (void)path;
    return n >= 4 && memcmp(head, "GGUF", 4) == 0;
}

static int add_file(struct brig_model *m, struct brig_fail *fail)
{
    m->files = brig_alloc(1, sizeof *m->files);
    char *path = brig_strndup(m->path, strlen(m->path));
    if (m->files == NULL || path == NULL) {
        brig_free(path);
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    }
    m->files[0] = (struct brig_model_file){.path = path, .fd = -1};
    m->n_files = 1;
    return brig_model_file_open(path, &m->files[0].fd, &m->files[0].bytes, fail);
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

static int open_gguf(struct brig_model *m, const struct brig_meta **meta, struct brig_str *arch,
                     struct brig_fail *fail)
{
    struct brig_gguf *g = brig_alloc(1, sizeof *g);
    int r;
    if (g == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    m->priv = g;
    if ((r = add_file(m, fail)) < 0 || (r = brig_gguf_scan(g, m->files[0].fd, m->files[0].bytes, fail)) < 0)
        return r;
    struct brig_gguf_reader reader = {m->files[0].fd,       m->files[0].bytes,    &g->head,
                                      BRIG_GGUF_HEAD_START, {"the metadata", 12}, fail};
    if ((r = brig_gguf_read_meta(g, &reader)) < 0 || (r = read_arch(&g->meta, arch, fail)) < 0 ||
        (r = brig_gguf_read_tensors(g, &reader, m)) < 0 || (r = brig_gguf_read_vocab(g, m, fail)) < 0 ||
        (r = brig_model_identify(m, g->head.data, g->head.len, fail)) < 0)
        return r;
    brig_meta_str(&g->meta, "general.name", &m->name);
    *meta = &g->meta;
    return 0;
}

static void close_gguf(struct brig_model *m)
{
    struct brig_gguf *g = m->priv;
    for (unsigned i = 0; i < m->n_files; i++) {
        if (m->files[i].fd >= 0)
            close(m->files[i].fd);
        brig_free(m->files[i].path);
    }
    brig_free(m->files);
    brig_free(m->tensors);
    if (g == NULL)
        return;
    brig_buf_release(&g->head);
    brig_buf_release(&g->key_text);
    brig_buf_release(&g->value_text);
    brig_free(g->meta.entries);
    brig_free(g->meta.by_key);
    brig_free(g->tokens);
    brig_free(g->merges);
    brig_free(g->token_types);
    brig_free(g->scores);
    brig_free(g);
}

const struct brig_format brig_format_gguf = {
    .name = "gguf",
    .help = "GGUF files, versions 2 and 3, little-endian",
    .probe = probe,
    .open = open_gguf,
    .close = close_gguf,
    .meta_at = brig_gguf_meta_at,
};
