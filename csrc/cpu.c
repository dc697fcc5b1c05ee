/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu.h"

#include <stdatomic.h>

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

enum { KNOWN = 1 << 30 };

static unsigned detect(void) {
    unsigned features = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
        features |= MREC_CPU_CRC32C;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
        features |= MREC_CPU_AVX2;
    if (__builtin_cpu_supports("bmi2"))
        features |= MREC_CPU_BMI2;
    if (__builtin_cpu_supports("vpclmulqdq") && features == (MREC_CPU_CRC32C | MREC_CPU_AVX2 | MREC_CPU_BMI2))
        features |= MREC_CPU_VPCLMUL;
#elif defined(__aarch64__) && defined(__linux__)
    if (getauxval(AT_HWCAP) & HWCAP_CRC32)
        features |= MREC_CPU_CRC32C;
#elif defined(__aarch64__) && defined(__APPLE__)
    features |= MREC_CPU_CRC32C;
#endif
    return features;
}

/* Threads that meet here for the first time store the same value. */
static atomic_uint resolved;

unsigned mrec_cpu(void) {
    unsigned features = atomic_load_explicit(&resolved, memory_order_relaxed);
    if (features == 0) {
        features = detect() | KNOWN;
        atomic_store_explicit(&resolved, features, memory_order_relaxed);
    }
    return features;
}

void mrec_cpu_allow(unsigned features) {
    atomic_store_explicit(&resolved, (detect() & features) | KNOWN, memory_order_relaxed);
}
