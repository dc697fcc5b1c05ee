/* SPDX-License-Identifier: BSD-3-Clause
 * Frames of byte planes, decoded by zstd: planes of every kind and length, and shapes that each part has to get right.
 */
#include "tests.h"

#include "zframe.h"

#include <stdbool.h>

#include <zstd.h>

/* What a plane may look like. */
enum {
    CONSTANT,
    NOISE,
    SKEWED,
    TWO,
    DEEP,
    RUNS,
    PERIODIC,
    REPEATED_NOISE,
    HALF,
    ALL_ONCE,
    SWITCHING,
    RAMP,
    MOLECULES,
    KINDS
};

static void fill_plane(uint8_t *plane, size_t n, unsigned kind, uint64_t *state) {
    size_t period = 3 + (size_t)(random_u64(state) % (n / 2 + 1));
    uint8_t byte = (uint8_t)random_u64(state), shift = (uint8_t)(random_u64(state) % 8);
    for (size_t i = 0; i < n; i++) {
        uint64_t r = random_u64(state);
        uint8_t noise = (uint8_t)(r >> 40);
        int deep = __builtin_ctzll(r | UINT64_C(1) << 40); /* n with probability 2^-n: codes longer than 11 bits */
        switch (kind) {
        case CONSTANT:
            plane[i] = byte;
            break;
        case SKEWED:
            plane[i] = (uint8_t)(byte + (noise & noise >> shift));
            break;
        case TWO:
            plane[i] = r % 19 ? byte : (uint8_t)~byte;
            break;
        case DEEP:
            plane[i] = (uint8_t)(byte + deep * 5);
            break;
        case RUNS:
            plane[i] = i > 0 && r % (2u << shift) ? plane[i - 1] : noise;
            break;
        case PERIODIC:
            plane[i] = i >= period && noise % 8 ? plane[i - period] : (uint8_t)(noise & 31);
            break;
        case REPEATED_NOISE:
            plane[i] = i >= period ? plane[i - period] : noise;
            break;
        case HALF:
            plane[i] = i < n / 2 ? noise : 0;
            break;
        case ALL_ONCE:
            plane[i] = (uint8_t)i;
            break;
        case RAMP:
            plane[i] = (uint8_t)(i * period >> 2 * shift);
            break;
        case MOLECULES: /* like the frame before, or like the neighbour */
            if (r % 16 == 0 || i == 0)
                plane[i] = noise & 31;
            else
                plane[i] = r % 4 == 1 || i < period ? plane[i - 1] : plane[i - period];
            break;
        case SWITCHING: /* some bytes of a period become the same one, each at its time: all literals are alike */
            plane[i] = i % 1000 * 7919 % 1009 * n / 500 < i ? byte : (uint8_t)(i % 1000 * 31);
            break;
        default:
            plane[i] = noise;
        }
    }
}

/* Encode and let zstd decode; false when it was left to zstd. The room is exactly what has to be enough. */
static bool there_and_back(mrec_zframe *z, ZSTD_DCtx *context, const uint8_t *planes, size_t n, size_t size) {
    size_t room = ZSTD_compressBound(n);
    uint8_t *out = malloc(room), *back = malloc(n + 1);
    assert(out != NULL && back != NULL);
    size_t made = mrec_zframe_encode(z, planes, n, size, out, room);
    assert(made <= room);
    if (made > 0) {
        assert(ZSTD_findFrameCompressedSize(out, made) == made && ZSTD_getFrameContentSize(out, made) == n);
        assert(ZSTD_decompressDCtx(context, back, n, out, made) == n && memcmp(planes, back, n) == 0);
    }
    assert(mrec_zframe_encode(z, planes, n, size, out, room - 1) == 0);
    free(out);
    free(back);
    return made > 0;
}

static void test_planes(mrec_zframe *z, ZSTD_DCtx *context) {
    uint64_t state = 5;
    size_t made = 0, cases = 600;
    for (size_t c = 0; c < cases; c++) {
        size_t size = (size_t[]){2, 4, 8, 16}[c % 4];
        size_t each = 1 + (size_t)(random_u64(&state) % (c % 20 == 0 ? 300000 : c % 3 ? 600 : 6000));
        uint8_t *planes = malloc(size * each);
        assert(planes != NULL);
        for (size_t p = 0; p < size; p++)
            fill_plane(planes + p * each, each, (unsigned)(random_u64(&state) % KINDS), &state);
        made += there_and_back(z, context, planes, size * each, size);
        free(planes);
    }
    assert(made > cases / 4);
}

/* Each kind at each length around the limits of headers, samples and blocks, two planes of it. */
static void test_lengths(mrec_zframe *z, ZSTD_DCtx *context) {
    static const size_t near[] = {512, 1024, 2048, 16384, 131072, 262144};
    uint64_t state = 6;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < sizeof near / sizeof near[0]; i++)
            for (size_t each = near[i] - 2; each <= near[i] + 2; each++) {
                uint8_t *planes = malloc(2 * each);
                assert(planes != NULL);
                fill_plane(planes, each, kind, &state);
                fill_plane(planes + each, each, kind, &state);
                there_and_back(z, context, planes, 2 * each, 2);
                free(planes);
            }
    }
}

/* More than a window, which every decoder keeps, and a distance of more than a block. */
static void test_large(mrec_zframe *z, ZSTD_DCtx *context) {
    size_t each = (size_t)9 << 20, period = 150000;
    uint64_t state = 7;
    uint8_t *planes = malloc((size_t)22 << 20);
    assert(planes != NULL);
    memset(planes, 1, each);
    fill_plane(planes + each, each, SKEWED, &state);
    assert(there_and_back(z, context, planes, 2 * each, 2));
    each = 400000;
    fill_plane(planes, 2 * each, NOISE, &state);
    for (size_t i = period; i < 2 * each; i++)
        if (i != each && i % 11 > 0)
            planes[i] = planes[i - period];
    assert(there_and_back(z, context, planes, 2 * each, 2));
    each = (size_t)11 << 20; /* two frames of atoms are more than a window */
    period = (size_t)5 << 20;
    memset(planes, 1, each);
    for (size_t i = 0; i < each; i++) {
        uint64_t r = random_u64(&state);
        bool same = r % 8 > 0 && i > 0;
        planes[each + i] = !same                      ? (uint8_t)(r >> 60)
                           : r % 8 == 1 || i < period ? planes[each + i - 1]
                                                      : planes[each + i - period];
    }
    assert(there_and_back(z, context, planes, 2 * each, 2));
    free(planes);
}

void test_zframe(void) {
    mrec_zframe *z = mrec_zframe_new();
    ZSTD_DCtx *context = ZSTD_createDCtx();
    assert(z != NULL && context != NULL);
    test_planes(z, context);
    test_lengths(z, context);
    test_large(z, context);
    ZSTD_freeDCtx(context);
    mrec_zframe_free(z);
    mrec_zframe_free(NULL);
}
