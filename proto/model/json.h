/*
 * JSON files of a checkpoint's folder, read with jansson: a whole file, or a text, and typed looks at keys. A
 * file is not trusted: its size is limited, doubled keys and invalid UTF-8 are refused, nesting is bounded
 * (jansson's 2048). Failures name the key and what stands there; the caller prefixes the file.
 */
#ifndef BRIG_PROTO_MODEL_JSON_H
#define BRIG_PROTO_MODEL_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/str.h"

/* The object at the top of a regular file, or of a text; anything else at the top fails. The result goes to
 * json_decref. max_bytes: a larger file is a failure. */
int brig_json_open(json_t **ret, const char *path, uint64_t max_bytes, struct brig_fail *fail);
int brig_json_parse(json_t **ret, const char *text, size_t n, struct brig_fail *fail);

/* "an array", "a string", ...; "nothing" for NULL. */
const char *brig_json_kind(const json_t *value);

/*
 * The value of `key` in an object. 1: it is there, *ret set. 0: it is absent or null, *ret untouched (so
 * that the caller's default stands). Negative: it is something else, said in one line. Strings and values
 * are borrowed from the object; a string may hold NUL bytes and has one after its end. f64 takes whole
 * numbers too and is finite; u64 takes only whole numbers from 0 on, as large as 2^63 - 1.
 */
int brig_json_str(const json_t *object, const char *key, struct brig_str *ret, struct brig_fail *fail);
int brig_json_u64(const json_t *object, const char *key, uint64_t *ret, struct brig_fail *fail);
int brig_json_f64(const json_t *object, const char *key, double *ret, struct brig_fail *fail);
int brig_json_bool(const json_t *object, const char *key, bool *ret, struct brig_fail *fail);
int brig_json_object(const json_t *object, const char *key, const json_t **ret, struct brig_fail *fail);
int brig_json_array(const json_t *object, const char *key, const json_t **ret, struct brig_fail *fail);

/* A value that is not reached by a key (an element of an array): the same checks, with `what` for the name
 * in the failure. 0 or negative; NULL and null fail. */
int brig_json_as_str(const json_t *value, const char *what, struct brig_str *ret, struct brig_fail *fail);
int brig_json_as_u64(const json_t *value, const char *what, uint64_t *ret, struct brig_fail *fail);
int brig_json_as_f64(const json_t *value, const char *what, double *ret, struct brig_fail *fail);

#endif
