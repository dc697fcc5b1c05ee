/* SPDX-License-Identifier: BSD-3-Clause */
#include "quantize.h"

#include "cpu.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

bool mrec_grid(double precision, double *q) {
    if (!(precision >= 0x1p-1000 && precision <= 0x1p1000))
        return false;
    int exponent;
    frexp(precision, &exponent);
    *q = ldexp(1, exponent - 1);
    return true;
}

/* With top = 2^52 q, numbers in [top, 2 top) stand q apart: adding top to |x| < top rounds it to a multiple of q, to
 * the even one when halfway, and taking top away again is exact. For q so large that 2 top would overflow, all of it
 * happens 2^-200 times smaller. */
struct grid {
    double scale, top, unscale;
    uint64_t limit; /* the bits of 2^52 q, or of infinity when that is larger: what is not below stays as it is */
};

#define WIDTH 4
#define INLINE static inline __attribute__((always_inline))
typedef double doubles __attribute__((vector_size(8 * WIDTH)));
typedef uint64_t words __attribute__((vector_size(8 * WIDTH)));

/* Bits of numbers without a sign are ordered as the numbers are, NaN last; so no instruction beyond the base set is
 * needed to compare, and none that may trap, which would keep compilers from vectorising. */
INLINE void round_some(const double *in, double *out, const struct grid *grid) {
    words x;
    memcpy(&x, in, sizeof x);
    words sign = x & (UINT64_C(1) << 63), size = x ^ sign;
    words moves = -((size - grid->limit) >> 63);
    doubles rounded = (((doubles)size * grid->scale + grid->top) - grid->top) * grid->unscale;
    x = (moves & ((words)rounded | sign)) | (~moves & x);
    memcpy(out, &x, sizeof x);
}

INLINE void round_all(const double *in, double *out, size_t n, const struct grid *grid) {
    size_t i = 0;
    for (; n - i >= WIDTH; i += WIDTH)
        round_some(in + i, out + i, grid);
    if (i < n) {
        double rest[WIDTH] = {0};
        memcpy(rest, in + i, (n - i) * sizeof *in);
        round_some(rest, rest, grid);
        memcpy(out + i, rest, (n - i) * sizeof *in);
    }
}

static void round_portable(const double *in, double *out, size_t n, const struct grid *grid) {
    round_all(in, out, n, grid);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void round_avx2(const double *in, double *out, size_t n,
                                                       const struct grid *grid) {
    round_all(in, out, n, grid);
}
#endif

void mrec_quantize(const double *in, double *out, size_t n, double q) {
    double scale = q > 0x1p900 ? 0x1p-200 : 1;
    double limit = q * 0x1p52;
    struct grid grid = {scale, q * scale * 0x1p52, 1 / scale, 0};
    memcpy(&grid.limit, &limit, sizeof limit);
#if defined(__x86_64__)
    if (mrec_cpu() & MREC_CPU_AVX2) {
        round_avx2(in, out, n, &grid);
        return;
    }
#endif
    round_portable(in, out, n, &grid);
}
