/* SPDX-License-Identifier: BSD-3-Clause */
#include "vlen.h"

#include <string.h>

/* Bytes of the character at p with n > 0 bytes left, 0 when it is none. The second byte has the narrower range that
 * keeps out overlong forms, surrogates and what is above U+10FFFF; the others are 80 to bf. */
static size_t character(const uint8_t *p, size_t n) {
    uint8_t first = p[0], low = 0x80, high = 0xbf;
    size_t size;
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first == 0xe0)
        low = 0xa0;
    else if (first == 0xed)
        high = 0x9f;
    else if (first == 0xf0)
        low = 0x90;
    else if (first == 0xf4)
        high = 0x8f;
    if (size > n || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return size;
}

bool mrec_utf8_valid(const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    while (n > 0) {
        uint64_t word;
        for (; n >= 8; n -= 8, p += 8) { /* eight ASCII characters at once */
            memcpy(&word, p, 8);
            if (word & 0x8080808080808080u)
                break;
        }
        if (n == 0)
            break;
        size_t size = character(p, n);
        if (size == 0)
            return false;
        p += size;
        n -= size;
    }
    return true;
}

static uint32_t get_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

mrec_status mrec_vlen_walk(const void *chunk, size_t n, uint64_t count, uint64_t *ends, mrec_error *error) {
    const uint8_t *bytes = chunk;
    if (n < 4)
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "a chunk of strings has %zu bytes, too few for its count", n);
    if (get_u32(bytes) != count)
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "a chunk of %llu strings says that it has %lu",
                         (unsigned long long)count, (unsigned long)get_u32(bytes));
    size_t at = 4;
    for (uint64_t i = 0; i < count; i++) {
        if (n - at < 4 || get_u32(bytes + at) > n - at - 4)
            return mrec_fail(error, MREC_E_CORRUPT, NULL, "string %llu of a chunk ends outside of it",
                             (unsigned long long)i);
        size_t size = get_u32(bytes + at);
        if (!mrec_utf8_valid(bytes + at + 4, size))
            return mrec_fail(error, MREC_E_CORRUPT, NULL, "string %llu of a chunk is not UTF-8", (unsigned long long)i);
        at += 4 + size;
        if (ends != NULL)
            ends[i] = at;
    }
    if (at != n)
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "%zu bytes follow the last string of a chunk", n - at);
    return MREC_OK;
}
