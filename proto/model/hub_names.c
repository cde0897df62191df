/* Tensor names of the hub and of GGUF, by patterns in which a star is a number. */
#include "proto/model/hub.h"

#include <stdio.h>
#include <string.h>

#define MAX_STARS  2u
#define MAX_NUMBER 1000000u

/* Digits at s[*i] without leading zeros. */
static bool take_number(struct brig_str s, size_t *i, uint32_t *ret)
{
    size_t first = *i;
    uint32_t v = 0;
    while (*i < s.len && s.ptr[*i] >= '0' && s.ptr[*i] <= '9' && v < MAX_NUMBER)
        v = v * 10 + (uint32_t)(s.ptr[(*i)++] - '0');
    if (*i == first || v >= MAX_NUMBER || (s.ptr[first] == '0' && *i - first > 1))
        return false;
    *ret = v;
    return true;
}

static bool matches(const char *pattern, struct brig_str s, uint32_t numbers[MAX_STARS])
{
    size_t i = 0;
    unsigned n = 0;
    for (const char *p = pattern; *p != '\0'; p++) {
        if (*p == '*') {
            if (!take_number(s, &i, &numbers[n++]))
                return false;
        } else if (i >= s.len || s.ptr[i++] != *p) {
            return false;
        }
    }
    return i == s.len;
}

static void fill(char ret[BRIG_HUB_NAME_BYTES], const char *base, const char *pattern,
                 const uint32_t numbers[MAX_STARS])
{
    size_t used = (size_t)snprintf(ret, BRIG_HUB_NAME_BYTES, "%s", base);
    unsigned n = 0;
    for (const char *p = pattern; *p != '\0' && used < BRIG_HUB_NAME_BYTES; p++)
        used += (size_t)(*p == '*' ? snprintf(ret + used, BRIG_HUB_NAME_BYTES - used, "%u", numbers[n++])
                                   : snprintf(ret + used, BRIG_HUB_NAME_BYTES - used, "%c", *p));
}

static bool strip(struct brig_str *s, const char *prefix)
{
    size_t n = strlen(prefix);
    if (s->len < n || memcmp(s->ptr, prefix, n) != 0)
        return false;
    *s = (struct brig_str){s->ptr + n, s->len - n};
    return true;
}

const char *brig_hub_base(const struct brig_hub_names *names, struct brig_str name)
{
    for (unsigned i = 0; names->bases[i] != NULL; i++) {
        struct brig_str rest = name;
        if (strip(&rest, names->bases[i]) && brig_str_eq(rest, names->table))
            return names->bases[i];
    }
    return NULL;
}

/* The output table stands beside the base. */
static bool is_head(struct brig_str name)
{
    return brig_str_eq(name, "lm_head.weight") || brig_str_eq(name, "language_model.lm_head.weight");
}

/* Token table and positions, then layer by layer in the table's order, then what comes after the layers. */
static uint64_t order_of(const char *name, unsigned row, const uint32_t numbers[MAX_STARS])
{
    uint64_t group = strncmp(name, "blk.", 4) == 0 ? 1 : strncmp(name, "output", 6) == 0 ? 2 : 0;
    uint64_t layer = group == 1 ? numbers[0] : 0;
    return group << 60 | layer << 36 | (uint64_t)row << 24 | numbers[1];
}

enum brig_hub_fate brig_hub_translate(const struct brig_hub_names *names, const char *base,
                                      struct brig_str name, struct brig_hub_place *ret)
{
    if (is_head(name)) {
        *ret = (struct brig_hub_place){.name = "output.weight", .order = UINT64_MAX};
        return BRIG_HUB_KNOWN;
    }
    if (!strip(&name, base))
        return BRIG_HUB_LEFT;
    for (unsigned i = 0; i < names->n; i++) {
        uint32_t numbers[MAX_STARS] = {0};
        if (!matches(names->rows[i].own, name, numbers))
            continue;
        if (names->rows[i].name == NULL)
            return BRIG_HUB_LEFT;
        fill(ret->name, "", names->rows[i].name, numbers);
        ret->order = order_of(ret->name, i, numbers);
        return BRIG_HUB_KNOWN;
    }
    return BRIG_HUB_UNKNOWN;
}

bool brig_hub_own_name(const struct brig_hub_names *names, const char *base, const char *name,
                       char ret[BRIG_HUB_NAME_BYTES])
{
    struct brig_str s = {name, strlen(name)};
    if (brig_str_eq(s, "output.weight")) {
        snprintf(ret, BRIG_HUB_NAME_BYTES, "lm_head.weight");
        return true;
    }
    for (unsigned i = 0; i < names->n; i++) {
        uint32_t numbers[MAX_STARS] = {0};
        if (names->rows[i].name == NULL || !matches(names->rows[i].name, s, numbers))
            continue;
        fill(ret, base, names->rows[i].own, numbers);
        return true;
    }
    return false;
}
