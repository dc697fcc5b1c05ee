/* SPDX-License-Identifier: BSD-3-Clause */
#include "runs.h"

#include "cpu.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)
#include <emmintrin.h>
#define AVX2 __attribute__((target("avx2,popcnt")))

INLINE uint64_t equal_64(const uint8_t *a, const uint8_t *b) {
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(a + 16 * i));
        __m128i y = _mm_loadu_si128((const __m128i *)(const void *)(b + 16 * i));
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)) << 16 * i;
    }
    return bits;
}
#else
INLINE uint64_t equal_64(const uint8_t *a, const uint8_t *b) {
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t x, y;
        memcpy(&x, a + 8 * i, 8);
        memcpy(&y, b + 8 * i, 8);
        x ^= y;
        x = ~(((x & low) + low) | x | low); /* 0x80 where a byte is 0 */
        bits |= (((x >> 7) * UINT64_C(0x0102040810204080)) >> 56) << 8 * i;
    }
    return bits;
}
#endif

INLINE size_t equal_bits(const uint8_t *bytes, size_t n, size_t distance, uint64_t *equal) {
    size_t i = 0, sum = 0;
    for (; n - i >= 64; i += 64) {
        equal[i / 64] = equal_64(bytes + i, bytes + i - distance);
        sum += (size_t)__builtin_popcountll(equal[i / 64]);
    }
    uint64_t rest = 0;
    if (i < n) {
        uint8_t last[64] = {0}, before[64];
        memset(before, 1, sizeof before);
        memcpy(last, bytes + i, n - i);
        memcpy(before, bytes + i - distance, n - i);
        rest = equal_64(last, before);
    }
    equal[i / 64] = rest;
    equal[i / 64 + 1] = 0;
    return sum + (size_t)__builtin_popcountll(rest);
}

static size_t equal_bits_portable(const uint8_t *bytes, size_t n, size_t distance, uint64_t *equal) {
    return equal_bits(bytes, n, distance, equal);
}

#if defined(__x86_64__)
AVX2 static size_t equal_bits_avx2(const uint8_t *bytes, size_t n, size_t distance, uint64_t *equal) {
    return equal_bits(bytes, n, distance, equal);
}
#endif

size_t mrec_equal_bits(const uint8_t *bytes, size_t n, size_t distance, uint64_t *equal) {
#if defined(__x86_64__)
    if (mrec_cpu() & MREC_CPU_AVX2)
        return equal_bits_avx2(bytes, n, distance, equal);
#endif
    return equal_bits_portable(bytes, n, distance, equal);
}

size_t mrec_run_end(const uint64_t *equal, size_t from) {
    const uint64_t *word = equal + from / 64;
    uint64_t bits = ~word[0] >> from % 64;
    if (bits != 0)
        return from + (size_t)__builtin_ctzll(bits);
    size_t end = (from / 64 + 1) * 64;
    while (*++word == UINT64_MAX)
        end += 64;
    return end + (size_t)__builtin_ctzll(~*word);
}

/* ---- distances ---- */

#define SAMPLES 48     /* of a long plane, */
#define FEW_SAMPLES 24 /* and of one with so few distances that chance cannot do much */
#define FEW 16384
#define ABREAST 32
#define CHECKED 2048 /* bytes that tell how good a distance is */

typedef uint8_t lanes __attribute__((vector_size(ABREAST)));

bool mrec_run_flat(const uint8_t *bytes, size_t n) {
    size_t flat = 0;
    for (size_t i = 0; i < FEW_SAMPLES; i++) {
        const uint8_t *at = bytes + (n - 4) / FEW_SAMPLES * i;
        flat += at[0] == at[1] && at[0] == at[2] && at[0] == at[3];
    }
    return flat > FEW_SAMPLES / 2;
}

/* At how many places three bytes in a row are those at the distance: the shortest run. n <= CHECKED. */
INLINE size_t count_runs(const uint8_t *bytes, size_t n, size_t distance) {
    uint64_t equal[CHECKED / 64 + 2];
    size_t sum = 0;
    equal_bits(bytes, n, distance, equal);
    for (size_t i = 0; i <= n / 64; i++) {
        uint64_t twice = equal[i] & (equal[i] >> 1 | equal[i + 1] << 63);
        sum += (size_t)__builtin_popcountll(twice & (equal[i] >> 2 | equal[i + 1] << 62));
    }
    return sum;
}

/* The distance in [1, to) at which most of the samples, places from `to` on, have the same byte. Each lane counts for a
 * distance of its own, the last one for the least. */
INLINE size_t most_alike(const uint8_t *bytes, const size_t *samples, size_t nsamples, size_t to) {
    lanes wanted[SAMPLES];
    size_t distance = 0;
    uint8_t most = (uint8_t)(nsamples / 4);
    for (size_t j = 0; j < nsamples; j++)
        wanted[j] = (lanes){0} + bytes[samples[j]];
    for (size_t d = 1; d + ABREAST <= to; d += ABREAST) {
        lanes alike = {0};
        for (size_t j = 0; j < nsamples; j++) {
            lanes there;
            memcpy(&there, bytes + samples[j] - d - (ABREAST - 1), sizeof there);
            alike -= (lanes)(there == wanted[j]);
        }
        uint64_t more[ABREAST / 8];
        lanes above = (lanes)(alike > (lanes){0} + most);
        memcpy(more, &above, sizeof more);
        if ((more[0] | more[1] | more[2] | more[3]) == 0)
            continue;
        for (size_t lane = ABREAST; lane-- > 0;)
            if (alike[lane] > most) {
                most = alike[lane];
                distance = d + (ABREAST - 1) - lane;
            }
    }
    return distance;
}

/* A frame of atoms is like the one before; that it is like the second one before was found instead by chance. *most is
 * what count_runs says of `distance`, and becomes what it says of the result. */
INLINE size_t least_of(const uint8_t *bytes, size_t n, size_t distance, size_t *most) {
    size_t best = distance;
    for (size_t k = 2; k <= 4; k++) {
        size_t alike = distance % k == 0 ? count_runs(bytes, n, distance / k) : 0;
        if (alike >= *most) {
            best = distance / k;
            *most = alike;
        }
    }
    return best;
}

INLINE size_t run_distance(const uint8_t *bytes, size_t n) {
    size_t samples[SAMPLES], start = n / 2 + ABREAST, nsamples = n < FEW ? FEW_SAMPLES : SAMPLES;
    if (n < 4 * ABREAST)
        return 0;
    for (size_t j = 0; j < nsamples; j++)
        samples[j] = start + (n - start) / nsamples * j;
    size_t distance = most_alike(bytes, samples, nsamples, start);
    if (distance <= 1)
        return 0;
    const uint8_t *checked = bytes + start;
    const size_t nchecked = n - start < CHECKED ? n - start : CHECKED;
    size_t runs = count_runs(checked, nchecked, distance);
    if (runs <= nchecked / 32)
        return 0;
    distance = least_of(checked, nchecked, distance, &runs);
    if (distance <= 1 || 4 * runs <= 5 * count_runs(checked, nchecked, distance - 1)) /* which is by chance */
        return 0;
    return runs > count_runs(checked, nchecked, 1) ? distance : 0; /* than repeating the byte before */
}

static size_t run_distance_portable(const uint8_t *bytes, size_t n) {
    return run_distance(bytes, n);
}

#if defined(__x86_64__)
AVX2 static size_t run_distance_avx2(const uint8_t *bytes, size_t n) {
    return run_distance(bytes, n);
}
#endif

size_t mrec_run_distance(const uint8_t *bytes, size_t n) {
#if defined(__x86_64__)
    if (mrec_cpu() & MREC_CPU_AVX2)
        return run_distance_avx2(bytes, n);
#endif
    return run_distance_portable(bytes, n);
}
