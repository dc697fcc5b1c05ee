/* SPDX-License-Identifier: BSD-3-Clause */
#include "quantize.h"

#include "cpu.h"

#include <math.h>

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

static inline __attribute__((always_inline)) double rounded(double x, struct grid grid) {
    double y = fabs(x) * grid.scale;
    double r = ((y + grid.top) - grid.top) * grid.unscale;
    return y < grid.top ? copysign(r, x) : x;
}

/* Two loops, since a loop over two arrays that may be one is not vectorised. */
static inline __attribute__((always_inline)) void run(const double *in, double *out, size_t n, struct grid grid) {
    if (in == out) {
        for (size_t i = 0; i < n; i++)
            out[i] = rounded(out[i], grid);
    } else {
        const double *restrict from = in;
        double *restrict to = out;
        for (size_t i = 0; i < n; i++)
            to[i] = rounded(from[i], grid);
    }
}

static void run_portable(const double *in, double *out, size_t n, struct grid grid) {
    run(in, out, n, grid);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void run_avx2(const double *in, double *out, size_t n, struct grid grid) {
    run(in, out, n, grid);
}
#endif

void mrec_quantize(const double *in, double *out, size_t n, double q) {
    double scale = q > 0x1p900 ? 0x1p-200 : 1;
    struct grid grid = {scale, q * scale * 0x1p52, 1 / scale};
#if defined(__x86_64__)
    if (mrec_cpu() & MREC_CPU_AVX2) {
        run_avx2(in, out, n, grid);
        return;
    }
#endif
    run_portable(in, out, n, grid);
}
