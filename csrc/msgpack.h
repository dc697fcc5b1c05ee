/* SPDX-License-Identifier: BSD-3-Clause
 * MessagePack, read one item at a time. Safe from any thread. */
#ifndef MREC_MSGPACK_H
#define MREC_MSGPACK_H

#include "status.h"

typedef enum mrec_packed_kind {
    MREC_PACKED_NIL,
    MREC_PACKED_BOOL,  /* number: 0 or 1 */
    MREC_PACKED_INT,   /* number, as an int64_t; negative */
    MREC_PACKED_UINT,  /* number */
    MREC_PACKED_FLOAT, /* number: the bits of a double */
    MREC_PACKED_TEXT,  /* bytes and size: valid UTF-8 */
    MREC_PACKED_BYTES, /* bytes and size */
    MREC_PACKED_ARRAY, /* size: items that follow, no more than there are bytes left */
    MREC_PACKED_MAP    /* size: pairs that follow, the same */
} mrec_packed_kind;

typedef struct mrec_packed_item {
    mrec_packed_kind kind;
    uint64_t number;
    const uint8_t *bytes;
    size_t size;
} mrec_packed_item;

/* The item at *at of n bytes; *at moves behind it. CORRUPT: it ends outside, is an extension, or no UTF-8. */
mrec_status mrec_msgpack_next(const uint8_t *bytes, size_t n, size_t *at, mrec_packed_item *item, mrec_error *error);

#endif
