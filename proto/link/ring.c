/* The ring in shared memory. Used by shm.c. */
#include "proto/link/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"

#define HEAD_BYTES  ((size_t)4096) /* slots begin at a page of their own */
#define RING_BYTES  (HEAD_BYTES + BRIG_RING_SLOTS * BRIG_RING_SLOT_BYTES)
#define RING_SEALS  (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define BESIDE_WORD UINT32_MAX

/* Lines of the cache apart: each is written by one side. */
struct brig_ring_mem {
    uint64_t nonce;
    _Atomic uint32_t state;
    struct brig_bell answered;
    _Alignas(64) _Atomic uint32_t put; /* frames put so far */
    struct brig_bell filled;
    _Alignas(64) _Atomic uint32_t taken; /* frames taken so far */
    struct brig_bell freed;
    _Alignas(64) _Atomic uint32_t lengths[BRIG_RING_SLOTS]; /* bytes, or BESIDE_WORD */
};
_Static_assert(offsetof(struct brig_ring_mem, put) == 64 && offsetof(struct brig_ring_mem, taken) == 128 &&
                   offsetof(struct brig_ring_mem, lengths) == 192,
               "docs/wire.md");
_Static_assert(sizeof(struct brig_ring_mem) <= HEAD_BYTES, "the head of a ring fits before its slots");

/* ---- bells ---- */

uint32_t brig_bell_look(const struct brig_bell *b)
{
    return atomic_load(&b->word);
}

void brig_bell_ring(struct brig_bell *b)
{
    atomic_fetch_add(&b->word, 1);
    if (atomic_load(&b->sleepers) != 0)
        syscall(SYS_futex, &b->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void brig_bell_wait(struct brig_bell *b, uint32_t seen, uint64_t until_ns)
{
    struct timespec t = {.tv_sec = (time_t)(until_ns / BRIG_NS_PER_S),
                         .tv_nsec = (long)(until_ns % BRIG_NS_PER_S)};
    atomic_store(&b->sleepers, 1);
    /* An absolute time on the monotonic clock. */
    syscall(SYS_futex, &b->word, FUTEX_WAIT_BITSET, seen, &t, NULL, FUTEX_BITSET_MATCH_ANY);
    atomic_store(&b->sleepers, 0);
}

/* ---- making and finding a ring ---- */

static struct brig_ring_mem *map(int fd)
{
    void *p = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

int brig_ring_new(struct brig_ring *r, struct brig_ring_offer *ret, struct brig_fail *fail)
{
    uint64_t nonce;
    *r = (struct brig_ring){.fd = memfd_create("brigade-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (r->fd >= 0 && ftruncate(r->fd, (off_t)RING_BYTES) == 0 &&
        fcntl(r->fd, F_ADD_SEALS, RING_SEALS) == 0 && getrandom(&nonce, sizeof nonce, 0) == sizeof nonce)
        r->mem = map(r->fd);
    if (r->mem == NULL) {
        int rc = brig_fail_errno(fail, BRIG_EIO, "memory to share with a peer");
        brig_ring_release(r);
        return rc;
    }
    r->mem->nonce = nonce;
    *ret = (struct brig_ring_offer){.fd = (uint32_t)r->fd, .nonce = nonce};
    return 0;
}

/* The peer's descriptor as one of our own, when it is what a ring must be: memory of this user that cannot
 * change its size. */
static int open_offered(uint64_t pid, const struct brig_ring_offer *offer, struct brig_fail *fail)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%llu/fd/%u", (unsigned long long)pid, offer->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s", path);
    int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (uint64_t)st.st_size == RING_BYTES && seals >= 0 && (seals & RING_SEALS) == RING_SEALS)
        return fd;
    close(fd);
    return brig_fail_set(fail, BRIG_EPROTO, "%s is not the shared memory that was offered", path);
}

static struct brig_ring_mem *map_offered(uint64_t pid, const struct brig_ring_offer *offer,
                                         struct brig_fail *fail)
{
    int fd = open_offered(pid, offer, fail);
    struct brig_ring_mem *mem = fd < 0 ? NULL : map(fd);
    if (fd >= 0) {
        if (mem == NULL)
            brig_fail_errno(fail, BRIG_EIO, "shared memory of process %llu", (unsigned long long)pid);
        close(fd);
    }
    if (mem != NULL &&
        mem->nonce != offer->nonce) { /* the process that offered it is gone, and this is another */
        munmap(mem, RING_BYTES);
        brig_fail_set(fail, BRIG_EPROTO, "process %llu has another ring", (unsigned long long)pid);
        mem = NULL;
    }
    return mem;
}

/* Answer an offer: true when it was still open. */
static bool answer(struct brig_ring_mem *mem, uint32_t state)
{
    uint32_t offered = BRIG_RING_OFFERED;
    bool in_time = atomic_compare_exchange_strong(&mem->state, &offered, state);
    brig_bell_ring(&mem->answered);
    return in_time;
}

int brig_ring_accept(struct brig_ring *r, uint64_t pid, const struct brig_ring_offer *offer,
                     struct brig_fail *fail)
{
    struct brig_ring_mem *mem = map_offered(pid, offer, fail);
    if (mem == NULL)
        return -(int)fail->code;
    if (!answer(mem, BRIG_RING_ACCEPTED)) {
        munmap(mem, RING_BYTES);
        return brig_fail_set(fail, BRIG_ETIMEOUT, "the offer of a ring was withdrawn");
    }
    *r = (struct brig_ring){.mem = mem, .fd = -1};
    return 0;
}

void brig_ring_decline(uint64_t pid, const struct brig_ring_offer *offer)
{
    struct brig_fail ignored; /* then the sender waits a little longer */
    struct brig_ring_mem *mem = map_offered(pid, offer, &ignored);
    if (mem == NULL)
        return;
    answer(mem, BRIG_RING_DECLINED);
    munmap(mem, RING_BYTES);
}

void brig_ring_release(struct brig_ring *r)
{
    if (r->mem != NULL)
        munmap(r->mem, RING_BYTES);
    if (r->fd >= 0)
        close(r->fd);
    *r = (struct brig_ring){.fd = -1};
}

bool brig_ring_answered(struct brig_ring *r, uint64_t until_ns)
{
    uint32_t seen = brig_bell_look(&r->mem->answered);
    while (atomic_load(&r->mem->state) == BRIG_RING_OFFERED && brig_clock_ns() < until_ns) {
        brig_bell_wait(&r->mem->answered, seen, until_ns);
        seen = brig_bell_look(&r->mem->answered);
    }
    answer(r->mem, BRIG_RING_DECLINED); /* if nobody has by now, the offer is withdrawn */
    close(r->fd);
    r->fd = -1;
    return atomic_load(&r->mem->state) == BRIG_RING_ACCEPTED;
}

/* ---- sending ---- */

static uint8_t *slot(const struct brig_ring *r)
{
    return (uint8_t *)r->mem + HEAD_BYTES + r->count % BRIG_RING_SLOTS * BRIG_RING_SLOT_BYTES;
}

int brig_ring_room(const struct brig_ring *r)
{
    uint32_t waiting = r->count - atomic_load(&r->mem->taken);
    return waiting > BRIG_RING_SLOTS ? -BRIG_EPROTO : waiting < BRIG_RING_SLOTS;
}

void brig_ring_put(struct brig_ring *r, const void *bytes, size_t n)
{
    if (bytes != NULL)
        memcpy(slot(r), bytes, n);
    atomic_store(&r->mem->lengths[r->count % BRIG_RING_SLOTS], bytes != NULL ? (uint32_t)n : BESIDE_WORD);
    atomic_store(&r->mem->put, ++r->count);
    brig_bell_ring(&r->mem->filled);
}

struct brig_bell *brig_ring_freed(const struct brig_ring *r)
{
    return &r->mem->freed;
}

/* ---- receiving ---- */

int brig_ring_next(const struct brig_ring *r, size_t *ret_bytes)
{
    uint32_t waiting = atomic_load(&r->mem->put) - r->count;
    if (waiting == 0)
        return 0;
    uint32_t n = atomic_load(&r->mem->lengths[r->count % BRIG_RING_SLOTS]);
    if (waiting > BRIG_RING_SLOTS || (n > BRIG_RING_SLOT_BYTES && n != BESIDE_WORD))
        return -BRIG_EPROTO;
    *ret_bytes = n != BESIDE_WORD ? n : 0;
    return n != BESIDE_WORD ? BRIG_RING_HERE : BRIG_RING_BESIDE;
}

void brig_ring_take(struct brig_ring *r, void *out, size_t n)
{
    if (n > 0)
        memcpy(out, slot(r), n);
    atomic_store(&r->mem->taken, ++r->count);
    brig_bell_ring(&r->mem->freed);
}

struct brig_bell *brig_ring_filled(const struct brig_ring *r)
{
    return &r->mem->filled;
}
