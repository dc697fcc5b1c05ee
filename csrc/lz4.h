/* SPDX-License-Identifier: BSD-3-Clause
 * LZ4 blocks, as the LZ4 block format has them: a run of sequences without a frame. Safe from any thread. */
#ifndef MREC_LZ4_H
#define MREC_LZ4_H

#include "buffer.h"

/* The largest block that n bytes can become. */
size_t mrec_lz4_bound(size_t n);

/* Encode n < 2^31 bytes into `out`, which has room for mrec_lz4_bound(n); returns the size of the block. */
size_t mrec_lz4_encode(const void *bytes, size_t n, uint8_t *out);

/* Decode n bytes into exactly `size` bytes at `out`; false when they are no block of that size. Whatever the input,
 * nothing outside of it is read, and nothing outside out[0, size) written. */
bool mrec_lz4_decode(const void *bytes, size_t n, uint8_t *out, size_t size);

#endif
