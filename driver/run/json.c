/* JSON text and files. */
#include "driver/run/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/token/tokenizer.h"
#include "proto/base/outfile.h"

#define STYLE (JSON_INDENT(1) | JSON_REAL_PRECISION(9))

json_t *brig_json_text(const char *bytes, size_t n)
{
    struct brig_stream stream = {0};
    struct brig_buf b = {0};
    json_t *j = NULL;
    if (brig_stream_add(&stream, bytes, n, &b) == 0 && brig_stream_finish(&stream, &b) == 0)
        j = json_stringn(b.data == NULL ? "" : b.data, b.len);
    brig_buf_release(&b);
    return j;
}

int brig_json_write(const json_t *root, const char *path, struct brig_fail *fail)
{
    struct brig_outfile out;
    int r = brig_outfile_open(&out, path, fail);
    if (r < 0)
        return r;
    if (json_dumpf(root, out.stream, STYLE) < 0) {
        brig_outfile_abandon(&out);
        return brig_fail_set(fail, BRIG_EIO, "%s: the figures could not be written", path);
    }
    fputc('\n', out.stream);
    return brig_outfile_commit(&out, fail);
}

int brig_json_print(const json_t *root, struct brig_fail *fail)
{
    if (json_dumpf(root, stdout, STYLE) < 0 || fputc('\n', stdout) == EOF || fflush(stdout) != 0)
        return brig_fail_errno(fail, BRIG_EIO, "stdout");
    return 0;
}
