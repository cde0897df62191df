/* Replacing the matches of a pattern. */
#include "driver/token/replace.h"

int brig_replace(struct brig_pattern *pattern, struct brig_str content, const char *text, size_t n,
                 struct brig_buf *out, struct brig_fail *fail)
{
    brig_buf_clear(out);
    int r = brig_buf_reserve(out, n + 1);
    for (size_t at = 0; at < n && r == 0;) {
        size_t start = n, end = n;
        int found = brig_pattern_find(pattern, text, n, at, &start, &end, fail);
        if (found < 0)
            return found;
        r = brig_buf_add(out, text + at, start - at);
        if (r == 0 && found > 0)
            r = brig_buf_add(out, content.ptr, content.len);
        at = end;
    }
    return r < 0 ? brig_fail_set(fail, (enum brig_err) - r, "replacing in a text of %zu bytes: %s", n,
                                 brig_err_text(-r))
                 : 0;
}
