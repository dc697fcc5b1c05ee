/* SPDX-License-Identifier: BSD-3-Clause */
#include "lz4.h"

#include "bytes.h"

#include <string.h>

#define LZ4_LEAST 4    /* bytes of a match */
#define LZ4_LAST 5     /* literals that end a block */
#define LZ4_MARGIN 12  /* no match begins in the last so many bytes */
#define LZ4_FAR 0xffff /* a match is no farther back */
#define LZ4_BITS 13

size_t mrec_lz4_bound(size_t n) {
    return n + n / 255 + 16;
}

static uint8_t *lz4_length(uint8_t *out, size_t n) {
    for (; n >= 255; n -= 255)
        *out++ = 255;
    *out++ = (uint8_t)n;
    return out;
}

/* A sequence: literals, and a match of `length` bytes `back` bytes before; length 0: the last one, which has none. */
static uint8_t *lz4_sequence(uint8_t *out, const uint8_t *literals, size_t n, size_t length, size_t back) {
    size_t more = length ? length - LZ4_LEAST : 0;
    *out++ = (uint8_t)((n < 15 ? n : 15) << 4 | (more < 15 ? more : 15));
    if (n >= 15)
        out = lz4_length(out, n - 15);
    if (n > 0)
        memcpy(out, literals, n);
    out += n;
    if (length == 0)
        return out;
    *out++ = (uint8_t)back;
    *out++ = (uint8_t)(back >> 8);
    return more >= 15 ? lz4_length(out, more - 15) : out;
}

static size_t lz4_same(const uint8_t *a, const uint8_t *b, const uint8_t *end) {
    const uint8_t *start = b;
    while (b < end && *a == *b)
        a++, b++;
    return (size_t)(b - start);
}

size_t mrec_lz4_encode(const void *bytes, size_t n, uint8_t *out) {
    const uint8_t *in = bytes, *anchor = in, *end = in + n;
    uint8_t *first = out;
    uint32_t table[1 << LZ4_BITS];
    if (n >= LZ4_MARGIN + 1) {
        memset(table, 0, sizeof table);
        const uint8_t *limit = end - LZ4_MARGIN;
        for (const uint8_t *at = in + 1; at < limit;) {
            uint32_t word = mrec_load_u32(at), *slot = &table[word * 2654435761u >> (32 - LZ4_BITS)];
            const uint8_t *match = in + *slot;
            *slot = (uint32_t)(at - in);
            if (at - match > LZ4_FAR || mrec_load_u32(match) != word) {
                at += 1 + ((at - anchor) >> 6); /* faster where nothing is found */
                continue;
            }
            size_t length = LZ4_LEAST + lz4_same(match + LZ4_LEAST, at + LZ4_LEAST, end - LZ4_LAST);
            out = lz4_sequence(out, anchor, (size_t)(at - anchor), length, (size_t)(at - match));
            anchor = at += length;
        }
    }
    return (size_t)(lz4_sequence(out, anchor, (size_t)(end - anchor), 0, 0) - first);
}

/* A length that goes on in further bytes. */
static bool lz4_more(const uint8_t **in, const uint8_t *end, size_t *n, size_t most) {
    unsigned byte;
    do {
        if (*in == end || *n > most)
            return false;
        byte = *(*in)++;
        *n += byte;
    } while (byte == 255);
    return true;
}

static void lz4_copy(uint8_t *out, size_t back, size_t n) {
    if (back >= n) {
        memcpy(out, out - back, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = *(out + i - back);
}

bool mrec_lz4_decode(const void *bytes, size_t size, uint8_t *out, size_t room) {
    const uint8_t *in = bytes, *end = in + size;
    size_t at = 0;
    while (in < end) {
        unsigned token = *in++;
        size_t n = token >> 4;
        if (n == 15 && !lz4_more(&in, end, &n, room))
            return false;
        if (n > (size_t)(end - in) || n > room - at)
            return false;
        if (n > 0)
            memcpy(out + at, in, n);
        in += n;
        at += n;
        if (in == end)
            return at == room;
        if (end - in < 2)
            return false;
        size_t back = in[0] | (size_t)in[1] << 8, length = token & 15;
        in += 2;
        if (length == 15 && !lz4_more(&in, end, &length, room))
            return false;
        length += LZ4_LEAST;
        if (back == 0 || back > at || length > room - at)
            return false;
        lz4_copy(out + at, back, length);
        at += length;
    }
    return false;
}
