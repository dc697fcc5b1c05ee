/* SPDX-License-Identifier: BSD-3-Clause */
#define _POSIX_C_SOURCE 200809L

#include "crc32c.h"

#include "cpu.h"

#include <libdeflate.h>
#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* ---- portable: eight bytes at a time ------------------------------------------------------------------------ */

static uint32_t tables[8][256]; /* tables[k][b]: byte b followed by k zero bytes */
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void) {
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xff];
}

static uint32_t crc32c_portable(uint32_t crc, const uint8_t *p, size_t n) {
    pthread_once(&tables_once, make_tables);
    for (; n >= 8; n -= 8, p += 8) {
        crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^ tables[4][crc >> 24] ^
              tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
    }
    for (; n > 0; n--, p++)
        crc = (crc >> 8) ^ tables[0][(crc ^ *p) & 0xff];
    return crc;
}

/* ---- with the processor's crc32 instruction ----------------------------------------------------------------- */

#if defined(__x86_64__) || defined(__aarch64__)
static inline uint64_t load64(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}
#endif

#if defined(__x86_64__)
#define HARDWARE __attribute__((target("sse4.2,pclmul")))
#define LONG_BLOCK 2048
#define LONG_SHIFT1 0xa51b6135u
#define LONG_SHIFT2 0x82f89c77u
#define SHORT_BLOCK 256
#define SHORT_SHIFT1 0xb9e02b86u
#define SHORT_SHIFT2 0xdd7e3b0cu

/* The instruction takes three cycles and a new one starts in each, so three runs of `block` bytes go side by side.
 * `shift1` and `shift2` are x^(8 block - 33) and x^(16 block - 33) modulo the polynomial, reflected: the carry-less
 * product with one of them moves a checksum over one or two blocks of zeros. */
HARDWARE static inline uint32_t moved(uint32_t crc, uint32_t shift) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)crc), _mm_cvtsi32_si128((int)shift), 0);
    return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

HARDWARE static inline uint32_t three_blocks(uint32_t crc, const uint8_t *p, size_t block, uint32_t shift1,
                                             uint32_t shift2) {
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < block; i += 8) {
        a = _mm_crc32_u64(a, load64(p + i));
        b = _mm_crc32_u64(b, load64(p + block + i));
        c = _mm_crc32_u64(c, load64(p + 2 * block + i));
    }
    return moved((uint32_t)a, shift2) ^ moved((uint32_t)b, shift1) ^ (uint32_t)c;
}

HARDWARE static uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t n) {
    for (; n >= 3 * LONG_BLOCK; n -= 3 * LONG_BLOCK, p += 3 * LONG_BLOCK)
        crc = three_blocks(crc, p, LONG_BLOCK, LONG_SHIFT1, LONG_SHIFT2);
    for (; n >= 3 * SHORT_BLOCK; n -= 3 * SHORT_BLOCK, p += 3 * SHORT_BLOCK)
        crc = three_blocks(crc, p, SHORT_BLOCK, SHORT_SHIFT1, SHORT_SHIFT2);
    for (; n >= 8; n -= 8, p += 8)
        crc = (uint32_t)_mm_crc32_u64(crc, load64(p));
    for (; n > 0; n--, p++)
        crc = _mm_crc32_u8(crc, *p);
    return crc;
}

/* Where there is room for it, four vectors of 32 bytes are carried along: each 16 bytes of one, times x^(8 distance) by
 * two carry-less products, are added to the 16 bytes that stand `distance` after them. The constants are x^(8 distance
 * + 31) and x^(8 distance - 33) modulo the polynomial, reflected, for the first and the last 8 of them. */
#define FOLDED __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.2")))
#define FOLD 128

FOLDED static inline __m256i load256(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

FOLDED static inline __m256i folded(__m256i x, const long long over[2], __m256i next) {
    __m256i by = _mm256_set_epi64x(over[1], over[0], over[1], over[0]);
    __m256i moved = _mm256_xor_si256(_mm256_clmulepi64_epi128(x, by, 0x00), _mm256_clmulepi64_epi128(x, by, 0x11));
    return _mm256_xor_si256(moved, next);
}

/* n >= FOLD. What is left of the bytes is 16 with the same remainder, and the fewer than FOLD at the end. */
FOLDED static uint32_t crc32c_folded(uint32_t crc, const uint8_t *p, size_t n) {
    static const long long over_16[] = {0xf20c0dfe, 0x493c7d27}, over_32[] = {0x3da6d0cb, 0xba4fc28e},
                           over_128[] = {0x6992cea2, 0x0d3b6092};
    __m256i x[FOLD / 32];
    for (int i = 0; i < FOLD / 32; i++)
        x[i] = load256(p + 32 * i);
    x[0] = _mm256_xor_si256(x[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)crc)));
    for (p += FOLD, n -= FOLD; n >= FOLD; p += FOLD, n -= FOLD)
        for (int i = 0; i < FOLD / 32; i++)
            x[i] = folded(x[i], over_128, load256(p + 32 * i));
    for (int i = 1; i < FOLD / 32; i++)
        x[i] = folded(x[i - 1], over_32, x[i]);
    __m256i last = x[FOLD / 32 - 1];
    __m128i first_half = _mm256_castsi256_si128(last), by = _mm_set_epi64x(over_16[1], over_16[0]);
    __m128i left =
        _mm_xor_si128(_mm_clmulepi64_si128(first_half, by, 0x00), _mm_clmulepi64_si128(first_half, by, 0x11));
    left = _mm_xor_si128(left, _mm256_extracti128_si256(last, 1));
    crc = (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(left));
    crc = (uint32_t)_mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(left, 1));
    return crc32c_hardware(crc, p, n);
}

#elif defined(__aarch64__)
#if defined(__clang__) /* whose arm_acle.h wants the extension at build time */
#define HARDWARE __attribute__((target("crc")))
#define CRC_WORD __builtin_arm_crc32cd
#define CRC_BYTE __builtin_arm_crc32cb
#else
#include <arm_acle.h>
#define HARDWARE __attribute__((target("+crc")))
#define CRC_WORD __crc32cd
#define CRC_BYTE __crc32cb
#endif

HARDWARE static uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t n) {
    for (; n >= 8; n -= 8, p += 8)
        crc = CRC_WORD(crc, load64(p));
    for (; n > 0; n--, p++)
        crc = CRC_BYTE(crc, *p);
    return crc;
}
#endif

uint32_t mrec_crc32c(uint32_t crc, const void *bytes, size_t n) {
#if defined(__x86_64__)
    if (n >= 2 * FOLD && mrec_cpu() & MREC_CPU_VPCLMUL)
        return ~crc32c_folded(~crc, bytes, n);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    if (mrec_cpu() & MREC_CPU_CRC32C)
        return ~crc32c_hardware(~crc, bytes, n);
#endif
    return ~crc32c_portable(~crc, bytes, n);
}

uint32_t mrec_crc32(uint32_t crc, const void *bytes, size_t n) {
    return n == 0 ? crc : libdeflate_crc32(crc, bytes, n); /* which starts over when bytes is NULL */
}
