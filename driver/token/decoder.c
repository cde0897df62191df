/*
 * Decoders, one after the other on the spelling of one token. What a chain does to the text as a whole comes
 * to nothing but bytes that the first token loses; chains of which that is not so are refused when the file
 * is read.
 */
#include "driver/token/decoder.h"

#include "driver/token/bytechars.h"
#include "driver/token/pattern.h"
#include "driver/token/replace.h"
#include "driver/token/space.h"
#include "proto/base/mem.h"

struct brig_decoder {
    unsigned n;
    bool joined;
    struct brig_step steps[BRIG_MAX_STEPS];
    struct brig_pattern *patterns[BRIG_MAX_STEPS];
    struct brig_bytechars chars;
    struct brig_buf text[2];
};

int brig_decoder_new(struct brig_decoder **ret, const struct brig_rules *rules, struct brig_fail *fail)
{
    struct brig_decoder *d = brig_alloc(1, sizeof *d);
    int r = 0;
    if (d == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a decoder");
    brig_bytechars_init(&d->chars);
    d->joined = rules->joined;
    for (; d->n < rules->decode.n && r == 0; d->n++) {
        const struct brig_step *s = &rules->decode.v[d->n];
        d->steps[d->n] = *s;
        if (s->kind == BRIG_STEP_REPLACE)
            r = brig_pattern_new(&d->patterns[d->n], s->pattern, s->regex, fail);
    }
    if (r < 0) {
        brig_decoder_free(d);
        return r;
    }
    *ret = d;
    return 0;
}

void brig_decoder_free(struct brig_decoder *d)
{
    if (d == NULL)
        return;
    for (unsigned i = 0; i < BRIG_MAX_STEPS; i++)
        brig_pattern_free(d->patterns[i]);
    brig_buf_release(&d->text[0]);
    brig_buf_release(&d->text[1]);
    brig_free(d);
}

/* The bytes that up to `most` times content take at the start. */
static size_t leading(struct brig_str s, struct brig_str content, uint32_t most)
{
    size_t at = 0;
    for (; most > 0 && s.len - at >= content.len && memcmp(s.ptr + at, content.ptr, content.len) == 0; most--)
        at += content.len;
    return at;
}

/* One step that writes bytes of its own into out. */
static int run_step(struct brig_decoder *d, unsigned i, struct brig_str s, struct brig_buf *out,
                    struct brig_fail *fail)
{
    if (d->steps[i].kind == BRIG_STEP_REPLACE)
        return brig_replace(d->patterns[i], d->steps[i].content, s.ptr, s.len, out, fail);
    brig_buf_clear(out);
    int byte = brig_byte_of_spelling(s), r;
    char c = (char)byte;
    if (d->steps[i].kind == BRIG_STEP_BYTES)
        r = brig_bytechars_piece(&d->chars, s.ptr, s.len, out);
    else
        r = byte >= 0 ? brig_buf_add(out, &c, 1) : brig_buf_add(out, s.ptr, s.len);
    return r < 0 ? brig_fail_set(fail, (enum brig_err) - r, "a token of %zu bytes: %s", s.len,
                                 brig_err_text(-r))
                 : 0;
}

int brig_decoder_piece(struct brig_decoder *d, struct brig_str s, struct brig_str *ret, size_t *ret_lead,
                       struct brig_fail *fail)
{
    size_t lead = 0;
    bool fused = false;
    unsigned into = 0;
    for (unsigned i = 0; i < d->n && s.len > 0; i++) {
        const struct brig_step *step = &d->steps[i];
        if (step->kind == BRIG_STEP_FUSE) {
            fused = true;
        } else if (step->kind == BRIG_STEP_TRIM) {
            size_t bytes = leading(s, step->content, step->most);
            lead = fused || step->first ? bytes : 0;
            s.ptr += bytes - lead;
            s.len -= bytes - lead;
        } else {
            int r = run_step(d, i, s, &d->text[into], fail);
            if (r < 0)
                return r;
            s = (struct brig_str){d->text[into].data, d->text[into].len};
            into = 1 - into;
        }
    }
    if (d->joined) {
        struct brig_buf *out = &d->text[into];
        brig_buf_clear(out);
        if (brig_buf_add(out, " ", 1) < 0 || brig_buf_add(out, s.ptr, s.len) < 0)
            return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a token of %zu bytes", s.len);
        s = (struct brig_str){out->data, out->len};
        lead = 1;
    }
    *ret = s;
    *ret_lead = lead;
    return 0;
}
