/* SPDX-License-Identifier: BSD-3-Clause
 * Strings as vlen-utf8 lays them out: u32 count, then u32 length + bytes a string. Safe from any thread. */
#ifndef MREC_VLEN_H
#define MREC_VLEN_H

#include "status.h"

/* A string, in memory that somebody else holds. */
typedef struct mrec_ref {
    const uint8_t *text;
    uint64_t size;
} mrec_ref;

/* True when n bytes are UTF-8 as Unicode defines it: no overlong form, no surrogate, nothing above U+10FFFF. */
bool mrec_utf8_valid(const void *bytes, size_t n);

/* Walk a decoded chunk of n bytes that must hold exactly `count` strings of valid UTF-8 and nothing else, otherwise
 * CORRUPT. ends[i] (unless ends is NULL) becomes the position in the chunk after string i, whose first byte is at
 * mrec_vlen_start(ends, i). On failure the content of ends is undefined. */
mrec_status mrec_vlen_walk(const void *chunk, size_t n, uint64_t count, uint64_t *ends, mrec_error *error);

static inline uint64_t mrec_vlen_start(const uint64_t *ends, uint64_t i) {
    return (i == 0 ? 4 : ends[i - 1]) + 4;
}

#endif
