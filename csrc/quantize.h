/* SPDX-License-Identifier: BSD-3-Clause
 * Rounding to a declared precision. Safe from any thread; the rounding mode must be the default one. */
#ifndef MREC_QUANTIZE_H
#define MREC_QUANTIZE_H

#include <stdbool.h>
#include <stddef.h>

/* The grid step q = 2^(e-1) of a precision p = m * 2^e with 0.5 <= m < 1: the largest power of two not above p.
 * False unless p is finite and 2^-1000 <= p <= 2^1000. */
bool mrec_grid(double precision, double *q);

/* out[i] = in[i] when it is not finite or |in[i]| >= 2^52 q, otherwise roundTiesToEven(in[i] / q) * q (the sign of a
 * zero result is the sign of in[i]). in and out may be the same array. */
void mrec_quantize(const double *in, double *out, size_t n, double q);

#endif
