/* SPDX-License-Identifier: BSD-3-Clause */
#include "msgpack.h"

#include "vlen.h"

#include <string.h>

/* The n bytes at *at as a big-endian number. */
static bool packed_number(const uint8_t *bytes, size_t n, size_t *at, unsigned width, uint64_t *number) {
    if (n - *at < width)
        return false;
    *number = 0;
    for (unsigned i = 0; i < width; i++)
        *number = *number << 8 | bytes[(*at)++];
    return true;
}

/* Width of the number behind the first byte, from 0xc4 on; 0xff: an extension, or no item. */
static const uint8_t packed_widths[] = {1, 2, 4,    0xff, 0xff, 0xff, 4,    8, 1, 2, 4, 8, 1, 2,
                                        4, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 4, 2, 4, 2, 4};

static void packed_small(unsigned first, mrec_packed_item *item) {
    if (first < 0x80) {
        item->kind = MREC_PACKED_UINT;
        item->number = first;
    } else if (first < 0xa0) {
        item->kind = first < 0x90 ? MREC_PACKED_MAP : MREC_PACKED_ARRAY;
        item->size = first & 15;
    } else if (first < 0xc0) {
        item->kind = MREC_PACKED_TEXT;
        item->size = first & 31;
    } else if (first >= 0xe0) {
        item->kind = MREC_PACKED_INT;
        item->number = (uint64_t)((int64_t)first - 256);
    } else {
        item->kind = first == 0xc0 ? MREC_PACKED_NIL : MREC_PACKED_BOOL;
        item->number = first & 1;
    }
}

static void packed_float(unsigned first, mrec_packed_item *item) {
    item->kind = MREC_PACKED_FLOAT;
    if (first == 0xcb)
        return;
    uint32_t bits = (uint32_t)item->number;
    float narrow;
    memcpy(&narrow, &bits, sizeof narrow);
    double wide = (double)narrow;
    memcpy(&item->number, &wide, sizeof wide);
}

static void packed_signed(unsigned width, mrec_packed_item *item) {
    unsigned shift = 64 - 8 * width;
    int64_t value = (int64_t)(item->number << shift) >> shift;
    item->kind = value < 0 ? MREC_PACKED_INT : MREC_PACKED_UINT;
    item->number = (uint64_t)value;
}

static void packed_large(unsigned first, unsigned width, mrec_packed_item *item) {
    if (first == 0xca || first == 0xcb)
        packed_float(first, item);
    else if (first >= 0xcc && first <= 0xcf)
        item->kind = MREC_PACKED_UINT;
    else if (first >= 0xd0 && first <= 0xd3)
        packed_signed(width, item);
    else {
        item->size = (size_t)item->number;
        item->kind = first <= 0xc6   ? MREC_PACKED_BYTES
                     : first <= 0xdb ? MREC_PACKED_TEXT
                     : first <= 0xdd ? MREC_PACKED_ARRAY
                                     : MREC_PACKED_MAP;
    }
}

mrec_status mrec_msgpack_next(const uint8_t *bytes, size_t n, size_t *at, mrec_packed_item *item, mrec_error *error) {
    *item = (mrec_packed_item){0};
    if (*at >= n)
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "the footer ends inside of an item");
    unsigned first = bytes[(*at)++];
    if (first < 0xc4 ? first == 0xc1 : first < 0xe0 && packed_widths[first - 0xc4] == 0xff)
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "the footer has an item of the kind 0x%02x", first);
    if (first < 0xc4 || first >= 0xe0)
        packed_small(first, item);
    else {
        unsigned width = packed_widths[first - 0xc4];
        if (!packed_number(bytes, n, at, width, &item->number))
            return mrec_fail(error, MREC_E_CORRUPT, NULL, "the footer ends inside of a number");
        packed_large(first, width, item);
    }
    if (item->kind < MREC_PACKED_TEXT)
        return MREC_OK;
    if (item->size > (n - *at) / (item->kind == MREC_PACKED_MAP ? 2 : 1))
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "the footer ends inside of %zu items or bytes", item->size);
    if (item->kind <= MREC_PACKED_BYTES) {
        item->bytes = bytes + *at;
        *at += item->size;
    }
    if (item->kind == MREC_PACKED_TEXT && !mrec_utf8_valid(item->bytes, item->size))
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "a text of the footer is no UTF-8");
    return MREC_OK;
}
