/* SPDX-License-Identifier: BSD-3-Clause */
#include "runs.h"

#include "cpu.h"

#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>

static uint64_t equal_64(const uint8_t *a, const uint8_t *b) {
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(a + 16 * i));
        __m128i y = _mm_loadu_si128((const __m128i *)(const void *)(b + 16 * i));
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)) << 16 * i;
    }
    return bits;
}
#else
static uint64_t equal_64(const uint8_t *a, const uint8_t *b) {
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

void mrec_equal_bits(const uint8_t *bytes, size_t n, size_t distance, uint64_t *equal) {
    size_t i = 0;
    for (; n - i >= 64; i += 64)
        equal[i / 64] = equal_64(bytes + i, bytes + i - distance);
    uint64_t rest = 0;
    for (size_t k = i; k < n; k++)
        rest |= (uint64_t)(bytes[k] == bytes[k - distance]) << (k - i);
    equal[i / 64] = rest;
    equal[i / 64 + 1] = 0;
}

size_t mrec_run_start(const uint64_t *equal, size_t n, size_t from, unsigned least) {
    while (from < n) {
        const uint64_t *word = equal + from / 64;
        unsigned shift = from % 64;
        uint64_t bits = word[0] >> shift | (shift ? word[1] << (64 - shift) : 0);
        for (unsigned have = 1; have < least;) {
            unsigned more = have < least - have ? have : least - have;
            bits &= bits >> more;
            have += more;
        }
        if (bits != 0)
            return from + (size_t)__builtin_ctzll(bits);
        from += 65 - least;
    }
    return n;
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
#define INLINE static inline __attribute__((always_inline))

typedef uint8_t lanes __attribute__((vector_size(ABREAST)));

bool mrec_run_flat(const uint8_t *bytes, size_t n) {
    size_t flat = 0;
    for (size_t i = 0; i < FEW_SAMPLES; i++) {
        const uint8_t *at = bytes + (n - 4) / FEW_SAMPLES * i;
        flat += at[0] == at[1] && at[0] == at[2] && at[0] == at[3];
    }
    return flat > FEW_SAMPLES / 2;
}

/* At how many places three bytes in a row are those at the distance: the shortest run. */
static size_t count_runs(const uint8_t *bytes, size_t n, size_t distance) {
    const uint8_t *before = bytes - distance;
    size_t sum = 0;
    for (size_t i = 0; i + 2 < n; i++)
        sum += ((bytes[i] ^ before[i]) | (bytes[i + 1] ^ before[i + 1]) | (bytes[i + 2] ^ before[i + 2])) == 0;
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

static size_t most_alike_portable(const uint8_t *bytes, const size_t *samples, size_t nsamples, size_t to) {
    return most_alike(bytes, samples, nsamples, to);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static size_t most_alike_avx2(const uint8_t *bytes, const size_t *samples,
                                                              size_t nsamples, size_t to) {
    return most_alike(bytes, samples, nsamples, to);
}
#endif

/* A frame of atoms is like the one before; that it is like the second one before was found instead by chance. */
static size_t least_of(const uint8_t *bytes, size_t n, size_t distance) {
    size_t best = distance, most = count_runs(bytes, n, distance);
    for (size_t k = 2; k <= 4; k++) {
        size_t alike = distance % k == 0 ? count_runs(bytes, n, distance / k) : 0;
        if (alike >= most) {
            best = distance / k;
            most = alike;
        }
    }
    return best;
}

size_t mrec_run_distance(const uint8_t *bytes, size_t n) {
    size_t samples[SAMPLES], start = n / 2 + ABREAST, nsamples = n < FEW ? FEW_SAMPLES : SAMPLES, distance;
    if (n < 4 * ABREAST)
        return 0;
    for (size_t j = 0; j < nsamples; j++)
        samples[j] = start + (n - start) / nsamples * j;
#if defined(__x86_64__)
    if (mrec_cpu() & MREC_CPU_AVX2)
        distance = most_alike_avx2(bytes, samples, nsamples, start);
    else
#endif
        distance = most_alike_portable(bytes, samples, nsamples, start);
    const uint8_t *checked = bytes + start;
    const size_t nchecked = n - start < 2048 ? n - start : 2048;
    if (distance > 1)
        distance = least_of(checked, nchecked, distance);
    if (distance <= 1)
        return 0;
    size_t runs = count_runs(checked, nchecked, distance), by_chance = count_runs(checked, nchecked, distance - 1);
    bool better = runs > count_runs(checked, nchecked, 1); /* than repeating the byte before */
    return better && 4 * runs > 5 * by_chance && runs > nchecked / 32 ? distance : 0;
}
