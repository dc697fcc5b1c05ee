/* SPDX-License-Identifier: BSD-3-Clause */
#include "zframe.h"

#include "bits.h"
#include "huffman.h"
#include "matches.h"
#include "runs.h"
#include "zsequences.h"

#include <stdbool.h>
#include <stdlib.h>

#define MAX_BLOCK ((size_t)128 * 1024) /* the most that a block may hold */
#define MAX_SEQUENCES ((size_t)16 * 1024)
#define MAX_PLANES 16
#define MIN_SIZE 1024
#define MIN_BLOCK 64
#define SAMPLE ((size_t)512)
#define PIECE 16
#define LONG_RUN 8
#define MAX_TESTS 2
#define REGULAR 256              /* bytes of a run */
#define MANY ((size_t)16 * 1024) /* bytes for which matches at more distances pay */
#define LOOKS 8                  /* pieces of a plane that say whether it is flat */
#define LOOK ((size_t)129)
#define CHANGES 16  /* words of bits that are looked at for what changes */
#define CHANGES 16  /* words of bits that are looked at for what changes */
#define RUN_BITS 10 /* what a run takes */
#define NOISE (8 * 256)
#define WINDOW ((size_t)8 * 1024 * 1024) /* what every decoder has to be able to keep */

struct mrec_zframe {
    uint64_t equal[5][MAX_BLOCK / 64 + 2]; /* of parts of a stretch, see divide and find_best_runs */
    mrec_ztables known;
    mrec_zsequence sequences[MAX_SEQUENCES];
    uint8_t section[MREC_ZSEQUENCE_MOST * MAX_SEQUENCES + MREC_ZSEQUENCES_MORE];
    uint8_t literals[MAX_BLOCK + 64];
    uint8_t aside[MREC_HUFFMAN_ASIDE];
};

mrec_zframe *mrec_zframe_new(void) {
    mrec_zframe *z = malloc(sizeof *z);
    if (z != NULL)
        mrec_ztables_init(&z->known);
    return z;
}

void mrec_zframe_free(mrec_zframe *z) {
    free(z);
}

/* The last three distances that sequences had, the last one first: what a decoder keeps of them. */
typedef struct recent {
    size_t of[3];
} recent;

/* A frame in the making. */
typedef struct frame {
    mrec_zframe *z;
    uint8_t *at, *end;
    uint8_t *block; /* the header of the last block */
    size_t repeats; /* one byte so many times that no block holds yet */
    uint8_t repeated;
    size_t distance; /* at which frames of atoms in a chunk follow one another, 0 when not known */
    recent recent;
    bool irregular; /* a plane hardly repeats */
    int tests;      /* that have said that matches at many distances do not pay */
    bool left;      /* to zstd, which does better */
} frame;

/* A part of a plane, at most MAX_BLOCK bytes. */
typedef struct stretch {
    const uint8_t *bytes;
    size_t n;
    size_t before; /* bytes of the same plane that stand before it */
} stretch;

/* ---- blocks ---- */

enum { BLOCK_RAW = 0, BLOCK_REPEATED = 1, BLOCK_COMPRESSED = 2 };

static void put_block_header(frame *f, unsigned type, size_t size) {
    uint32_t header = (uint32_t)(type << 1 | size << 3);
    f->block = f->at;
    for (int i = 0; i < 3; i++)
        *f->at++ = (uint8_t)(header >> 8 * i);
}

static void put_repeats(frame *f) {
    while (f->repeats > 0) {
        size_t n = f->repeats < MAX_BLOCK ? f->repeats : MAX_BLOCK;
        put_block_header(f, BLOCK_REPEATED, n);
        *f->at++ = f->repeated;
        f->repeats -= n;
    }
}

static void put_raw_block(frame *f, const stretch *s) {
    put_block_header(f, BLOCK_RAW, s->n);
    memcpy(f->at, s->bytes, s->n);
    f->at += s->n;
}

/* What a block has besides its sequences. */
typedef struct literals {
    const uint8_t *bytes;
    size_t n;
    uint32_t counts[256];
} literals;

/* False when the block would hardly be smaller than its bytes: it would cost the reader more time than it saves. */
static bool put_compressed(frame *f, const stretch *s, const literals *l, size_t nsequences) {
    mrec_zframe *z = f->z;
    size_t rest = 1, limit = s->n - s->n / 64 - 2;
    z->section[0] = 0;
    if (nsequences > 0)
        rest = mrec_zsequences(&z->known, z->sequences, nsequences, z->section);
    if (rest >= limit || (size_t)(f->end - f->at) < 3 + l->n + MREC_HUFFMAN_MARGIN + rest)
        return false;
    uint8_t *content = f->at + 3;
    size_t size = mrec_literals(l->bytes, l->n, l->counts, limit - rest, content, z->aside);
    if (size == 0)
        return false;
    memcpy(content + size, z->section, rest);
    put_block_header(f, BLOCK_COMPRESSED, size + rest);
    f->at += size + rest;
    return true;
}

/* ---- which kind of block ---- */

/* How many pairs of the literals are of the same byte. */
static uint64_t collisions_of(const literals *l) {
    uint64_t sum = 0;
    for (int i = 0; i < 256; i++)
        sum += (uint64_t)l->counts[i] * l->counts[i];
    return sum;
}

/* 256 times the bits of a literal, roughly: by how often two are the same, which takes one logarithm where order-0
 * entropy takes 256. No code is shorter than a bit. */
static uint64_t bits_of(const literals *l) {
    uint64_t all = 2 * (uint64_t)mrec_log2_256(l->n), same = mrec_log2_256(collisions_of(l));
    return all > same + 256 ? all - same : 256;
}

static void take_all(const stretch *s, literals *l) {
    l->bytes = s->bytes;
    l->n = s->n;
    mrec_histogram(l->bytes, l->n, l->counts);
}

/* Pieces from all over a stretch, as long as it has so many bytes. */
static void take_sample(mrec_zframe *z, const stretch *s, literals *l) {
    l->bytes = z->literals;
    l->n = s->n < SAMPLE ? s->n : SAMPLE;
    if (s->n < SAMPLE)
        memcpy(z->literals, s->bytes, s->n);
    else
        for (size_t i = 0; i < SAMPLE / PIECE; i++)
            memcpy(z->literals + i * PIECE, s->bytes + i * (s->n / (SAMPLE / PIECE)), PIECE);
    mrec_histogram(l->bytes, l->n, l->counts);
}

/* What the sequences leave over. */
static void take_rest(mrec_zframe *z, const stretch *s, size_t nsequences, literals *l) {
    const uint8_t *from = s->bytes, *end = s->bytes + s->n;
    uint8_t *to = z->literals;
    for (size_t i = 0; i < nsequences; i++) {
        size_t n = z->sequences[i].literals;
        if (n <= 16 && end - from >= 16)
            memcpy(to, from, 16); /* one move */
        else
            memcpy(to, from, n);
        to += n;
        from += n + z->sequences[i].match;
    }
    memcpy(to, from, (size_t)(end - from));
    l->bytes = z->literals;
    l->n = (size_t)(to - z->literals) + (size_t)(end - from);
    mrec_histogram(l->bytes, l->n, l->counts);
}

typedef struct matches {
    size_t n, covered;
    size_t stop; /* where the last one ends */
    recent recent;
} matches;

/* A part of a stretch, and where its bytes are those at a distance: `equal` of them. */
typedef struct part {
    size_t from, to, distance, equal;
    uint64_t *bits;
} part;

static void count_equal(const stretch *s, part *p) {
    p->equal = p->from < p->to ? mrec_equal_bits(s->bytes + p->from, p->to - p->from, p->distance, p->bits) : 0;
}

/* The first frame of atoms, where bytes repeat the byte before, and the rest, where they repeat the frame before. Where
 * no distance is known all is the first part. Returns how many bytes repeat. */
static size_t divide(frame *f, const stretch *s, part parts[2]) {
    size_t first = f->distance == 0 ? s->n : f->distance > s->before ? f->distance - s->before : 0;
    if (first > s->n)
        first = s->n;
    parts[0] = (part){1, first, 1, 0, f->z->equal[0]};
    parts[1] = (part){first > 0 ? first : 1, s->n, f->distance, 0, f->z->equal[1]};
    count_equal(s, &parts[0]);
    count_equal(s, &parts[1]);
    return parts[0].equal + parts[1].equal;
}

/* Make all the first part, if then more bytes repeat than *equal. */
static bool unite(frame *f, const stretch *s, size_t *equal, part parts[2]) {
    part all = {1, s->n, 1, 0, f->z->equal[2]};
    count_equal(s, &all);
    if (all.equal <= *equal)
        return false;
    parts[0] = all;
    parts[1].to = parts[1].from;
    *equal = all.equal;
    return true;
}

/* The Offset_Value of a distance, which becomes the last one. */
static uint32_t say_distance(recent *r, size_t distance) {
    if (r->of[0] == distance)
        return 1;
    size_t second = r->of[1];
    r->of[1] = r->of[0];
    r->of[0] = distance;
    if (second == distance)
        return 2;
    bool third = r->of[2] == distance;
    r->of[2] = second;
    return third ? 3 : (uint32_t)distance + 3;
}

static void add_run(frame *f, const part *p, size_t start, size_t end, matches *m) {
    uint32_t offset = say_distance(&m->recent, p->distance);
    f->z->sequences[m->n++] = (mrec_zsequence){(uint32_t)(start - m->stop), (uint32_t)(end - start), offset, {0}};
    m->covered += end - start;
    m->stop = end;
}

/* Where `least` bits in a row are set. */
static uint64_t runs_of(uint64_t bits, unsigned least) {
    for (unsigned have = 1; have < least;) {
        unsigned more = have < least - have ? have : least - have;
        bits &= bits >> more;
        have += more;
    }
    return bits;
}

/* Add the runs of at least `least` bytes. There is always a literal before a match: without one, an offset of 1 would
 * not mean the last distance. */
static void add_runs(frame *f, const part *p, unsigned least, matches *m) {
    size_t start = m->stop >= p->from ? m->stop + 1 : p->from; /* of the run that goes on into a word */
    for (size_t at = p->from; at <= p->to && p->from < p->to && m->n < MAX_SEQUENCES - 64 / 3; at += 64) {
        const uint64_t equal = p->bits[(at - p->from) / 64], changed = ~equal;
        if (changed == 0)
            continue;
        unsigned first = (unsigned)__builtin_ctzll(changed), last = (unsigned)mrec_log2(changed);
        if (at + first >= start + least)
            add_run(f, p, start, at + first, m);
        uint64_t runs = runs_of(equal, least) & ((UINT64_C(1) << last) - (UINT64_C(1) << first));
        for (runs &= ~(runs << 1); runs != 0; runs &= runs - 1) {
            unsigned from = (unsigned)__builtin_ctzll(runs);
            add_run(f, p, at + from, at + from + (unsigned)__builtin_ctzll(~(equal >> from)), m);
        }
        start = at + last + 1;
    }
}

static matches find_runs(frame *f, const part parts[2], unsigned least) {
    matches m = {.recent = f->recent};
    add_runs(f, &parts[0], least, &m);
    add_runs(f, &parts[1], least, &m);
    return m;
}

/* Bits at which three in a row are set. */
static uint64_t threes(const uint64_t *word) {
    return word[0] & (word[0] >> 1 | word[1] << 63) & (word[0] >> 2 | word[1] << 62);
}

/* Add runs at any of three distances from one place on, always the longest, or nearly so if it is at the last one. */
static void add_best_runs(frame *f, const part p[3], unsigned least, matches *m) {
    const size_t from = p[0].from, n = p[0].to - from;
    size_t i = m->stop >= from ? m->stop + 1 - from : 0;
    while (i < n && m->n < MAX_SEQUENCES) {
        uint64_t starts =
            (threes(p[0].bits + i / 64) | threes(p[1].bits + i / 64) | threes(p[2].bits + i / 64)) >> i % 64;
        if (starts == 0) {
            i = (i / 64 + 1) * 64;
            continue;
        }
        i += (size_t)__builtin_ctzll(starts);
        size_t best = 0, length = 0, most = 0;
        for (size_t k = 0; k < 3; k++) {
            size_t this = mrec_run_end(p[k].bits, i) - i;
            size_t worth = this + (p[k].distance == m->recent.of[0]); /* which takes fewer bits */
            best = worth > most ? k : best;
            length = worth > most ? this : length;
            most = worth > most ? worth : most;
        }
        if (length >= least)
            add_run(f, &p[best], from + i, from + i + length, m);
        i += length + 1;
    }
}

/* Where there are two frames before, a byte may also be that of the second one, and where neighbours are alike, as in a
 * molecule, the byte before: three distances, which a decoder keeps, so that two bits say which. */
static matches find_best_runs(frame *f, const stretch *s, const part parts[2], unsigned least) {
    size_t third = 2 * f->distance > s->before ? 2 * f->distance - s->before : 1;
    if (third < parts[1].from)
        third = parts[1].from;
    if (third >= s->n)
        return find_runs(f, parts, least);
    part second = {parts[1].from, third, f->distance, 0, f->z->equal[2]};
    part rest[3] = {{third, s->n, f->distance, 0, f->z->equal[1]}, /* no longer those of parts[1] */
                    {third, s->n, 2 * f->distance, 0, f->z->equal[3]},
                    {third, s->n, 1, 0, f->z->equal[4]}};
    count_equal(s, &rest[2]);
    if (rest[2].equal < (s->n - third) / 4)
        return find_runs(f, parts, least);
    matches m = {.recent = f->recent};
    count_equal(s, &second);
    count_equal(s, &rest[0]);
    count_equal(s, &rest[1]);
    add_runs(f, &parts[0], least, &m);
    add_runs(f, &second, least, &m);
    add_best_runs(f, rest, least, &m);
    return m;
}

/* The shortest run that takes fewer bits as a sequence than as literals of bits / 256 each. */
static unsigned least_run(uint64_t bits) {
    return bits < 320 ? LONG_RUN : bits < 448 ? 6 : bits < 640 ? 4 : 3;
}

/* Whether a sample says that Huffman codes would save hardly anything: its bytes collide as seldom as those of chance,
 * of which two are the same once in 256. */
static bool is_noise(const literals *sample) {
    return sample->n == SAMPLE && collisions_of(sample) < SAMPLE + SAMPLE * SAMPLE / 256 * 113 / 100;
}

static bool pays(const matches *m, const stretch *s, uint64_t bits) {
    return m->covered * bits > m->n * RUN_BITS * 256 + s->n * bits / 64;
}

/* Whether matches at all distances would save a third more than those at one distance do. */
static bool is_scattered(const stretch *s, uint64_t bits, const matches *m) {
    uint64_t saved = pays(m, s, bits) ? (m->covered * bits - m->n * RUN_BITS * 256) * 256 / (s->n * bits) : 0;
    return mrec_match_sample(s->bytes, s->n, bits) > 256 / 3 + saved;
}

static bool is_constant(const uint8_t *bytes, size_t n) {
    return memcmp(bytes, bytes + 1, n - 1) == 0;
}

static size_t changes_at_1(frame *f, const uint8_t *bytes, size_t n) {
    return n - 1 - mrec_equal_bits(bytes + 1, n - 1, 1, f->z->equal[2]);
}

/* Whether a plane, and those below it, repeat in a few long runs, and not because they are flat: a ramp, where there
 * are longer ones at other distances. */
static bool is_regular(frame *f, const stretch *s, const matches *m) {
    return !f->irregular && m->covered > s->n / 4 && m->covered > m->n * REGULAR && m->recent.of[0] > 1 &&
           changes_at_1(f, s->bytes, s->n) > s->n / 4;
}

/* 256 times the bits of a byte that is not what it was at the distance, by order-0 entropy of some of them. */
static uint64_t bits_of_changes(const stretch *s, const part parts[2], literals *l) {
    const part *p = parts[0].to > s->n / 2 ? &parts[0] : &parts[1];
    const size_t words = (p->to - p->from) / 64, step = words / CHANGES + 1;
    memset(l->counts, 0, sizeof l->counts);
    l->n = 0;
    for (size_t i = 0; i < words; i += step) {
        const uint8_t *bytes = s->bytes + p->from + i * 64;
        for (uint64_t changed = ~p->bits[i]; changed != 0; changed &= changed - 1, l->n++)
            l->counts[bytes[__builtin_ctzll(changed)]]++;
    }
    return l->n > 0 ? bits_of(l) : 256;
}

static void put_stretch(frame *f, const stretch *s) {
    literals l;
    part parts[2];
    bool noise = false;
    uint64_t bits = NOISE;
    size_t equal = divide(f, s, parts);
    if (equal <= s->n / 2) {
        take_sample(f->z, s, &l);
        noise = is_noise(&l);
        if (!noise)
            bits = bits_of(&l);
    }
    bool united = equal <= s->n / 4 && !noise && f->distance != 0 && unite(f, s, &equal, parts);
    if (equal > s->n / 2)
        bits = bits_of_changes(s, parts, &l);
    matches m = {.recent = f->recent};
    if (equal > s->n / 2 && f->distance > 0 && 2 * f->distance < WINDOW && !united && s->n >= MANY)
        m = find_best_runs(f, s, parts, least_run(bits));
    else if (equal > s->n / 16)
        m = find_runs(f, parts, least_run(bits));
    bool doubtful = !noise && (m.covered < s->n / 4 || united);
    if ((doubtful && f->tests++ < MAX_TESTS && is_scattered(s, bits, &m)) || is_regular(f, s, &m)) {
        f->left = true;
        return;
    }
    f->irregular = f->irregular || m.covered < s->n / 2;
    if (pays(&m, s, bits)) {
        take_rest(f->z, s, m.n, &l);
        if (put_compressed(f, s, &l, m.n)) {
            f->recent = m.recent;
            return;
        }
    }
    if (!noise) {
        take_all(s, &l);
        if (put_compressed(f, s, &l, 0))
            return;
    }
    put_raw_block(f, s);
}

/* ---- frames ---- */

static void put_plane(frame *f, const uint8_t *bytes, size_t n) {
    const size_t pieces = (n + MAX_BLOCK - 1) / MAX_BLOCK, most = (n + pieces - 1) / pieces; /* all alike */
    for (size_t at = 0; at < n && !f->left; at += most) {
        stretch s = {bytes + at, n - at < most ? n - at : most, at};
        bool constant = is_constant(s.bytes, s.n);
        if (!constant || s.bytes[0] != f->repeated)
            put_repeats(f);
        if (constant) {
            f->repeated = s.bytes[0];
            f->repeats += s.n;
        } else if (s.n < MIN_BLOCK) {
            put_raw_block(f, &s);
        } else {
            put_stretch(f, &s);
        }
    }
}

/* Of the planes that are not all the same, the highest is the one that changes least between frames of atoms. */
static void find_distance(frame *f, const uint8_t *planes, size_t n, size_t nplanes) {
    for (size_t p = nplanes; p-- > 0 && n >= MIN_BLOCK;)
        if (!mrec_run_flat(planes + p * n, n)) {
            size_t distance = mrec_run_distance(planes + p * n, n);
            f->distance = distance < WINDOW ? distance : 0;
            return;
        }
}

/* Whether, by pieces of them, all planes go on as the byte before but for one byte in 32, and are not all constant:
 * zstd is faster at long matches, and says shortly what little else there is. */
static bool is_flat(frame *f, const uint8_t *planes, size_t n, size_t nplanes) {
    const size_t looked = n < LOOKS * LOOK ? n / LOOKS : LOOK;
    size_t changes = 0, varying = 0;
    for (size_t p = 0; p < nplanes; p++) {
        size_t these = 0;
        if (is_constant(planes + p * n, n))
            continue;
        for (size_t i = 0; i < LOOKS; i++)
            these += changes_at_1(f, planes + p * n + n / LOOKS * i, looked);
        if (these > LOOKS * looked / 4)
            return false;
        changes += these;
        varying += these > 0;
    }
    return varying > 0 && changes < varying * LOOKS * looked / 32;
}

static void put_frame_header(frame *f, size_t n) {
    bool single = n <= WINDOW;
    mrec_store_u32(f->at, 0xfd2fb528);
    f->at[4] = (uint8_t)(2 << 6 | single << 5); /* a content size of 4 bytes */
    f->at += 5;
    if (!single)
        *f->at++ = 13 << 3; /* the window: 2^(10 + 13) */
    mrec_store_u32(f->at, (uint32_t)n);
    f->at += 4;
}

/* What ZSTD_compressBound says, which is more than headers and raw blocks take. */
static size_t bound(size_t n) {
    return n + n / 256 + (n < MAX_BLOCK ? (MAX_BLOCK - n) / 2048 : 0);
}

size_t mrec_zframe_encode(mrec_zframe *z, const uint8_t *planes, size_t n, size_t size, uint8_t *out, size_t room) {
    if (n < MIN_SIZE || n > UINT32_MAX || size < 2 || size > MAX_PLANES || room < bound(n))
        return 0;
    frame f = {.z = z, .at = out, .end = out + room, .recent = {{1, 4, 8}}};
    size_t each = n / size;
    put_frame_header(&f, n);
    if (is_flat(&f, planes, each, size))
        return 0;
    find_distance(&f, planes, each, size);
    for (size_t p = 0; p < size; p++)
        put_plane(&f, planes + p * each, each);
    put_repeats(&f);
    if (f.left)
        return 0;
    f.block[0] |= 1;
    return (size_t)(f.at - out);
}
