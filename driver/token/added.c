/*
 * Added tokens: one array sorted by spelling. A match narrows a range of it byte by byte, so thousands of
 * added tokens with a common beginning cost no more than a few.
 */
#include "driver/token/added.h"

#include <stdlib.h>
#include <string.h>

#include "driver/token/kind.h"
#include "proto/base/mem.h"

static int compare(const void *x, const void *y, void *ctx)
{
    const struct brig_str *tokens = ctx;
    uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
    struct brig_str a = tokens[i], b = tokens[j];
    int c = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    if (c != 0)
        return c;
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return i < j ? -1 : i > j;
}

static bool is_added(const struct brig_vocab *v, uint32_t id)
{
    return (v->types[id] == BRIG_TOKEN_CONTROL || v->types[id] == BRIG_TOKEN_USER) && v->tokens[id].len > 0;
}

int brig_added_init(struct brig_added *a, const struct brig_vocab *vocab, struct brig_fail *fail)
{
    *a = (struct brig_added){.tokens = vocab->tokens};
    if (vocab->types == NULL)
        return 0;
    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        a->n += is_added(vocab, id);
    a->ids = brig_alloc(a->n, sizeof *a->ids);
    if (a->ids == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u added tokens", a->n);
    uint32_t n = 0;
    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        if (is_added(vocab, id)) {
            a->ids[n++] = id;
            a->first[(unsigned char)vocab->tokens[id].ptr[0]] = true;
        }
    qsort_r(a->ids, n, sizeof *a->ids, compare, (void *)vocab->tokens);
    return 0;
}

void brig_added_release(struct brig_added *a)
{
    brig_free(a->ids);
    *a = (struct brig_added){0};
}

/* The first of [low, high), all alike in their first `depth` bytes, whose byte at depth is at least `least`
 * (a token that ends there comes before all others). */
static uint32_t bound(const struct brig_added *a, uint32_t low, uint32_t high, size_t depth, int least)
{
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        struct brig_str t = a->tokens[a->ids[mid]];
        int byte = depth < t.len ? (unsigned char)t.ptr[depth] : -1;
        if (byte < least)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The longest added token at the start of text: its bytes, or 0. */
static size_t match(const struct brig_added *a, const char *text, size_t n, uint32_t *ret_id)
{
    uint32_t low = 0, high = a->n;
    size_t best = 0;
    for (size_t depth = 0; depth < n; depth++) {
        int byte = (unsigned char)text[depth];
        low = bound(a, low, high, depth, byte);
        high = bound(a, low, high, depth, byte + 1);
        if (low == high)
            break;
        if (a->tokens[a->ids[low]].len == depth + 1) {
            best = depth + 1;
            *ret_id = a->ids[low];
        }
    }
    return best;
}

bool brig_added_find(const struct brig_added *a, const char *text, size_t n, size_t from, size_t *ret_at,
                     size_t *ret_bytes, uint32_t *ret_id)
{
    for (size_t i = from; i < n && a->n > 0; i++) {
        if (!a->first[(unsigned char)text[i]])
            continue;
        uint32_t id = 0;
        size_t bytes = match(a, text + i, n - i, &id);
        if (bytes > 0) {
            *ret_at = i;
            *ret_bytes = bytes;
            *ret_id = id;
            return true;
        }
    }
    return false;
}
