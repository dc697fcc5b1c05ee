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
 * happens 2^-200 times smaller. Not finite or large: y < top is false. */
struct grid {
    double scale, top, unscale;
};

#define WIDTH 4
#define INLINE static inline __attribute__((always_inline))
typedef double doubles __attribute__((vector_size(8 * WIDTH)));
typedef int64_t words __attribute__((vector_size(8 * WIDTH)));

/* Written with vectors, since compilers take the comparison of a plain loop for one that may trap. */
INLINE void round_some(const double *in, double *out, const struct grid *grid) {
    words x, sign;
    memcpy(&x, in, sizeof x);
    sign = x & INT64_MIN;
    doubles y = (doubles)(x ^ sign) * grid->scale;
    doubles rounded = ((y + grid->top) - grid->top) * grid->unscale;
    words moves = y < grid->top;
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
    struct grid grid = {scale, q * scale * 0x1p52, 1 / scale};
#if defined(__x86_64__)
    if (mrec_cpu() & MREC_CPU_AVX2) {
        round_avx2(in, out, n, &grid);
        return;
    }
#endif
    round_portable(in, out, n, &grid);
}
