/* What fuzz targets do with a model that could be opened. */
#ifndef BRIG_TESTS_FUZZ_USE_MODEL_H
#define BRIG_TESTS_FUZZ_USE_MODEL_H

#include <stdint.h>
#include <stdlib.h>

#include "proto/base/mem.h"
#include "proto/model/slice.h"

#define USE_MAX_CELLS 64u

static inline void use_check(int good)
{
    if (!good)
        abort();
}

static inline void use_cells(const struct brig_model *m, struct brig_cells cells)
{
    struct brig_slice s, back;
    struct brig_buf b = {0};
    struct brig_fail fail;
    struct brig_range *ranges;
    unsigned n;
    use_check(brig_slice_build(&s, m, cells, &fail) == 0);
    use_check(brig_slice_encode(&s, &b) == 0);
    use_check(brig_slice_decode(&back, b.data, b.len, &fail) == 0);
    use_check(brig_slice_ranges(&back, 4096, &ranges, &n) == 0);
    for (unsigned i = 0; i < n; i++)
        use_check(ranges[i].offset + ranges[i].bytes < m->files[ranges[i].file].bytes + 4096);
    brig_free(ranges);
    brig_slice_release(&s);
    brig_slice_release(&back);
    brig_buf_release(&b);
}

/* Everything that a program does with an open model without reading its weights. */
static inline void use_model(const struct brig_model *m)
{
    const char *key, *value;
    struct brig_cells cells[USE_MAX_CELLS];
    unsigned n_cells = m->desc.n_layers + 1;
    for (unsigned i = 0; brig_model_meta(m, i, &key, &value); i++)
        use_check(key[0] != '\0' && value != NULL);
    for (uint32_t i = 0; i < m->vocab.n_tokens; i++) /* every byte that is lent out can be read */
        for (size_t j = 0; j < m->vocab.tokens[i].len; j++)
            (void)*(const volatile char *)&m->vocab.tokens[i].ptr[j];
    for (uint32_t c = 0; c < n_cells && c < USE_MAX_CELLS; c++)
        use_cells(m, (struct brig_cells){c, c + 1});
    use_cells(m, (struct brig_cells){0, n_cells});
    for (unsigned k = 1; k <= n_cells && k <= USE_MAX_CELLS; k++)
        use_check(brig_slice_cut(m, k, cells, NULL) == 0);
}

/* What brig_model_open gave: a model, which is used and closed, or a failure in words. */
static inline void use_result(int r, struct brig_model *m, const struct brig_fail *fail)
{
    if (r == 0) {
        use_model(m);
        brig_model_close(m);
    } else {
        use_check(fail->text[0] != '\0' && fail->code != BRIG_EINTERNAL);
    }
}

#endif
