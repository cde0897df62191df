/* What every NNG socket here needs: options, listening, who is at the other end. Used by nng.c and control.c.
 */
#include "proto/link/parts.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nng/transport/ipc/ipc.h>

#include "proto/base/clock.h"

#define ADDRESS_SPACE_MIN_BYTES ((rlim_t)144 << 20)

nng_duration brig_nng_ms(uint32_t timeout_ms)
{
    return timeout_ms > INT32_MAX ? INT32_MAX : (nng_duration)timeout_ms;
}

void brig_link_locks_init(pthread_mutex_t *lock, pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(lock, NULL);
}

struct timespec brig_link_deadline(uint64_t at_ns)
{
    return (struct timespec){.tv_sec = (time_t)(at_ns / BRIG_NS_PER_S),
                             .tv_nsec = (long)(at_ns % BRIG_NS_PER_S)};
}

enum brig_err brig_nng_err(int rv)
{
    switch (rv) {
    case 0:
        return BRIG_OK;
    case NNG_ENOMEM:
        return BRIG_ENOMEM;
    case NNG_ETIMEDOUT:
        return BRIG_ETIMEOUT;
    case NNG_ECANCELED:
    case NNG_ECLOSED:
        return BRIG_ECANCELLED;
    case NNG_ECONNRESET:
    case NNG_ECONNSHUT:
        return BRIG_EDEAD;
    case NNG_EMSGSIZE:
        return BRIG_ELIMIT;
    default:
        return BRIG_EIO;
    }
}

/* NNG starts 14 threads, and hangs for ever or crashes when their stacks do not fit: so that is asked before.
 * Measured: 117 MiB of address space are too few, 156 are enough. */
static int check_address_space(struct brig_fail *fail)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= ADDRESS_SPACE_MIN_BYTES)
        return 0;
    return brig_fail_set(fail, BRIG_ELIMIT,
                         "the limit on address space (ulimit -v) is %llu MiB: the threads of NNG need %u",
                         (unsigned long long)limit.rlim_cur >> 20, (unsigned)(ADDRESS_SPACE_MIN_BYTES >> 20));
}

int brig_nng_start(struct brig_fail *fail)
{
    sigset_t all, old;
    nng_aio *aio;
    int r = check_address_space(fail);
    if (r < 0)
        return r;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rv = nng_aio_alloc(&aio, NULL, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rv != 0)
        return brig_fail_set(fail, brig_nng_err(rv), "no NNG: %s", nng_strerror(rv));
    nng_aio_free(aio);
    return 0;
}

int brig_socket_open(nng_socket *ret, int (*open)(nng_socket *), uint64_t max_bytes, struct brig_fail *fail)
{
    sigset_t all, old;
    int r = check_address_space(fail);
    if (r < 0)
        return r;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rv = open(ret);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rv != 0)
        return brig_fail_set(fail, brig_nng_err(rv), "no socket: %s", nng_strerror(rv));
    rv = nng_socket_set_size(*ret, NNG_OPT_RECVMAXSZ, (size_t)max_bytes);
    if (rv != 0) {
        nng_close(*ret);
        return brig_fail_set(fail, brig_nng_err(rv), "a socket without its limit: %s", nng_strerror(rv));
    }
    return 0;
}

bool brig_pipe_user_ok(nng_pipe p)
{
    uint64_t uid;
    nng_sockaddr a;
    if (nng_pipe_get_addr(p, NNG_OPT_LOCADDR, &a) != 0)
        return false;
    if (a.s_family != NNG_AF_IPC && a.s_family != NNG_AF_ABSTRACT)
        return true;
    return nng_pipe_get_uint64(p, NNG_OPT_IPC_PEER_UID, &uid) == 0 && uid == geteuid();
}

void brig_pipe_local_host(nng_pipe p, char out[BRIG_HOST_MAX])
{
    nng_sockaddr a;
    char text[INET6_ADDRSTRLEN];
    out[0] = '\0';
    if (nng_pipe_get_addr(p, NNG_OPT_LOCADDR, &a) != 0)
        return;
    if (a.s_family == NNG_AF_INET && inet_ntop(AF_INET, &a.s_in.sa_addr, text, sizeof text) != NULL)
        snprintf(out, BRIG_HOST_MAX, "%s", text);
    if (a.s_family == NNG_AF_INET6 && inet_ntop(AF_INET6, a.s_in6.sa_addr, text, sizeof text) != NULL)
        snprintf(out, BRIG_HOST_MAX, "[%s]", text);
}

/* NNG takes the place of whatever lies at the path when nobody answers there: only a socket may go that way.
 */
int brig_socket_check_path(const struct brig_url *u, const char *url, struct brig_fail *fail)
{
    struct stat st;
    if (u->scheme != BRIG_SCHEME_IPC || lstat(u->rest, &st) != 0 || S_ISSOCK(st.st_mode))
        return 0;
    return brig_fail_set(fail, BRIG_EUSAGE, "%s: %s is there and is no socket", url, u->rest);
}

int brig_socket_listen_failed(const char *url, int rv, struct brig_fail *fail)
{
    if (rv == NNG_EADDRINUSE)
        return brig_fail_set(fail, BRIG_EIO, "%s: cannot listen: another process listens there", url);
    if (rv == NNG_EADDRINVAL)
        return brig_fail_set(fail, BRIG_EIO, "%s: cannot listen: this machine has no such address", url);
    return brig_fail_set(fail, brig_nng_err(rv), "%s: cannot listen: %s", url, nng_strerror(rv));
}

int brig_socket_listen(nng_socket s, const char *url, char real_url[BRIG_URL_MAX], struct brig_fail *fail)
{
    struct brig_url u;
    nng_listener l;
    int port = 0;
    int r = brig_url_parse(&u, url, fail);
    if (r == 0)
        r = brig_socket_check_path(&u, url, fail);
    if (r < 0)
        return r;
    int rv = nng_listener_create(&l, s, brig_url_bare(url));
    if (rv != 0)
        return brig_socket_listen_failed(url, rv, fail);
    if (u.scheme == BRIG_SCHEME_TCP)
        rv = nng_listener_set_bool(l, NNG_OPT_TCP_NODELAY, true);
    else if (u.scheme == BRIG_SCHEME_IPC)
        rv = nng_listener_set_int(l, NNG_OPT_IPC_PERMISSIONS, S_IRUSR | S_IWUSR);
    if (rv == 0)
        rv = nng_listener_start(l, 0);
    if (rv == 0 && u.scheme == BRIG_SCHEME_TCP)
        rv = nng_listener_get_int(l, NNG_OPT_TCP_BOUND_PORT, &port);
    if (rv != 0) {
        nng_listener_close(l);
        return brig_socket_listen_failed(url, rv, fail);
    }
    if (u.scheme == BRIG_SCHEME_TCP) {
        snprintf(real_url, BRIG_URL_MAX, "tcp://%s%.200s%s:%d", u.v6 ? "[" : "", u.host, u.v6 ? "]" : "",
                 port);
    } else {
        snprintf(real_url, BRIG_URL_MAX, "%s", url);
    }
    return 0;
}
