/* The table of KV cache types. */
#include "proto/model/kv_type.h"

#include <string.h>

static const struct brig_kv_type types[] = {
#define BRIG_KV_TYPE(id, name, help) {name, help},
#include "proto/model/kv_type.def"
#undef BRIG_KV_TYPE
};

const struct brig_kv_type *brig_kv_type_at(unsigned i)
{
    return i < BRIG_KV_COUNT ? &types[i] : NULL;
}

bool brig_kv_type_by_name(const char *name, enum brig_kv_id *ret)
{
    for (unsigned i = 0; i < BRIG_KV_COUNT; i++)
        if (strcmp(types[i].name, name) == 0) {
            *ret = (enum brig_kv_id)i;
            return true;
        }
    return false;
}

const char *brig_kv_type_name(unsigned id)
{
    return id < BRIG_KV_COUNT ? types[id].name : "unknown";
}

uint64_t brig_kv_row_bytes(enum brig_kv_id id, uint32_t head_dim)
{
    if (id == BRIG_KV_Q8)
        return brig_kv_quant_bytes(head_dim) + brig_kv_quant_bytes(head_dim) / BRIG_KV_GROUP * sizeof(float);
    return head_dim * (uint64_t)(id == BRIG_KV_F32 ? sizeof(float) : sizeof(uint16_t));
}
