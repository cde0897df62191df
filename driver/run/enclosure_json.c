/* What the kernel counted for a run under a budget. */
#include "driver/run/enclosure_json.h"

#include <string.h>

#include "driver/run/json.h"

static json_t *known_or_null(uint64_t v)
{
    return v == BRIG_ENCLOSURE_UNKNOWN ? json_null() : json_integer((json_int_t)v);
}

json_t *brig_enclosure_json(const struct brig_enclosure *e)
{
    struct brig_enclosure_figures f;
    if (e == NULL || e->way == NULL)
        return json_null();
    brig_enclosure_read(e, &f);
    json_t *o = json_object();
    json_object_set_new(o, "way", json_string(e->way->name));
    json_object_set_new(o, "group", e->dir[0] != '\0' ? brig_json_text(e->dir, strlen(e->dir)) : json_null());
    json_object_set_new(o, "limit_bytes", json_integer((json_int_t)e->bytes));
    json_object_set_new(o, "peak_bytes", known_or_null(f.peak_bytes));
    json_object_set_new(o, "swap_bytes", known_or_null(f.swap_bytes));
    json_object_set_new(o, "oom_kills", known_or_null(f.oom_kills));
    return o;
}
