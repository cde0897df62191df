/* brigade inspect: what a checkpoint says it is, without loading it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "driver/chat/chat.h"
#include "driver/front/inspect.h"
#include "driver/front/verb.h"
#include "driver/run/report.h"
#include "driver/token/folder.h"
#include "proto/model/slice.h"

void brig_inspect_hex(const uint8_t *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * n] = '\0';
}

const char *brig_inspect_template(const struct brig_model *m)
{
    const struct brig_chat_template t = {m->vocab.chat_template, ""};
    const struct brig_chat_message hello = {.role = {"user", 4}, .text = {"Hello", 5}};
    struct brig_buf out = {0};
    struct brig_fail unused;
    if (m->vocab.chat_template.len == 0)
        return "none";
    int r = brig_chat_render(&t, &m->vocab, &hello, 1, true, &out, &unused);
    brig_buf_release(&out);
    return r == 0 ? "known" : "unknown";
}

static int bytes_for_token(const struct brig_model *m, uint64_t *ret, struct brig_fail *fail)
{
    struct brig_embed *e;
    int r = brig_embed_open(&e, m, fail);
    if (r < 0)
        return r;
    *ret = brig_report_bytes_per_token(m, e);
    brig_embed_close(e);
    return 0;
}

/* Names come from the file: nothing in them may move a terminal's cursor. */
static void put_text(struct brig_str s)
{
    for (size_t i = 0; i < s.len; i++)
        putchar((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f ? '?' : s.ptr[i]);
}

static void print_line(const char *what, struct brig_str text)
{
    printf("%-16s ", what);
    put_text(text);
    putchar('\n');
}

static void print_vocab(const struct brig_model *m)
{
    const struct brig_vocab *v = &m->vocab;
    if (v->n_tokens == 0) {
        printf("tokenizer        none\n");
        return;
    }
    printf("tokenizer        ");
    put_text(v->model);
    printf(", pre-tokenizer ");
    put_text(v->pre.len > 0 ? v->pre : (struct brig_str){"not stated", 10});
    printf(", %u tokens, %u merges\n", v->n_tokens, v->n_merges);
    printf("special tokens   bos %" PRId64 ", eos %" PRId64 ", eot %" PRId64 ", pad %" PRId64 ", unk %" PRId64
           " (-1: not stated)\n",
           v->bos, v->eos, v->eot, v->pad, v->unk);
    printf("chat template    %s\n", brig_inspect_template(m));
}

static void print_bytes(const struct brig_model *m, uint64_t token_bytes)
{
    uint32_t n = m->desc.n_layers;
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t b = brig_slice_cells_bytes(m, (struct brig_cells){i, i + 1});
        least = b < least ? b : least;
        most = b > most ? b : most;
    }
    uint64_t head = brig_slice_cells_bytes(m, (struct brig_cells){n, n + 1});
    uint64_t all = brig_slice_cells_bytes(m, (struct brig_cells){0, n + 1});
    printf("parameters       %" PRIu64 "\n", m->n_params);
    printf("weights          %" PRIu64 " bytes\n", m->weights_bytes);
    printf("for one token    %" PRIu64 " bytes are read\n", token_bytes);
    printf("a layer          %" PRIu64 " to %" PRIu64 " bytes\n", least, most);
    printf("the head         %" PRIu64 " bytes, %.1f %% of what one pass reads\n", head,
           all == 0 ? 0 : 100.0 * (double)head / (double)all);
}

static void print_tensors(const struct brig_model *m)
{
    printf("\n%-40s %-8s %-20s %4s %14s %14s\n", "tensor", "type", "shape [rows, cols]", "file", "offset",
           "bytes");
    for (unsigned i = 0; i < m->n_tensors; i++) {
        const struct brig_tensor *t = &m->tensors[i];
        char shape[96];
        size_t n = 0;
        for (unsigned d = t->n_dims; d-- > 0;) /* the fastest dimension is written last */
            n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRIu64, n > 0 ? ", " : "[", t->dims[d]);
        put_text(t->name);
        printf("%*s %-8s %s]%*s %4u %14" PRIu64 " %14" PRIu64, t->name.len < 40 ? (int)(40 - t->name.len) : 0,
               "", t->type->name, shape, n < 19 ? (int)(19 - n) : 0, "", t->file, t->offset, t->bytes);
        if (t->sides.group_cols != 0) /* scales and zeros of a packed matrix */
            printf("  + %" PRIu64 " beside", brig_sides_bytes(&t->sides));
        printf("%s\n", t->role == BRIG_ROLE_COUNT ? "  (not used)" : "");
    }
}

static void print_meta(const struct brig_model *m)
{
    const char *key, *value;
    printf("\nmetadata\n");
    for (unsigned i = 0; brig_model_meta(m, i, &key, &value); i++) {
        printf("  ");
        put_text((struct brig_str){key, strlen(key)});
        printf(" = ");
        put_text((struct brig_str){value, strlen(value)});
        putchar('\n');
    }
}

static void print_text(const struct brig_model *m, uint64_t token_bytes)
{
    char hex[2 * BRIG_IDENTITY_BYTES + 1];
    brig_inspect_hex(m->identity, BRIG_IDENTITY_BYTES, hex);
    print_line("file", (struct brig_str){m->path, strlen(m->path)});
    printf("format           %s\n", m->format);
    print_line("name", m->name);
    brig_inspect_desc(&m->desc);
    print_vocab(m);
    print_bytes(m, token_bytes);
    printf("identity         %s\n", hex);
    print_tensors(m);
    print_meta(m);
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_model *m = NULL;
    struct brig_folder *folder = NULL;
    uint64_t token_bytes = 0;
    int r = brig_model_open(&m, s->operand, fail);
    if (r == 0)
        r = brig_folder_attach(&folder, m, fail);
    if (r == 0)
        r = bytes_for_token(m, &token_bytes, fail);
    if (r == 0 && s->json)
        r = brig_inspect_json(m, token_bytes, fail);
    else if (r == 0)
        print_text(m, token_bytes);
    if (r == 0 && fflush(stdout) != 0)
        r = brig_fail_errno(fail, BRIG_EIO, "standard output");
    brig_model_close(m);
    brig_folder_close(folder);
    return r;
}

const struct brig_verb brig_verb_inspect = {
    .name = "inspect",
    .help = "what a model file holds",
    .usage = "MODEL [--json]",
    .about = "Prints sizes, tokenizer, identity, the bytes of layers and head, every tensor, the metadata.\n"
             "Nothing is loaded.\n"
             "\n"
             "examples:\n"
             "  brigade inspect MODEL\n"
             "  brigade inspect MODEL --json\n",
    .operand = "MODEL",
    .operand_needed = true,
    .run = run,
};
