/* SPDX-License-Identifier: BSD-3-Clause
 * The smallest and the largest element of a run, and how many are null. Safe from any thread. */
#ifndef MREC_EXTENT_H
#define MREC_EXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mrec_number {
    MREC_NUMBER_I8,
    MREC_NUMBER_I16,
    MREC_NUMBER_I32,
    MREC_NUMBER_I64,
    MREC_NUMBER_U8,
    MREC_NUMBER_U16,
    MREC_NUMBER_U32,
    MREC_NUMBER_U64,
    MREC_NUMBER_F32,
    MREC_NUMBER_F64
} mrec_number;

/* Numbers stand as the bits of an int64_t, uint64_t or double, whatever the width of the elements. */
typedef struct mrec_extent {
    uint64_t min, max; /* of those that are not null, floats in total order; meaningless when there are none */
    uint64_t nulls;    /* equal to the fill as numbers, or both NaN */
    uint64_t count;
} mrec_extent;

/* Of n elements in native byte order at any address; fill: NULL for none. */
mrec_extent mrec_measure(mrec_number type, const void *elements, size_t n, const uint64_t *fill);

/* Both together. */
mrec_extent mrec_extent_join(mrec_number type, mrec_extent a, mrec_extent b);

#endif
