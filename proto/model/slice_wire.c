/*
 * The slice description as bytes: a msgpack array of fixed positions,
 *
 *   ["brigade-slice", version, identity (32 bytes),
 *    description (desc_wire.c), [first cell, last cell], [bytes of file 0, ...],
 *    [[role, layer, expert, type (ggml's number), rows, cols, file, offset, bytes, hold, sides], ...],
 *    [reader, buffered (0, 1), bytes of a request, depth, bytes of the ring, bytes of the expert cache]]
 *
 * where sides is [] or, for a packed type,
 *
 *   [columns of a group, zero bias, type of scales, then file, offset, bytes of scales, zeros and groups]
 *
 * Encoded by a launcher, decoded by a shard. The decoder takes nothing that
 * follows from something else on trust: sizes, places and the list of tensors are compared with the
 * description.
 */
#include "proto/model/slice.h"

#include <string.h>

#include <msgpack.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"
#include "proto/base/unpack.h"
#include "proto/model/desc_wire.h"
#include "proto/model/private.h"

#define MAGIC          "brigade-slice"
#define VERSION        5u
#define N_PARTS        8u
#define N_TENSOR       10u /* numbers before the sides */
#define N_STREAM       6u
#define N_SIDES        (3u + 3u * BRIG_SIDE_COUNT)
#define MAX_FILE_BYTES ((uint64_t)1 << 62) /* so that ends and rounding up never overflow */

/* ---- encode ---- */

static int write_buf(void *data, const char *bytes, size_t n)
{
    return brig_buf_add(data, bytes, n);
}

static int pack_text(msgpack_packer *p, const char *s)
{
    size_t n = strlen(s);
    int r = msgpack_pack_str(p, n);
    return r != 0 ? r : msgpack_pack_str_body(p, s, n);
}

static int pack_sides(msgpack_packer *p, const struct brig_sides *s)
{
    if (s->group_cols == 0)
        return msgpack_pack_array(p, 0);
    uint64_t values[N_SIDES] = {s->group_cols, s->zero_bias, s->scale_type->gguf_id};
    unsigned n = 3;
    for (unsigned i = 0; i < BRIG_SIDE_COUNT; i++) {
        values[n++] = s->side[i].file;
        values[n++] = s->side[i].offset;
        values[n++] = s->side[i].bytes;
    }
    int r = msgpack_pack_array(p, n);
    for (unsigned i = 0; i < n && r == 0; i++)
        r = msgpack_pack_uint64(p, values[i]);
    return r;
}

static int pack_tensor(msgpack_packer *p, const struct brig_slice_tensor *t)
{
    const uint64_t values[N_TENSOR] = {(uint64_t)t->role, t->layer,         t->expert, t->type->gguf_id,
                                       t->rows,           t->cols,          t->file,   t->offset,
                                       t->bytes,          (uint64_t)t->hold};
    int r = msgpack_pack_array(p, N_TENSOR + 1);
    for (unsigned i = 0; i < N_TENSOR && r == 0; i++)
        r = msgpack_pack_uint64(p, values[i]);
    return r != 0 ? r : pack_sides(p, &t->sides);
}

static int pack_stream(msgpack_packer *p, const struct brig_stream_set *s)
{
    const uint64_t values[N_STREAM - 1] = {s->buffered, s->request_bytes, s->depth, s->ring_bytes,
                                           s->expert_cache_bytes};
    int r = msgpack_pack_array(p, N_STREAM);
    r = r != 0 ? r : pack_text(p, s->reader);
    for (unsigned i = 0; i < N_STREAM - 1 && r == 0; i++)
        r = msgpack_pack_uint64(p, values[i]);
    return r;
}

int brig_slice_encode(const struct brig_slice *s, struct brig_buf *out)
{
    msgpack_packer packer, *p = &packer;
    size_t before = out->len;
    msgpack_packer_init(p, out, write_buf);
    int r = msgpack_pack_array(p, N_PARTS);
    r = r != 0 ? r : pack_text(p, MAGIC);
    r = r != 0 ? r : msgpack_pack_uint32(p, VERSION);
    r = r != 0 ? r : msgpack_pack_bin(p, sizeof s->identity);
    r = r != 0 ? r : msgpack_pack_bin_body(p, s->identity, sizeof s->identity);
    r = r != 0 ? r : brig_desc_pack(p, &s->desc);
    r = r != 0 ? r : msgpack_pack_array(p, 2);
    r = r != 0 ? r : msgpack_pack_uint32(p, s->cells.first);
    r = r != 0 ? r : msgpack_pack_uint32(p, s->cells.last);
    r = r != 0 ? r : msgpack_pack_array(p, s->n_files);
    for (unsigned i = 0; i < s->n_files && r == 0; i++)
        r = msgpack_pack_uint64(p, s->file_bytes[i]);
    r = r != 0 ? r : msgpack_pack_array(p, s->n_tensors);
    for (unsigned i = 0; i < s->n_tensors && r == 0; i++)
        r = pack_tensor(p, &s->tensors[i]);
    r = r != 0 ? r : pack_stream(p, &s->stream);
    if (r != 0)
        out->len = before;
    return r;
}

/* ---- decode ---- */

static int malformed(struct brig_fail *fail, const char *what)
{
    return brig_fail_set(fail, BRIG_EPROTO, "slice description: %s", what);
}

static int decode_start(struct brig_unpack *u, uint8_t *identity, struct brig_fail *fail)
{
    const char *magic;
    const uint8_t *id;
    size_t magic_bytes, id_bytes;
    uint32_t n, version;
    if (!brig_unpack_array(u, &n) || n != N_PARTS || !brig_unpack_str(u, &magic, &magic_bytes) ||
        !brig_str_eq((struct brig_str){magic, magic_bytes}, MAGIC))
        return malformed(fail, "these bytes are none");
    if (!brig_unpack_u32(u, &version))
        return malformed(fail, "no version");
    if (version != VERSION)
        return brig_fail_set(fail, BRIG_EVERSION, "slice description: version %u, this program reads %u",
                             version, VERSION);
    if (!brig_unpack_bin(u, &id, &id_bytes) || id_bytes != BRIG_IDENTITY_BYTES)
        return malformed(fail, "no model identity");
    memcpy(identity, id, BRIG_IDENTITY_BYTES);
    return 0;
}

static int decode_desc(struct brig_unpack *u, struct brig_desc *d, struct brig_fail *fail)
{
    if (!brig_desc_unpack(u, d))
        return malformed(fail, "the model's description is malformed");
    int r = brig_desc_check(d, fail);
    return r < 0 ? brig_fail_set(fail, BRIG_EPROTO, "slice description: the model's numbers do not fit") : 0;
}

static int decode_cells(struct brig_unpack *u, struct brig_slice *s, struct brig_fail *fail)
{
    uint32_t n;
    if (!brig_unpack_array(u, &n) || n != 2 || !brig_unpack_u32(u, &s->cells.first) ||
        !brig_unpack_u32(u, &s->cells.last))
        return malformed(fail, "no cells");
    if (s->cells.first >= s->cells.last || s->cells.last > s->desc.n_layers + 1)
        return malformed(fail, "the cells are not in the line");
    return 0;
}

static int decode_files(struct brig_unpack *u, struct brig_slice *s, struct brig_fail *fail)
{
    uint32_t n;
    if (!brig_unpack_array(u, &n) || n < 1 || n > BRIG_MAX_FILES)
        return malformed(fail, "no files, or too many");
    s->file_bytes = brig_alloc(n, sizeof *s->file_bytes);
    if (s->file_bytes == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "slice description: no memory for %u files", n);
    for (s->n_files = 0; s->n_files < n; s->n_files++)
        if (!brig_unpack_u64(u, &s->file_bytes[s->n_files]) || s->file_bytes[s->n_files] > MAX_FILE_BYTES)
            return malformed(fail, "a file's size is malformed");
    return 0;
}

static int check_sides(const struct brig_slice *s, const struct brig_slice_tensor *t, struct brig_fail *fail)
{
    struct brig_fail own;
    int r = brig_sides_check(&t->sides, t->type, t->rows, t->cols, &own);
    for (unsigned i = 0; r == 0 && i < BRIG_SIDE_COUNT; i++) {
        const struct brig_side *side = &t->sides.side[i];
        if (side->bytes != 0 && (side->file >= s->n_files ||
                                 !brig_range_ok(side->offset, side->bytes, s->file_bytes[side->file])))
            r = brig_fail_set(&own, BRIG_EPROTO, "what lies beside it lies outside of its file");
    }
    return r < 0 ? brig_fail_set(fail, BRIG_EPROTO, "slice description: %s of layer %u: %s",
                                 brig_role_name(t->role), t->layer, own.text)
                 : 0;
}

static int check_tensor(const struct brig_slice *s, const struct brig_slice_tensor *t, struct brig_fail *fail)
{
    uint64_t rows, cols, bytes;
    brig_role_shape(&s->desc, t->role, &rows, &cols);
    if (t->rows != rows || t->cols != cols || !brig_role_takes(t->role, t->type) ||
        rows % brig_type_panel_rows(t->type) != 0 ||
        !brig_mul_u64(brig_type_row_bytes(t->type, cols), rows, &bytes) || bytes == 0 || bytes != t->bytes)
        return brig_fail_set(fail, BRIG_EPROTO, "slice description: %s of layer %u has a wrong type or shape",
                             brig_role_name(t->role), t->layer);
    if (t->file >= s->n_files || !brig_range_ok(t->offset, t->bytes, s->file_bytes[t->file]))
        return brig_fail_set(fail, BRIG_EPROTO, "slice description: %s of layer %u lies outside of its file",
                             brig_role_name(t->role), t->layer);
    return check_sides(s, t, fail);
}

/* Whether they are those of the type is seen later. */
static bool decode_sides(struct brig_unpack *u, struct brig_sides *s)
{
    uint32_t n, scale_type;
    if (!brig_unpack_array(u, &n) || (n != 0 && n != N_SIDES))
        return false;
    *s = (struct brig_sides){0};
    if (n == 0)
        return true;
    if (!brig_unpack_u32(u, &s->group_cols) || !brig_unpack_u32(u, &s->zero_bias) ||
        !brig_unpack_u32(u, &scale_type) || (s->scale_type = brig_type_by_gguf(scale_type)) == NULL)
        return false;
    for (unsigned i = 0; i < BRIG_SIDE_COUNT; i++) {
        struct brig_side *side = &s->side[i];
        if (!brig_unpack_u32(u, &side->file) || !brig_unpack_u64(u, &side->offset) ||
            !brig_unpack_u64(u, &side->bytes))
            return false;
    }
    return true;
}

/* A vector is not worth a place in a ring, and is converted once. */
static bool may_hold(enum brig_role role, uint32_t hold)
{
    return hold < BRIG_HOLD_COUNT && (hold != BRIG_HOLD_STREAM || !brig_role_is_vector(role));
}

static int decode_tensor(struct brig_unpack *u, struct brig_slice_tensor *t, struct brig_fail *fail)
{
    uint32_t n, role, type, hold;
    if (!brig_unpack_array(u, &n) || n != N_TENSOR + 1 || !brig_unpack_u32(u, &role) ||
        !brig_unpack_u32(u, &t->layer) || !brig_unpack_u32(u, &t->expert) || !brig_unpack_u32(u, &type) ||
        !brig_unpack_u64(u, &t->rows) || !brig_unpack_u64(u, &t->cols) || !brig_unpack_u32(u, &t->file) ||
        !brig_unpack_u64(u, &t->offset) || !brig_unpack_u64(u, &t->bytes) || !brig_unpack_u32(u, &hold) ||
        !decode_sides(u, &t->sides) || role >= BRIG_ROLE_COUNT || !may_hold((enum brig_role)role, hold))
        return malformed(fail, "a tensor is malformed");
    t->role = (enum brig_role)role;
    t->hold = (enum brig_hold)hold;
    t->type = brig_type_by_gguf(type);
    if (t->type == NULL)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "slice description: %s of layer %u has the unknown type %u",
                             brig_role_name(t->role), t->layer, type);
    return 0;
}

/* What must stand at a place of the list follows from the cells. */
static int decode_tensors(struct brig_unpack *u, struct brig_slice *s, struct brig_fail *fail)
{
    uint32_t n;
    if (!brig_unpack_array(u, &n) ||
        n > (size_t)(s->cells.last - s->cells.first) * brig_desc_places(&s->desc))
        return malformed(fail, "too many tensors");
    s->tensors = brig_alloc(n, sizeof *s->tensors);
    if (s->tensors == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "slice description: no memory for %u tensors", n);
    struct brig_slice_place p = {.cell = s->cells.first};
    for (s->n_tensors = 0; s->n_tensors < n; s->n_tensors++, p.expert++) {
        struct brig_slice_tensor *t = &s->tensors[s->n_tensors];
        int r = decode_tensor(u, t, fail);
        if (r < 0)
            return r;
        if (!brig_slice_settle(&s->desc, s->cells, &p) || p.role != (unsigned)t->role ||
            p.expert != t->expert || t->layer != (p.cell < s->desc.n_layers ? p.cell : 0))
            return malformed(fail, "the tensors are not those of its cells");
        if ((r = check_tensor(s, t, fail)) < 0)
            return r;
    }
    return brig_slice_settle(&s->desc, s->cells, &p) ? malformed(fail, "a tensor is missing") : 0;
}

static int decode_stream(struct brig_unpack *u, struct brig_stream_set *s, struct brig_fail *fail)
{
    uint32_t n, buffered;
    const char *reader;
    size_t length;
    if (!brig_unpack_array(u, &n) || n != N_STREAM || !brig_unpack_str(u, &reader, &length) ||
        !brig_unpack_u32(u, &buffered) || !brig_unpack_u32(u, &s->request_bytes) ||
        !brig_unpack_u32(u, &s->depth) || !brig_unpack_u64(u, &s->ring_bytes) ||
        !brig_unpack_u64(u, &s->expert_cache_bytes))
        return malformed(fail, "how to stream is malformed");
    if (length >= sizeof s->reader || memchr(reader, '\0', length) != NULL || buffered > 1 ||
        s->request_bytes > BRIG_STREAM_MAX_REQUEST || s->request_bytes % 4096 != 0 ||
        s->depth > BRIG_STREAM_MAX_DEPTH || s->ring_bytes > BRIG_STREAM_MAX_MEMORY ||
        s->expert_cache_bytes > BRIG_STREAM_MAX_MEMORY)
        return malformed(fail, "how to stream is not possible");
    memcpy(s->reader, reader, length);
    s->buffered = buffered == 1;
    return 0;
}

int brig_slice_decode(struct brig_slice *ret, const void *bytes, size_t n, struct brig_fail *fail)
{
    struct brig_unpack u = brig_unpack_of(bytes, n);
    struct brig_slice s = {0};
    int r;
    if ((r = decode_start(&u, s.identity, fail)) == 0 && (r = decode_desc(&u, &s.desc, fail)) == 0 &&
        (r = decode_cells(&u, &s, fail)) == 0 && (r = decode_files(&u, &s, fail)) == 0 &&
        (r = decode_tensors(&u, &s, fail)) == 0 && (r = decode_stream(&u, &s.stream, fail)) == 0 &&
        !brig_unpack_done(&u))
        r = malformed(fail, "more bytes than it needs");
    if (r < 0) {
        brig_slice_release(&s);
        return r;
    }
    *ret = s;
    return 0;
}
