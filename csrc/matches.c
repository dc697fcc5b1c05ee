/* SPDX-License-Identifier: BSD-3-Clause */
#include "matches.h"

#include <string.h>

#define KEY 6             /* bytes that lead to an earlier place */
#define PLACES_LOG 11     /* places that are noted, at most */
#define MATCH_LOOKS 8     /* stretches that are looked at */
#define MATCH_BYTES 32    /* bytes of each */
#define ANY_MATCH_BITS 20 /* what a match takes */
#define MATCH_LIMIT 256   /* how far one is followed */

static uint64_t key_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word << (64 - 8 * KEY);
}

static size_t slot_of(uint64_t key) {
    return (key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - PLACES_LOG);
}

static size_t match_length(const uint8_t *a, const uint8_t *b, size_t most) {
    size_t n = 0;
    while (n < most && a[n] == b[n])
        n++;
    return n;
}

unsigned mrec_match_sample(const uint8_t *bytes, size_t n, uint64_t bits) {
    uint32_t places[1 << PLACES_LOG] = {0};
    const size_t last = n - 8, step = n >> PLACES_LOG > 8 ? n >> PLACES_LOG : 8;
    uint64_t saved = 0, seen = 0;
    if (n < 2 * MATCH_LOOKS * MATCH_BYTES)
        return 0;
    for (size_t look = 1, noted = 0; look <= MATCH_LOOKS; look++) {
        if (look > MATCH_LOOKS / 2 && saved == 0) /* where there are matches, they are all over */
            return 0;
        size_t i = (last - MATCH_BYTES) * look / MATCH_LOOKS, end = i + MATCH_BYTES;
        for (; noted < i; noted += step)
            places[slot_of(key_at(bytes + noted))] = (uint32_t)noted;
        while (i < end) {
            size_t place = places[slot_of(key_at(bytes + i))], length = 1;
            if (place < i && key_at(bytes + place) == key_at(bytes + i)) {
                size_t most = n - i < MATCH_LIMIT ? n - i : MATCH_LIMIT;
                length = match_length(bytes + place, bytes + i, most);
            }
            seen += length * bits;
            if (length * bits > ANY_MATCH_BITS * 256)
                saved += length * bits - ANY_MATCH_BITS * 256;
            else
                length = 1;
            i += length;
        }
    }
    return (unsigned)(256 * saved / seen);
}
