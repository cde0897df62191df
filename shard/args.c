/* Parsing of the command line. Called by main alone. */
#include "shard/args.h"

#include <fcntl.h>
#include <getopt.h>
#include <string.h>

#include "proto/base/parse.h"

#define MAX_SLOTS   4096u
#define MAX_THREADS 1024u
#define MAX_FD      (1u << 20)

const char brig_shard_help[] =
    "usage: brigade-shard MODEL --layers A:B [--head] --control URL [options]\n"
    "\n"
    "Hold layers A to B-1 of a model (and the head: final norm and output table) and work for one driver\n"
    "at a time. Then: brigade run MODEL --chain URL,URL,... with the control URLs in the order of layers.\n"
    "\n"
    "  --layers A:B|all   layers from A up to and without B; without it the head alone\n"
    "  --head             hold the head too (B is then the last layer)\n"
    "  --control URL      where drivers find this shard: tcp://HOST:PORT, ipc:///PATH, abstract://NAME\n"
    "  --listen URL       where frames come in (default: beside the control address, a port of its own)\n"
    "  --link NAME        how frames come in: shm (shared memory on one machine, else as nng; the default),\n"
    "                     nng (its sockets) or stream (its byte streams, which take less time a hop)\n"
    "  --ctx N            positions of a slot (default: as trained, at most 4096)\n"
    "  --slots N          sequences side by side (default 1)\n"
    "  --threads N        threads that compute (default: the CPUs that this process may use)\n"
    "  --kv f16|f32|q8    how keys and values are stored (default f16, f32 with --exact)\n"
    "  --exact            activations stay f32\n"
    "  --residency NAME   how weights are in memory: map (paged in as used; the default), lock (read in at "
    "the\n"
    "                     start), stream (read in each pass, for a slice larger than its memory)\n"
    "  --ring SIZE        with stream: memory to read into, such as 64M (default: two layers)\n"
    "  --pin PERCENT      with stream: hold so much of the weights all the same, spread over the layers (0)\n"
    "  --insecure         allow plain tcp beyond this machine\n"
    "  --help, --version\n";

enum option_id {
    OPT_LAYERS = 256,
    OPT_HEAD,
    OPT_CONTROL,
    OPT_LISTEN,
    OPT_LINK,
    OPT_CTX,
    OPT_SLOTS,
    OPT_THREADS,
    OPT_KV,
    OPT_EXACT,
    OPT_RESIDENCY,
    OPT_RING,
    OPT_PIN,
    OPT_INSECURE,
    OPT_HELP,
    OPT_VERSION,
    OPT_SLICE,
    OPT_FILE,
    OPT_CACHE,
    OPT_READY,
    OPT_WATCH,
    OPT_PARENT,
    OPT_ONCE,
};

static const struct option OPTIONS[] = {
    {"layers", required_argument, NULL, OPT_LAYERS},
    {"head", no_argument, NULL, OPT_HEAD},
    {"control", required_argument, NULL, OPT_CONTROL},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"link", required_argument, NULL, OPT_LINK},
    {"ctx", required_argument, NULL, OPT_CTX},
    {"slots", required_argument, NULL, OPT_SLOTS},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"kv", required_argument, NULL, OPT_KV},
    {"exact", no_argument, NULL, OPT_EXACT},
    {"residency", required_argument, NULL, OPT_RESIDENCY},
    {"ring", required_argument, NULL, OPT_RING},
    {"pin", required_argument, NULL, OPT_PIN},
    {"insecure", no_argument, NULL, OPT_INSECURE},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {"slice", required_argument, NULL, OPT_SLICE},
    {"file", required_argument, NULL, OPT_FILE},
    {"cache", required_argument, NULL, OPT_CACHE},
    {"ready", required_argument, NULL, OPT_READY},
    {"watch", required_argument, NULL, OPT_WATCH},
    {"parent", required_argument, NULL, OPT_PARENT},
    {"once", no_argument, NULL, OPT_ONCE},
    {NULL, 0, NULL, 0},
};

static const char *name_of(int id)
{
    for (const struct option *o = OPTIONS; o->name != NULL; o++)
        if (o->val == id)
            return o->name;
    return "?";
}

static int number(int id, uint64_t min, uint64_t max, uint64_t *ret, struct brig_fail *fail)
{
    uint64_t v;
    if (!brig_parse_u64(optarg, &v) || v < min || v > max)
        return brig_fail_set(fail, BRIG_EUSAGE, "--%s: \"%s\" is no number from %llu to %llu", name_of(id),
                             optarg, (unsigned long long)min, (unsigned long long)max);
    *ret = v;
    return 0;
}

static int number_u32(int id, uint32_t max, uint32_t *ret, struct brig_fail *fail)
{
    uint64_t v;
    int r = number(id, 1, max, &v, fail);
    if (r == 0)
        *ret = (uint32_t)v;
    return r;
}

/* "fd:N", and N is open. */
static int descriptor(int id, int *ret, struct brig_fail *fail)
{
    uint64_t v;
    if (strncmp(optarg, "fd:", 3) != 0 || !brig_parse_u64(optarg + 3, &v) || v > MAX_FD)
        return brig_fail_set(fail, BRIG_EUSAGE, "--%s: \"%s\" is no descriptor (fd:N)", name_of(id), optarg);
    if (fcntl((int)v, F_GETFD) < 0)
        return brig_fail_set(fail, BRIG_EUSAGE, "--%s: descriptor %u is not open", name_of(id), (unsigned)v);
    *ret = (int)v;
    return 0;
}

static int file_descriptor(struct brig_shard_args *a, struct brig_fail *fail)
{
    if (a->n_files == BRIG_MAX_FILES)
        return brig_fail_set(fail, BRIG_EUSAGE, "--file: more than %u of them", BRIG_MAX_FILES);
    int r = descriptor(OPT_FILE, &a->file_fds[a->n_files], fail);
    if (r == 0)
        a->n_files++;
    return r;
}

static int layers(struct brig_shard_args *a, struct brig_fail *fail)
{
    char first[16];
    uint64_t from, to;
    if (strcmp(optarg, "all") == 0) {
        a->all_layers = true;
        return 0;
    }
    const char *colon = strchr(optarg, ':');
    size_t n = colon != NULL ? (size_t)(colon - optarg) : sizeof first;
    if (n < sizeof first) {
        memcpy(first, optarg, n);
        first[n] = '\0';
    }
    if (n >= sizeof first || !brig_parse_u64(first, &from) || !brig_parse_u64(colon + 1, &to) || from >= to ||
        to > BRIG_MAX_LAYERS)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "--layers: \"%s\" is no range A:B with A < B (B is the first layer not held)",
                             optarg);
    a->some_layers = true;
    a->first_layer = (uint32_t)from;
    a->last_layer = (uint32_t)to;
    return 0;
}

static int kv_type(struct brig_shard_args *a, struct brig_fail *fail)
{
    a->kv_given = true;
    if (brig_kv_type_by_name(optarg, &a->kv))
        return 0;
    return brig_fail_set(fail, BRIG_EUSAGE, "--kv: \"%s\" is none of f16, f32 and q8", optarg);
}

static int residency(struct brig_shard_args *a, struct brig_fail *fail)
{
    const struct brig_residency *row = brig_residency_by_name(optarg);
    if (row == NULL)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "--residency: no residency \"%s\" (`brigade list residencies`)", optarg);
    a->hold = row->hold;
    return 0;
}

static int ring(struct brig_shard_args *a, struct brig_fail *fail)
{
    a->ring_given = true;
    if (brig_parse_size(optarg, &a->ring_bytes) && a->ring_bytes > 0 &&
        a->ring_bytes <= BRIG_STREAM_MAX_MEMORY)
        return 0;
    return brig_fail_set(fail, BRIG_EUSAGE, "--ring: \"%s\" is no size, such as 64M", optarg);
}

static int pin(struct brig_shard_args *a, struct brig_fail *fail)
{
    uint64_t v;
    int r = number(OPT_PIN, 0, 100, &v, fail);
    a->pin_given = true;
    if (r == 0)
        a->pin_percent = (uint32_t)v;
    return r;
}

static int parent(struct brig_shard_args *a, struct brig_fail *fail)
{
    uint64_t v;
    int r = number(OPT_PARENT, 1, 1u << 30, &v, fail);
    if (r == 0)
        a->parent = (long)v;
    return r;
}

static int link_row(struct brig_shard_args *a, struct brig_fail *fail)
{
    a->link = brig_link_by_name(optarg);
    return a->link != NULL
               ? 0
               : brig_fail_set(fail, BRIG_EUSAGE, "--link: no link \"%s\" (`brigade list links`)", optarg);
}

static int set_flag(bool *flag)
{
    *flag = true;
    return 0;
}

static int set_text(const char **text)
{
    *text = optarg;
    return 0;
}

static int take(struct brig_shard_args *a, int id, struct brig_fail *fail)
{
    switch (id) {
    case OPT_LAYERS:
        return layers(a, fail);
    case OPT_HEAD:
        return set_flag(&a->head);
    case OPT_CONTROL:
        return set_text(&a->control);
    case OPT_LISTEN:
        return set_text(&a->listen);
    case OPT_LINK:
        return link_row(a, fail);
    case OPT_CTX:
        return number_u32(id, BRIG_MAX_CTX, &a->ctx, fail);
    case OPT_SLOTS:
        return number_u32(id, MAX_SLOTS, &a->slots, fail);
    case OPT_THREADS:
        return number_u32(id, MAX_THREADS, &a->threads, fail);
    case OPT_KV:
        return kv_type(a, fail);
    case OPT_EXACT:
        return set_flag(&a->exact);
    case OPT_RESIDENCY:
        return residency(a, fail);
    case OPT_RING:
        return ring(a, fail);
    case OPT_PIN:
        return pin(a, fail);
    case OPT_INSECURE:
        return set_flag(&a->insecure);
    case OPT_HELP:
        return set_flag(&a->help);
    case OPT_VERSION:
        return set_flag(&a->version);
    case OPT_SLICE:
        a->launched = true;
        return descriptor(id, &a->slice_fd, fail);
    case OPT_FILE:
        return file_descriptor(a, fail);
    case OPT_CACHE:
        return descriptor(id, &a->cache_fd, fail);
    case OPT_READY:
        return descriptor(id, &a->ready_fd, fail);
    case OPT_WATCH:
        return descriptor(id, &a->watch_fd, fail);
    case OPT_PARENT:
        return parent(a, fail);
    case OPT_ONCE:
        return set_flag(&a->once);
    default:
        return brig_fail_set(fail, BRIG_EUSAGE, "option %d is not known", id);
    }
}

static int check(const struct brig_shard_args *a, struct brig_fail *fail)
{
    const char *wrong = NULL;
    if (a->control == NULL)
        wrong = "--control URL is missing";
    else if (a->launched && (a->model != NULL || a->some_layers || a->all_layers || a->head))
        wrong = "--slice says what to hold: MODEL, --layers and --head do not go with it";
    else if (a->launched && (a->hold != BRIG_HOLD_MAP || a->ring_given || a->pin_given))
        wrong = "--slice says how to hold it: --residency, --ring and --pin do not go with it";
    else if (a->hold != BRIG_HOLD_STREAM && (a->ring_given || a->pin_given))
        wrong = "--ring and --pin go with --residency stream";
    else if (a->launched && a->n_files == 0)
        wrong = "--slice needs --file";
    else if (!a->launched &&
             (a->n_files > 0 || a->cache_fd >= 0 || a->watch_fd >= 0 || a->parent != 0 || a->once))
        wrong = "--file, --cache, --watch, --parent and --once need --slice";
    else if (!a->launched && a->model == NULL)
        wrong = "MODEL is missing";
    else if (!a->launched && !a->some_layers && !a->all_layers && !a->head)
        wrong = "say what to hold: --layers A:B, --head, or both";
    else if (a->some_layers && a->all_layers)
        wrong = "--layers: all or a range";
    return wrong == NULL ? 0 : brig_fail_set(fail, BRIG_EUSAGE, "%s", wrong);
}

int brig_shard_args_parse(struct brig_shard_args *a, int argc, char **argv, struct brig_fail *fail)
{
    int id;
    memset(a, 0, sizeof *a);
    a->slice_fd = a->cache_fd = a->ready_fd = a->watch_fd = -1;
    a->slots = 1;
    a->link = brig_link_default();
    opterr = 0;
    optind = 1;
    while ((id = getopt_long(argc, argv, ":", OPTIONS, NULL)) != -1) {
        if (id == ':')
            return brig_fail_set(fail, BRIG_EUSAGE, "%s needs a value", argv[optind - 1]);
        if (id == '?')
            return brig_fail_set(fail, BRIG_EUSAGE, "%s is no option of brigade-shard, or is given a value",
                                 argv[optind - 1]);
        int r = take(a, id, fail);
        if (r < 0)
            return r;
    }
    if (a->help || a->version)
        return 0;
    if (a->exact && !a->kv_given) /* as `brigade run --exact` means it */
        a->kv = BRIG_KV_F32;
    if (optind < argc)
        a->model = argv[optind++];
    if (optind < argc)
        return brig_fail_set(fail, BRIG_EUSAGE, "one MODEL, not also \"%s\"", argv[optind]);
    return check(a, fail);
}
