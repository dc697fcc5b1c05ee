/* SPDX-License-Identifier: BSD-3-Clause */
#include "extent.h"

#include "cpu.h"

#include <math.h>
#include <string.h>

/* Elements are looked at as signed integers of their own width whose order is the wanted one: the sign of unsigned
 * ones turned, all but the sign of negative floats. Turning is its own inverse. */
#define EXTENT_I(x, bits) (x)
#define EXTENT_U(x, bits) ((x) ^ (int##bits##_t)((uint##bits##_t)1 << (bits - 1)))
#define EXTENT_F(x, bits)                                                                                              \
    ((x) ^ (int##bits##_t)((uint##bits##_t)((x) >> (bits - 1)) & (((uint##bits##_t)1 << (bits - 1)) - 1)))

/* What is null: the same bits; for floats also the other zero, or any NaN where the fill is one. `inf` are the bits of
 * infinity: without its sign, what is larger is NaN. */
#define EXTENT_SAME_I(x, bits, fill, inf) ((x) == (fill))
#define EXTENT_SAME_U EXTENT_SAME_I
#define EXTENT_SIZE(x, bits) ((x) & (int##bits##_t)(((uint##bits##_t)1 << (bits - 1)) - 1))
#define EXTENT_SAME_F(x, bits, fill, inf)                                                                              \
    (((x) == (fill)) | (((x) | (fill)) == INT##bits##_MIN) |                                                           \
     ((EXTENT_SIZE(x, bits) > (inf)) & (EXTENT_SIZE(fill, bits) > (inf))))

#define EXTENT_BLOCK 512

/* Blocks are short so that the counts inside fit the width of an element, two to a byte. */
#define EXTENT(name, bits, kind, inf)                                                                                  \
    static inline __attribute__((always_inline)) void name##_body(                                                     \
        const uint8_t *in, size_t n, bool filled, int##bits##_t fill, int##bits##_t range[2], uint64_t *nulls) {       \
        int##bits##_t low = INT##bits##_MAX, high = INT##bits##_MIN;                                                   \
        for (size_t done = 0; done < n; done += EXTENT_BLOCK) {                                                        \
            size_t m = n - done < EXTENT_BLOCK ? n - done : EXTENT_BLOCK;                                              \
            uint32_t count = 0;                                                                                        \
            for (size_t i = 0; i < m; i++) {                                                                           \
                int##bits##_t x;                                                                                       \
                memcpy(&x, in + (done + i) * sizeof x, sizeof x);                                                      \
                int##bits##_t key = EXTENT_##kind(x, bits);                                                            \
                int##bits##_t mask = filled ? (int##bits##_t) - (int##bits##_t)EXTENT_SAME_##kind(x, bits, fill, inf)  \
                                            : (int##bits##_t)0;                                                        \
                int##bits##_t small = (int##bits##_t)((key & ~mask) | (INT##bits##_MAX & mask));                       \
                int##bits##_t large = (int##bits##_t)((key & ~mask) | (INT##bits##_MIN & mask));                       \
                low = small < low ? small : low;                                                                       \
                high = large > high ? large : high;                                                                    \
                count += (uint32_t)(mask & 1);                                                                         \
            }                                                                                                          \
            *nulls += count;                                                                                           \
        }                                                                                                              \
        range[0] = (int##bits##_t)EXTENT_##kind(low, bits);                                                            \
        range[1] = (int##bits##_t)EXTENT_##kind(high, bits);                                                           \
    }                                                                                                                  \
    EXTENT_FAST(name, bits)                                                                                            \
    static void name(const uint8_t *in, size_t n, bool filled, int##bits##_t fill, int##bits##_t range[2],             \
                     uint64_t *nulls) {                                                                                \
        EXTENT_TRY(name);                                                                                              \
        if (filled)                                                                                                    \
            name##_body(in, n, true, fill, range, nulls);                                                              \
        else                                                                                                           \
            name##_body(in, n, false, 0, range, nulls);                                                                \
    }

#if defined(__x86_64__)
#define EXTENT_FAST(name, bits)                                                                                        \
    __attribute__((target("avx2"))) static void name##_avx2(                                                           \
        const uint8_t *in, size_t n, bool filled, int##bits##_t fill, int##bits##_t range[2], uint64_t *nulls) {       \
        if (filled)                                                                                                    \
            name##_body(in, n, true, fill, range, nulls);                                                              \
        else                                                                                                           \
            name##_body(in, n, false, 0, range, nulls);                                                                \
    }
#define EXTENT_TRY(name)                                                                                               \
    if (mrec_cpu() & MREC_CPU_AVX2) {                                                                                  \
        name##_avx2(in, n, filled, fill, range, nulls);                                                                \
        return;                                                                                                        \
    }
#else
#define EXTENT_FAST(name, bits)
#define EXTENT_TRY(name)
#endif

EXTENT(extent_i8, 8, I, 0)
EXTENT(extent_i16, 16, I, 0)
EXTENT(extent_i32, 32, I, 0)
EXTENT(extent_i64, 64, I, 0)
EXTENT(extent_u8, 8, U, 0)
EXTENT(extent_u16, 16, U, 0)
EXTENT(extent_u32, 32, U, 0)
EXTENT(extent_u64, 64, U, 0)
EXTENT(extent_f32, 32, F, 0x7f800000)
EXTENT(extent_f64, 64, F, INT64_C(0x7ff0000000000000))

/* Widening a NaN by a cast would make a signalling one quiet, and keeps the order of all others. */
static uint64_t extent_widen(int32_t bits) {
    float narrow;
    memcpy(&narrow, &bits, sizeof narrow);
    double wide = (double)narrow;
    uint64_t word;
    memcpy(&word, &wide, sizeof word);
    return word;
}

static bool extent_narrow(uint64_t fill, int32_t *bits) {
    double wide;
    memcpy(&wide, &fill, sizeof wide);
    float narrow = (float)wide;
    memcpy(bits, &narrow, sizeof *bits);
    return (double)narrow == wide || isnan(wide);
}

#define EXTENT_CASE(NAME, name, bits, type)                                                                            \
    case MREC_NUMBER_##NAME: {                                                                                         \
        int##bits##_t range[2];                                                                                        \
        type value = (type)(fill ? *fill : 0);                                                                         \
        bool filled = fill && (uint64_t)value == *fill;                                                                \
        extent_##name(elements, n, filled, (int##bits##_t)value, range, &found.nulls);                                 \
        found.min = (uint64_t)(type)range[0];                                                                          \
        found.max = (uint64_t)(type)range[1];                                                                          \
        return found;                                                                                                  \
    }

mrec_extent mrec_measure(mrec_number type, const void *elements, size_t n, const uint64_t *fill) {
    mrec_extent found = {.count = n};
    switch (type) {
        EXTENT_CASE(I8, i8, 8, int8_t)
        EXTENT_CASE(I16, i16, 16, int16_t)
        EXTENT_CASE(I32, i32, 32, int32_t)
        EXTENT_CASE(I64, i64, 64, int64_t)
        EXTENT_CASE(U8, u8, 8, uint8_t)
        EXTENT_CASE(U16, u16, 16, uint16_t)
        EXTENT_CASE(U32, u32, 32, uint32_t)
        EXTENT_CASE(U64, u64, 64, uint64_t)
    case MREC_NUMBER_F32: {
        int32_t range[2], value = 0;
        bool filled = fill && extent_narrow(*fill, &value);
        extent_f32(elements, n, filled, value, range, &found.nulls);
        found.min = extent_widen(range[0]);
        found.max = extent_widen(range[1]);
        return found;
    }
    case MREC_NUMBER_F64:
    default: {
        int64_t range[2];
        extent_f64(elements, n, fill != NULL, fill ? (int64_t)*fill : 0, range, &found.nulls);
        found.min = (uint64_t)range[0];
        found.max = (uint64_t)range[1];
        return found;
    }
    }
}

static int64_t extent_key(mrec_number type, uint64_t bits) {
    int64_t x = (int64_t)bits;
    if (type >= MREC_NUMBER_F32)
        return EXTENT_F(x, 64);
    return type >= MREC_NUMBER_U8 ? EXTENT_U(x, 64) : x;
}

mrec_extent mrec_extent_join(mrec_number type, mrec_extent a, mrec_extent b) {
    mrec_extent both = a;
    if (b.nulls < b.count && (a.nulls == a.count || extent_key(type, b.min) < extent_key(type, a.min)))
        both.min = b.min;
    if (b.nulls < b.count && (a.nulls == a.count || extent_key(type, b.max) > extent_key(type, a.max)))
        both.max = b.max;
    both.nulls += b.nulls;
    both.count += b.count;
    return both;
}
