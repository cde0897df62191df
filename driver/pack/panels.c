/* Rows into panels and back. */
#include "driver/pack/panels.h"

#include <string.h>

#include "proto/base/mem.h"
#include "proto/model/r16.h"

int brig_pack_panels_open(struct brig_pack_panels *p, const struct brig_type *type,
                          const struct brig_tensor *t, struct brig_fail *fail)
{
    *p = (struct brig_pack_panels){.number = UINT64_MAX};
    if (type->native == NULL)
        return 0;
    p->row_bytes = brig_type_row_bytes(type, t->dims[0]);
    p->panel_bytes = (size_t)(BRIG_R16_ROWS * p->row_bytes); /* fits: the tensor has as many at least */
    p->rows = brig_alloc(2, p->panel_bytes);
    if (p->rows == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for 16 rows of tensor '%.*s'", (int)t->name.len,
                             t->name.ptr);
    p->panel = p->rows + p->panel_bytes;
    p->type = type;
    return 0;
}

void brig_pack_panels_release(struct brig_pack_panels *p)
{
    brig_free(p->rows);
    *p = (struct brig_pack_panels){0};
}

int brig_pack_panels_read(struct brig_pack_panels *p, const struct brig_model *m, const struct brig_tensor *t,
                          uint64_t at, void *dst, size_t n, struct brig_fail *fail)
{
    uint8_t *to = dst;
    while (n > 0) {
        uint64_t number = at / p->panel_bytes;
        size_t from = (size_t)(at % p->panel_bytes), step = p->panel_bytes - from;
        if (number != p->number) {
            int r = brig_model_read(m, t->file, p->panel, p->panel_bytes, t->offset + number * p->panel_bytes,
                                    fail);
            if (r < 0)
                return r;
            brig_r16_split(p->type, p->panel, p->row_bytes, p->rows);
            p->number = number;
        }
        step = n < step ? n : step;
        memcpy(to, p->rows + from, step);
        to += step;
        at += step;
        n -= step;
    }
    return 0;
}

size_t brig_pack_panels_add(struct brig_pack_panels *p, const void *bytes, size_t n, const void **ret_panel)
{
    size_t room = p->panel_bytes - p->used, step = n < room ? n : room;
    memcpy(p->rows + p->used, bytes, step);
    p->used += step;
    *ret_panel = NULL;
    if (p->used == p->panel_bytes) {
        brig_r16_join(p->type, p->rows, p->row_bytes, p->panel);
        *ret_panel = p->panel;
        p->used = 0;
    }
    return step;
}
