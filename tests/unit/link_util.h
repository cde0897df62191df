/* Addresses and messages for the tests of links. */
#ifndef BRIG_TESTS_UNIT_LINK_UTIL_H
#define BRIG_TESTS_UNIT_LINK_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base/clock.h"
#include "proto/link/link.h"

/* Those before UTIL_KINDS carry control messages too. */
enum {
    UTIL_ABSTRACT,
    UTIL_IPC,
    UTIL_TCP,
    UTIL_INPROC,
    UTIL_KINDS,
    UTIL_SHM = UTIL_KINDS,
    UTIL_SHM_IPC,
    UTIL_STREAM,
    UTIL_STREAM_IPC,
    UTIL_STREAM_TCP,
    UTIL_LINKS
};

/* A fresh address of this kind, for this process alone. */
static inline void util_url(int kind, char out[BRIG_URL_MAX])
{
    static unsigned count;
    static const char *const forms[] = {
        "abstract://brigade-test",        "ipc:///tmp/brigade-test",        "tcp://127.0.0.1:0",
        "inproc://brigade-test",          "shm+abstract://brigade-test",    "shm+ipc:///tmp/brigade-test",
        "stream+abstract://brigade-test", "stream+ipc:///tmp/brigade-test", "stream+tcp://127.0.0.1:0"};
    if (kind == UTIL_TCP || kind == UTIL_STREAM_TCP)
        snprintf(out, BRIG_URL_MAX, "%s", forms[kind]);
    else
        snprintf(out, BRIG_URL_MAX, "%s-%ld-%u", forms[kind], (long)getpid(), count++);
}

static inline struct brig_msg *util_msg(uint64_t value, size_t n)
{
    struct brig_msg *m = brig_msg_new(n);
    assert_non_null(m);
    memset(brig_msg_data(m), (int)(value & 0xff), n);
    if (n >= sizeof value)
        memcpy(brig_msg_data(m), &value, sizeof value);
    return m;
}

static inline uint64_t util_value(struct brig_msg *m)
{
    uint64_t v;
    assert_true(brig_msg_len(m) >= sizeof v);
    memcpy(&v, brig_msg_data(m), sizeof v);
    return v;
}

static inline uint64_t util_ms_since(uint64_t begin_ns)
{
    return (brig_clock_ns() - begin_ns) / BRIG_NS_PER_MS;
}

#endif
