/* SPDX-License-Identifier: BSD-3-Clause */
#include "shuffle.h"

/* The vectors below are part of the base instruction set on both platforms: nothing to dispatch. */
#if defined(__x86_64__)
#include <emmintrin.h>
#define VECTORS 1
typedef __m128i vector;
#define LOAD(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define STORE(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)
#define LOW(a, b) _mm_unpacklo_epi8(a, b)
#define HIGH(a, b) _mm_unpackhi_epi8(a, b)
#elif defined(__aarch64__)
#include <arm_neon.h>
#define VECTORS 1
typedef uint8x16_t vector;
#define LOAD(p) vld1q_u8(p)
#define STORE(p, v) vst1q_u8(p, v)
#define LOW(a, b) vzip1q_u8(a, b)
#define HIGH(a, b) vzip2q_u8(a, b)
#else
#define VECTORS 0
#endif

#if VECTORS
#define LANES 16
#if !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 16")
#elif __has_feature(undefined_behavior_sanitizer) /* the checks and the unrolling would take clang minutes */
#define UNROLL
#else
#define UNROLL _Pragma("clang loop unroll(full)")
#endif
#define INLINE static inline __attribute__((always_inline))

/* A block is 16 elements of size = 2^k bytes in `size` vectors, its bytes numbered (element, byte) in 4 + k bits.
 * Interleaving the halves of a block rotates that number left by one bit, so 4 rounds make it (byte, element), which is
 * the shuffle, and k rounds make it (element, byte) again. */
INLINE void interleave(vector *v, size_t size, int rounds) {
    vector w[16];
    UNROLL for (int round = 0; round < rounds; round++) {
        UNROLL for (size_t i = 0; i < size / 2; i++) {
            w[2 * i] = LOW(v[i], v[i + size / 2]);
            w[2 * i + 1] = HIGH(v[i], v[i + size / 2]);
        }
        UNROLL for (size_t i = 0; i < size; i++) v[i] = w[i];
    }
}

/* Both return how many of the `count` elements they moved. */
INLINE size_t shuffle_blocks(const uint8_t *in, uint8_t *out, size_t count, size_t size) {
    size_t i = 0;
    for (; count - i >= LANES; i += LANES) {
        vector v[16];
        UNROLL for (size_t b = 0; b < size; b++) v[b] = LOAD(in + i * size + b * LANES);
        interleave(v, size, 4);
        UNROLL for (size_t b = 0; b < size; b++) STORE(out + b * count + i, v[b]);
    }
    return i;
}

INLINE size_t unshuffle_blocks(const uint8_t *in, uint8_t *out, size_t count, size_t size, int log2) {
    size_t i = 0;
    for (; count - i >= LANES; i += LANES) {
        vector v[16];
        UNROLL for (size_t b = 0; b < size; b++) v[b] = LOAD(in + b * count + i);
        interleave(v, size, log2);
        UNROLL for (size_t b = 0; b < size; b++) STORE(out + i * size + b * LANES, v[b]);
    }
    return i;
}

static size_t shuffle_fast(const uint8_t *in, uint8_t *out, size_t count, size_t size) {
    switch (size) {
    case 2:
        return shuffle_blocks(in, out, count, 2);
    case 4:
        return shuffle_blocks(in, out, count, 4);
    case 8:
        return shuffle_blocks(in, out, count, 8);
    case 16:
        return shuffle_blocks(in, out, count, 16);
    default:
        return 0;
    }
}

static size_t unshuffle_fast(const uint8_t *in, uint8_t *out, size_t count, size_t size) {
    switch (size) {
    case 2:
        return unshuffle_blocks(in, out, count, 2, 1);
    case 4:
        return unshuffle_blocks(in, out, count, 4, 2);
    case 8:
        return unshuffle_blocks(in, out, count, 8, 3);
    case 16:
        return unshuffle_blocks(in, out, count, 16, 4);
    default:
        return 0;
    }
}
#else
#define shuffle_fast(in, out, count, size) 0
#define unshuffle_fast(in, out, count, size) 0
#endif

void mrec_shuffle(const uint8_t *in, uint8_t *out, size_t n, size_t size) {
    size_t count = n / size;
    if (count == 0) /* a size of 2^31 is allowed, and would be counted through for nothing */
        return;
    size_t done = shuffle_fast(in, out, count, size);
    for (size_t b = 0; b < size; b++)
        for (size_t i = done; i < count; i++)
            out[b * count + i] = in[i * size + b];
}

void mrec_unshuffle(const uint8_t *in, uint8_t *out, size_t n, size_t size) {
    size_t count = n / size;
    size_t done = unshuffle_fast(in, out, count, size);
    for (size_t i = done; i < count; i++)
        for (size_t b = 0; b < size; b++)
            out[i * size + b] = in[b * count + i];
}
