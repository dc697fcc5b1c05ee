/* SPDX-License-Identifier: BSD-3-Clause
 * The sequences section of a zstd block (RFC 8878, 3.1.1.3.2). Safe from any thread. */
#ifndef MREC_SEQUENCES_H
#define MREC_SEQUENCES_H

#include <stddef.h>
#include <stdint.h>

/* Copy `literals` literals, then `match` bytes. offset is Offset_Value: 1 for the distance of the sequence before,
 * else distance + 3. */
typedef struct mrec_sequence {
    uint32_t literals;
    uint32_t match; /* 3 to 2^17 */
    uint32_t offset;
} mrec_sequence;

#define MREC_SEQUENCE_MOST 12 /* bytes that one sequence takes at most */
#define MREC_SEQUENCES_MORE 320

/* The section for 0 < n < 0x7f00 sequences. Needs MREC_SEQUENCE_MOST * n + MREC_SEQUENCES_MORE bytes of room.
 * Returns the size. */
size_t mrec_sequences(const mrec_sequence *sequences, size_t n, uint8_t *out);

#endif
