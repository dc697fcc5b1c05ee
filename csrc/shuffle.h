/* SPDX-License-Identifier: BSD-3-Clause
 * Byte shuffle (numcodecs.shuffle): byte b of element i goes to b * (n / size) + i. Safe from any thread. */
#ifndef MREC_SHUFFLE_H
#define MREC_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

/* n bytes of elements of `size` bytes each; n % size == 0, in and out do not overlap. */
void mrec_shuffle(const uint8_t *in, uint8_t *out, size_t n, size_t size);
void mrec_unshuffle(const uint8_t *in, uint8_t *out, size_t n, size_t size);

#endif
