/*
 * Metadata that a format makes instead of reading it, for formats that name things otherwise than GGUF:
 * entries under GGUF's keys. Failure is sticky: put all, then ask brig_meta_make_done once. Private to this
 * room.
 */
#ifndef BRIG_PROTO_MODEL_META_MAKE_H
#define BRIG_PROTO_MODEL_META_MAKE_H

#include "proto/model/meta.h"

#define BRIG_META_MAKE_MAX 64u /* entries; far above what a config.json comes to */

struct brig_meta_make {
    struct brig_meta meta; /* keys, strings and arrays are owned here */
    const char *arch;      /* borrowed: "<arch>." is put before a key that begins with a dot */
    bool failed;
};

/* {0} with arch set is a valid start. Keys and values are copied. Floats are kept as 32-bit ones, as GGUF
 * keeps them. */
void brig_meta_put_u64(struct brig_meta_make *k, const char *key, uint64_t value);
void brig_meta_put_f32(struct brig_meta_make *k, const char *key, double value);
void brig_meta_put_bool(struct brig_meta_make *k, const char *key, bool value);
void brig_meta_put_str(struct brig_meta_make *k, const char *key, struct brig_str value);
void brig_meta_put_f32s(struct brig_meta_make *k, const char *key, const float *values, size_t n);

/* Sort the keys; fails when memory was out or a key comes twice. */
int brig_meta_make_done(struct brig_meta_make *k, struct brig_fail *fail);

void brig_meta_make_release(struct brig_meta_make *k);

#endif
