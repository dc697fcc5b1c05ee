/* SPDX-License-Identifier: BSD-3-Clause
 * Little-endian integers at any address, whatever the machine. */
#ifndef MREC_BYTES_H
#define MREC_BYTES_H

#include <stdint.h>

static inline uint32_t mrec_load_u32(const uint8_t *b) {
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t mrec_load_u64(const uint8_t *b) {
    return (uint64_t)mrec_load_u32(b) | (uint64_t)mrec_load_u32(b + 4) << 32;
}

static inline void mrec_store_u32(uint8_t *b, uint32_t v) {
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
    b[2] = (uint8_t)(v >> 16);
    b[3] = (uint8_t)(v >> 24);
}

static inline void mrec_store_u64(uint8_t *b, uint64_t v) {
    mrec_store_u32(b, (uint32_t)v);
    mrec_store_u32(b + 4, (uint32_t)(v >> 32));
}

#endif
