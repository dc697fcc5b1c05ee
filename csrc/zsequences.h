/* SPDX-License-Identifier: BSD-3-Clause
 * The sequences section of a zstd block (RFC 8878, 3.1.1.3.2). Safe from any thread. */
#ifndef MREC_ZSEQUENCES_H
#define MREC_ZSEQUENCES_H

#include "fse.h"

/* The tables that every decoder knows. */
typedef struct mrec_ztables {
    mrec_fse of[3];
} mrec_ztables;

void mrec_ztables_init(mrec_ztables *);

/* Copy `literals` literals, then `match` bytes. offset is Offset_Value: 1 for the distance of the sequence before,
 * else distance + 3. */
typedef struct mrec_zsequence {
    uint32_t literals;
    uint32_t match; /* 3 to 2^17 */
    uint32_t offset;
    uint8_t codes[4]; /* for mrec_zsequences to keep what it needs twice */
} mrec_zsequence;

#define MREC_ZSEQUENCE_MOST 12 /* bytes that one sequence takes at most */
#define MREC_ZSEQUENCES_MORE 320

/* The section for 0 < n < 0x7f00 sequences. Needs MREC_ZSEQUENCE_MOST * n + MREC_ZSEQUENCES_MORE bytes of room.
 * Returns the size. */
size_t mrec_zsequences(const mrec_ztables *known, mrec_zsequence *sequences, size_t n, uint8_t *out);

#endif
