/* SPDX-License-Identifier: BSD-3-Clause
 * What the processor can do, asked once. Safe from any thread. */
#ifndef MREC_CPU_H
#define MREC_CPU_H

enum {
    MREC_CPU_CRC32C = 1, /* SSE4.2 and PCLMULQDQ; the crc32 extension of aarch64 */
    MREC_CPU_AVX2 = 2,   /* and POPCNT */
    MREC_CPU_BMI2 = 4,
    MREC_CPU_VPCLMUL = 8, /* VPCLMULQDQ on vectors of 32 bytes, and all the above */
};

/* The features above that this processor has, or that mrec_cpu_allow left. */
unsigned mrec_cpu(void);

/* For tests: use no features but these (0: portable C only; ~0u: all there are). */
void mrec_cpu_allow(unsigned features);

#endif
