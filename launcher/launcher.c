/*
 * The launcher: cuts a model into stages, keeps what outlives their processes (slice descriptions and caches
 * in memfds), and starts and ends the processes. Used by the driver through launcher.h.
 */
#include "launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/place.h"
#include "launcher/program.h"
#include "launcher/stage.h"
#include "proto/base/buf.h"
#include "proto/base/clock.h"
#include "proto/base/mem.h"

extern const struct brig_place_ops brig_place_local;

#define FDS_BESIDE_FILES 4 /* slice, cache, ready, watch */
#define MAX_ARGS         (32 + 2 * BRIG_MAX_FILES)

struct brig_launcher {
    struct brig_launch_opts opts;
    char program[PATH_MAX];
    uint64_t run_name; /* random: part of every address */
    unsigned n_stages;
    struct brig_stage *stages;
    int *file_fds; /* the model's files, above the range that children use */
    int watch[2];  /* pipe: its write end is held by this process alone, so its end tells children of ours */
    int lowest_fd;
};

/* A copy of fd that lies above the numbers that a child gets, so that dup2 in the child never meets itself.
 */
static int high_fd(const struct brig_launcher *l, int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, l->lowest_fd);
}

static int raise_fd(const struct brig_launcher *l, int fd)
{
    int high = fd < 0 ? -1 : high_fd(l, fd);
    if (fd >= 0)
        close(fd);
    return high;
}

static bool write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        p += w;
        n -= (size_t)w;
    }
    return true;
}

static int slice_memfd(struct brig_launcher *l, struct brig_stage *s, struct brig_fail *fail)
{
    struct brig_slice slice;
    struct brig_buf bytes = {0};
    int r = brig_slice_build(&slice, l->opts.model, s->cells, fail);
    if (r < 0)
        return r;
    r = brig_slice_encode(&slice, &bytes);
    brig_slice_release(&slice);
    if (r < 0) {
        brig_buf_release(&bytes);
        return brig_fail_set(fail, BRIG_ENOMEM, "the slice description of shard %u does not fit", s->number);
    }
    s->slice_fd = raise_fd(l, memfd_create("brigade-slice", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    bool ok = s->slice_fd >= 0 && write_all(s->slice_fd, bytes.data, bytes.len) &&
              fcntl(s->slice_fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0;
    brig_buf_release(&bytes);
    return ok ? 0
              : brig_fail_errno(fail, BRIG_EIO, "memory for the slice description of shard %u", s->number);
}

static int stages_init(struct brig_launcher *l, struct brig_fail *fail)
{
    const struct brig_model *m = l->opts.model;
    struct brig_cells *cells = brig_alloc(l->opts.n_shards, sizeof *cells);
    l->stages = brig_alloc(l->opts.n_shards, sizeof *l->stages);
    if (cells == NULL || l->stages == NULL) {
        brig_free(cells);
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u shards", l->opts.n_shards);
    }
    int r = brig_slice_cut(m, l->opts.n_shards, cells, fail);
    for (unsigned i = 0; r == 0 && i < l->opts.n_shards; i++) {
        l->stages[i] = (struct brig_stage){.number = i,
                                           .cells = cells[i],
                                           .n_layers = m->desc.n_layers,
                                           .enclosure = l->opts.enclosure,
                                           .slice_fd = -1,
                                           .cache_fd = -1,
                                           .pid_fd = -1,
                                           .ready_fd = -1};
        l->n_stages = i + 1;
        r = slice_memfd(l, &l->stages[i], fail);
        if (r < 0)
            break;
        l->stages[i].cache_fd = raise_fd(l, memfd_create("brigade-kv", MFD_CLOEXEC));
        if (l->stages[i].cache_fd < 0)
            r = brig_fail_errno(fail, BRIG_EIO, "memory for the cache of shard %u", i);
    }
    brig_free(cells);
    return r;
}

static int descriptors_init(struct brig_launcher *l, struct brig_fail *fail)
{
    const struct brig_model *m = l->opts.model;
    int pipe_fds[2];
    l->lowest_fd = BRIG_PLACE_FIRST_FD + FDS_BESIDE_FILES + (int)m->n_files;
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "a pipe to watch over the shards");
    l->watch[0] = raise_fd(l, pipe_fds[0]);
    l->watch[1] = raise_fd(l, pipe_fds[1]);
    l->file_fds = brig_alloc(m->n_files, sizeof *l->file_fds);
    if (l->file_fds == NULL || l->watch[0] < 0 || l->watch[1] < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "no descriptors left for the shards");
    for (unsigned i = 0; i < m->n_files; i++)
        l->file_fds[i] = -1;
    for (unsigned i = 0; i < m->n_files; i++) {
        l->file_fds[i] = high_fd(l, m->files[i].fd);
        if (l->file_fds[i] < 0)
            return brig_fail_errno(fail, BRIG_EIO, "%s: no descriptor left", m->files[i].path);
    }
    return 0;
}

int brig_launcher_open(struct brig_launcher **ret, const struct brig_launch_opts *opts,
                       struct brig_fail *fail)
{
    struct brig_launcher *l = brig_alloc(1, sizeof *l);
    if (l == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the launcher");
    if (opts->plan != NULL && opts->plan->hold == BRIG_PLAN_STREAM) {
        brig_free(l);
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "the budget does not hold all weights, and shards do not stream them yet");
    }
    l->opts = *opts;
    l->watch[0] = l->watch[1] = -1;
    int r = brig_program_find(opts->program, l->program, sizeof l->program, fail);
    if (r == 0 && getrandom(&l->run_name, sizeof l->run_name, 0) != sizeof l->run_name)
        r = brig_fail_errno(fail, BRIG_EIO, "no random numbers");
    if (r == 0)
        r = descriptors_init(l, fail);
    if (r == 0)
        r = stages_init(l, fail);
    if (r < 0) {
        brig_launcher_close(l);
        return r;
    }
    *ret = l;
    return 0;
}

void brig_launcher_close(struct brig_launcher *l)
{
    if (l == NULL)
        return;
    for (unsigned i = 0; i < l->n_stages; i++)
        if (l->stages[i].pid != 0)
            kill(l->stages[i].pid, SIGKILL);
    for (unsigned i = 0; i < l->n_stages; i++) {
        struct brig_stage *s = &l->stages[i];
        brig_stage_end(s, 1000);
        if (s->slice_fd >= 0)
            close(s->slice_fd);
        if (s->cache_fd >= 0)
            close(s->cache_fd);
    }
    for (unsigned i = 0; l->file_fds != NULL && i < l->opts.model->n_files; i++)
        if (l->file_fds[i] >= 0)
            close(l->file_fds[i]);
    for (int i = 0; i < 2; i++)
        if (l->watch[i] >= 0)
            close(l->watch[i]);
    brig_free(l->file_fds);
    brig_free(l->stages);
    brig_free(l);
}

unsigned brig_launcher_stages(const struct brig_launcher *l)
{
    return l->n_stages;
}

struct brig_cells brig_launcher_cells(const struct brig_launcher *l, unsigned stage)
{
    return l->stages[stage].cells;
}

bool brig_launcher_lives(const struct brig_launcher *l, unsigned stage)
{
    return l->opts.mode->lives(stage, l->n_stages, l->opts.keep);
}

uint64_t brig_launcher_slice_bytes(const struct brig_launcher *l, unsigned stage)
{
    return brig_slice_cells_bytes(l->opts.model, l->stages[stage].cells);
}

uint64_t brig_launcher_cache_bytes(const struct brig_launcher *l, unsigned stage)
{
    struct stat st;
    return fstat(l->stages[stage].cache_fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

/* Arguments as strings in one buffer; argv points into it. */
struct arguments {
    struct brig_buf text;
    size_t offsets[MAX_ARGS];
    unsigned n;
    char *argv[MAX_ARGS + 1];
};

__attribute__((format(printf, 2, 3))) static int add_arg(struct arguments *a, const char *fmt, ...)
{
    char one[PATH_MAX + 64];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(one, sizeof one, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof one || a->n == MAX_ARGS)
        return -BRIG_ELIMIT;
    a->offsets[a->n++] = a->text.len;
    return brig_buf_add(&a->text, one, (size_t)n + 1);
}

static int build_args(struct arguments *a, const struct brig_launcher *l, const struct brig_stage *s)
{
    const struct brig_launch_opts *o = &l->opts;
    int fd = BRIG_PLACE_FIRST_FD, r = 0;
    r |= add_arg(a, "%s", l->program);
    r |= add_arg(a, "--slice=fd:%d", fd++);
    r |= add_arg(a, "--cache=fd:%d", fd++);
    r |= add_arg(a, "--ready=fd:%d", fd++);
    r |= add_arg(a, "--watch=fd:%d", fd++);
    for (unsigned i = 0; i < o->model->n_files; i++)
        r |= add_arg(a, "--file=fd:%d", fd++);
    r |= add_arg(a, "--parent=%ld", (long)getpid());
    r |= add_arg(a, "--control=abstract://brigade-%016llx-%u-%u", (unsigned long long)l->run_name, s->number,
                 s->generation);
    r |= add_arg(a, "--link=%s", o->link->name);
    r |= add_arg(a, "--ctx=%u", o->ctx);
    r |= add_arg(a, "--slots=%u", o->slots);
    r |= add_arg(a, "--kv=%s", brig_kv_type_name(o->kv));
    if (o->threads != 0)
        r |= add_arg(a, "--threads=%u", o->threads);
    if (o->exact)
        r |= add_arg(a, "--exact");
    if (!brig_launcher_lives(l, s->number))
        r |= add_arg(a, "--once");
    for (unsigned i = 0; i < a->n; i++)
        a->argv[i] = a->text.data + a->offsets[i];
    a->argv[a->n] = NULL;
    return r;
}

static int spawn(struct brig_launcher *l, struct brig_stage *s, int ready_write, struct brig_fail *fail)
{
    unsigned n_files = l->opts.model->n_files;
    struct arguments *a = brig_alloc(1, sizeof *a);
    int *fds = brig_alloc(FDS_BESIDE_FILES + n_files, sizeof *fds);
    int r = -BRIG_ENOMEM;
    if (a != NULL && fds != NULL)
        r = build_args(a, l, s);
    if (r < 0) {
        r = brig_fail_set(fail, BRIG_ENOMEM, "out of memory to start shard %u", s->number);
    } else {
        fds[0] = s->slice_fd;
        fds[1] = s->cache_fd;
        fds[2] = ready_write;
        fds[3] = l->watch[0];
        memcpy(fds + FDS_BESIDE_FILES, l->file_fds, n_files * sizeof *fds);
        struct brig_spawn what = {
            .program = l->program, .argv = a->argv, .fds = fds, .n_fds = FDS_BESIDE_FILES + n_files};
        s->spawned_ns = brig_clock_ns();
        r = brig_place_local.spawn(&what, &s->pid, fail);
    }
    if (a != NULL)
        brig_buf_release(&a->text);
    brig_free(a);
    brig_free(fds);
    return r;
}

int brig_launcher_start(struct brig_launcher *l, unsigned stage, struct brig_fail *fail)
{
    struct brig_stage *s = &l->stages[stage];
    int ready[2];
    if (brig_stage_poll(s))
        return brig_fail_set(fail, BRIG_EINTERNAL, "shard %u is started while it lives", stage);
    if (pipe2(ready, O_CLOEXEC) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "a pipe to hear from shard %u", stage);
    ready[0] = raise_fd(l, ready[0]);
    ready[1] = raise_fd(l, ready[1]);
    s->generation++;
    s->words[0] = '\0';
    s->is_ready = false;
    int r = ready[0] < 0 || ready[1] < 0 ? brig_fail_errno(fail, BRIG_EIO, "descriptors for shard %u", stage)
                                         : spawn(l, s, ready[1], fail);
    if (ready[1] >= 0)
        close(ready[1]);
    if (r < 0) {
        s->pid = 0;
        if (ready[0] >= 0)
            close(ready[0]);
        return r;
    }
    s->ready_fd = ready[0];
    brig_enclosure_expose(s->enclosure, s->pid);
    s->pid_fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
    if (s->pid_fd < 0) {
        r = brig_fail_errno(fail, BRIG_EIO, "shard %u: no pidfd", stage);
        kill(s->pid, SIGKILL);
        brig_stage_end(s, 1000);
    }
    return r;
}

bool brig_launcher_alive(struct brig_launcher *l, unsigned stage)
{
    return brig_stage_poll(&l->stages[stage]);
}

int brig_launcher_ready(struct brig_launcher *l, unsigned stage, char control_url[BRIG_URL_MAX],
                        struct brig_fail *fail)
{
    struct brig_stage *s = &l->stages[stage];
    int r = brig_stage_wait_ready(s, brig_clock_ns() + l->opts.timeout_ms * BRIG_NS_PER_MS, fail);
    if (r == 0)
        memcpy(control_url, s->control_url, BRIG_URL_MAX);
    return r;
}

int brig_launcher_reap(struct brig_launcher *l, unsigned stage, uint32_t timeout_ms)
{
    brig_stage_end(&l->stages[stage], timeout_ms);
    return l->stages[stage].wait_status;
}

bool brig_launcher_post_mortem(struct brig_launcher *l, unsigned stage, struct brig_fail *fail)
{
    struct brig_stage *s = &l->stages[stage];
    if (s->generation == 0 || brig_stage_poll(s))
        return false;
    brig_stage_fail(s, fail);
    return true;
}

pid_t brig_launcher_pid(const struct brig_launcher *l, unsigned stage)
{
    return l->stages[stage].pid;
}

uint64_t brig_launcher_start_ns(const struct brig_launcher *l, unsigned stage)
{
    return l->stages[stage].start_ns;
}
