/* SPDX-License-Identifier: BSD-3-Clause
 * zstd frames of shuffled numbers: ordinary frames with blocks of their own for each byte plane (docs/zframe.md). */
#ifndef MREC_ZFRAME_H
#define MREC_ZFRAME_H

#include <stddef.h>
#include <stdint.h>

/* Working memory. One thread at a time. */
typedef struct mrec_zframe mrec_zframe;

mrec_zframe *mrec_zframe_new(void); /* NULL when memory is out */
void mrec_zframe_free(mrec_zframe *);

/* Encode n bytes that a shuffle of elements of `size` bytes made; n % size == 0. Returns the size of the frame, which
 * is at most ZSTD_compressBound(n), or 0 when zstd itself does better with such bytes, or `room` is less than that. The
 * same bytes always give the same frame. */
size_t mrec_zframe_encode(mrec_zframe *, const uint8_t *planes, size_t n, size_t size, uint8_t *out, size_t room);

#endif
