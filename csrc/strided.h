/* SPDX-License-Identifier: BSD-3-Clause
 * Copying a box of elements between two arrays of any strides. Safe from any thread. */
#ifndef MREC_STRIDED_H
#define MREC_STRIDED_H

#include <stddef.h>
#include <stdint.h>

/* Axes of an array that the core takes. */
#define MREC_MAX_AXES 8

/* One axis of the box: how many, and the bytes from one to the next on either side (0: the same one again). */
typedef struct mrec_axis {
    uint64_t n;
    ptrdiff_t from, to;
} mrec_axis;

/* Copy the box of elements of `unit` bytes. Changes `axes`, merging those that can be walked as one. */
void mrec_copy_strided(const uint8_t *from, uint8_t *to, mrec_axis *axes, uint32_t naxes, size_t unit);

#endif
