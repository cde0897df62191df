/*
 * The KV cache as a file: one header page, then for each slot, layer of the slice, K and V, and KV head a
 * plane of ctx rows of head_dim elements that begins on a page. Called by serve (reserve, operations) and by
 * the block (addresses). Only the compute thread uses a cache once it is open.
 *
 * Pages appear by fallocate alone, never by a write to a hole: a full memory is an error in words. Two marks
 * a slot save the calls: `sure` positions are known to have pages, beyond `maybe` none has.
 */
#include "shard/cache/kv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

#define KV_MAGIC     0x564b676972427531ull
#define KV_VERSION   1u
#define KV_MAX_BYTES ((uint64_t)1 << 40)
#define KV_MAX_SLOTS 65536u

/* The first bytes of the file; read back by programs of the same machine only. */
struct kv_header {
    uint64_t magic;
    uint32_t version, kv_type, slots, ctx, cells_first, cells_last, n_kv_heads, head_dim;
    uint64_t page_bytes, total_bytes;
    uint8_t identity[BRIG_IDENTITY_BYTES];
};

struct brig_kv {
    int fd;
    uint8_t *map; /* NULL: a slice without layers */
    struct kv_header header;
    uint32_t n_layers;    /* of the slice */
    uint64_t row_bytes;   /* one position of one plane */
    uint64_t plane_bytes; /* whole pages */
    uint64_t n_planes;    /* of a slot */
    uint64_t slot_bytes;
    uint32_t *sure, *maybe; /* [slots] */
};

static uint32_t layers_of(const struct brig_slice *s)
{
    uint32_t last = s->cells.last < s->desc.n_layers ? s->cells.last : s->desc.n_layers;
    return last > s->cells.first ? last - s->cells.first : 0;
}

static int lay_out(struct brig_kv *kv, const struct brig_slice *slice, struct brig_kv_shape shape,
                   struct brig_fail *fail)
{
    const struct brig_desc *d = &slice->desc;
    struct kv_header *h = &kv->header;
    if (shape.slots < 1 || shape.slots > KV_MAX_SLOTS || shape.ctx < 1 || shape.ctx > BRIG_MAX_CTX)
        return brig_fail_set(fail, BRIG_ELIMIT, "a KV cache of %u slots of %u positions is out of range",
                             shape.slots, shape.ctx);
    *h = (struct kv_header){.magic = KV_MAGIC,
                            .version = KV_VERSION,
                            .kv_type = shape.type,
                            .slots = shape.slots,
                            .ctx = shape.ctx,
                            .cells_first = slice->cells.first,
                            .cells_last = slice->cells.last,
                            .n_kv_heads = d->n_kv_heads,
                            .head_dim = d->head_dim,
                            .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
    memcpy(h->identity, slice->identity, sizeof h->identity);
    kv->n_layers = layers_of(slice);
    kv->row_bytes = brig_kv_row_bytes(shape.type, d->head_dim);
    bool ok = brig_mul_u64(kv->row_bytes, shape.ctx, &kv->plane_bytes) && kv->plane_bytes <= KV_MAX_BYTES;
    if (ok)
        kv->plane_bytes = brig_align_up(kv->plane_bytes, h->page_bytes);
    kv->n_planes = 2 * (uint64_t)kv->n_layers * d->n_kv_heads;
    ok = ok && brig_mul_u64(kv->plane_bytes, kv->n_planes, &kv->slot_bytes) &&
         brig_mul_u64(kv->slot_bytes, shape.slots, &h->total_bytes) &&
         brig_add_u64(h->total_bytes, h->page_bytes, &h->total_bytes) && h->total_bytes <= KV_MAX_BYTES;
    if (!ok)
        return brig_fail_set(fail, BRIG_ELIMIT,
                             "a KV cache of %u slots of %u positions for %u layers would pass 1 TiB",
                             shape.slots, shape.ctx, kv->n_layers);
    return 0;
}

static int write_header(const struct brig_kv *kv, struct brig_fail *fail)
{
    const struct kv_header *h = &kv->header;
    if (ftruncate(kv->fd, (off_t)h->total_bytes) < 0 || pwrite(kv->fd, h, sizeof *h, 0) != (ssize_t)sizeof *h)
        return brig_fail_errno(fail, BRIG_EIO, "the KV cache of %llu bytes cannot be made",
                               (unsigned long long)h->total_bytes);
    return 0;
}

static int compare_header(const struct kv_header *want, const struct kv_header *got, struct brig_fail *fail)
{
    if (got->magic != want->magic)
        return brig_fail_set(fail, BRIG_EFORMAT, "the KV cache file holds something else");
    if (got->version != want->version)
        return brig_fail_set(fail, BRIG_EVERSION, "the KV cache has version %u, this program writes %u",
                             got->version, want->version);
    if (memcmp(got->identity, want->identity, sizeof got->identity) != 0)
        return brig_fail_set(fail, BRIG_EMISMATCH, "the KV cache belongs to another model");
    if (got->cells_first != want->cells_first || got->cells_last != want->cells_last)
        return brig_fail_set(fail, BRIG_EMISMATCH, "the KV cache belongs to cells %u:%u, this slice is %u:%u",
                             got->cells_first, got->cells_last, want->cells_first, want->cells_last);
    if (got->kv_type != want->kv_type || got->slots != want->slots || got->ctx != want->ctx)
        return brig_fail_set(fail, BRIG_EMISMATCH,
                             "the KV cache has %u slots of %u positions in %s, wanted are %u of %u in %s",
                             got->slots, got->ctx, brig_kv_type_name(got->kv_type), want->slots, want->ctx,
                             brig_kv_type_name(want->kv_type));
    if (memcmp(got, want, sizeof *got) != 0)
        return brig_fail_set(fail, BRIG_EMISMATCH, "the KV cache has another layout");
    return 0;
}

/* An empty file, or one whose maker ended before it wrote the header, is made new: *fresh. */
static int check_file(struct brig_kv *kv, bool *fresh, struct brig_fail *fail)
{
    const struct kv_header zero = {0};
    struct kv_header got = {0};
    struct stat st;
    if (fstat(kv->fd, &st) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "the KV cache");
    ssize_t n = st.st_size == 0 ? 0 : pread(kv->fd, &got, sizeof got, 0);
    if (n < 0)
        return brig_fail_errno(fail, BRIG_EIO, "the KV cache cannot be read");
    bool size_fits = (uint64_t)st.st_size == kv->header.total_bytes;
    *fresh = st.st_size == 0 || (size_fits && memcmp(&got, &zero, sizeof got) == 0);
    if (*fresh)
        return write_header(kv, fail);
    int r = compare_header(&kv->header, &got, fail);
    if (r == 0 && !size_fits)
        r = brig_fail_set(fail, BRIG_EFORMAT, "the KV cache file has %llu bytes, its header says %llu",
                          (unsigned long long)st.st_size, (unsigned long long)kv->header.total_bytes);
    return r;
}

static int map_file(struct brig_kv *kv, struct brig_fail *fail)
{
    bool fresh;
    int r = check_file(kv, &fresh, fail);
    if (r < 0)
        return r;
    uint32_t slots = kv->header.slots;
    kv->sure = brig_alloc(slots, sizeof *kv->sure);
    kv->maybe = brig_alloc(slots, sizeof *kv->maybe);
    if (kv->sure == NULL || kv->maybe == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u slots of a KV cache", slots);
    for (uint32_t i = 0; i < slots; i++)
        kv->maybe[i] = fresh ? 0 : kv->header.ctx;
    void *p = mmap(NULL, kv->header.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kv->fd, 0);
    if (p == MAP_FAILED)
        return brig_fail_errno(fail, BRIG_ENOMEM, "the KV cache of %llu bytes cannot be mapped",
                               (unsigned long long)kv->header.total_bytes);
    kv->map = p;
    return 0;
}

int brig_kv_open(struct brig_kv **ret, int fd, const struct brig_slice *slice, struct brig_kv_shape shape,
                 struct brig_fail *fail)
{
    struct brig_kv *kv = brig_alloc(1, sizeof *kv);
    if (kv == NULL) {
        if (fd >= 0)
            close(fd);
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a KV cache");
    }
    kv->fd = fd;
    int r = lay_out(kv, slice, shape, fail);
    if (r == 0 && kv->n_layers > 0)
        r = fd >= 0 ? map_file(kv, fail) : brig_fail_set(fail, BRIG_EINTERNAL, "layers without a KV cache");
    if (r < 0) {
        brig_kv_close(kv);
        return r;
    }
    *ret = kv;
    return 0;
}

void brig_kv_close(struct brig_kv *kv)
{
    if (kv == NULL)
        return;
    if (kv->map != NULL)
        munmap(kv->map, kv->header.total_bytes);
    if (kv->fd >= 0)
        close(kv->fd);
    brig_free(kv->sure);
    brig_free(kv->maybe);
    brig_free(kv);
}

static uint64_t plane_offset(const struct brig_kv *kv, uint32_t slot, uint64_t plane)
{
    return kv->header.page_bytes + slot * kv->slot_bytes + plane * kv->plane_bytes;
}

static uint64_t page_floor(const struct brig_kv *kv, uint64_t bytes)
{
    return bytes & ~(kv->header.page_bytes - 1);
}

/* Pages for [offset, offset + bytes) of the file. */
static int allocate(struct brig_kv *kv, uint64_t offset, uint64_t bytes, struct brig_fail *fail)
{
    int r;
    do {
        r = fallocate(kv->fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
    } while (r < 0 && errno == EINTR);
    if (r < 0)
        return brig_fail_errno(fail, BRIG_ENOMEM, "no space for the KV cache to grow");
    return 0;
}

static int punch(struct brig_kv *kv, uint64_t offset, uint64_t bytes, struct brig_fail *fail)
{
    if (bytes == 0)
        return 0;
    if (fallocate(kv->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "the KV cache cannot give back space");
    return 0;
}

static int check_slot(const struct brig_kv *kv, uint32_t slot, struct brig_fail *fail)
{
    if (slot < kv->header.slots)
        return 0;
    return brig_fail_set(fail, BRIG_ELIMIT, "slot %u of a KV cache with %u slots", slot, kv->header.slots);
}

int brig_kv_reserve(struct brig_kv *kv, uint32_t slot, uint32_t pos, uint32_t count, struct brig_fail *fail)
{
    int r = check_slot(kv, slot, fail);
    if (r < 0)
        return r;
    if (!brig_range_ok(pos, count, kv->header.ctx))
        return brig_fail_set(fail, BRIG_ELIMIT, "positions %u to %llu of a context of %u", pos,
                             (unsigned long long)pos + count, kv->header.ctx);
    uint32_t end = pos + count;
    if (kv->map == NULL || end <= kv->sure[slot])
        return 0;
    /* From what is known to be there, not from pos: a row reads every position before its own. */
    uint64_t from = page_floor(kv, kv->sure[slot] * kv->row_bytes);
    uint64_t to = brig_align_up(end * kv->row_bytes, kv->header.page_bytes);
    uint64_t covered = to / kv->row_bytes;
    kv->maybe[slot] = kv->maybe[slot] > end ? kv->maybe[slot] : end;
    for (uint64_t p = 0; p < kv->n_planes; p++) {
        r = allocate(kv, plane_offset(kv, slot, p) + from, to - from, fail);
        if (r < 0)
            return r;
    }
    kv->sure[slot] = covered < kv->header.ctx ? (uint32_t)covered : kv->header.ctx;
    if (kv->maybe[slot] < kv->sure[slot])
        kv->maybe[slot] = kv->sure[slot];
    return 0;
}

static int drop(struct brig_kv *kv, uint32_t slot, struct brig_fail *fail)
{
    if (kv->map == NULL || kv->maybe[slot] == 0)
        return 0;
    int r = punch(kv, plane_offset(kv, slot, 0), kv->slot_bytes, fail);
    if (r < 0)
        return r;
    kv->sure[slot] = kv->maybe[slot] = 0;
    return 0;
}

static int truncate_slot(struct brig_kv *kv, uint32_t slot, uint32_t n_pos, struct brig_fail *fail)
{
    if (kv->map == NULL || kv->maybe[slot] <= n_pos)
        return 0;
    uint64_t keep = brig_align_up(n_pos * kv->row_bytes, kv->header.page_bytes);
    uint64_t covered = keep / kv->row_bytes;
    for (uint64_t p = 0; p < kv->n_planes; p++) {
        int r = punch(kv, plane_offset(kv, slot, p) + keep, kv->plane_bytes - keep, fail);
        if (r < 0)
            return r;
    }
    if (covered < kv->sure[slot])
        kv->sure[slot] = (uint32_t)covered;
    if (covered < kv->maybe[slot])
        kv->maybe[slot] = (uint32_t)covered;
    return 0;
}

/* Copy what of one plane has pages; holes stay holes. */
static int copy_plane(struct brig_kv *kv, uint64_t from, uint64_t to, struct brig_fail *fail)
{
    uint64_t at = 0;
    while (at < kv->plane_bytes) {
        off_t data = lseek(kv->fd, (off_t)(from + at), SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return 0;
        off_t hole = data < 0 ? -1 : lseek(kv->fd, data, SEEK_HOLE);
        if (hole < 0)
            return brig_fail_errno(fail, BRIG_EIO, "the KV cache cannot be searched");
        uint64_t begin = (uint64_t)data - from, end = (uint64_t)hole - from;
        if (begin >= kv->plane_bytes)
            return 0;
        if (end > kv->plane_bytes)
            end = kv->plane_bytes;
        int r = allocate(kv, to + begin, end - begin, fail);
        if (r < 0)
            return r;
        memcpy(kv->map + to + begin, kv->map + from + begin, end - begin);
        at = end;
    }
    return 0;
}

static int copy_slot(struct brig_kv *kv, uint32_t slot, uint32_t source, struct brig_fail *fail)
{
    int r = check_slot(kv, source, fail);
    if (r < 0 || kv->map == NULL || slot == source)
        return r;
    r = drop(kv, slot, fail);
    if (r < 0)
        return r;
    kv->maybe[slot] = kv->maybe[source];
    for (uint64_t p = 0; r == 0 && p < kv->n_planes; p++)
        r = copy_plane(kv, plane_offset(kv, source, p), plane_offset(kv, slot, p), fail);
    return r; /* sure stays 0: pages of the source that were never written may have been skipped */
}

int brig_kv_apply(struct brig_kv *kv, const struct brig_cache_op *ops, unsigned n, struct brig_fail *fail)
{
    for (unsigned i = 0; i < n; i++) {
        int r = check_slot(kv, ops[i].slot, fail);
        if (r < 0)
            return r;
        switch (ops[i].kind) {
        case BRIG_CACHE_DROP:
            r = drop(kv, ops[i].slot, fail);
            break;
        case BRIG_CACHE_TRUNCATE:
            r = truncate_slot(kv, ops[i].slot, ops[i].arg, fail);
            break;
        case BRIG_CACHE_COPY:
            r = copy_slot(kv, ops[i].slot, ops[i].arg, fail);
            break;
        default:
            r = brig_fail_set(fail, BRIG_EPROTO, "cache operation %d is not known", (int)ops[i].kind);
        }
        if (r < 0)
            return r;
    }
    return 0;
}

static void *plane(struct brig_kv *kv, uint32_t slot, uint32_t layer, uint32_t kv_head, unsigned is_v)
{
    uint64_t number =
        ((uint64_t)(layer - kv->header.cells_first) * 2 + is_v) * kv->header.n_kv_heads + kv_head;
    return kv->map + plane_offset(kv, slot, number);
}

void *brig_kv_k(struct brig_kv *kv, uint32_t slot, uint32_t layer, uint32_t kv_head)
{
    return plane(kv, slot, layer, kv_head, 0);
}

void *brig_kv_v(struct brig_kv *kv, uint32_t slot, uint32_t layer, uint32_t kv_head)
{
    return plane(kv, slot, layer, kv_head, 1);
}

size_t brig_kv_stride(const struct brig_kv *kv)
{
    return (size_t)kv->row_bytes;
}

struct brig_kv_shape brig_kv_shape_of(const struct brig_kv *kv)
{
    return (struct brig_kv_shape){
        .type = (enum brig_kv_id)kv->header.kv_type, .slots = kv->header.slots, .ctx = kv->header.ctx};
}
