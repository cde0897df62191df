/* A model for tests of the driver that is nothing but a token table: one layer is said to be there, whose
 * work the test plays. */
#ifndef BRIG_TESTS_UNIT_TABLE_UTIL_H
#define BRIG_TESTS_UNIT_TABLE_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/model/model.h"

struct table_model { /* points into itself: it stays where it is */
    struct brig_model model;
    struct brig_model_file file;
    struct brig_tensor table;
};

/* rows [vocab, hidden] f32. */
static inline void table_model_open(struct table_model *t, const void *rows, uint32_t vocab, uint32_t hidden)
{
    uint64_t bytes = (uint64_t)vocab * hidden * sizeof(float);
    int fd = memfd_create("table", MFD_CLOEXEC);
    assert_int_equal(write(fd, rows, bytes), bytes);
    t->file = (struct brig_model_file){.path = (char *)(uintptr_t) "table", .fd = fd, .bytes = bytes};
    t->table = (struct brig_tensor){.name = {"token_embd", 10},
                                    .type = brig_type_at(BRIG_TYPE_F32),
                                    .n_dims = 2,
                                    .dims = {hidden, vocab, 1, 1},
                                    .bytes = bytes,
                                    .role = BRIG_ROLE_TOKEN_TABLE};
    t->model =
        (struct brig_model){.path = "table",
                            .desc = {.n_layers = 1, .hidden = hidden, .vocab = vocab, .embed_scale = 1.0f},
                            .n_files = 1,
                            .files = &t->file,
                            .n_tensors = 1,
                            .tensors = &t->table};
}

static inline void table_model_close(struct table_model *t)
{
    close(t->file.fd);
}

#endif
