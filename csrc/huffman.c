/* SPDX-License-Identifier: BSD-3-Clause */
#include "huffman.h"

#include "cpu.h"
#include "fse.h"

#include <stdbool.h>

#define MAX_BITS 11
#define MAX_WEIGHT_LOG 6
#define FOUR_STREAMS 256 /* literals from which on there are four streams */

typedef struct huffman {
    unsigned last;                /* the highest byte that occurs */
    unsigned max;                 /* the longest code */
    unsigned ranks[MAX_BITS + 1]; /* how many have codes of each length */
    uint8_t lengths[256];
    uint64_t codes[256]; /* the code in the highest bits, its length in the lowest */
} huffman;

void mrec_histogram(const uint8_t *bytes, size_t n, uint32_t counts[256]) {
    uint32_t parts[3][256]; /* so that a byte that repeats does not wait for its own count */
    size_t i = 0;
    memset(counts, 0, 256 * sizeof *counts);
    memset(parts, 0, sizeof parts);
    for (; n - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        for (int b = 0; b < 8; b += 4) {
            counts[word >> 8 * b & 0xff]++;
            parts[0][word >> 8 * (b + 1) & 0xff]++;
            parts[1][word >> 8 * (b + 2) & 0xff]++;
            parts[2][word >> 8 * (b + 3) & 0xff]++;
        }
    }
    for (; i < n; i++)
        counts[bytes[i]]++;
    for (int s = 0; s < 256; s++)
        counts[s] += parts[0][s] + parts[1][s] + parts[2][s];
}

/* ---- the lengths of the codes ---- */

#define SMALL 128 /* counts below have a bucket each, others one for all with the same logarithm */

static unsigned bucket(uint32_t count) {
    return count < SMALL ? count : SMALL - 7 + mrec_log2(count);
}

/* The bytes that occur, as count << 8 | byte, by ascending count; counts are below 2^18. */
static unsigned sorted(const uint32_t counts[256], uint32_t order[256]) {
    uint32_t found[256];
    uint16_t at[SMALL + 16] = {0};
    unsigned n = 0, before = 0;
    for (uint32_t s = 0; s < 256; s++) {
        found[n] = counts[s] << 8 | s;
        n += counts[s] > 0;
    }
    for (unsigned i = 0; i < n; i++)
        at[bucket(found[i] >> 8)]++;
    for (unsigned i = 0; i < SMALL + 16; i++) {
        unsigned these = at[i];
        at[i] = (uint16_t)before;
        before += these;
    }
    for (unsigned i = 0; i < n; i++)
        order[at[bucket(found[i] >> 8)]++] = found[i];
    for (unsigned i = at[SMALL - 1] + 1u; i < n; i++) { /* those of one logarithm among themselves */
        uint32_t moved = order[i];
        unsigned to = i;
        for (; to > 0 && order[to - 1] > moved; to--)
            order[to] = order[to - 1];
        order[to] = moved;
    }
    return n;
}

/* The depths of n >= 2 leaves in Huffman's tree, for the ascending counts order[i] >> 8. Leaves and inner nodes are two
 * ascending queues, so the two least are at their heads: two leaves, two inner nodes, or one of each. */
static void depths(const uint32_t *order, unsigned n, uint8_t *depth) {
    uint32_t leaves[258], inner[258];
    uint16_t leaf_parent[258], inner_parent[258];
    for (unsigned i = 0; i < n; i++) {
        leaves[i] = order[i] >> 8;
        inner[i] = UINT32_MAX;
    }
    leaves[n] = leaves[n + 1] = inner[n] = UINT32_MAX;
    unsigned a = 0, b = 0;
    for (unsigned made = 0; made < n - 1; made++) { /* without branches, which nobody could foresee */
        unsigned both_a = leaves[a + 1] <= inner[b], both_b = inner[b + 1] < leaves[a];
        uint32_t x = both_b ? inner[b + 1] : leaves[a], y = both_a ? leaves[a + 1] : inner[b];
        leaf_parent[a] = leaf_parent[a + 1] = inner_parent[b] = inner_parent[b + 1] = (uint16_t)made;
        inner[made] = x + y;
        a += 1 + both_a - both_b; /* what a parent was put down for too early gets its own later */
        b += 1 - both_a + both_b;
    }
    unsigned leaf = n, node = n - 2; /* parents ascend: the children of one level stand together */
    for (unsigned d = 1; leaf > 0; d++) {
        unsigned level = node;
        while (leaf > 0 && leaf_parent[leaf - 1] >= level)
            depth[--leaf] = (uint8_t)d;
        while (node > 0 && inner_parent[node - 1] >= level)
            node--;
    }
}

/* Cut depths (descending, n <= 256) to MAX_BITS and mend the tree: `over` is by how much the leaves, 2^(MAX_BITS -
 * depth) each, exceed 2^MAX_BITS. */
static void limit_depths(uint8_t *depth, unsigned n) {
    int over = -(1 << MAX_BITS);
    for (unsigned i = 0; i < n; i++) {
        if (depth[i] > MAX_BITS)
            depth[i] = MAX_BITS;
        over += 1 << (MAX_BITS - depth[i]);
    }
    for (unsigned i = 0; over > 0;) { /* the rarest of those that can go down */
        if (depth[i] == MAX_BITS) {
            i++;
            continue;
        }
        depth[i]++;
        over -= 1 << (MAX_BITS - depth[i]);
    }
    for (unsigned i = n; i-- > 0 && over < 0;) /* the most frequent that fit in what was freed go up */
        while (over < 0 && depth[i] > 1 && over + (1 << (MAX_BITS - depth[i])) <= 0) {
            over += 1 << (MAX_BITS - depth[i]);
            depth[i]--;
        }
}

/* Codes by length, the longest first from 0, and in the order of the bytes. */
static void assign_codes(huffman *h) {
    unsigned next[MAX_BITS + 1], least = 0;
    for (unsigned length = h->max; length > 0; length--) {
        next[length] = least;
        least = (least + h->ranks[length]) >> 1;
    }
    for (unsigned s = 0; s <= h->last; s++)
        if (h->lengths[s] > 0)
            h->codes[s] = (uint64_t)next[h->lengths[s]]++ << (64 - h->lengths[s]) | h->lengths[s];
}

/* At least two bytes occur. Returns the bits of the whole. */
static uint64_t build(huffman *h, const uint32_t counts[256]) {
    uint32_t order[256];
    uint8_t depth[257] = {0};
    unsigned n = sorted(counts, order);
    uint64_t bits = 0;
    depths(order, n, depth);
    if (depth[0] > MAX_BITS)
        limit_depths(depth, n);
    memset(h->lengths, 0, sizeof h->lengths);
    memset(h->ranks, 0, sizeof h->ranks);
    h->max = depth[0]; /* they descend */
    h->last = 0;
    for (unsigned i = 0, first = 0; i < n; i++) {
        unsigned s = order[i] & 0xff;
        h->lengths[s] = depth[i];
        h->last = s > h->last ? s : h->last;
        bits += (uint64_t)(order[i] >> 8) * depth[i];
        if (depth[i] != depth[i + 1]) { /* a count for each byte would wait for the one before */
            h->ranks[depth[i]] += i + 1 - first;
            first = i + 1;
        }
    }
    return bits;
}

/* ---- the description of the codes ---- */

/* Weights by FSE, the even ones and the odd ones with a state each; 0 when that form has no way to say it. */
static size_t describe_by_fse(const huffman *h, const uint8_t *weights, unsigned n, uint8_t *out) {
    uint32_t counts[MAX_BITS + 1] = {n};
    int16_t shares[MAX_BITS + 1];
    mrec_fse fse;
    unsigned distinct = 0, last = 0;
    for (unsigned length = 1; length <= h->max; length++) {
        unsigned these = h->ranks[length] - (h->lengths[n] == length); /* the last byte is not described */
        counts[h->max + 1 - length] = these;
        counts[0] -= these;
    }
    for (unsigned w = 0; w <= h->max; w++)
        if (counts[w] > 0) {
            distinct++;
            last = w;
        }
    if (n <= 2 || distinct < 2)
        return 0;
    unsigned log = mrec_fse_log(n, distinct, MAX_WEIGHT_LOG);
    mrec_fse_share(counts, last + 1, n, log, shares);
    size_t size = mrec_fse_describe(shares, last + 1, log, out);
    mrec_fse_build(&fse, shares, last + 1, log);
    mrec_bits bits = {.at = out + size};
    unsigned odd = mrec_fse_start(&fse, weights[n - 1 - n % 2]), even = mrec_fse_start(&fse, weights[n - 2 + n % 2]);
    unsigned left = n - 2;
    if (left % 2 > 0)
        mrec_fse_put(&bits, &fse, &even, weights[--left]);
    for (; left > 0; left -= 2) {
        mrec_fse_put(&bits, &fse, &odd, weights[left - 1]); /* of at most 6 bits */
        mrec_fse_put(&bits, &fse, &even, weights[left - 2]);
        mrec_bits_store(&bits);
    }
    mrec_fse_finish(&bits, &fse, odd);
    mrec_fse_finish(&bits, &fse, even);
    return (size_t)(mrec_bits_end(&bits) - out);
}

/* The weights of all bytes but the last, which follows from them. 0: there is no such description. `out` has room for
 * 512 bytes. */
static size_t describe(const huffman *h, uint8_t *out) {
    uint8_t weights[256];
    unsigned n = h->last;
    for (unsigned s = 0; s < n; s++)
        weights[s] = h->lengths[s] ? (uint8_t)(h->max + 1 - h->lengths[s]) : 0;
    size_t size = describe_by_fse(h, weights, n, out + 1), plain = (n + 1) / 2;
    if (size > 0 && size < 128 && (n > 128 || size < plain)) {
        out[0] = (uint8_t)size;
        return 1 + size;
    }
    if (n > 128)
        return 0;
    out[0] = (uint8_t)(127 + n);
    weights[n] = 0;
    for (unsigned i = 0; i < plain; i++)
        out[1 + i] = (uint8_t)(weights[2 * i] << 4 | weights[2 * i + 1]);
    return 1 + plain;
}

/* ---- the streams ---- */

/* As mrec_bits, but the bits come in at the top of the word, each code above the one before: fewer operations for a
 * code. Its length in the lowest 4 bits does no harm as long as no more than 60 bits wait. */
typedef struct top_bits {
    uint64_t word, count; /* count: of its lowest 6 bits only */
    uint8_t *at;
} top_bits;

MREC_INLINE void put_code(top_bits *bits, uint64_t code) {
    bits->word = bits->word >> (code & 63) | code;
    bits->count += code;
}

MREC_INLINE void store_bits(top_bits *bits) {
    uint64_t ready = bits->word >> (-bits->count & 63); /* with no bits at all: something that is written over */
    memcpy(bits->at, &ready, sizeof ready);
    bits->at += (bits->count & 63) >> 3;
    bits->count &= 7;
}

static uint8_t *end_stream(top_bits *bits) {
    bits->word = bits->word >> 1 | UINT64_C(1) << 63;
    bits->count++;
    store_bits(bits);
    return bits->at + (bits->count > 0);
}

/* The codes of bytes[0, n) from the last to the first. `step` codes and the 7 bits that a store leaves are no more than
 * 60. Two streams go side by side, as each code waits for the one before; they may have the same bytes. */
MREC_INLINE void put_two(const uint64_t *codes, const uint8_t *const bytes[2], size_t n, top_bits bits[2],
                         unsigned step) {
    top_bits a = bits[0], b = bits[1];
    const uint8_t *from_a = bytes[0], *from_b = bytes[1];
    for (; n % step > 0; n--) {
        put_code(&a, codes[from_a[n - 1]]);
        put_code(&b, codes[from_b[n - 1]]);
    }
    store_bits(&a);
    store_bits(&b);
    for (; n > 0; n -= step) {
        for (unsigned i = 1; i <= step; i++)
            put_code(&a, codes[from_a[n - i]]);
        store_bits(&a);
        for (unsigned i = 1; i <= step; i++)
            put_code(&b, codes[from_b[n - i]]);
        store_bits(&b);
    }
    bits[0] = a;
    bits[1] = b;
}

MREC_INLINE void put_two_of(const huffman *h, const uint8_t *const bytes[2], size_t n, top_bits bits[2]) {
    if (h->max <= 5)
        put_two(h->codes, bytes, n, bits, 10);
    else if (h->max <= 7)
        put_two(h->codes, bytes, n, bits, 7);
    else if (h->max <= 10)
        put_two(h->codes, bytes, n, bits, 5);
    else
        put_two(h->codes, bytes, n, bits, 4);
}

static void two_portable(const huffman *h, const uint8_t *const bytes[2], size_t n, top_bits bits[2]) {
    put_two_of(h, bytes, n, bits);
}

#if defined(__x86_64__)
__attribute__((target("bmi2"))) static void two_bmi2(const huffman *h, const uint8_t *const bytes[2], size_t n,
                                                     top_bits bits[2]) {
    put_two_of(h, bytes, n, bits);
}
#endif

static void two(const huffman *h, const uint8_t *const bytes[2], size_t n, top_bits bits[2]) {
#if defined(__x86_64__)
    if (mrec_cpu() & MREC_CPU_BMI2) {
        two_bmi2(h, bytes, n, bits);
        return;
    }
#endif
    two_portable(h, bytes, n, bits);
}

static uint8_t *one_stream(const huffman *h, const uint8_t *bytes, size_t n, uint8_t *out) {
    top_bits bits = {.at = out};
    for (; n > 0; n--) {
        put_code(&bits, h->codes[bytes[n - 1]]);
        store_bits(&bits);
    }
    return end_stream(&bits);
}

/* Streams of n and m <= n bytes, the first to `out`, the second to `aside`. The first bytes of the first one, which are
 * its last codes, are what it has more. */
static void two_streams(const huffman *h, const uint8_t *bytes, size_t n, size_t m, uint8_t *out, uint8_t *aside,
                        uint8_t *ends[2]) {
    top_bits bits[2] = {{.at = out}, {.at = aside}};
    const uint8_t *const from[2] = {bytes + (n - m), bytes + n};
    two(h, from, m, bits);
    for (size_t i = n - m; i > 0; i--) /* 3 at most */
        put_code(&bits[0], h->codes[bytes[i - 1]]);
    ends[0] = end_stream(&bits[0]);
    ends[1] = end_stream(&bits[1]);
}

static uint8_t *four_streams(const huffman *h, const uint8_t *bytes, size_t n, uint8_t *out, uint8_t *aside) {
    size_t each = (n + 3) / 4;
    uint8_t *sizes = out, *at = out + 6, *ends[2];
    for (int pair = 0; pair < 2; pair++) {
        size_t second = pair ? n - 3 * each : each;
        two_streams(h, bytes + (size_t)pair * 2 * each, each, second, at, aside, ends);
        for (int i = 0; i < 2 - pair; i++, sizes += 2) {
            size_t size = (size_t)(ends[i] - (i ? aside : at));
            sizes[0] = (uint8_t)size;
            sizes[1] = (uint8_t)(size >> 8);
        }
        memcpy(ends[0], aside, (size_t)(ends[1] - aside));
        at = ends[0] + (ends[1] - aside);
    }
    return at;
}

/* ---- the section ---- */

enum { LITERALS_RAW = 0, LITERALS_REPEATED = 1, LITERALS_CODED = 2 };

static size_t put_plain_header(unsigned form, size_t n, uint8_t *out) {
    uint32_t header = (uint32_t)(n < 32 ? form | n << 3 : form | (n < 4096 ? 1 << 2 | n << 4 : 3 << 2 | n << 4));
    size_t size = n < 32 ? 1 : n < 4096 ? 2 : 3;
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(header >> 8 * i);
    return size;
}

static size_t coded_header(size_t n) {
    return n < 1024 ? 3 : n < 16384 ? 4 : 5;
}

static void put_coded_header(size_t n, size_t coded, uint8_t *out) {
    size_t size = coded_header(n);
    unsigned width = size == 3 ? 10 : size == 4 ? 14 : 18;
    unsigned format = n < FOUR_STREAMS ? 0 : (unsigned)size - 2;
    uint64_t header = LITERALS_CODED | format << 2 | (uint64_t)n << 4 | (uint64_t)coded << (4 + width);
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(header >> 8 * i);
}

/* As they are, or one byte throughout. */
static size_t put_plain_literals(bool repeated, const uint8_t *bytes, size_t n, size_t limit, uint8_t *out) {
    size_t stored = repeated ? 1 : n;
    if (stored + 3 >= limit)
        return 0;
    size_t size = put_plain_header(repeated ? LITERALS_REPEATED : LITERALS_RAW, n, out);
    memcpy(out + size, bytes, stored);
    return size + stored;
}

size_t mrec_literals(const uint8_t *bytes, size_t n, const uint32_t counts[256], size_t limit, uint8_t *out,
                     uint8_t *aside) {
    bool repeated = n > 0 && counts[bytes[0]] == n;
    if (n < 32 || repeated)
        return put_plain_literals(n >= 32, bytes, n, limit, out);
    huffman h;
    uint8_t description[512];
    uint64_t bits = build(&h, counts);
    size_t header = coded_header(n), described = header + bits / 8 + 24 < n ? describe(&h, description) : 0;
    if (described == 0 || header + described + bits / 8 + 10 >= n)
        return put_plain_literals(false, bytes, n, limit, out);
    if (header + described + bits / 8 + 10 >= limit)
        return 0;
    assign_codes(&h);
    memcpy(out + header, description, described);
    uint8_t *at = out + header + described;
    at = n < FOUR_STREAMS ? one_stream(&h, bytes, n, at) : four_streams(&h, bytes, n, at, aside);
    put_coded_header(n, (size_t)(at - out) - header, out);
    return (size_t)(at - out);
}
