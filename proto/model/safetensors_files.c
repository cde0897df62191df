/* Which files hold the weights of a folder. */
#include "proto/model/safetensors.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/model/json.h"
#include "proto/model/private.h"

#define INDEX           "model.safetensors.index.json"
#define SINGLE          "model.safetensors"
#define MAX_INDEX_BYTES (32u << 20)

const char *brig_st_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

char *brig_st_path(const char *folder, const char *name)
{
    struct brig_buf b = {0};
    char *path = NULL;
    if (brig_buf_printf(&b, "%s/%s", folder, name) == 0)
        path = brig_strndup(b.data, b.len);
    brig_buf_release(&b);
    return path;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool exists(const char *folder, const char *name)
{
    char *path = brig_st_path(folder, name);
    bool found = path != NULL && access(path, F_OK) == 0;
    brig_free(path);
    return found;
}

int brig_st_folder(struct brig_st *s, const struct brig_model *m, struct brig_fail *fail)
{
    size_t n = strlen(m->path);
    if (is_folder(m->path)) {
        while (n > 1 && m->path[n - 1] == '/')
            n--;
        s->folder = brig_strndup(m->path, n);
    } else {
        const char *name = brig_st_base_name(m->path);
        s->folder = name == m->path ? brig_strndup(".", 1) : brig_strndup(m->path, (size_t)(name - m->path));
    }
    if (s->folder == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    char *real = realpath(s->folder, NULL); /* "." has a name too */
    const char *title = brig_st_base_name(real != NULL ? real : s->folder);
    s->title = brig_strndup(title, strlen(title));
    free(real);
    return s->title != NULL ? 0 : brig_fail_set(fail, BRIG_ENOMEM, "no memory");
}

static int add_file(struct brig_model *m, const char *folder, const char *name, struct brig_fail *fail)
{
    if (m->files == NULL)
        m->files = brig_alloc(BRIG_MAX_FILES, sizeof *m->files);
    char *path = brig_st_path(folder, name);
    if (m->files == NULL || path == NULL || m->n_files == BRIG_MAX_FILES) {
        brig_free(path);
        return brig_fail_set(fail, m->n_files == BRIG_MAX_FILES ? BRIG_ELIMIT : BRIG_ENOMEM,
                             "no place for its file number %u", m->n_files);
    }
    struct brig_model_file *f = &m->files[m->n_files++];
    *f = (struct brig_model_file){.path = path, .fd = -1};
    if (brig_model_file_open(path, &f->fd, &f->bytes, fail) < 0)
        return brig_fail_prefix(fail, "%s", name);
    return 0;
}

/* File names of the index come from outside: they name files of this folder and nothing else. */
static int check_file_name(const char *name, struct brig_fail *fail)
{
    if (name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) <= NAME_MAX)
        return 0;
    return brig_fail_set(fail, BRIG_EFORMAT, "%s: '%.100s' is no name of a file in this folder", INDEX, name);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int weight_map(const json_t *index, const json_t **ret, struct brig_fail *fail)
{
    int r = brig_json_object(index, "weight_map", ret, fail);
    if (r == 0 || (r > 0 && json_object_size(*ret) == 0))
        r = brig_fail_set(fail, BRIG_EFORMAT, "weight_map is missing or empty");
    return r < 0 ? brig_fail_prefix(fail, "%s", INDEX) : 0;
}

/* The distinct files of the index, by name, so that their numbers do not depend on its order. */
static int open_indexed(const char *folder, struct brig_model *m, json_t *index, struct brig_fail *fail)
{
    const json_t *map = NULL;
    const char *name;
    json_t *file;
    size_t n = 0;
    int r = weight_map(index, &map, fail);
    if (r < 0)
        return r;
    const char **files = brig_alloc(json_object_size(map), sizeof *files);
    if (files == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: no memory", INDEX);
    json_object_foreach((json_t *)(uintptr_t)map, name, file)
    {
        struct brig_str s;
        if ((r = brig_json_as_str(file, "a file of weight_map", &s, fail)) < 0) {
            brig_fail_prefix(fail, "%s", INDEX);
            break;
        }
        if ((r = check_file_name(s.ptr, fail)) < 0)
            break;
        files[n++] = s.ptr;
    }
    if (r == 0)
        qsort(files, n, sizeof *files, by_text);
    for (size_t i = 0; i < n && r == 0; i++)
        if (i == 0 || strcmp(files[i - 1], files[i]) != 0)
            r = add_file(m, folder, files[i], fail);
    brig_free(files);
    return r;
}

static int read_index(const char *folder, json_t **ret, struct brig_fail *fail)
{
    char *path = brig_st_path(folder, INDEX);
    if (path == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    int r = brig_json_open(ret, path, MAX_INDEX_BYTES, fail);
    brig_free(path);
    return r < 0 ? brig_fail_prefix(fail, "%s", INDEX) : 0;
}

/* The index has this file as a part. */
static bool has_part(const json_t *index, const char *file_name)
{
    const json_t *file;
    const char *name;
    json_object_foreach(json_object_get(index, "weight_map"), name,
                        file) if (json_is_string(file) &&
                                  strcmp(json_string_value(file), file_name) == 0) return true;
    return false;
}

int brig_st_open_files(const struct brig_st *s, struct brig_model *m, json_t **ret_index,
                       struct brig_fail *fail)
{
    const char *named = is_folder(m->path) ? NULL : brig_st_base_name(m->path);
    int r;
    if (named == NULL && exists(s->folder, SINGLE))
        named = SINGLE;
    if (exists(s->folder, INDEX)) {
        if ((r = read_index(s->folder, ret_index, fail)) < 0)
            return r;
        if (named == NULL || has_part(*ret_index, named))
            return open_indexed(s->folder, m, *ret_index, fail);
        json_decref(*ret_index); /* it is about other files */
        *ret_index = NULL;
    }
    if (named == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "it has a config.json but neither %s nor %s (a weight file of another name can "
                             "be given by its path)",
                             SINGLE, INDEX);
    return add_file(m, s->folder, named, fail);
}

int brig_st_check_index(const struct brig_st *s, const struct brig_model *m, const json_t *index,
                        struct brig_fail *fail)
{
    const char *name;
    json_t *file;
    if (index == NULL)
        return 0;
    json_object_foreach(json_object_get(index, "weight_map"), name, file)
    {
        const struct brig_st_tensor *t = brig_st_find(s, name);
        if (t == NULL || strcmp(brig_st_base_name(m->files[t->file].path), json_string_value(file)) != 0)
            return brig_fail_set(fail, BRIG_EFORMAT, "%s: tensor '%.150s' is not in %.100s", INDEX, name,
                                 json_string_value(file));
    }
    return 0;
}
