/*
 * A checkpoint, described and not loaded: description, tensor table, tokenizer data, identity.
 *
 * brig_model_open reads only metadata. The struct is read-only afterwards and may be shared by threads.
 */
#ifndef BRIG_PROTO_MODEL_MODEL_H
#define BRIG_PROTO_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/str.h"
#include "proto/model/desc.h"
#include "proto/model/packed.h"

#define BRIG_IDENTITY_BYTES 32
#define BRIG_MAX_FILES      1024u

struct brig_model_file {
    char *path;
    int fd; /* open for reading, close-on-exec */
    uint64_t bytes;
    /* What the file says of itself, when it is a part of a Brigade bundle: the SHA-256 of the whole file,
     * read with these digits as zeros (64 hex digits at byte sha256_at); len 0: nothing. Borrowed. */
    struct brig_str sha256;
    uint64_t sha256_at;
};

/* A tensor as the checkpoint states it. */
struct brig_tensor {
    struct brig_str name;     /* as GGUF calls it, whatever the format */
    struct brig_str own_name; /* as the checkpoint calls it: for messages */
    const struct brig_type *type;
    uint32_t n_dims;  /* 1 to 4 */
    uint64_t dims[4]; /* dims[0] is the fastest: columns; missing ones are 1 */
    uint32_t file;    /* index into files */
    uint64_t offset;  /* in that file, any alignment */
    uint64_t bytes;
    struct brig_sides sides; /* of a packed type: its scales and what else lies beside the words */
    enum brig_role role;     /* BRIG_ROLE_COUNT for a tensor that the family has no use for */
    uint32_t layer;          /* for layer roles */
    uint32_t expert;         /* for an expert's role */
};

struct brig_rules;

/* The tokenizer's data as the file states it; all strings borrowed from the model. n_tokens 0: no tokenizer.
 */
struct brig_vocab {
    struct brig_str model; /* "gpt2": byte-level BPE; "llama": SentencePiece */
    struct brig_str pre;   /* pre-tokenizer kind, len 0 when not stated */
    uint32_t n_tokens;
    const struct brig_str *tokens;
    const int32_t *types; /* [n_tokens] GGUF token types (1 normal, 2 unknown, 3 control, 4 user defined,
                             5 unused, 6 byte), NULL when not stated */
    const float
        *scores; /* [n_tokens] the higher, the sooner a pair becomes this token; NULL when not stated */
    uint32_t n_merges;
    const struct brig_str *merges;     /* "left right"; NULL when pairs are given */
    const struct brig_str (*pairs)[2]; /* [n_merges] left and right; NULL when merges are given */
    int64_t bos, eos, eot, pad, unk;   /* -1 when not stated */
    uint32_t n_ends;                   /* more tokens that end a turn or a text */
    const uint32_t *ends;
    bool add_bos, add_eos;
    bool add_space_prefix;          /* SentencePiece: a space before the text; true when not stated */
    bool remove_extra_spaces;       /* SentencePiece: none at the ends of a text, one between words */
    bool has_charsmap;              /* SentencePiece: characters are mapped by a table that is not read */
    struct brig_str chat_template;  /* len 0: none */
    const struct brig_rules *rules; /* the steps that a tokenizer.json states (driver/token/rules.h); NULL
                                       for GGUF, whose kinds have theirs */
};

struct brig_part_names;

/* A bundle of a model in the hub's layout (hub_layout) says so in general.architecture too, before the
 * family. */
#define BRIG_HUB_ARCH_PREFIX "brigade-"

struct brig_model {
    const char *path;     /* as opened */
    const char *format;   /* row of the format table: "gguf" */
    struct brig_str name; /* general.name or the file's name */
    /* Weights lie as on the hub where GGUF's differ: rows of queries and keys in the order that turns by
     * halves, norms without the 1 that gemma3 adds. For families. */
    bool hub_layout;
    struct brig_desc desc;
    unsigned n_files;
    struct brig_model_file *files;
    unsigned n_tensors;
    struct brig_tensor *tensors;
    struct brig_part_names *part_names; /* of tensors that were split (family_parts.c) */
    struct brig_vocab vocab;
    /* SHA-256 of metadata, tensor table, file size, and the first and last 4 KiB of each tensor. */
    uint8_t identity[BRIG_IDENTITY_BYTES];
    uint64_t n_params;      /* elements of all tensors that are used, tied table once */
    uint64_t weights_bytes; /* bytes of the same */
    void *priv;             /* the format's own memory */
};

/* Opens by what the file holds, never by its name. Every count, length and offset is checked: a tensor that
 * is missing, doubled, unknown in type, shape or place, or a vocabulary that does not fit, fails here and is
 * named. Tensors that cannot matter (unknown names) are kept with role BRIG_ROLE_COUNT. */
int brig_model_open(struct brig_model **ret, const char *path, struct brig_fail *fail);
void brig_model_close(struct brig_model *m); /* NULL allowed */

/* The tensor of a role; layer is ignored for whole-model roles. NULL when there is none. With a tied table
 * BRIG_ROLE_OUTPUT gives the token table. brig_model_expert is for the roles of experts too, whose number
 * other roles ignore; brig_model_tensor gives the first expert's. */
const struct brig_tensor *brig_model_tensor(const struct brig_model *m, enum brig_role role, uint32_t layer);
const struct brig_tensor *brig_model_expert(const struct brig_model *m, enum brig_role role, uint32_t layer,
                                            uint32_t expert);

/* Exactly n bytes of a file of the model; a failure names the file. */
int brig_model_read(const struct brig_model *m, uint32_t file, void *dst, size_t n, uint64_t offset,
                    struct brig_fail *fail);

/* Metadata as (key, printable value) pairs for `inspect`; long arrays are shortened. Index from 0; false when
 * done. Strings are borrowed until the next call on the same model from any thread (single-threaded use). */
bool brig_model_meta(const struct brig_model *m, unsigned index, const char **key, const char **value);

#endif
