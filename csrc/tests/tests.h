/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MREC_TESTS_H
#define MREC_TESTS_H

#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each file's tests, in the order of the layers. */
void test_status(void);
void test_buffer(void);
void test_together(void);
void test_vlen(void);
void test_crc32c(void);
void test_shuffle(void);
void test_runs(void);
void test_quantize(void);
void test_zframe(void);
void test_codec(void);
void test_damage(void);
void test_shard(void);
void test_options(void);
void test_json(void);
void test_strided(void);
void test_reader(void);
void test_encode(void);
void test_archive(void);
void test_writer(void);
void test_threads(void);

/* xorshift64: the same bytes on every machine. */
static inline uint64_t random_u64(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* n bytes in memory of exactly that size, so that a sanitizer sees every step outside. */
static inline uint8_t *random_bytes(size_t n, uint64_t seed) {
    uint8_t *bytes = malloc(n > 0 ? n : 1);
    assert(bytes != NULL);
    uint64_t state = seed * 2 + 1;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(random_u64(&state) >> 56);
    return bytes;
}

#endif
