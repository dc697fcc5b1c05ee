/* SPDX-License-Identifier: BSD-3-Clause
 * Finite state entropy, the tANS coder of zstd (RFC 8878, 4.1): tables from counts, their description, and encoding.
 * Safe from any thread. */
#ifndef MREC_FSE_H
#define MREC_FSE_H

#include "bits.h"

#include <stddef.h>

#define MREC_FSE_SYMBOLS 53 /* match length codes are the most that zstd has */
#define MREC_FSE_MAX_LOG 9
#define MREC_FSE_DESCRIPTION 96 /* bytes that the longest description takes, with room for a store */

typedef struct mrec_fse {
    unsigned log;
    uint16_t next[1 << MREC_FSE_MAX_LOG];
    struct {
        int32_t find;
        uint32_t bits;
    } symbols[MREC_FSE_SYMBOLS];
} mrec_fse;

/* A table size (its log2) for `total` symbols of which `distinct` differ. */
unsigned mrec_fse_log(uint32_t total, unsigned distinct, unsigned max);

/* Shares of 2^log cells by count, at least one for a symbol that occurs. At least two symbols occur, at most 2^log. */
void mrec_fse_share(const uint32_t *counts, unsigned nsymbols, uint32_t total, unsigned log, int16_t *shares);

/* Shares as a frame holds them; returns the number of bytes, which is at most MREC_FSE_DESCRIPTION - 8. */
size_t mrec_fse_describe(const int16_t *shares, unsigned nsymbols, unsigned log, uint8_t *out);

/* The encoder's table; a share of -1 is one cell at the end of the table. */
void mrec_fse_build(mrec_fse *, const int16_t *shares, unsigned nsymbols, unsigned log);

/* The symbol that is decoded last. */
MREC_INLINE unsigned mrec_fse_start(const mrec_fse *fse, unsigned symbol) {
    uint32_t bits = (fse->symbols[symbol].bits + (1 << 15)) >> 16;
    uint32_t value = (bits << 16) - fse->symbols[symbol].bits;
    return fse->next[(int32_t)(value >> bits) + fse->symbols[symbol].find];
}

/* The symbol that is decoded before. */
MREC_INLINE void mrec_fse_put(mrec_bits *bits, const mrec_fse *fse, unsigned *state, unsigned symbol) {
    unsigned n = (*state + fse->symbols[symbol].bits) >> 16;
    mrec_bits_put(bits, *state & ((1u << n) - 1), n);
    *state = fse->next[(int32_t)(*state >> n) + fse->symbols[symbol].find];
}

/* What the decoder starts with. */
MREC_INLINE void mrec_fse_finish(mrec_bits *bits, const mrec_fse *fse, unsigned state) {
    mrec_bits_put(bits, state & ((1u << fse->log) - 1), fse->log);
}

#endif
