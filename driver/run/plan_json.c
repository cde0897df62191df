/* Plans as JSON. */
#include "driver/run/plan_json.h"

static json_t *whole(uint64_t v)
{
    return json_integer((json_int_t)v);
}

static json_t *real_or_null(double v)
{
    return v > 0 ? json_real(v) : json_null();
}

static json_t *memory_json(const struct brig_plan *p)
{
    json_t *o = json_object();
    for (unsigned i = 0; i < BRIG_PLAN_KINDS; i++)
        json_object_set_new(o, brig_plan_kind_name(i), whole(p->bytes[i]));
    return o;
}

json_t *brig_plan_json(const struct brig_plan *p)
{
    json_t *o = json_object();
    json_object_set_new(o, "budget_bytes", p->budget_bytes != 0 ? whole(p->budget_bytes) : json_null());
    json_object_set_new(o, "least_bytes", whole(p->least_bytes));
    json_object_set_new(o, "total_bytes", whole(p->total_bytes));
    json_object_set_new(o, "memory", memory_json(p));
    json_object_set_new(o, "residency", json_string(brig_residency_at(p->hold)->name));
    json_object_set_new(o, "shards", whole(p->n_shards));
    json_object_set_new(o, "alive", whole(p->n_alive));
    json_object_set_new(o, "ahead", whole(p->n_ahead));
    json_object_set_new(o, "turn_bytes", p->turn_bytes != 0 ? whole(p->turn_bytes) : json_null());
    json_object_set_new(o, "ctx", whole(p->ctx));
    json_object_set_new(o, "rows", whole(p->max_rows));
    json_object_set_new(o, "ring_bytes", whole(p->ring_bytes));
    json_object_set_new(o, "token_bytes", whole(p->token_bytes));
    json_object_set_new(o, "held_bytes", whole(p->held_bytes));
    json_object_set_new(o, "read_bytes", whole(brig_plan_read_bytes(p)));
    json_object_set_new(o, "expert_hit_rate", p->hit_rate > 0 ? json_real(p->hit_rate) : json_null());
    json_object_set_new(o, "memory_bytes_s", real_or_null(p->speed.memory_bytes_s));
    json_object_set_new(o, "disk_bytes_s", real_or_null(p->speed.disk_bytes_s));
    json_object_set_new(o, "beside_memory_bytes_s", real_or_null(p->speed.beside_memory_bytes_s));
    json_object_set_new(o, "beside_disk_bytes_s", real_or_null(p->speed.beside_disk_bytes_s));
    json_object_set_new(o, "threads", whole(p->speed.threads));
    json_object_set_new(o, "token_s", real_or_null(p->seconds_a_token));
    json_object_set_new(o, "regime",
                        p->seconds_a_token > 0 ? json_string(brig_plan_regime_name(p->regime)) : json_null());
    return o;
}
