/* SPDX-License-Identifier: BSD-3-Clause
 * A stream of bits as zstd's entropy coders write it: from the lowest bit of the first byte on, read from the end. */
#ifndef MREC_BITS_H
#define MREC_BITS_H

#include "bytes.h"

#include <string.h>

#define MREC_INLINE static inline __attribute__((always_inline))

typedef struct mrec_bits {
    uint64_t word; /* bits not yet stored, fewer than 8 after mrec_bits_store */
    unsigned count;
    uint8_t *at;
} mrec_bits;

/* Up to 56 bits in all may be put between two stores. value < 2^n. */
MREC_INLINE void mrec_bits_put(mrec_bits *bits, uint64_t value, unsigned n) {
    bits->word |= value << bits->count;
    bits->count += n;
}

/* Writes 8 bytes, of which those that are not full yet are written again by the next call. */
MREC_INLINE void mrec_bits_store(mrec_bits *bits) {
    memcpy(bits->at, &bits->word, sizeof bits->word); /* little-endian, see codec.c */
    bits->at += bits->count >> 3;
    bits->word >>= bits->count & 56;
    bits->count &= 7;
}

/* Puts the bit that marks the end; returns where the next stream may begin. */
MREC_INLINE uint8_t *mrec_bits_end(mrec_bits *bits) {
    mrec_bits_put(bits, 1, 1);
    mrec_bits_store(bits);
    return bits->at + (bits->count > 0);
}

/* x > 0. */
MREC_INLINE unsigned mrec_log2(uint64_t x) {
    return 63 - (unsigned)__builtin_clzll(x);
}

/* 256 log2(x) for x > 0, linear between powers of two: at most 23 too small. */
MREC_INLINE uint32_t mrec_log2_256(uint64_t x) {
    unsigned whole = mrec_log2(x);
    return whole * 256 + (uint32_t)(x << (63 - whole) >> 55 & 255);
}

#endif
