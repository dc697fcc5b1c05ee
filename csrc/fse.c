/* SPDX-License-Identifier: BSD-3-Clause */
#include "fse.h"

#include <stdbool.h>

#define MIN_LOG 5

unsigned mrec_fse_log(uint32_t total, unsigned distinct, unsigned max) {
    unsigned log = mrec_log2(total | 1);
    log = log < MIN_LOG + 2 ? MIN_LOG : log - 2;
    if (log > max)
        log = max;
    while (1u << log < distinct)
        log++;
    return log;
}

void mrec_fse_share(const uint32_t *counts, unsigned nsymbols, uint32_t total, unsigned log, int16_t *shares) {
    int left = 1 << log;
    unsigned largest = 0;
    for (unsigned s = 0; s < nsymbols; s++) {
        uint64_t exact = ((uint64_t)counts[s] << (log + 8)) / total;
        shares[s] = (int16_t)((exact + 128) >> 8);
        if (counts[s] > 0 && shares[s] == 0)
            shares[s] = 1;
        left -= shares[s];
        if (counts[s] > counts[largest])
            largest = s;
    }
    if (left > -shares[largest] / 2) { /* one cell more or less matters least to the most frequent symbol */
        shares[largest] = (int16_t)(shares[largest] + left);
        return;
    }
    for (; left < 0; left++) {
        largest = 0;
        for (unsigned s = 1; s < nsymbols; s++)
            if (shares[s] > shares[largest])
                largest = s;
        shares[largest]--;
    }
}

size_t mrec_fse_describe(const int16_t *shares, unsigned nsymbols, unsigned log, uint8_t *out) {
    mrec_bits bits = {.at = out};
    int left = (1 << log) + 1, threshold = 1 << log;
    unsigned width = log + 1;
    mrec_bits_put(&bits, log - MIN_LOG, 4);
    for (unsigned s = 0; s < nsymbols && left > 1;) {
        int value = shares[s++] + 1, spare = 2 * threshold - 1 - left;
        bool zero = value == 1;
        left -= value == 0 ? 1 : value - 1;
        if (value >= threshold)
            value += spare;
        mrec_bits_put(&bits, (uint64_t)value, width - (value < spare));
        mrec_bits_store(&bits);
        while (left < threshold) {
            width--;
            threshold >>= 1;
        }
        if (zero) { /* how many more there are, three at a time */
            unsigned more = 0;
            for (; s < nsymbols && shares[s] == 0; s++)
                more++;
            for (; more >= 3; more -= 3) {
                mrec_bits_put(&bits, 3, 2);
                mrec_bits_store(&bits);
            }
            mrec_bits_put(&bits, more, 2);
        }
    }
    mrec_bits_store(&bits);
    return (size_t)(bits.at - out) + (bits.count > 0);
}

/* The symbol of every cell. */
static void spread(const int16_t *shares, unsigned nsymbols, unsigned log, uint8_t *cells) {
    unsigned size = 1u << log, high = size - 1, at = 0;
    for (unsigned s = 0; s < nsymbols; s++)
        if (shares[s] < 0)
            cells[high--] = (uint8_t)s;
    for (unsigned s = 0; s < nsymbols; s++)
        for (int i = 0; i < shares[s]; i++) {
            cells[at] = (uint8_t)s;
            do
                at = (at + (size >> 1) + (size >> 3) + 3) & (size - 1);
            while (at > high);
        }
}

void mrec_fse_build(mrec_fse *fse, const int16_t *shares, unsigned nsymbols, unsigned log) {
    uint8_t cells[1 << MREC_FSE_MAX_LOG];
    uint16_t at[MREC_FSE_SYMBOLS];
    int before = 0;
    spread(shares, nsymbols, log, cells);
    fse->log = log;
    for (unsigned s = 0; s < nsymbols; s++) {
        int share = shares[s] < 0 ? 1 : shares[s];
        at[s] = (uint16_t)before;
        if (share == 0)
            continue;
        unsigned most = share == 1 ? log : log - mrec_log2((uint64_t)share - 1);
        fse->symbols[s].bits = (most << 16) - ((uint32_t)share << most);
        fse->symbols[s].find = before - share;
        before += share;
    }
    for (unsigned cell = 0; cell < 1u << log; cell++)
        fse->next[at[cells[cell]]++] = (uint16_t)((1u << log) + cell);
}
