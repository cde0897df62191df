/* Two vocabularies, id by id. */
#include "driver/token/same.h"

#include <inttypes.h>
#include <string.h>

static int clip(struct brig_str s)
{
    return (int)(s.len < 40 ? s.len : 40);
}

static int same_marks(const struct brig_vocab *a, const struct brig_vocab *b, const char *const names[2],
                      struct brig_fail *fail)
{
    const struct {
        const char *what;
        int64_t a, b;
    } marks[] = {
        {"begins a text", a->bos, b->bos}, {"ends a text", a->eos, b->eos}, {"ends a turn", a->eot, b->eot}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i].a >= 0 && marks[i].b >= 0 && marks[i].a != marks[i].b)
            return brig_fail_set(fail, BRIG_EMISMATCH, "token %" PRId64 " %s in %s, token %" PRId64 " in %s",
                                 marks[i].a, marks[i].what, names[0], marks[i].b, names[1]);
    return 0;
}

int brig_vocab_same(const struct brig_vocab *a, const struct brig_vocab *b, const char *const names[2],
                    struct brig_fail *fail)
{
    if (a->n_tokens != b->n_tokens)
        return brig_fail_set(fail, BRIG_EMISMATCH, "%s has %u tokens, %s has %u", names[0], a->n_tokens,
                             names[1], b->n_tokens);
    for (uint32_t i = 0; i < a->n_tokens; i++) {
        struct brig_str s = a->tokens[i], t = b->tokens[i];
        if (s.len != t.len || (s.len > 0 && memcmp(s.ptr, t.ptr, s.len) != 0))
            return brig_fail_set(fail, BRIG_EMISMATCH, "token %u is '%.*s' in %s and '%.*s' in %s", i,
                                 clip(s), s.len > 0 ? s.ptr : "", names[0], clip(t), t.len > 0 ? t.ptr : "",
                                 names[1]);
        if (a->types != NULL && b->types != NULL && a->types[i] != b->types[i])
            return brig_fail_set(fail, BRIG_EMISMATCH, "token %u '%.*s' is of another type in %s than in %s",
                                 i, clip(s), s.len > 0 ? s.ptr : "", names[0], names[1]);
    }
    return same_marks(a, b, names, fail);
}
