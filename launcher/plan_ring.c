/* How large a ring must be and is best, for streaming a line (shard/weights/stream). */
#include "launcher/plan_parts.h"

#define PIECE ((uint64_t)4 << 20)

uint64_t brig_plan_ring_least(const struct brig_plan_line *l)
{
    uint64_t piece = l->largest < PIECE ? brig_plan_pages(l->largest) + 2 * BRIG_PLAN_PAGE : PIECE;
    return 4 * piece;
}

uint64_t brig_plan_ring_best(const struct brig_plan_line *l)
{
    return 4 * brig_plan_ring_least(l);
}
