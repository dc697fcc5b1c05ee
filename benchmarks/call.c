/* SPDX-License-Identifier: BSD-3-Clause
 * call RECORD: nanoseconds of mrec_append for a frame of 100 atoms, and of copying its 2400 bytes. Medians of runs of
 * 4 calls: most of these complete no chunk and land nothing. */
#define _GNU_SOURCE
#include "mrec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ATOMS = 100, CALLS = 4, RUNS = 16000, DISTINCT = 64 };

static double frames[DISTINCT][3][ATOMS], copies[DISTINCT][3][ATOMS];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times) {
    qsort(times, RUNS, sizeof *times, ascending);
    return times[RUNS / 2] / CALLS;
}

static void need(mrec_status status, const mrec_error *error) {
    if (status == MREC_OK)
        return;
    fprintf(stderr, "%s: %s\n", error->path, error->message);
    exit(1);
}

static void append(mrec_writer *writer, int i) {
    double(*xyz)[ATOMS] = frames[i % DISTINCT];
    mrec_column_data data[3] = {{.data = xyz[0]}, {.data = xyz[1]}, {.data = xyz[2]}};
    mrec_block_data rows = {.present = true, .rows = ATOMS, .columns = data};
    mrec_frame frame = {.step = i, .blocks = &rows};
    mrec_error error;
    need(mrec_append(writer, &frame, &error), &error);
}

int main(int argc, char **argv) {
    static double calls[RUNS], copying[RUNS];
    if (argc != 2)
        return 2;
    for (size_t i = 0; i < DISTINCT * 3 * ATOMS; i++)
        (&frames[0][0][0])[i] = (double)(i * 7919 % 100003);
    mrec_column columns[3] = {
        {.name = "x", .dtype = MREC_F64}, {.name = "y", .dtype = MREC_F64}, {.name = "z", .dtype = MREC_F64}};
    mrec_block block = {.name = "atoms", .ncolumns = 3, .columns = columns, .rows = ATOMS};
    mrec_schema schema = {.nblocks = 1, .blocks = &block};
    mrec_options options;
    mrec_options_init(&options);
    options.no_durable = true;
    mrec_writer *writer;
    mrec_error error;
    need(mrec_create(argv[1], &schema, &options, &writer, &error), &error);
    for (int run = 0, i = 0; run < RUNS; run++) {
        double start = now();
        for (int k = 0; k < CALLS; k++)
            append(writer, i++);
        calls[run] = now() - start;
        start = now();
        for (int k = 0; k < CALLS; k++) {
            memcpy(copies[(i + k) % DISTINCT], frames[(i + k + 1) % DISTINCT], sizeof frames[0]);
            __asm__ volatile("" ::: "memory");
        }
        copying[run] = now() - start;
    }
    need(mrec_close(writer, &error), &error);
    mrec_free(writer);
    printf("%g %g\n", median(calls), median(copying));
    return 0;
}
