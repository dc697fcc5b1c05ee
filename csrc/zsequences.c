/* SPDX-License-Identifier: BSD-3-Clause */
#include "zsequences.h"

#include "fse.h"

typedef enum field { FIELD_LITERALS, FIELD_OFFSETS, FIELD_MATCHES, FIELDS } field;

/* The coding of a field: the table that every decoder knows, no bits as all codes are one, a table in the section. */
enum { MODE_PREDEFINED = 0, MODE_REPEATED = 1, MODE_DESCRIBED = 2 };

#define PREDEFINED_LOG(p) ((p) == FIELD_OFFSETS ? 5u : 6u)

static const unsigned max_log[FIELDS] = {9, 8, 9}, ncodes[FIELDS] = {36, 29, 53};
static const int16_t predefined[FIELDS][MREC_FSE_SYMBOLS] = {
    {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1},
    {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1},
    {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}};

/* ---- codes ---- */

/* The codes of small numbers; above, it is the logarithm + LITERALS_ABOVE or MATCHES_ABOVE. */
static const uint8_t literal_codes[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                          16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 20, 20, 21, 21, 21, 21,
                                          22, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23, 23, 23, 23, 23, 23,
                                          24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24};
static const uint8_t match_codes[128] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    26, 27, 28, 29, 30, 31, 32, 32, 33, 33, 34, 34, 35, 35, 36, 36, 36, 36, 37, 37, 37, 37, 38, 38, 38, 38,
    38, 38, 38, 38, 39, 39, 39, 39, 39, 39, 39, 39, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40,
    40, 40, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 42, 42, 42, 42, 42, 42, 42, 42,
    42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42};
#define LITERALS_ABOVE 19
#define MATCHES_ABOVE 36

/* The bits of a number that its code leaves open. */
static const uint8_t literal_bits[36] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  1,  1,
                                         1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const uint8_t match_bits[53] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0, 0,
                                       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  1,  1,  1, 1,
                                       2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

typedef struct codes {
    uint8_t of[FIELDS];
} codes;

MREC_INLINE codes codes_of(const mrec_zsequence *s) {
    uint32_t literals = s->literals, match = s->match - 3;
    return (codes){{literals < 64 ? literal_codes[literals] : (uint8_t)(mrec_log2(literals) + LITERALS_ABOVE),
                    (uint8_t)mrec_log2(s->offset),
                    match < 128 ? match_codes[match] : (uint8_t)(mrec_log2(match) + MATCHES_ABOVE)}};
}

/* What the codes leave open. */
MREC_INLINE void put_rest(mrec_bits *bits, const mrec_zsequence *s, codes c) {
    unsigned literals = literal_bits[c.of[FIELD_LITERALS]], match = match_bits[c.of[FIELD_MATCHES]],
             offset = c.of[FIELD_OFFSETS];
    mrec_bits_put(bits, s->literals & ((1u << literals) - 1), literals); /* 16 bits at most */
    if (bits->count > 24)
        mrec_bits_store(bits);
    mrec_bits_put(bits, (s->match - 3) & ((1u << match) - 1), match); /* 16 */
    if (bits->count > 24)
        mrec_bits_store(bits);
    mrec_bits_put(bits, s->offset & ((1u << offset) - 1), offset); /* 31 */
    mrec_bits_store(bits);
}

/* ---- tables ---- */

/* 256 times the bits that the codes take with these shares of 2^log cells; UINT64_MAX when one has none. */
static uint64_t cost(const uint32_t *counts, unsigned n, const int16_t *shares, unsigned log) {
    uint64_t sum = 0;
    for (unsigned s = 0; s < n; s++) {
        if (counts[s] > 0 && shares[s] == 0)
            return UINT64_MAX;
        if (counts[s] > 0)
            sum += (uint64_t)counts[s] * (log * 256 - mrec_log2_256((uint32_t)(shares[s] < 0 ? 1 : shares[s])));
    }
    return sum;
}

/* Choose the coding of a part and put its description, of *size bytes. */
static unsigned choose(field p, const uint32_t *counts, uint32_t total, mrec_fse *fse, uint8_t *out, size_t *size) {
    int16_t shares[MREC_FSE_SYMBOLS] = {0};
    unsigned distinct = 0, last = 0;
    for (unsigned s = 0; s < MREC_FSE_SYMBOLS; s++)
        if (counts[s] > 0) {
            distinct++;
            last = s;
        }
    *size = 0;
    if (distinct == 1) {
        out[0] = (uint8_t)last;
        *size = 1;
        fse->log = 0;
        return MODE_REPEATED;
    }
    unsigned log = mrec_fse_log(total, distinct, max_log[p]);
    mrec_fse_share(counts, last + 1, total, log, shares);
    size_t described = mrec_fse_describe(shares, last + 1, log, out);
    uint64_t known = last < ncodes[p] ? cost(counts, last + 1, predefined[p], PREDEFINED_LOG(p)) : UINT64_MAX;
    if (known <= cost(counts, last + 1, shares, log) + described * 8 * 256) {
        mrec_fse_build(fse, predefined[p], ncodes[p], PREDEFINED_LOG(p));
        return MODE_PREDEFINED;
    }
    mrec_fse_build(fse, shares, last + 1, log);
    *size = described;
    return MODE_DESCRIBED;
}

/* ---- the section ---- */

static size_t put_number(size_t n, uint8_t *out) {
    if (n < 128) {
        out[0] = (uint8_t)n;
        return 1;
    }
    out[0] = (uint8_t)((n >> 8) + 128);
    out[1] = (uint8_t)n;
    return 2;
}

/* From the last sequence to the first. A part whose codes are all one has no state. */
static uint8_t *put_sequences(const mrec_zsequence *sequences, size_t n, const mrec_fse fse[FIELDS], uint8_t *out) {
    static const field order[] = {FIELD_OFFSETS, FIELD_MATCHES,
                                  FIELD_LITERALS}; /* of going on; the first states are read as in `field` */
    mrec_bits bits = {.at = out};
    unsigned states[FIELDS] = {0};
    codes c = codes_of(&sequences[n - 1]);
    for (int p = 0; p < FIELDS; p++)
        if (fse[p].log > 0)
            states[p] = mrec_fse_start(&fse[p], c.of[p]);
    put_rest(&bits, &sequences[n - 1], c);
    for (size_t i = n - 1; i-- > 0;) {
        c = codes_of(&sequences[i]);
        for (int k = 0; k < FIELDS; k++)
            if (fse[order[k]].log > 0)
                mrec_fse_put(&bits, &fse[order[k]], &states[order[k]], c.of[order[k]]);
        put_rest(&bits, &sequences[i], c);
    }
    for (int p = FIELDS; p-- > 0;)
        if (fse[p].log > 0)
            mrec_fse_finish(&bits, &fse[p], states[p]);
    mrec_bits_store(&bits);
    return mrec_bits_end(&bits);
}

size_t mrec_zsequences(const mrec_zsequence *sequences, size_t n, uint8_t *out) {
    uint32_t counts[FIELDS][MREC_FSE_SYMBOLS] = {{0}};
    mrec_fse fse[FIELDS];
    for (size_t i = 0; i < n; i++) {
        codes c = codes_of(&sequences[i]);
        for (int p = 0; p < FIELDS; p++)
            counts[p][c.of[p]]++;
    }
    size_t at = put_number(n, out), modes = at++, size;
    out[modes] = 0;
    for (int p = 0; p < FIELDS; p++) {
        out[modes] |= (uint8_t)(choose((field)p, counts[p], (uint32_t)n, &fse[p], out + at, &size) << (6 - 2 * p));
        at += size;
    }
    return (size_t)(put_sequences(sequences, n, fse, out + at) - out);
}
