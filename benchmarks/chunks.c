/* SPDX-License-Identifier: BSD-3-Clause
 * One chunk after the other through zframe and through zstd, on one core: sizes and speeds relative to zstd's level 3
 * in the same run, medians over rounds in which each has its turn.
 *
 *     chunks [FILE ELEMENTS]...
 *
 * Water is made here; a file holds doubles, of which ELEMENTS at a time are a chunk. */
#define _GNU_SOURCE
#include "quantize.h"
#include "shuffle.h"
#include "zframe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

enum { LEVEL3, LEVEL1, ZFRAME, ENCODERS, ROUNDS = 9 };

typedef struct set {
    char name[100];
    double *values;
    size_t elements, nchunks; /* of a chunk, and how many */
} set;

static void *need(void *memory) {
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

static double uniform(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) * 0x1p-53;
}

/* One coordinate of atoms at the density of water that move by 0.05 to 0.15 a frame. */
static set water(size_t atoms, size_t frames_per_chunk, double precision) {
    set made = {.elements = atoms * frames_per_chunk};
    double *now = need(malloc(atoms * sizeof *now)), *mobility = need(malloc(atoms * sizeof *mobility)), grid;
    double edge = cbrt((double)atoms / 0.1);
    uint64_t state = atoms;
    made.nchunks = 400000 / made.elements + 2;
    made.values = need(malloc(made.nchunks * made.elements * sizeof *made.values));
    snprintf(made.name, sizeof made.name, "water, %zu atoms, %zu a chunk, %g", atoms, frames_per_chunk, precision);
    mrec_grid(precision, &grid);
    for (size_t i = 0; i < atoms; i++) {
        now[i] = uniform(&state) * edge;
        mobility[i] = 0.05 + 0.1 * uniform(&state);
    }
    for (size_t frame = 0; frame < made.nchunks * frames_per_chunk; frame++) {
        for (size_t i = 0; i < atoms; i++)
            now[i] += mobility[i] * sqrt(-2 * log(1 - uniform(&state))) * cos(2 * M_PI * uniform(&state));
        mrec_quantize(now, made.values + frame * atoms, atoms, grid);
    }
    free(now);
    free(mobility);
    return made;
}

static set from_file(const char *path, size_t elements) {
    set made = {.elements = elements};
    const char *name = strrchr(path, '/');
    FILE *file = fopen(path, "rb");
    if (file == NULL || elements == 0 || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "no doubles in %s\n", path);
        exit(1);
    }
    snprintf(made.name, sizeof made.name, "%.50s, %zu a chunk", name ? name + 1 : path, elements);
    made.nchunks = (size_t)ftell(file) / sizeof(double) / elements;
    rewind(file);
    made.values = need(malloc(made.nchunks * elements * sizeof(double)));
    made.nchunks = fread(made.values, elements * sizeof(double), made.nchunks, file);
    fclose(file);
    return made;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times) {
    qsort(times, ROUNDS, sizeof *times, ascending);
    return times[ROUNDS / 2];
}

typedef struct bench {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
    mrec_zframe *zframe;
} bench;

static size_t encode(bench *b, int encoder, const uint8_t *planes, size_t n, uint8_t *out, size_t room) {
    size_t size = encoder == ZFRAME ? mrec_zframe_encode(b->zframe, planes, n, sizeof(double), out, room) : 0;
    if (size > 0)
        return size;
    ZSTD_CCtx_setParameter(b->compressor, ZSTD_c_compressionLevel, encoder == LEVEL1 ? 1 : 3);
    return ZSTD_compress2(b->compressor, out, room, planes, n);
}

static void run(bench *b, const set *s) {
    size_t n = s->elements * sizeof(double), room = ZSTD_compressBound(n), total[ENCODERS];
    uint8_t *planes = need(malloc(n * s->nchunks)), *out = need(malloc(room * s->nchunks)), *back = need(malloc(n));
    size_t *sizes = need(malloc(s->nchunks * sizeof *sizes));
    double written[ENCODERS][ROUNDS], read[ENCODERS][ROUNDS];
    for (size_t c = 0; c < s->nchunks; c++)
        mrec_shuffle((const uint8_t *)s->values + c * n, planes + c * n, n, sizeof(double));
    for (int round = 0; round < ROUNDS; round++)
        for (int e = 0; e < ENCODERS; e++) {
            double start = seconds();
            total[e] = 0;
            for (size_t c = 0; c < s->nchunks; c++)
                total[e] += sizes[c] = encode(b, e, planes + c * n, n, out + c * room, room);
            written[e][round] = seconds() - start;
            start = seconds();
            for (size_t c = 0; c < s->nchunks; c++)
                if (ZSTD_decompressDCtx(b->decompressor, back, n, out + c * room, sizes[c]) != n) {
                    fprintf(stderr, "%s: chunk %zu does not decode\n", s->name, c);
                    exit(1);
                }
            read[e][round] = seconds() - start;
        }
    double write3 = median(written[LEVEL3]), read3 = median(read[LEVEL3]), values = (double)(s->elements * s->nchunks);
    printf("| %s | %.0f | %.3f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", s->name, (double)n / 1024,
           (double)total[ZFRAME] / values, (double)total[ZFRAME] / (double)total[LEVEL3],
           (double)total[LEVEL1] / (double)total[LEVEL3], write3 / median(written[ZFRAME]),
           write3 / median(written[LEVEL1]), read3 / median(read[ZFRAME]));
    fflush(stdout);
    free(planes);
    free(out);
    free(back);
    free(sizes);
}

int main(int argc, char **argv) {
    static const struct {
        size_t atoms, frames;
    } waters[] = {{99, 21}, {99, 100}, {5001, 1}, {5001, 4}, {5001, 10}, {99000, 1}, {99000, 3}};
    bench b = {ZSTD_createCCtx(), ZSTD_createDCtx(), mrec_zframe_new()};
    need(b.compressor);
    need(b.decompressor);
    need(b.zframe);
    printf("| chunks | KiB | bytes a value | size | size, level 1 | speed | speed, level 1 | speed of decoding |\n"
           "|---|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < sizeof waters / sizeof waters[0]; i++)
        for (int coarse = 0; coarse < 2; coarse++) {
            set made = water(waters[i].atoms, waters[i].frames, coarse ? 1e-2 : 1e-3);
            run(&b, &made);
            free(made.values);
        }
    for (int i = 1; i + 1 < argc; i += 2) {
        set made = from_file(argv[i], strtoul(argv[i + 1], NULL, 10));
        run(&b, &made);
        free(made.values);
    }
    ZSTD_freeCCtx(b.compressor);
    ZSTD_freeDCtx(b.decompressor);
    mrec_zframe_free(b.zframe);
    return 0;
}
