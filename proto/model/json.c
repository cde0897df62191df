/* JSON files of a checkpoint's folder. */
#include "proto/model/json.h"

#include <inttypes.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/model/private.h"

/* "\u0000" is a token of real vocabularies; lengths go with every string. */
#define PARSE_FLAGS (JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL)

int brig_json_parse(json_t **ret, const char *text, size_t n, struct brig_fail *fail)
{
    json_error_t error;
    json_t *value = json_loadb(text, n, PARSE_FLAGS, &error);
    if (value == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT, "line %d, column %d: %s", error.line, error.column,
                             error.text);
    if (!json_is_object(value)) {
        int r = brig_fail_set(fail, BRIG_EFORMAT, "it holds %s, an object is wanted", brig_json_kind(value));
        json_decref(value);
        return r;
    }
    *ret = value;
    return 0;
}

int brig_json_open(json_t **ret, const char *path, uint64_t max_bytes, struct brig_fail *fail)
{
    int fd;
    uint64_t bytes;
    int r = brig_model_file_open(path, &fd, &bytes, fail);
    if (r < 0)
        return r;
    char *text = NULL;
    if (bytes > max_bytes || bytes > SIZE_MAX)
        r = brig_fail_set(fail, BRIG_ELIMIT, "it has %" PRIu64 " bytes, more than %" PRIu64, bytes,
                          max_bytes);
    else if ((text = brig_alloc((size_t)bytes, 1)) == NULL)
        r = brig_fail_set(fail, BRIG_ENOMEM, "no memory for its %" PRIu64 " bytes", bytes);
    else if ((r = brig_model_file_read(fd, text, (size_t)bytes, 0, fail)) == 0)
        r = brig_json_parse(ret, text, (size_t)bytes, fail);
    brig_free(text);
    close(fd);
    return r;
}

const char *brig_json_kind(const json_t *value)
{
    if (value == NULL)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "a whole number";
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}

static int is_wrong(const json_t *value, const char *what, const char *wanted, struct brig_fail *fail)
{
    return brig_fail_set(fail, BRIG_EFORMAT, "%s is %s, %s is wanted", what, brig_json_kind(value), wanted);
}

int brig_json_as_str(const json_t *value, const char *what, struct brig_str *ret, struct brig_fail *fail)
{
    if (!json_is_string(value))
        return is_wrong(value, what, "a string", fail);
    *ret = (struct brig_str){json_string_value(value), json_string_length(value)};
    return 0;
}

int brig_json_as_u64(const json_t *value, const char *what, uint64_t *ret, struct brig_fail *fail)
{
    if (!json_is_integer(value))
        return is_wrong(value, what, "a whole number", fail);
    if (json_integer_value(value) < 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s is %" JSON_INTEGER_FORMAT ", less than 0", what,
                             json_integer_value(value));
    *ret = (uint64_t)json_integer_value(value);
    return 0;
}

int brig_json_as_f64(const json_t *value, const char *what, double *ret, struct brig_fail *fail)
{
    if (!json_is_number(value))
        return is_wrong(value, what, "a number", fail);
    *ret = json_number_value(value); /* jansson refuses what is not finite */
    return 0;
}

/* NULL when the key is absent or null. */
static const json_t *find(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

int brig_json_str(const json_t *object, const char *key, struct brig_str *ret, struct brig_fail *fail)
{
    const json_t *value = find(object, key);
    int r = value == NULL ? 0 : brig_json_as_str(value, key, ret, fail);
    return r < 0 ? r : value != NULL;
}

int brig_json_u64(const json_t *object, const char *key, uint64_t *ret, struct brig_fail *fail)
{
    const json_t *value = find(object, key);
    int r = value == NULL ? 0 : brig_json_as_u64(value, key, ret, fail);
    return r < 0 ? r : value != NULL;
}

int brig_json_f64(const json_t *object, const char *key, double *ret, struct brig_fail *fail)
{
    const json_t *value = find(object, key);
    int r = value == NULL ? 0 : brig_json_as_f64(value, key, ret, fail);
    return r < 0 ? r : value != NULL;
}

int brig_json_bool(const json_t *object, const char *key, bool *ret, struct brig_fail *fail)
{
    const json_t *value = find(object, key);
    if (value == NULL)
        return 0;
    if (!json_is_boolean(value))
        return is_wrong(value, key, "true or false", fail);
    *ret = json_is_true(value);
    return 1;
}

int brig_json_object(const json_t *object, const char *key, const json_t **ret, struct brig_fail *fail)
{
    const json_t *value = find(object, key);
    if (value == NULL)
        return 0;
    if (!json_is_object(value))
        return is_wrong(value, key, "an object", fail);
    *ret = value;
    return 1;
}

int brig_json_array(const json_t *object, const char *key, const json_t **ret, struct brig_fail *fail)
{
    const json_t *value = find(object, key);
    if (value == NULL)
        return 0;
    if (!json_is_array(value))
        return is_wrong(value, key, "an array", fail);
    *ret = value;
    return 1;
}
