/* brigade inspect --json. */
#include "driver/front/inspect.h"

#include <string.h>

#include "driver/run/json.h"
#include "proto/model/slice.h"

static json_t *text(struct brig_str s)
{
    return brig_json_text(s.ptr == NULL ? "" : s.ptr, s.len);
}

static json_t *whole(uint64_t v)
{
    return json_integer((json_int_t)v);
}

static json_t *vocab_json(const struct brig_model *m)
{
    const struct brig_vocab *v = &m->vocab;
    if (v->n_tokens == 0)
        return json_null();
    json_t *o = json_object();
    json_object_set_new(o, "model", text(v->model));
    json_object_set_new(o, "pre", v->pre.len > 0 ? text(v->pre) : json_null());
    json_object_set_new(o, "n_tokens", whole(v->n_tokens));
    json_object_set_new(o, "n_merges", whole(v->n_merges));
    json_object_set_new(o, "bos", json_integer(v->bos));
    json_object_set_new(o, "eos", json_integer(v->eos));
    json_object_set_new(o, "eot", json_integer(v->eot));
    json_object_set_new(o, "pad", json_integer(v->pad));
    json_object_set_new(o, "unk", json_integer(v->unk));
    json_object_set_new(o, "add_bos", json_boolean(v->add_bos));
    json_object_set_new(o, "add_eos", json_boolean(v->add_eos));
    json_object_set_new(o, "chat_template", json_string(brig_inspect_template(m)));
    return o;
}

static json_t *tensor_json(const struct brig_model *m, const struct brig_tensor *t)
{
    json_t *o = json_object(), *shape = json_array();
    for (unsigned d = t->n_dims; d-- > 0;) /* rows first */
        json_array_append_new(shape, whole(t->dims[d]));
    json_object_set_new(o, "name", text(t->name));
    json_object_set_new(o, "own_name", text(t->own_name));
    json_object_set_new(o, "type", json_string(t->type->name));
    json_object_set_new(o, "shape", shape);
    json_object_set_new(o, "file", brig_json_text(m->files[t->file].path, strlen(m->files[t->file].path)));
    json_object_set_new(o, "offset", whole(t->offset));
    json_object_set_new(o, "bytes", whole(t->bytes));
    json_object_set_new(o, "beside_bytes", whole(brig_sides_bytes(&t->sides)));
    json_object_set_new(o, "role",
                        t->role == BRIG_ROLE_COUNT ? json_null() : json_string(brig_role_name(t->role)));
    bool of_layer = t->role < BRIG_ROLE_LAYER_COUNT;
    json_object_set_new(o, "layer", of_layer ? whole(t->layer) : json_null());
    json_object_set_new(o, "expert",
                        of_layer && t->role >= BRIG_ROLE_EXPERT_FIRST ? whole(t->expert) : json_null());
    return o;
}

static json_t *meta_json(const struct brig_model *m)
{
    json_t *o = json_object();
    const char *key, *value;
    for (unsigned i = 0; brig_model_meta(m, i, &key, &value); i++) {
        json_t *name = brig_json_text(key, strlen(key)); /* valid UTF-8 whatever the file says */
        if (name != NULL)
            json_object_set_new(o, json_string_value(name), brig_json_text(value, strlen(value)));
        json_decref(name);
    }
    return o;
}

int brig_inspect_json(const struct brig_model *m, uint64_t token_bytes, struct brig_fail *fail)
{
    char hex[2 * BRIG_IDENTITY_BYTES + 1];
    uint32_t n = m->desc.n_layers;
    json_t *o = json_object(), *layers = json_array(), *tensors = json_array();
    brig_inspect_hex(m->identity, BRIG_IDENTITY_BYTES, hex);
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(layers, whole(brig_slice_cells_bytes(m, (struct brig_cells){i, i + 1})));
    for (unsigned i = 0; i < m->n_tensors; i++)
        json_array_append_new(tensors, tensor_json(m, &m->tensors[i]));
    json_object_set_new(o, "schema", json_integer(1));
    json_object_set_new(o, "path", brig_json_text(m->path, strlen(m->path)));
    json_object_set_new(o, "format", json_string(m->format));
    json_object_set_new(o, "name", text(m->name));
    json_object_set_new(o, "arch", json_string(m->desc.arch));
    json_object_set_new(o, "identity", json_string(hex));
    json_object_set_new(o, "desc", brig_inspect_desc_json(&m->desc));
    json_object_set_new(o, "vocab", vocab_json(m));
    json_object_set_new(o, "n_params", whole(m->n_params));
    json_object_set_new(o, "weights_bytes", whole(m->weights_bytes));
    json_object_set_new(o, "bytes_per_token", whole(token_bytes));
    json_object_set_new(o, "layer_bytes", layers);
    json_object_set_new(o, "head_bytes", whole(brig_slice_cells_bytes(m, (struct brig_cells){n, n + 1})));
    json_object_set_new(o, "tensors", tensors);
    json_object_set_new(o, "metadata", meta_json(m));
    int r = brig_json_print(o, fail);
    json_decref(o);
    return r;
}
