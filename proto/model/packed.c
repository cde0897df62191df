/* Packed matrices: sizes of what lies beside them, the order of visits, and the definition of their weights.
 */
#include "proto/model/packed.h"

#include <inttypes.h>
#include <string.h>

#include "proto/base/size.h"

static uint32_t load_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

uint64_t brig_packed_groups(uint64_t n_cols, uint32_t group_cols)
{
    return n_cols / group_cols + (n_cols % group_cols != 0);
}

static int check_size(const struct brig_sides *s, enum brig_side_id id, const char *what, uint64_t groups,
                      uint64_t group_bytes, struct brig_fail *fail)
{
    uint64_t want, bytes = s->side[id].bytes;
    if (brig_mul_u64(groups, group_bytes, &want) && bytes == want)
        return 0;
    return brig_fail_set(fail, BRIG_EFORMAT,
                         "its %s have %" PRIu64 " bytes, groups of %u columns need %" PRIu64
                         " times %" PRIu64,
                         what, bytes, s->group_cols, groups, group_bytes);
}

int brig_sides_check(const struct brig_sides *s, const struct brig_type *type, uint64_t rows, uint64_t cols,
                     struct brig_fail *fail)
{
    const struct brig_packing *p = type->packing;
    if (p == NULL)
        return s->group_cols == 0 && brig_sides_bytes(s) == 0
                   ? 0
                   : brig_fail_set(fail, BRIG_EFORMAT, "type %s has scales of its own", type->name);
    uint32_t in_word = 32 / p->bits;
    if (s->group_cols == 0 || s->zero_bias > 1 || s->scale_type == NULL || s->scale_type->block_elems != 1)
        return brig_fail_set(fail, BRIG_EFORMAT, "type %s lacks a group size or its scales' type",
                             type->name);
    if (rows == 0 || rows % in_word != 0 || cols == 0 || cols > UINT32_MAX || cols % type->block_elems != 0)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "%s needs rows by the %u and columns by the %u, not %" PRIu64 " and %" PRIu64,
                             type->name, in_word, type->block_elems, rows, cols);
    uint64_t groups = brig_packed_groups(cols, s->group_cols), scale_bytes;
    if (!brig_mul_u64(rows, s->scale_type->block_bytes, &scale_bytes))
        return brig_fail_set(fail, BRIG_EFORMAT, "it is larger than any file can be");
    int r = check_size(s, BRIG_SIDE_SCALES, "scales", groups, scale_bytes, fail);
    if (r < 0 || (r = check_size(s, BRIG_SIDE_ZEROS, "zeros", groups, rows / in_word * 4, fail)) < 0)
        return r;
    const struct brig_side *order = &s->side[BRIG_SIDE_GROUPS];
    if (order->bytes != 0 && order->bytes != 4 * cols)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "the groups of its columns have %" PRIu64 " bytes, not %" PRIu64, order->bytes,
                             4 * cols);
    return 0;
}

uint64_t brig_sides_bytes(const struct brig_sides *s)
{
    uint64_t sum = 0; /* fits: each lies in a file */
    for (unsigned i = 0; i < BRIG_SIDE_COUNT; i++)
        sum += s->side[i].bytes;
    return sum;
}

int64_t brig_packed_sort(const void *groups, uint32_t n_cols, uint32_t n_groups, uint32_t *order,
                         uint32_t *starts)
{
    const uint8_t *p = groups;
    memset(starts, 0, ((size_t)n_groups + 1) * sizeof *starts);
    for (uint32_t c = 0; c < n_cols; c++) {
        uint32_t g = load_u32(p + (size_t)4 * c);
        if (g >= n_groups) /* as signed: negative ones too */
            return c;
        starts[g + 1]++;
    }
    for (uint32_t g = 0; g < n_groups; g++)
        starts[g + 1] += starts[g];
    for (uint32_t c = 0; c < n_cols; c++) /* starts[g] runs on to the end of g, which is the start of g + 1 */
        order[starts[load_u32(p + (size_t)4 * c)]++] = c;
    memmove(starts + 1, starts, (size_t)n_groups * sizeof *starts);
    starts[0] = 0;
    return -1;
}

uint32_t brig_packed_group(const struct brig_packed *p, uint64_t visit, uint64_t *ret_end)
{
    if (p->order == NULL) {
        uint32_t g = (uint32_t)(visit / p->group_cols);
        uint64_t end = ((uint64_t)g + 1) * p->group_cols;
        *ret_end = end < p->cols ? end : p->cols;
        return g;
    }
    uint32_t low = 0, high = p->n_groups; /* starts[low] <= visit < starts[high] */
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (p->starts[mid] <= visit)
            low = mid;
        else
            high = mid;
    }
    *ret_end = p->starts[low + 1];
    return low;
}

static uint32_t integer(const uint8_t *words, uint64_t word, unsigned place, uint32_t bits)
{
    return (load_u32(words + 4 * word) >> (place * bits)) & ((1u << bits) - 1);
}

void brig_packed_scales(const struct brig_packed *p, uint32_t group, uint64_t row, unsigned n, float *scales,
                        int32_t *zeros)
{
    uint32_t bits = p->packing->bits, in_word = 32 / bits;
    uint64_t words = p->rows / in_word;
    p->scale_type->dequant(p->scales + (group * p->rows + row) * p->scale_type->block_bytes, scales, n);
    for (unsigned i = 0; i < n; i++) {
        uint64_t r = row + i;
        uint32_t z = integer(p->zeros, group * words + r / in_word, p->packing->place[r % in_word], bits);
        zeros[i] =
            (int32_t)((z + p->zero_bias) & ((1u << bits) - 1)); /* a zero of 0, less 1, lies as all ones */
    }
}

void brig_packed_dequant(const struct brig_packed *p, uint64_t row, uint64_t visit, size_t n, float *dst)
{
    const struct brig_packing *k = p->packing;
    uint32_t in_word = 32 / k->bits;
    uint64_t last = visit + n, end;
    while (visit < last) {
        float scale;
        int32_t zero;
        brig_packed_scales(p, brig_packed_group(p, visit, &end), row, 1, &scale, &zero);
        for (; visit < end && visit < last; visit++) {
            uint64_t col = p->order != NULL ? p->order[visit] : visit;
            uint64_t word =
                k->by_rows ? col * (p->rows / in_word) + row / in_word : col / in_word * p->rows + row;
            unsigned place = k->by_rows ? k->place[row % in_word] : (unsigned)(col % in_word);
            *dst++ = (float)((int32_t)integer(p->words, word, place, k->bits) - zero) * scale;
        }
    }
}
