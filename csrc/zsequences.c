/* SPDX-License-Identifier: BSD-3-Clause */
#include "zsequences.h"

#include "fse.h"

typedef enum field { FIELD_LITERALS, FIELD_OFFSETS, FIELD_MATCHES, FIELDS } field;

/* The coding of a field: the table that every decoder knows, no bits as all codes are one, a table in the section. */
enum { MODE_PREDEFINED = 0, MODE_REPEATED = 1, MODE_DESCRIBED = 2 };

#define FEW_SEQUENCES 16 /* sequences, for which no table pays */
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

MREC_INLINE void set_codes(mrec_zsequence *s) {
    uint32_t literals = s->literals, match = s->match - 3;
    s->codes[FIELD_LITERALS] =
        literals < 64 ? literal_codes[literals] : (uint8_t)(mrec_log2(literals) + LITERALS_ABOVE);
    s->codes[FIELD_OFFSETS] = (uint8_t)mrec_log2(s->offset);
    s->codes[FIELD_MATCHES] = match < 128 ? match_codes[match] : (uint8_t)(mrec_log2(match) + MATCHES_ABOVE);
}

/* What the codes leave open. */
MREC_INLINE void put_rest(mrec_bits *bits, const mrec_zsequence *s) {
    unsigned literals = literal_bits[s->codes[FIELD_LITERALS]], match = match_bits[s->codes[FIELD_MATCHES]],
             offset = s->codes[FIELD_OFFSETS];
    if ((literals | match | offset) == 0) /* as most are */
        return;
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

/* Of a field whose codes are all one: the state is always 0 and takes no bits. */
static const mrec_fse single;

void mrec_ztables_init(mrec_ztables *known) {
    for (int p = 0; p < FIELDS; p++)
        mrec_fse_build(&known->of[p], predefined[p], ncodes[p], PREDEFINED_LOG(p));
}

/* The coding of a field. */
typedef struct coding {
    unsigned mode;
    const mrec_fse *fse;
    size_t size; /* of its description */
    mrec_fse own;
} coding;

/* Choose the coding of n sequences in a field, and put its description. */
static void choose(coding *c, const mrec_ztables *known, field p, const uint32_t *counts, size_t n, uint8_t *out) {
    int16_t shares[MREC_FSE_SYMBOLS] = {0};
    unsigned distinct = 0, last = 0;
    for (unsigned s = 0; s < MREC_FSE_SYMBOLS; s++)
        if (counts[s] > 0) {
            distinct++;
            last = s;
        }
    if (distinct == 1) {
        out[0] = (uint8_t)last;
        c->mode = MODE_REPEATED;
        c->fse = &single;
        c->size = 1;
        return;
    }
    c->mode = MODE_PREDEFINED;
    c->fse = &known->of[p];
    c->size = 0;
    if (n < FEW_SEQUENCES && last < ncodes[p])
        return;
    unsigned log = mrec_fse_log((uint32_t)n, distinct, max_log[p]);
    mrec_fse_share(counts, last + 1, (uint32_t)n, log, shares);
    size_t described = mrec_fse_describe(shares, last + 1, log, out);
    uint64_t as_known = last < ncodes[p] ? cost(counts, last + 1, predefined[p], PREDEFINED_LOG(p)) : UINT64_MAX;
    if (as_known <= cost(counts, last + 1, shares, log) + described * 8 * 256)
        return;
    mrec_fse_build(&c->own, shares, last + 1, log);
    c->mode = MODE_DESCRIBED;
    c->fse = &c->own;
    c->size = described;
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

/* From the last sequence to the first. */
static uint8_t *put_sequences(const mrec_zsequence *sequences, size_t n, const coding codings[FIELDS], uint8_t *out) {
    const mrec_fse *literals = codings[FIELD_LITERALS].fse, *offsets = codings[FIELD_OFFSETS].fse,
                   *matches = codings[FIELD_MATCHES].fse;
    const mrec_zsequence *s = &sequences[n - 1];
    mrec_bits bits = {.at = out};
    unsigned literal = mrec_fse_start(literals, s->codes[FIELD_LITERALS]),
             offset = mrec_fse_start(offsets, s->codes[FIELD_OFFSETS]),
             match = mrec_fse_start(matches, s->codes[FIELD_MATCHES]);
    put_rest(&bits, s);
    while (s-- > sequences) {
        mrec_fse_put(&bits, offsets, &offset, s->codes[FIELD_OFFSETS]); /* of 8, 9 and 9 bits at most */
        mrec_fse_put(&bits, matches, &match, s->codes[FIELD_MATCHES]);
        mrec_fse_put(&bits, literals, &literal, s->codes[FIELD_LITERALS]);
        mrec_bits_store(&bits);
        put_rest(&bits, s);
    }
    mrec_fse_finish(&bits, matches, match);
    mrec_fse_finish(&bits, offsets, offset);
    mrec_fse_finish(&bits, literals, literal);
    mrec_bits_store(&bits);
    return mrec_bits_end(&bits);
}

size_t mrec_zsequences(const mrec_ztables *known, mrec_zsequence *sequences, size_t n, uint8_t *out) {
    uint32_t counts[FIELDS][MREC_FSE_SYMBOLS] = {{0}};
    coding codings[FIELDS];
    for (size_t i = 0; i < n; i++) {
        set_codes(&sequences[i]);
        for (int p = 0; p < FIELDS; p++)
            counts[p][sequences[i].codes[p]]++;
    }
    size_t at = put_number(n, out), modes = at++;
    out[modes] = 0;
    for (int p = 0; p < FIELDS; p++) {
        choose(&codings[p], known, (field)p, counts[p], n, out + at);
        out[modes] |= (uint8_t)(codings[p].mode << (6 - 2 * p));
        at += codings[p].size;
    }
    return (size_t)(put_sequences(sequences, n, codings, out + at) - out);
}
