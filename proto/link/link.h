/*
 * Links: how frames and control messages travel. One row in link.def, one file each. Nothing waits without a
 * deadline; a message over the agreed size is refused by its sender (NNG drops it silently at the receiver).
 *
 * URLs: ipc:///path, abstract://name, tcp://host:port, inproc://name; for frames also shm+ before the first
 * two, or stream+ before the first three.
 */
#ifndef BRIG_PROTO_LINK_LINK_H
#define BRIG_PROTO_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/wire/control.h"

/* A message: memory that a link can send without copying. */
struct brig_msg;
struct brig_msg *brig_msg_new(size_t n); /* contents undefined; NULL when memory is out */
void brig_msg_free(struct brig_msg *m);  /* NULL allowed */
void *brig_msg_data(struct brig_msg *m); /* 16-byte aligned at least */
size_t brig_msg_len(const struct brig_msg *m);
struct brig_msg *brig_msg_dup(const struct brig_msg *m); /* a copy of its own */

struct brig_rx; /* one PULL socket: receives frames */
struct brig_tx; /* one PUSH socket with one peer: sends frames */

struct brig_link {
    const char *name;   /* "nng" */
    const char *help;   /* one line for `brigade list links` */
    const char *prefix; /* of its addresses, where another row has the same without */
    bool (*speaks)(const char *url);
    /* Listen at url; real_url gets the address a peer can dial (port 0 resolved, the rest as given).
     * max_bytes is the receive limit. */
    int (*listen)(struct brig_rx **ret, const char *url, uint64_t max_bytes, char real_url[BRIG_URL_MAX],
                  struct brig_fail *fail);
    /* Connected when it returns. Retries while nobody listens, for at most timeout_ms. */
    int (*dial)(struct brig_tx **ret, const char *url, uint64_t max_bytes, uint32_t timeout_ms,
                struct brig_fail *fail);
    /* Takes m on success; m stays the caller's on failure (-BRIG_ETIMEOUT, -BRIG_EDEAD when the peer is gone,
     * -BRIG_ELIMIT when over max_bytes). */
    int (*send)(struct brig_tx *tx, struct brig_msg *m, uint32_t timeout_ms, struct brig_fail *fail);
    /* -BRIG_ETIMEOUT when nothing came (fail untouched then: it is not an error yet); -BRIG_ECANCELLED after
     * close or wake. */
    int (*recv)(struct brig_rx *rx, struct brig_msg **ret, uint32_t timeout_ms, struct brig_fail *fail);
    void (*rx_close)(
        struct brig_rx *rx); /* wakes a receiver; NULL allowed. The receiving thread must have left
                                recv before memory is freed: the implementation sees to it */
    void (*tx_close)(struct brig_tx *tx); /* lets what was sent leave first (bounded); NULL allowed */
};

const struct brig_link *brig_link_at(unsigned i);                               /* NULL after the last row */
const struct brig_link *brig_link_for(const char *url, struct brig_fail *fail); /* fails with the reason */
const struct brig_link *brig_link_by_name(const char *name);                    /* NULL: there is none */
/* The row that is used where none is asked for by name; and one that goes well with processes that send one
 * frame. */
const struct brig_link *brig_link_default(void);
const struct brig_link *brig_link_plain(void);
/* Make of an address the one at which `link` carries frames, if it has such addresses; else leave it. */
void brig_link_adopt(const struct brig_link *link, char url[BRIG_URL_MAX]);

/* Plain tcp beyond loopback is refused unless insecure was asked for by name. 0, or the failure in words. */
int brig_link_check_url(const char *url, bool insecure, struct brig_fail *fail);

/* Data listener's URL for a shard or driver whose control address is control_url: same scheme; for tcp the
 * same host and port 0; for the others control_url plus "-d" plus numbers of this process and of this call,
 * so that it is never used again. */
int brig_link_data_url(const char *control_url, char out[BRIG_URL_MAX], struct brig_fail *fail);

/* ---- control: request and reply, always NNG (proto/link/control.c) ---- */

struct brig_ctl_server;
struct brig_ctl_client;

/* REP side. gone(ctx, peer) is called (from an NNG thread, it must not block) when the connection of a client
 * that asked something has ended; peer is the number that serve gave for it. */
int brig_ctl_listen(struct brig_ctl_server **ret, const char *url, char real_url[BRIG_URL_MAX],
                    void (*gone)(void *ctx, uint32_t peer), void *ctx, struct brig_fail *fail);
/* Wait for one request, at most timeout_ms: its bytes into req (cleared first), *peer a number for the
 * client's connection, never 0 and not reused soon. Answer it with brig_ctl_reply before the next call. */
int brig_ctl_recv(struct brig_ctl_server *s, struct brig_buf *req, uint32_t *peer, uint32_t timeout_ms,
                  struct brig_fail *fail);
/* -BRIG_EDEAD when the client has gone meanwhile: gone was called for it already, so undo what its request
 * began. */
int brig_ctl_reply(struct brig_ctl_server *s, const struct brig_buf *reply, struct brig_fail *fail);
/* As brig_link_data_url for the address that s listens at; a server of every address (0.0.0.0) gives the one
 * by which the newest request came, which other machines can dial. */
int brig_ctl_data_url(const struct brig_ctl_server *s, char out[BRIG_URL_MAX], struct brig_fail *fail);
/* A reply just given arrives first: the client that got it is given 0.2 s to go before. NULL allowed. */
void brig_ctl_server_close(struct brig_ctl_server *s);

/* REQ side, automatic resend off. Connected when it returns; retries for at most timeout_ms while nobody
 * listens. */
int brig_ctl_dial(struct brig_ctl_client **ret, const char *url, uint32_t timeout_ms, struct brig_fail *fail);
/* One request, one reply. -BRIG_ETIMEOUT when no answer came, -BRIG_EDEAD when the connection ended. After a
 * failure the client may be called again. */
int brig_ctl_call(struct brig_ctl_client *c, const struct brig_request *req, struct brig_reply *reply,
                  uint32_t timeout_ms, struct brig_fail *fail);
/* The host part of this connection's own local address ("10.0.0.1", "[::1]"): where a driver listens so that
 * the shard can reach it; "" when the link has none (ipc, abstract, inproc). */
const char *brig_ctl_local_host(const struct brig_ctl_client *c);
void brig_ctl_client_close(struct brig_ctl_client *c);

/* ---- waiting ---- */

/* From begin to end no CPU of this machine sleeps deeply: 9 us for both. begin returns what end takes; -1
 * when this user may not (it takes write access to /dev/cpu_dma_latency), which end takes too. */
int brig_hold_begin(void);
void brig_hold_end(int fd);

/* Ends NNG in this process (nng_fini); call last, from main. */
void brig_link_fini(void);

#endif
