/* Addresses: which schemes there are, what reaches beyond this machine, where data listens. */
#include "proto/link/parts.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/base/parse.h"

static const char *const schemes[BRIG_SCHEME_COUNT] = {
    [BRIG_SCHEME_IPC] = "ipc",
    [BRIG_SCHEME_ABSTRACT] = "abstract",
    [BRIG_SCHEME_TCP] = "tcp",
    [BRIG_SCHEME_INPROC] = "inproc",
};

bool brig_url_is_local(const struct brig_url *u)
{
    return u->scheme == BRIG_SCHEME_IPC || u->scheme == BRIG_SCHEME_ABSTRACT;
}

const char *brig_url_bare(const char *url)
{
    if (strncmp(url, BRIG_URL_STREAM, strlen(BRIG_URL_STREAM)) == 0)
        return url + strlen(BRIG_URL_STREAM);
    return strncmp(url, BRIG_URL_SHM, strlen(BRIG_URL_SHM)) == 0 ? url + strlen(BRIG_URL_SHM) : url;
}

static int find_scheme(const char *url, const char **rest, struct brig_fail *fail)
{
    const char *plain = brig_url_bare(url);
    const char *colon = strstr(plain, "://");
    if (colon == NULL)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "%s: not an address (ipc:///PATH, abstract://NAME, tcp://HOST:PORT)", url);
    size_t n = (size_t)(colon - plain);
    *rest = colon + 3;
    for (int i = 0; i < BRIG_SCHEME_COUNT; i++)
        if (strlen(schemes[i]) == n && memcmp(schemes[i], plain, n) == 0)
            return i;
    if (n == 7 && memcmp(plain, "tls+tcp", n) == 0)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "%s: tls+tcp is not there yet", url);
    return brig_fail_set(fail, BRIG_EUSAGE, "%s: unknown kind of address (known: ipc, abstract, tcp, inproc)",
                         url);
}

static bool is_loopback(const struct brig_url *u)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (u->v6)
        return inet_pton(AF_INET6, u->host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    if (strcasecmp(u->host, "localhost") == 0)
        return true;
    return inet_pton(AF_INET, u->host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

static bool is_wildcard(const struct brig_url *u)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (u->v6)
        return inet_pton(AF_INET6, u->host, &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
    if (u->host[0] == '\0' || strcmp(u->host, "*") == 0)
        return true;
    return inet_pton(AF_INET, u->host, &v4) == 1 && v4.s_addr == 0;
}

/* A name that a resolver may be asked for, or an address. */
static bool host_ok(const struct brig_url *u)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    struct in6_addr v6;
    if (u->v6)
        return inet_pton(AF_INET6, u->host, &v6) == 1;
    return strcmp(u->host, "*") == 0 || strspn(u->host, letters) == strlen(u->host);
}

static int parse_tcp(struct brig_url *u, const char *url, struct brig_fail *fail)
{
    const char *host = u->rest, *end, *port = NULL;
    uint64_t number = 0;
    u->v6 = host[0] == '[';
    host += u->v6;
    end = u->v6 ? strchr(host, ']') : strchr(host, ':');
    if (end != NULL) {
        memcpy(u->host, host, (size_t)(end - host));
        u->host[end - host] = '\0';
        port = end + (u->v6 ? 2 : 1);
    }
    if (end == NULL || (u->v6 && end[1] != ':') || !brig_parse_u64(port, &number) || number > 65535)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "%s: not tcp://HOST:PORT with a port from 0 to 65535 ([ADDRESS] for IPv6)", url);
    if (!host_ok(u))
        return brig_fail_set(fail, BRIG_EUSAGE, "%s: \"%s\" is no host name or address", url, u->host);
    u->port = (uint16_t)number;
    u->loopback = is_loopback(u);
    u->wildcard = is_wildcard(u);
    return 0;
}

int brig_url_parse(struct brig_url *ret, const char *url, struct brig_fail *fail)
{
    const char *rest = "";
    struct brig_url u = {0};
    if (strlen(url) >= BRIG_URL_MAX)
        return brig_fail_set(fail, BRIG_EUSAGE, "%.60s...: an address has at most %u characters", url,
                             BRIG_URL_MAX - 1);
    for (const char *p = url; *p != '\0'; p++)
        if (*p <= 0x20 || *p >= 0x7f || *p == '%' || *p == '?' || *p == '#')
            return brig_fail_set(fail, BRIG_EUSAGE, "%s: an address has no spaces, %%, ?, # or other letters",
                                 url);
    int scheme = find_scheme(url, &rest, fail);
    if (scheme < 0)
        return scheme;
    u.scheme = (enum brig_scheme)scheme;
    u.shm = brig_url_bare(url) == url + strlen(BRIG_URL_SHM);
    u.stream = brig_url_bare(url) == url + strlen(BRIG_URL_STREAM);
    if (u.stream && u.scheme == BRIG_SCHEME_INPROC)
        return brig_fail_set(fail, BRIG_EUSAGE, "%s: byte streams go to ipc, abstract and tcp addresses",
                             url);
    if (u.shm && !brig_url_is_local(&u))
        return brig_fail_set(fail, BRIG_EUSAGE, "%s: shared memory is offered at ipc or abstract addresses",
                             url);
    snprintf(u.rest, sizeof u.rest, "%s", rest);
    if (u.scheme == BRIG_SCHEME_TCP) {
        int r = parse_tcp(&u, url, fail);
        if (r < 0)
            return r;
    } else if (rest[0] == '\0') {
        return brig_fail_set(fail, BRIG_EUSAGE, "%s: it has no %s", url,
                             u.scheme == BRIG_SCHEME_IPC ? "path" : "name");
    } else if (brig_url_is_local(&u) && strlen(rest) >= sizeof((struct sockaddr_un *)0)->sun_path) {
        return brig_fail_set(fail, BRIG_EUSAGE, "%s: longer than the %zu characters that a local address has",
                             url, sizeof((struct sockaddr_un *)0)->sun_path - 1);
    }
    *ret = u;
    return 0;
}

int brig_link_check_url(const char *url, bool insecure, struct brig_fail *fail)
{
    struct brig_url u;
    int r = brig_url_parse(&u, url, fail);
    if (r < 0)
        return r;
    if (u.scheme == BRIG_SCHEME_TCP && !u.loopback && !insecure)
        return brig_fail_set(
            fail, BRIG_EUSAGE,
            "%s: plain tcp beyond this machine is neither secret nor checked: give --insecure "
            "if the network is trusted",
            url);
    return 0;
}

int brig_link_data_url(const char *control_url, char out[BRIG_URL_MAX], struct brig_fail *fail)
{
    static atomic_uint count;
    struct brig_url u;
    int r = brig_url_parse(&u, control_url, fail);
    if (r < 0)
        return r;
    int n;
    if (u.scheme == BRIG_SCHEME_TCP)
        n = snprintf(out, BRIG_URL_MAX, "tcp://%s%.200s%s:0", u.v6 ? "[" : "", u.host, u.v6 ? "]" : "");
    else /* the process's number too: another life of this control address gets other data addresses */
        n = snprintf(out, BRIG_URL_MAX, "%s-d%ld-%u", control_url, (long)getpid(),
                     atomic_fetch_add(&count, 1));
    if (n < 0 || n >= (int)BRIG_URL_MAX)
        return brig_fail_set(fail, BRIG_EUSAGE, "%s: too long to make data addresses from", control_url);
    return brig_url_parse(&u, out, fail);
}
