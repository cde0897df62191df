/* Shared by the tests of proto/disk/: files whose every byte is known, on the disk that the build lies on. */
#ifndef BRIG_TESTS_UNIT_DISK_UTIL_H
#define BRIG_TESTS_UNIT_DISK_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base/size.h"
#include "proto/disk/file.h"

static inline uint8_t disk_byte(uint64_t offset)
{
    return (uint8_t)((offset * 0x9e3779b97f4a7c15u) >> 56);
}

/* [bytes] at a multiple of a page, all zero. */
static inline uint8_t *disk_buffer(uint64_t bytes)
{
    uint8_t *p = aligned_alloc(4096, brig_align_up(bytes, 4096));
    assert_non_null(p);
    memset(p, 0, bytes);
    return p;
}

static inline void disk_check(const uint8_t *buf, uint64_t offset, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (buf[i] != disk_byte(offset + i))
            fail_msg("byte %llu of the file was read wrongly", (unsigned long long)(offset + i));
}

/* A file of so many bytes, open for reading; under build/, the name is gone when it is closed. */
static inline struct brig_disk_file disk_file(uint64_t bytes, bool direct)
{
    char path[] = "build/disk-test-XXXXXX";
    int fd = mkstemp(path);
    struct brig_disk_file f;
    struct brig_fail why;
    if (fd < 0)
        fail_msg("%s: no file can be made", path);
    uint8_t *buf = disk_buffer(bytes);
    for (uint64_t i = 0; i < bytes; i++)
        buf[i] = disk_byte(i);
    assert_true(write(fd, buf, bytes) == (ssize_t)bytes);
    assert_int_equal(fsync(fd), 0);
    close(fd);
    free(buf);
    if (brig_disk_file_open(&f, path, direct, &why) != 0)
        fail_msg("%s", why.text);
    assert_true(f.bytes == bytes);
    return f;
}

static inline void disk_truncate(const struct brig_disk_file *f, uint64_t bytes)
{
    assert_int_equal(truncate(f->name, (off_t)bytes), 0);
}

static inline void disk_file_done(struct brig_disk_file *f)
{
    unlink(f->name);
    brig_disk_file_close(f);
}

#endif
