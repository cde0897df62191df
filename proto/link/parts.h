/* The inside of links, shared by the .c files of proto/link only. */
#ifndef BRIG_PROTO_LINK_PARTS_H
#define BRIG_PROTO_LINK_PARTS_H

#include <pthread.h>

#include <nng/nng.h>

#include "proto/link/link.h"

/* ---- url.c ---- */

enum brig_scheme {
    BRIG_SCHEME_IPC,
    BRIG_SCHEME_ABSTRACT,
    BRIG_SCHEME_TCP,
    BRIG_SCHEME_INPROC,
    BRIG_SCHEME_COUNT
};

#define BRIG_URL_SHM    "shm+"
#define BRIG_URL_STREAM "stream+"

struct brig_url {
    enum brig_scheme scheme;
    bool shm;    /* "shm+" before a local address: frames go through shared memory, and this is where it is
                    offered */
    bool stream; /* "stream+" before an address that is not inproc: frames go over a byte stream */
    char rest[BRIG_URL_MAX]; /* after "://": path, name, or host:port */
    char host[BRIG_URL_MAX]; /* tcp: without brackets; "" or "*" for every address */
    uint16_t port;
    bool v6;       /* host was in brackets */
    bool wildcard; /* every address of the machine */
    bool loopback;
};

int brig_url_parse(struct brig_url *ret, const char *url, struct brig_fail *fail);
/* The address without what says how frames travel. */
const char *brig_url_bare(const char *url);
/* Peers on this machine, whose user the kernel tells. */
bool brig_url_is_local(const struct brig_url *u);

/* ---- socket.c ---- */

/* Open a socket with its receive limit. NNG starts its threads at the first call: they get no signals, which
 * are the main thread's. */
int brig_socket_open(nng_socket *ret, int (*open)(nng_socket *), uint64_t max_bytes, struct brig_fail *fail);
/* Start NNG's threads, as brig_socket_open does, for what opens no socket. */
int brig_nng_start(struct brig_fail *fail);
/* What NNG would do to a file at u's path that is no socket: refused. */
int brig_socket_check_path(const struct brig_url *u, const char *url, struct brig_fail *fail);
/* NNG's code for why it cannot listen, in words. */
int brig_socket_listen_failed(const char *url, int rv, struct brig_fail *fail);
/* As the contract of brig_link.listen. */
int brig_socket_listen(nng_socket s, const char *url, char real_url[BRIG_URL_MAX], struct brig_fail *fail);
/* False for a peer on this machine that belongs to another user; true for all others. */
bool brig_pipe_user_ok(nng_pipe p);
/* The host part of the pipe's own address, "" when it has none. */
void brig_pipe_local_host(nng_pipe p, char out[BRIG_HOST_MAX]);
/* A lock, and a condition that counts time on the clock of brig_clock_ns. */
void brig_link_locks_init(pthread_mutex_t *lock, pthread_cond_t *cond);
struct timespec brig_link_deadline(uint64_t at_ns);
nng_duration brig_nng_ms(uint32_t timeout_ms);
/* Our code for NNG's. */
enum brig_err brig_nng_err(int rv);

/* ---- dial.c: a socket with one dialer, that knows whether it is connected ---- */

struct brig_dialled {
    nng_socket sock;
    nng_dialer dialer;
    nng_aio *aio; /* the one operation under way: ended when the connection ends */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t starting; /* id of a pipe that is being added */
    uint32_t pipe;     /* id of the connection, 0: none */
    bool once;         /* a connection that has ended is not replaced: its address is never used again */
    bool ended;
    bool foreign; /* a peer of another user was turned away */
    char local_host[BRIG_HOST_MAX];
    char url[BRIG_URL_MAX];
};

/* Connected when it returns 0; else nothing is left open. The struct must not move. */
int brig_dialled_open(struct brig_dialled *d, int (*open)(nng_socket *), const char *url, uint64_t max_bytes,
                      bool once, uint32_t timeout_ms, struct brig_fail *fail);
void brig_dialled_close(struct brig_dialled *d);
/* One bare connection to a bare address: NNG's code. Close it with nng_stream_free. */
int brig_stream_connect(nng_stream **ret, const char *url, uint32_t timeout_ms);
/* Why nobody could be reached in timeout_ms, in words. rv: how a bare connection fared, NNG's code; foreign:
 * the peer is of another user. */
int brig_no_connection(const char *url, const struct brig_url *u, int rv, bool foreign, uint32_t timeout_ms,
                       struct brig_fail *fail);
/* Id of the connection, 0 when there is none. */
uint32_t brig_dialled_pipe(struct brig_dialled *d);
/* Run one operation (nng_send_aio, nng_recv_aio) on d->aio and wait for its end: NNG's code, which is
 * NNG_ECONNRESET at once when connection `pipe` is or comes to an end. */
int brig_dialled_run(struct brig_dialled *d, void (*start)(nng_socket, nng_aio *), uint32_t pipe,
                     uint32_t timeout_ms);

/* Send a frame on connection `pipe`, as the contract of brig_link.send but for the limit. */
int brig_dialled_send(struct brig_dialled *d, uint32_t pipe, struct brig_msg *m, uint32_t timeout_ms,
                      struct brig_fail *fail);
/* Let the last frame leave; bounded in time. */
void brig_dialled_flush(struct brig_dialled *d, uint32_t pipe);

/* ---- kept.c ---- */

/* A closed receiver whose memory is to stay for a while; then release is called. */
void brig_link_keep(void *rx, void (*release)(void *rx));
/* Releases them all. */
void brig_link_forget(void);

#endif
