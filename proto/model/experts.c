/* Sizes of a cache of experts. */
#include "proto/model/experts.h"

#include "proto/base/size.h"

static bool is_streamed_expert(const struct brig_slice_tensor *t)
{
    return t->role >= BRIG_ROLE_EXPERT_FIRST && t->role < BRIG_ROLE_LAYER_COUNT &&
           t->hold == BRIG_HOLD_STREAM;
}

bool brig_slice_expert_sizes(const struct brig_slice *s, uint64_t align, struct brig_expert_sizes *ret)
{
    uint64_t most[BRIG_EXPERT_PARTS] = {0}, n[BRIG_EXPERT_PARTS] = {0};
    *ret = (struct brig_expert_sizes){.align = align};
    for (unsigned i = 0; i < s->n_tensors; i++) {
        const struct brig_slice_tensor *t = &s->tensors[i];
        if (!is_streamed_expert(t))
            continue;
        uint64_t bytes = brig_align_up(t->offset + t->bytes, align) - (t->offset & ~(align - 1));
        unsigned part = t->role - BRIG_ROLE_EXPERT_FIRST;
        most[part] = most[part] > bytes ? most[part] : bytes;
        n[part]++;
    }
    for (unsigned i = 0; i < BRIG_EXPERT_PARTS; i++) {
        ret->part_at[i] = ret->slot_bytes;
        ret->slot_bytes += most[i];
        ret->n_experts = ret->n_experts > n[i] ? ret->n_experts : n[i];
    }
    return ret->n_experts > 0;
}

int brig_slice_expert_slots(const struct brig_slice *s, const struct brig_expert_sizes *sizes, uint32_t *ret,
                            struct brig_fail *fail)
{
    uint64_t bytes = s->stream.expert_cache_bytes, twice = 2 * (uint64_t)s->desc.n_experts_used;
    uint64_t n = bytes / sizes->slot_bytes;
    if (bytes == 0)
        n = sizes->n_experts / 4 > twice ? sizes->n_experts / 4 : twice;
    if (n == 0)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "a cache of experts of %llu bytes has no room for one: %llu are needed",
                             (unsigned long long)bytes, (unsigned long long)sizes->slot_bytes);
    n = n < sizes->n_experts ? n : sizes->n_experts;
    *ret = (uint32_t)n;
    return 0;
}
