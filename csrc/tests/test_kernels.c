/* SPDX-License-Identifier: BSD-3-Clause
 * crc32c, shuffle, quantize: known values, and a slow version of each that is easy to believe. */
#include "tests.h"

#include "crc32c.h"
#include "quantize.h"
#include "runs.h"
#include "shuffle.h"

#include <math.h>
#include <stdbool.h>

static uint32_t crc32c_by_bits(uint32_t crc, const uint8_t *p, size_t n) {
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

void test_crc32c(void) {
    uint8_t block[32]; /* RFC 3720 B.4 */
    memset(block, 0, sizeof block);
    assert(mrec_crc32c(0, block, 32) == 0x8a9136aa);
    memset(block, 0xff, sizeof block);
    assert(mrec_crc32c(0, block, 32) == 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        block[i] = (uint8_t)i;
    assert(mrec_crc32c(0, block, 32) == 0x46dd794e);
    for (int i = 0; i < 32; i++)
        block[i] = (uint8_t)(31 - i);
    assert(mrec_crc32c(0, block, 32) == 0x113fdb5c);
    assert(mrec_crc32c(0, "123456789", 9) == 0xe3069283 && mrec_crc32(0, "123456789", 9) == 0xcbf43926);
    assert(mrec_crc32c(7, NULL, 0) == 7 && mrec_crc32(7, NULL, 0) == 7);

    size_t n = 3 * 2048 + 3 * 256 + 60;
    uint8_t *bytes = random_bytes(n, 1);
    for (size_t i = 0; i <= n; i += i < 900 ? 1 : 97) {
        assert(mrec_crc32c(5, bytes + n - i, i) == crc32c_by_bits(5, bytes + n - i, i));
        assert(mrec_crc32c(mrec_crc32c(0, bytes, i), bytes + i, n - i) == mrec_crc32c(0, bytes, n));
        assert(mrec_crc32(mrec_crc32(0, bytes, i), bytes + i, n - i) == mrec_crc32(0, bytes, n));
    }
    free(bytes);
}

static void check_shuffle(size_t size, size_t count) {
    size_t n = size * count;
    uint8_t *in = random_bytes(n, size * 1000 + count);
    uint8_t *out = random_bytes(n, 0), *back = random_bytes(n, 0);
    mrec_shuffle(in, out, n, size);
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < size; b++)
            assert(out[b * count + i] == in[i * size + b]);
    mrec_unshuffle(out, back, n, size);
    assert(memcmp(in, back, n) == 0);
    free(in);
    free(out);
    free(back);
}

/* Nothing need be aligned. */
static void check_offsets(size_t size, size_t count) {
    size_t n = size * count;
    uint8_t *in = random_bytes(n + 32, 1), *out = random_bytes(n + 32, 2), *back = random_bytes(n + 32, 3);
    for (size_t offset = 0; offset <= 32; offset++) {
        mrec_shuffle(in + offset, out + (32 - offset), n, size);
        for (size_t i = 0; i < n; i++)
            assert(out[32 - offset + i % size * count + i / size] == in[offset + i]);
        mrec_unshuffle(out + (32 - offset), back + offset, n, size);
        assert(memcmp(in + offset, back + offset, n) == 0);
    }
    free(in);
    free(out);
    free(back);
}

static void check_equal_bits(const uint8_t *bytes, size_t n, size_t distance) {
    uint64_t equal[6];
    size_t sum = 0;
    assert(n < 64 * 5);
    memset(equal, 0xff, sizeof equal);
    size_t found = mrec_equal_bits(bytes, n, distance, equal);
    for (size_t i = 0; i < (n / 64 + 2) * 64; i++) {
        bool same = i < n && bytes[i] == bytes[i - distance];
        sum += same;
        assert((equal[i / 64] >> i % 64 & 1) == same);
    }
    assert(found == sum);
    for (size_t i = 0, end = 0; i < n; i++) {
        for (end = end > i ? end : i; end < n && bytes[end] == bytes[end - distance];)
            end++;
        assert(mrec_run_end(equal, i) == end);
    }
}

void test_runs(void) {
    enum { ROOM = 300, BEFORE = 100 };
    for (unsigned rare = 1; rare <= 256; rare *= 4) { /* runs from short to longer than a word */
        uint8_t *bytes = random_bytes(ROOM, rare);
        for (size_t i = 0; i < ROOM; i++)
            bytes[i] = bytes[i] * rare < 256;
        for (size_t n = 0; n <= ROOM - BEFORE; n++)
            for (size_t distance = 1; distance <= BEFORE; distance += distance < 4 ? 1 : 31)
                check_equal_bits(bytes + (ROOM - n), n, distance);
        free(bytes);
    }
}

void test_shuffle(void) {
    for (size_t size = 1; size <= 16; size *= 2)
        for (size_t count = 0; count <= 70; count += count < 20 ? 1 : 7)
            check_offsets(size, count);
    for (size_t size = 1; size <= 17; size++)
        for (size_t count = 0; count <= 100; count++)
            check_shuffle(size, count);
    check_shuffle(8, 5000);
    check_shuffle(300, 3);
}

static double one(double x, double q) {
    double out;
    mrec_quantize(&x, &out, 1, q);
    return out;
}

static bool same(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static double from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void test_grid(void) {
    double q;
    assert(mrec_grid(0.001, &q) && q == 0x1p-10);
    assert(mrec_grid(0.01, &q) && q == 0x1p-7);
    assert(mrec_grid(1, &q) && q == 1);
    assert(mrec_grid(nextafter(1, 0), &q) && q == 0.5);
    assert(mrec_grid(0x1p-1000, &q) && q == 0x1p-1000);
    assert(mrec_grid(0x1p1000, &q) && q == 0x1p1000);
    assert(!mrec_grid(nextafter(0x1p-1000, 0), &q) && !mrec_grid(nextafter(0x1p1000, INFINITY), &q));
    assert(!mrec_grid(0, &q) && !mrec_grid(-1, &q) && !mrec_grid(NAN, &q) && !mrec_grid(INFINITY, &q));
}

/* The rule as it is written; with q within 2^+-900 and these x, x / q is a plain scaling. */
static double by_rule(double x, double q) {
    return !isfinite(x) || fabs(x) >= 0x1p52 * q ? x : copysign(nearbyint(x / q) * q, x);
}

/* Every special value in every lane, with others beside it, at every length and offset. */
static void test_lanes(double q) {
    const double special[] = {NAN,
                              -NAN,
                              INFINITY,
                              -INFINITY,
                              0.0,
                              -0.0,
                              0x1p-1074,
                              -0x1p-1074,
                              0.5 * q,
                              -1.5 * q,
                              2.5 * q,
                              0x1p52 * q,
                              -0x1p52 * q,
                              0x1p52 * q - q,
                              0x1p1023,
                              -0x1p-1022,
                              from_bits(0x7ff8000000abcdef),
                              from_bits(0xfff800000000beef)};
    double in[24], out[24];
    for (size_t s = 0; s < sizeof special / sizeof special[0]; s++)
        for (size_t n = 1; n <= 20; n++)
            for (size_t lane = 0; lane < n; lane++) {
                size_t offset = (s + n) % 4;
                for (size_t i = 0; i < 24; i++)
                    in[i] = out[i] = (double)i * 0.3 * q;
                in[offset + lane] = special[s];
                mrec_quantize(in + offset, out + offset, n, q);
                for (size_t i = 0; i < 24; i++)
                    assert(same(out[i], i < offset || i >= offset + n ? (double)i * 0.3 * q : by_rule(in[i], q)));
            }
}

void test_quantize(void) {
    test_grid();
    test_lanes(0x1p-10);
    test_lanes(0x1p-7);
    test_lanes(1);
    const double q = 0x1p-10;
    const double kept[] = {
        0.0,        -0.0, INFINITY, -INFINITY, 1e300, -1e300, 0x1p42, 0x1p42 + 0.5, 1.5, from_bits(0x7ff8000000abcdef),
        0x1p42 - q, q,    -q};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        assert(same(one(kept[i], q), kept[i]));
    uint64_t nans[] = {0xfff8000000000001, 0xfff0000000000001, 0x7ff0000000000001}; /* payloads, also signalling */
    for (size_t i = 0; i < 3; i++) {
        uint64_t out;
        mrec_quantize((const double *)(const void *)&nans[i], (double *)(void *)&out, 1, q);
        assert(out == nans[i]);
    }
    assert(same(one(0x1p-1074, q), 0.0) && same(one(-0x1p-1074, q), -0.0) && same(one(-0.49 * q, q), -0.0));
    assert(same(one(0.5 * q, q), 0.0) && same(one(1.5 * q, q), 2 * q) && same(one(-2.5 * q, q), -2 * q));
    assert(same(one(nextafter(0.5 * q, 1), q), q) && same(one(0x1p42 - q / 2, q), 0x1p42));
    const double small = 0x1p-1000, large = 0x1p1000;
    assert(same(one(0x1p-1001, small), 0.0) && same(one(0x1.8p-1000, small), 0x1p-999));
    assert(same(one(0x1p-948, small), 0x1p-948) && same(one(-0x1p-1074, small), -0.0));
    assert(same(one(0x1p-948 - 0x1p-1001, small), 0x1p-948));
    assert(same(one(0x1p999, large), 0.0) && same(one(0x1.8p1000, large), 0x1p1001) && same(one(-1, large), -0.0));
    assert(same(one(0x1.000002p1023, large), 0x1.000002p1023) && same(one(INFINITY, large), INFINITY));

    for (size_t n = 0; n < 70; n++) {
        double in[70], out[70];
        uint64_t state = n + 1;
        for (size_t i = 0; i < n; i++)
            in[i] = ((double)(random_u64(&state) >> 11) * 0x1p-53 - 0.5) * (n % 2 ? 100 : 16 * q);
        mrec_quantize(in, out, n, q);
        for (size_t i = 0; i < n; i++)
            assert(same(out[i], by_rule(in[i], q)));
        mrec_quantize(in, in, n, q);
        assert(n == 0 || memcmp(in, out, n * sizeof in[0]) == 0);
    }
}
