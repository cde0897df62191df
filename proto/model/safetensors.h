/*
 * safetensors files and the folders that they lie in: the header of one file (safetensors_read.c), which
 * files a folder has (safetensors_files.c), and both joined with config.json (format_safetensors.c). Private
 * to this room.
 *
 * A file is a length (u64, little-endian), that many bytes of JSON, and the tensors' bytes: names go to
 * {"dtype", "shape", "data_offsets": [from, to)}, counted from the end of the JSON.
 */
#ifndef BRIG_PROTO_MODEL_SAFETENSORS_H
#define BRIG_PROTO_MODEL_SAFETENSORS_H

#include <jansson.h>

#include "proto/base/buf.h"
#include "proto/model/hub.h"
#include "proto/model/model.h"

/* Bytes: some 250,000 tensors. The format allows three times as much, but parsing takes 20 times that. */
#define BRIG_ST_MAX_HEADER (32u << 20)
#define BRIG_ST_MAX_DIMS   8u

struct brig_st_dtype {
    const char *name; /* "BF16" */
    unsigned bytes;
};

/* A tensor as the header states it; checked to lie in its file and to overlap no other. */
struct brig_st_tensor {
    char *name; /* brig_alloc'ed */
    const struct brig_st_dtype *dtype;
    uint32_t n_dims;                 /* 0: one number */
    uint64_t dims[BRIG_ST_MAX_DIMS]; /* rows first, as stated */
    uint32_t file;
    uint64_t offset, bytes; /* in the file */
};

/* The format's own memory of an open model. */
struct brig_st {
    struct brig_buf head; /* what the identity is made of: config.json, then each file's header */
    unsigned n, room;
    struct brig_st_tensor *tensors; /* of all files, sorted by name once all are read */
    char **names;                   /* [n_names] canonical names, owned */
    unsigned n_names;
    char *folder, *title;
    struct brig_hub_config config;
    const char *base; /* what stands before the text model's tensor names */
    struct brig_buf key_text, value_text;
};

/* What can be told from the first bytes: a length and the start of a JSON object. */
bool brig_st_probe(const uint8_t *head, size_t n);

/* Append the tensors of file number `file` of the model to s->tensors, and its header to s->head. Failures do
 * not name the file. */
int brig_st_read_header(struct brig_st *s, const struct brig_model *m, uint32_t file, struct brig_fail *fail);

/* Sort s->tensors by name; a name that comes twice is a failure. */
int brig_st_sort(struct brig_st *s, const struct brig_model *m, struct brig_fail *fail);

/* NULL when there is none; after brig_st_sort. */
const struct brig_st_tensor *brig_st_find(const struct brig_st *s, const char *name);

/* The folder of m->path (a folder, or a file in one) into s->folder, its name into s->title. */
int brig_st_folder(struct brig_st *s, const struct brig_model *m, struct brig_fail *fail);

/* Open the folder's weights into m->files: those of the index, or model.safetensors, or the one file that
 * m->path names. *ret_index is the parsed index (for json_decref), NULL without one. */
int brig_st_open_files(const struct brig_st *s, struct brig_model *m, json_t **ret_index,
                       struct brig_fail *fail);

/* Every tensor of the index lies in the file that it names. */
int brig_st_check_index(const struct brig_st *s, const struct brig_model *m, const json_t *index,
                        struct brig_fail *fail);

/* What a tensor of the files is in a checkpoint whose matrices may be quantised as s->config.quant says. */
enum brig_st_part {
    BRIG_ST_WHOLE, /* a tensor by itself */
    BRIG_ST_WORDS, /* the words of a packed matrix, which is called `name` */
    BRIG_ST_BESIDE /* lies beside such words, or says nothing */
};

/* After brig_st_sort. name is written for WORDS. (safetensors_packed.c) */
int brig_st_part_of(const struct brig_st *s, const struct brig_model *m, const struct brig_st_tensor *t,
                    enum brig_st_part *ret, char name[BRIG_HUB_NAME_BYTES], struct brig_fail *fail);

/* Type, shape and sides of the packed matrix that has these words into t, whose other members are set. */
int brig_st_take_packed(const struct brig_st *s, const struct brig_model *m,
                        const struct brig_st_tensor *words, struct brig_tensor *t, struct brig_fail *fail);

/* "FOLDER/NAME" in new memory; NULL when there is none. */
char *brig_st_path(const char *folder, const char *name);

/* The part of a path behind the last slash. */
const char *brig_st_base_name(const char *path);

#endif
