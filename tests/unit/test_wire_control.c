/* Control messages: round trips, and what a peer may not send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base/mem.h"
#include "proto/wire/control.h"
#include "proto/wire/frame.h"

static struct brig_request a_request(enum brig_control_kind kind)
{
    struct brig_request r = {.kind = kind};
    if (kind != BRIG_CONTROL_HELLO)
        r.run_id = UINT64_MAX - 5;
    if (kind == BRIG_CONTROL_ATTACH) {
        r.stage = 30;
        r.n_stages = 31;
        r.max_rows = 512;
        r.ctx = 4096;
        r.slots = 1;
        for (unsigned i = 0; i < 32; i++)
            r.identity[i] = (uint8_t)(i * 7);
        brig_numeric_class(r.numeric_class, false, "f16");
        snprintf(r.next_url, sizeof r.next_url, "tcp://10.0.0.7:40001");
    }
    return r;
}

static struct brig_reply a_reply(enum brig_control_kind kind)
{
    struct brig_reply r = {.kind = kind};
    snprintf(r.text, sizeof r.text, "all is well");
    if (kind == BRIG_CONTROL_HELLO) {
        memset(r.identity, 0xc0, sizeof r.identity);
        r.n_layers = 30;
        r.cells_first = 4;
        r.cells_last = 31;
        r.hidden = 576;
        r.vocab = 49152;
        r.ctx = 8192;
        r.slots = 4;
        brig_numeric_class(r.numeric_class, true, "f32");
        snprintf(r.kernel, sizeof r.kernel, "scalar");
        snprintf(r.host, sizeof r.host, "node-7");
        r.pid = 4711;
        r.threads = 2;
        r.mapped_bytes = 1ull << 40;
        r.unlocked_bytes = 1ull << 39;
        r.state = BRIG_SHARD_FAILED;
    }
    if (kind == BRIG_CONTROL_ATTACH)
        snprintf(r.data_url, sizeof r.data_url, "abstract://x-d1");
    if (kind == BRIG_CONTROL_STATUS) {
        r.state = BRIG_SHARD_ATTACHED;
        r.frame_id = 77;
        r.progress = UINT64_MAX;
        r.layer = 12;
        r.working = true;
    }
    return r;
}

static void classes(void **state)
{
    char c[BRIG_CLASS_MAX];
    (void)state;
    brig_numeric_class(c, false, "f16");
    assert_string_equal(c, "a2 act=q8 kv=f16");
    brig_numeric_class(c, true, "f32");
    assert_string_equal(c, "a2 act=f32 kv=f32");
}

static void round_trips(void **state)
{
    struct brig_buf b = {0};
    (void)state;
    for (int k = 0; k < BRIG_CONTROL_COUNT; k++) {
        struct brig_request q = a_request((enum brig_control_kind)k), q2;
        struct brig_reply r = a_reply((enum brig_control_kind)k), r2;
        memset(&q2, 0xee, sizeof q2);
        memset(&r2, 0xee, sizeof r2);
        assert_int_equal(brig_request_encode(&q, &b), 0);
        assert_int_equal(brig_request_decode(&q2, b.data, b.len, NULL), 0);
        assert_memory_equal(&q, &q2, sizeof q);
        assert_int_equal(brig_reply_encode(&r, &b), 0);
        assert_int_equal(brig_reply_decode(&r2, b.data, b.len, NULL), 0);
        assert_memory_equal(&r, &r2, sizeof r);
    }
    brig_buf_release(&b);
}

/* A refusal has the reason and no other fields. */
static void refusals(void **state)
{
    struct brig_buf b = {0};
    (void)state;
    for (int e = 1; e < BRIG_ERR_COUNT; e++) {
        struct brig_reply r = a_reply(BRIG_CONTROL_HELLO), got;
        r.err = (enum brig_err)e;
        assert_int_equal(brig_reply_encode(&r, &b), 0);
        assert_int_equal(brig_reply_decode(&got, b.data, b.len, NULL), 0);
        assert_int_equal(got.err, e);
        assert_string_equal(got.text, "all is well");
        assert_int_equal(got.hidden, 0);
    }
    brig_buf_release(&b);
}

static void other_versions(void **state)
{
    struct brig_buf b = {0};
    struct brig_request q = a_request(BRIG_CONTROL_DRAIN);
    struct brig_reply r = a_reply(BRIG_CONTROL_STATUS);
    struct brig_fail fail;
    (void)state;
    assert_int_equal(brig_request_encode(&q, &b), 0);
    b.data[1] = 9;
    assert_int_equal(brig_request_decode(&q, b.data, b.len, &fail), -BRIG_EVERSION);
    assert_int_equal(q.kind, BRIG_CONTROL_DRAIN); /* so that the refusal can name it */
    assert_true(q.run_id == 0);
    assert_non_null(strstr(fail.text, "version 9"));
    b.data[2] = 100; /* a kind that only version 9 has */
    assert_int_equal(brig_request_decode(&q, b.data, b.len, &fail), -BRIG_EVERSION);
    assert_int_equal(q.kind, BRIG_CONTROL_HELLO);
    assert_int_equal(brig_reply_encode(&r, &b), 0);
    b.data[1] = 9;
    assert_int_equal(brig_reply_decode(&r, b.data, b.len, &fail), -BRIG_EVERSION);
    brig_buf_release(&b);
}

static int request_exact(const char *bytes, size_t n)
{
    struct brig_request q;
    char *p = brig_alloc(n > 0 ? n : 1, 1);
    assert_non_null(p);
    memcpy(p, bytes, n);
    int r = brig_request_decode(&q, p, n, NULL);
    brig_free(p);
    assert_true((unsigned)q.kind < BRIG_CONTROL_COUNT);
    assert_non_null(memchr(q.next_url, 0, sizeof q.next_url));
    assert_non_null(memchr(q.numeric_class, 0, sizeof q.numeric_class));
    return r;
}

static int reply_exact(const char *bytes, size_t n)
{
    struct brig_reply q;
    char *p = brig_alloc(n > 0 ? n : 1, 1);
    assert_non_null(p);
    memcpy(p, bytes, n);
    int r = brig_reply_decode(&q, p, n, NULL);
    brig_free(p);
    assert_true((unsigned)q.kind < BRIG_CONTROL_COUNT && (unsigned)q.err < BRIG_ERR_COUNT);
    assert_true((unsigned)q.state < BRIG_SHARD_STATE_COUNT);
    assert_non_null(memchr(q.text, 0, sizeof q.text));
    assert_non_null(memchr(q.data_url, 0, sizeof q.data_url));
    assert_non_null(memchr(q.host, 0, sizeof q.host));
    return r;
}

/* Every truncation is refused; every change of every byte is survived. */
static void damage(struct brig_buf *b, int (*decode)(const char *, size_t))
{
    for (size_t n = 0; n < b->len; n++)
        assert_true(decode(b->data, n) < 0);
    assert_int_equal(decode(b->data, b->len), 0);
    for (size_t at = 0; at < b->len; at++)
        for (unsigned v = 0; v < 256; v++) {
            char was = b->data[at];
            b->data[at] = (char)v;
            decode(b->data, b->len);
            b->data[at] = was;
        }
    assert_int_equal(brig_buf_add(b, "", 1), 0); /* a byte too many */
    assert_true(decode(b->data, b->len) < 0);
}

static void hostile(void **state)
{
    struct brig_buf b = {0};
    (void)state;
    for (int k = 0; k < BRIG_CONTROL_COUNT; k++) {
        struct brig_request q = a_request((enum brig_control_kind)k);
        struct brig_reply r = a_reply((enum brig_control_kind)k);
        assert_int_equal(brig_request_encode(&q, &b), 0);
        damage(&b, request_exact);
        assert_int_equal(brig_reply_encode(&r, &b), 0);
        damage(&b, reply_exact);
    }
    brig_buf_release(&b);
}

/* A field more in a message of this version is an error, whatever the array's head says. */
static void fields_too_many(void **state)
{
    static const char stop[] = {(char)0x94, BRIG_PROTO_VERSION, BRIG_CONTROL_STOP, 5, 0},
                      good[] = {(char)0x93, BRIG_PROTO_VERSION, BRIG_CONTROL_STOP, 5},
                      few[] = {(char)0x92, BRIG_PROTO_VERSION, BRIG_CONTROL_STOP};
    (void)state;
    assert_int_equal(request_exact(good, sizeof good), 0);
    assert_int_equal(request_exact(stop, sizeof stop), -BRIG_EPROTO);
    assert_int_equal(request_exact(few, sizeof few), -BRIG_EPROTO);
}

static void values(void **state)
{
    struct brig_buf b = {0};
    struct brig_request q = a_request(BRIG_CONTROL_ATTACH), got;
    struct brig_reply r = a_reply(BRIG_CONTROL_ATTACH), back;
    (void)state;
    q.stage = 31; /* of 31 */
    assert_int_equal(brig_request_encode(&q, &b), 0);
    assert_int_equal(brig_request_decode(&got, b.data, b.len, NULL), -BRIG_EPROTO);
    q = a_request(BRIG_CONTROL_ATTACH);
    q.max_rows = 0;
    assert_int_equal(brig_request_encode(&q, &b), 0);
    assert_int_equal(brig_request_decode(&got, b.data, b.len, NULL), -BRIG_EPROTO);
    q.max_rows = 1;
    snprintf(q.next_url, sizeof q.next_url, "ipc:///a\nb"); /* text that will be printed */
    assert_int_equal(brig_request_encode(&q, &b), 0);
    assert_int_equal(brig_request_decode(&got, b.data, b.len, NULL), -BRIG_EPROTO);
    snprintf(r.text, sizeof r.text, "one\nline \033[2J");
    memset(r.data_url, 'u', sizeof r.data_url); /* without a NUL: cut */
    assert_int_equal(brig_reply_encode(&r, &b), 0);
    assert_int_equal(brig_reply_decode(&back, b.data, b.len, NULL), 0);
    assert_string_equal(back.text, "one?line ?[2J");
    assert_int_equal(strlen(back.data_url), BRIG_URL_MAX - 1);
    r.kind = BRIG_CONTROL_COUNT;
    assert_int_equal(brig_reply_encode(&r, &b), -BRIG_EINTERNAL);
    q.kind = BRIG_CONTROL_COUNT;
    assert_int_equal(brig_request_encode(&q, &b), -BRIG_EINTERNAL);
    brig_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes),        cmocka_unit_test(round_trips), cmocka_unit_test(refusals),
        cmocka_unit_test(other_versions), cmocka_unit_test(hostile),     cmocka_unit_test(fields_too_many),
        cmocka_unit_test(values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
