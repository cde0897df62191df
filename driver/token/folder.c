/* Opening a folder's tokenizer, and what the small files beside tokenizer.json say. */
#include "driver/token/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/token/folder_private.h"
#include "proto/base/mem.h"
#include "proto/model/json.h"

#define TOKENIZER       "tokenizer.json"
#define TEMPLATE        "chat_template.jinja"
#define MAX_JSON_BYTES  ((size_t)1 << 28)
#define MAX_SMALL_BYTES ((size_t)1 << 24)

static const char *const file_names[BRIG_FOLDER_N_FILES] = {
    [BRIG_FOLDER_CONFIG] = "tokenizer_config.json",
    [BRIG_FOLDER_SPECIAL] = "special_tokens_map.json",
    [BRIG_FOLDER_GENERATION] = "generation_config.json",
    [BRIG_FOLDER_MODEL] = "config.json",
};

const char *brig_folder_file(unsigned i)
{
    if (i < 2)
        return i == 0 ? TOKENIZER : TEMPLATE;
    return i - 2 < BRIG_FOLDER_N_FILES ? file_names[i - 2] : NULL;
}

/* ---- files ---- */

/* path without the name of the tokenizer's file, "" for the working folder. */
static size_t folder_bytes(const char *path)
{
    size_t n = strlen(path), m = strlen(TOKENIZER);
    if (n >= m && strcmp(path + n - m, TOKENIZER) == 0 && (n == m || path[n - m - 1] == '/')) {
        struct stat st;
        if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
            return n - m;
    }
    return n;
}

static int join(struct brig_buf *to, const char *path, const char *name)
{
    size_t n = folder_bytes(path);
    brig_buf_clear(to);
    int r = brig_buf_add(to, path, n);
    if (r == 0 && n > 0 && path[n - 1] != '/')
        r = brig_buf_add(to, "/", 1);
    return r < 0 ? r : brig_buf_add(to, name, strlen(name));
}

bool brig_folder_is(const char *path)
{
    struct brig_buf name = {0};
    struct stat st;
    bool is = join(&name, path, TOKENIZER) == 0 && stat(name.data, &st) == 0 && !S_ISDIR(st.st_mode) &&
              (folder_bytes(path) < strlen(path) || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)));
    brig_buf_release(&name);
    return is;
}

/* All bytes of a regular file; 0 with *ret NULL: there is none. */
static int read_whole(const char *name, size_t most, char **ret, size_t *ret_n, struct brig_fail *fail)
{
    *ret = NULL;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r = 0;
    struct stat st;
    if (fd < 0)
        return errno == ENOENT ? 0 : brig_fail_errno(fail, BRIG_EIO, "cannot open it");
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        r = brig_fail_set(fail, BRIG_EFORMAT, "it is not a regular file");
    else if ((uint64_t)st.st_size > most)
        r = brig_fail_set(fail, BRIG_ELIMIT, "it has %lld bytes, more than %zu", (long long)st.st_size, most);
    size_t n = r == 0 ? (size_t)st.st_size : 0, at = 0;
    char *text = r == 0 ? brig_alloc(n + 1, 1) : NULL;
    if (r == 0 && text == NULL)
        r = brig_fail_set(fail, BRIG_ENOMEM, "out of memory for its %zu bytes", n);
    while (r == 0 && at < n) {
        ssize_t got = read(fd, text + at, n - at);
        if (got < 0 && errno != EINTR)
            r = brig_fail_errno(fail, BRIG_EIO, "cannot read it");
        else if (got == 0)
            r = brig_fail_set(fail, BRIG_EIO, "it became shorter while it was read");
        at += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (r < 0) {
        brig_free(text);
        return r;
    }
    *ret = text;
    *ret_n = n;
    return 0;
}

/* One of the small files; one that is not there is no failure. */
static int read_small(json_t **ret, const char *name, struct brig_fail *fail)
{
    char *text;
    size_t n = 0;
    int r = read_whole(name, MAX_SMALL_BYTES, &text, &n, fail);
    if (r == 0 && text != NULL)
        r = brig_json_parse(ret, text, n, fail);
    brig_free(text);
    return r;
}

static int read_tokenizer(struct brig_folder *f, const char *name, struct brig_fail *fail)
{
    size_t n = 0;
    int r = read_whole(name, MAX_JSON_BYTES, &f->text, &n, fail);
    if (r == 0 && f->text == NULL)
        r = brig_fail_set(fail, BRIG_EIO, "there is no such file");
    if (r == 0)
        r = brig_json_tables_read(&f->tables, f->text, n, fail);
    if (r == 0)
        r = brig_folder_read_model(f, fail);
    return r < 0 ? r : brig_folder_read_post(f, fail);
}

/* ---- what the small files say ---- */

/* A token by its spelling, given as a string or as an object with content. One that is no token of this
 * vocabulary is as if not stated. */
static int read_token(const struct brig_folder *f, const json_t *o, const char *key, int64_t *ret,
                      struct brig_fail *fail)
{
    const json_t *value = json_object_get(o, key);
    struct brig_str s = {"", 0};
    if (*ret >= 0 || value == NULL || json_is_null(value))
        return 0;
    int r = json_is_object(value) ? brig_json_str(value, "content", &s, fail)
                                  : brig_json_as_str(value, key, &s, fail);
    if (r < 0)
        return r;
    *ret = brig_folder_find(f, s);
    return 0;
}

/* A template, or the one called default of several. */
static int read_template(struct brig_folder *f, const json_t *value, struct brig_fail *fail)
{
    struct brig_str *to = &f->vocab.chat_template;
    if (!json_is_array(value))
        return brig_json_as_str(value, "chat_template", to, fail);
    for (size_t i = 0; i < json_array_size(value); i++) {
        struct brig_str name = {"", 0};
        int r = brig_json_str(json_array_get(value, i), "name", &name, fail);
        if (r > 0 && brig_str_eq(name, "default"))
            r = brig_json_str(json_array_get(value, i), "template", to, fail);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_config(struct brig_folder *f, struct brig_fail *fail)
{
    const json_t *o = f->files[BRIG_FOLDER_CONFIG], *template = json_object_get(o, "chat_template");
    struct brig_vocab *v = &f->vocab;
    bool bos = false, eos = false;
    int r;
    if ((r = read_token(f, o, "bos_token", &v->bos, fail)) < 0 ||
        (r = read_token(f, o, "eos_token", &v->eos, fail)) < 0 ||
        (r = read_token(f, o, "pad_token", &v->pad, fail)) < 0 ||
        (r = brig_json_bool(o, "add_bos_token", &bos, fail)) < 0 ||
        (r = brig_json_bool(o, "add_eos_token", &eos, fail)) < 0)
        return r;
    v->add_bos = v->add_bos || bos;
    v->add_eos = v->add_eos || eos;
    return template == NULL || json_is_null(template) ? 0 : read_template(f, template, fail);
}

static int read_special(struct brig_folder *f, struct brig_fail *fail)
{
    const json_t *o = f->files[BRIG_FOLDER_SPECIAL];
    int r = read_token(f, o, "bos_token", &f->vocab.bos, fail);
    if (r == 0)
        r = read_token(f, o, "eos_token", &f->vocab.eos, fail);
    return r < 0 ? r : read_token(f, o, "pad_token", &f->vocab.pad, fail);
}

/* The ids that end generation: one, or a list. */
static int read_ends(struct brig_folder *f, const json_t *value, struct brig_fail *fail)
{
    size_t n = json_is_array(value) ? json_array_size(value) : value != NULL && !json_is_null(value);
    if (n > BRIG_FOLDER_MAX_ENDS - f->vocab.n_ends)
        return brig_fail_set(fail, BRIG_ELIMIT, "eos_token_id: more than %u", BRIG_FOLDER_MAX_ENDS);
    for (size_t i = 0; i < n; i++) {
        uint64_t id = 0;
        int r = brig_json_as_u64(json_is_array(value) ? json_array_get(value, i) : value, "eos_token_id", &id,
                                 fail);
        if (r < 0)
            return r;
        if (id < f->vocab.n_tokens)
            f->ends[f->vocab.n_ends++] = (uint32_t)id;
    }
    f->vocab.ends = f->ends;
    return 0;
}

static int read_generation(struct brig_folder *f, struct brig_fail *fail)
{
    return read_ends(f, json_object_get(f->files[BRIG_FOLDER_GENERATION], "eos_token_id"), fail);
}

static int read_model_config(struct brig_folder *f, struct brig_fail *fail)
{
    uint64_t bos = UINT64_MAX;
    int r = brig_json_u64(f->files[BRIG_FOLDER_MODEL], "bos_token_id", &bos, fail);
    if (r >= 0 && f->vocab.bos < 0 && bos < f->vocab.n_tokens)
        f->vocab.bos = (int64_t)bos;
    return r < 0 ? r : read_ends(f, json_object_get(f->files[BRIG_FOLDER_MODEL], "eos_token_id"), fail);
}

/* Templates of today stand in a file of their own. */
static int read_template_file(struct brig_folder *f, const char *name, struct brig_fail *fail)
{
    char *text;
    size_t n = 0;
    int r = read_whole(name, MAX_SMALL_BYTES, &text, &n, fail);
    if (r == 0 && text != NULL) {
        r = brig_buf_add(&f->chat_template, text, n);
        if (r < 0)
            r = brig_fail_set(fail, (enum brig_err) - r, "out of memory for its %zu bytes", n);
        f->vocab.chat_template = (struct brig_str){f->chat_template.data, f->chat_template.len};
    }
    brig_free(text);
    return r;
}

/* ---- all of it ---- */

static int read_all(struct brig_folder *f, const char *path, struct brig_fail *fail)
{
    static int (*const readers[BRIG_FOLDER_N_FILES])(struct brig_folder *, struct brig_fail *) = {
        [BRIG_FOLDER_CONFIG] = read_config,
        [BRIG_FOLDER_SPECIAL] = read_special,
        [BRIG_FOLDER_GENERATION] = read_generation,
        [BRIG_FOLDER_MODEL] = read_model_config,
    };
    struct brig_buf name = {0};
    int r = join(&name, path, TOKENIZER);
    if (r == 0)
        r = read_tokenizer(f, name.data, fail);
    for (unsigned i = 0; i < BRIG_FOLDER_N_FILES && r == 0; i++) {
        r = join(&name, path, file_names[i]);
        if (r == 0)
            r = read_small(&f->files[i], name.data, fail);
        if (r == 0 && f->files[i] != NULL)
            r = readers[i](f, fail);
    }
    if (r == 0 && (r = join(&name, path, TEMPLATE)) == 0)
        r = read_template_file(f, name.data, fail);
    if (r < 0)
        brig_fail_prefix(fail, "%s", name.data != NULL ? name.data : path);
    brig_buf_release(&name);
    return r;
}

int brig_folder_open(struct brig_folder **ret, const char *path, struct brig_fail *fail)
{
    struct brig_fail own = {0};
    struct brig_folder *f = brig_alloc(1, sizeof *f);
    if (f == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory", path);
    f->vocab.bos = f->vocab.eos = f->vocab.eot = f->vocab.pad = f->vocab.unk = -1;
    int r = read_all(f, path, fail != NULL ? fail : &own);
    if (r < 0) {
        brig_folder_close(f);
        return r;
    }
    *ret = f;
    return 0;
}

void brig_folder_close(struct brig_folder *f)
{
    if (f == NULL)
        return;
    brig_json_tables_release(&f->tables);
    for (unsigned i = 0; i < BRIG_FOLDER_N_FILES; i++)
        json_decref(f->files[i]);
    brig_buf_release(&f->chat_template);
    brig_free(f->text);
    brig_free(f->tokens);
    brig_free(f->types);
    brig_free(f->added);
    brig_free(f->scores);
    brig_free(f);
}

const struct brig_vocab *brig_folder_vocab(const struct brig_folder *f)
{
    return &f->vocab;
}

int brig_folder_attach(struct brig_folder **ret, struct brig_model *m, struct brig_fail *fail)
{
    *ret = NULL;
    if (m->vocab.n_tokens != 0 || m->n_files == 0)
        return 0;
    const char *slash = strrchr(m->files[0].path, '/');
    char *path = slash != NULL ? brig_strndup(m->files[0].path, (size_t)(slash + 1 - m->files[0].path))
                               : brig_strndup(".", 1);
    int r = 0;
    if (path == NULL)
        r = brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory", m->path);
    else if (brig_folder_is(path))
        r = brig_folder_open(ret, path, fail);
    if (r == 0 && *ret != NULL)
        m->vocab = *brig_folder_vocab(*ret);
    brig_free(path);
    return r;
}
