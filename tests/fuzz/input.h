/* SPDX-License-Identifier: BSD-3-Clause
 * What the fuzz targets have in common: taking choices off the front of an input, and a file in memory. */
#ifndef MREC_FUZZ_INPUT_H
#define MREC_FUZZ_INPUT_H

#undef NDEBUG
#include "bytes.h"
#include "codec.h"
#include "crc32c.h"
#include "vfs.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The reader waits before it believes that a file is damaged; here nobody writes one (linked with --wrap). */
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left) {
    (void)wanted;
    (void)left;
    return 0;
}

/* The rest of an input. */
typedef struct input {
    const uint8_t *data;
    size_t n;
} input;

/* The next byte, 0 behind the end. */
static inline unsigned take(input *in) {
    if (in->n == 0)
        return 0;
    in->n--;
    return *in->data++;
}

/* A choice from 0 to n - 1. */
static inline unsigned choose(input *in, unsigned n) {
    return take(in) % n;
}

/* The rest in memory of exactly its size, so that the sanitizer sees every step outside. */
static inline uint8_t *take_rest(const input *in) {
    uint8_t *copy = malloc(in->n + (in->n == 0));
    assert(copy != NULL);
    if (in->n > 0)
        memcpy(copy, in->data, in->n);
    return copy;
}

/* A pipeline in any legal order: a byte for the number of codecs after the first, then one for each. */
static inline mrec_pipeline take_pipeline(input *in, bool strings, uint32_t elementsize) {
    static const mrec_codec_kind kinds[] = {MREC_CODEC_SHUFFLE, MREC_CODEC_GZIP, MREC_CODEC_ZSTD, MREC_CODEC_CRC32C};
    static const uint32_t sizes[] = {1, 2, 3, 4, 8, 16, 100, INT32_MAX};
    unsigned more = take(in);
    mrec_pipeline pipeline = {.n = 1 + more % MREC_MAX_CODECS};
    pipeline.codecs[0].kind = strings ? MREC_CODEC_VLEN_UTF8 : MREC_CODEC_BYTES;
    pipeline.codecs[0].elementsize = elementsize;
    pipeline.codecs[0].big = !strings && more >= 128;
    for (uint32_t i = 1; i < pipeline.n; i++) {
        unsigned byte = take(in);
        pipeline.codecs[i] = (mrec_codec){
            .kind = kinds[byte % 4], .elementsize = sizes[byte / 4 % 8], .level = 1, .checksum = byte >= 128};
    }
    return pipeline;
}

/* Put the right crc32c over the last four of n bytes. */
static inline void mend_checksum(uint8_t *bytes, size_t n) {
    if (n >= 4)
        mrec_store_u32(bytes + n - 4, mrec_crc32c(0, bytes, n - 4));
}

/* ---- a file in memory: the only one there is ------------------------------------------------------------------ */

typedef struct memory_file {
    mrec_vfs vfs; /* first, so that a call gets from its table to the file */
    const char *path;
    const uint8_t *bytes;
    size_t n;
} memory_file;

static inline int memory_open(mrec_vfs *vfs, const char *path, int flags) {
    (void)flags;
    return strcmp(path, ((memory_file *)(void *)vfs)->path) == 0 ? 0 : -ENOENT;
}

static inline int memory_close(mrec_vfs *vfs, int fd) {
    (void)vfs;
    return fd;
}

static inline ssize_t memory_pread(mrec_vfs *vfs, int fd, void *bytes, size_t n, uint64_t offset) {
    const memory_file *file = (memory_file *)(void *)vfs;
    (void)fd;
    size_t left = offset < file->n ? file->n - (size_t)offset : 0;
    if (n > left)
        n = left;
    if (n > 0)
        memcpy(bytes, file->bytes + offset, n);
    return (ssize_t)n;
}

static inline int64_t memory_size(mrec_vfs *vfs, int fd) {
    (void)fd;
    return (int64_t)((memory_file *)(void *)vfs)->n;
}

static inline memory_file memory_file_of(const char *path, const uint8_t *bytes, size_t n) {
    return (memory_file){
        {.open = memory_open, .close = memory_close, .pread = memory_pread, .size = memory_size}, path, bytes, n};
}

#endif
