/*
 * Fuzz target: bytes become a chat template, rendered with a fixed conversation (and, behind a NUL, with a
 * context of their own in JSON) under small limits. Whatever they are, it ends, with text or with a reason
 * that names a line. Seeds in corpus_template/.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/chat/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char conversation[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \" S\\u00fcd\\n\"}, {\"role\": \"user\", "
    "\"content\": \"Hi <b>\"},"
    " {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"function\": {\"name\": \"f\", "
    "\"arguments\":"
    " {\"x\": [1, 2.5, null, true]}}}]}], \"tools\": [{\"name\": \"f\", \"parameters\": {\"a\": {\"b\": "
    "[]}}}],"
    " \"bos_token\": \"<s>\", \"add_generation_prompt\": true, \"n\": 7, \"neg\": -3, \"list\": [3, 1, 2, 1],"
    " \"words\": \"the  quick\\tbr\\u00f6wn \\ud83d\\ude00\", \"d\": {\"b\": 1, \"a\": \"x\"}}";

static void check(int good)
{
    if (!good)
        abort();
}

static json_t *context_of(const char *text, size_t n)
{
    json_error_t err;
    json_t *given = n > 0 ? json_loadb(text, n, JSON_ALLOW_NUL, &err) : NULL;
    if (json_is_object(given))
        return given;
    json_decref(given);
    return json_loads(conversation, 0, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const struct brig_jinja_limits limits = {
        .steps = 50000, .memory_bytes = 4 << 20, .out_bytes = 1 << 18, .depth = 300};
    const char *text = (const char *)bytes, *nul = n > 0 ? memchr(text, '\0', n) : NULL;
    size_t n_template = nul != NULL ? (size_t)(nul - text) : n;
    json_t *context = context_of(nul != NULL ? nul + 1 : NULL, nul != NULL ? n - n_template - 1 : 0);
    struct brig_buf out = {0};
    struct brig_fail fail = {0};
    check(context != NULL);
    int r = brig_jinja_render((struct brig_str){text, n_template}, context, &limits, &out, &fail);
    if (r < 0) {
        check(out.len == 0 && fail.code != BRIG_EINTERNAL && fail.code == (enum brig_err) - r);
        check(strncmp(fail.text, "line ", 5) == 0);
    } else {
        check(out.len <= limits.out_bytes);
    }
    brig_buf_release(&out);
    json_decref(context);
    return 0;
}
