/* SPDX-License-Identifier: BSD-3-Clause
 * The record of a run: positions to 0.001, the energy, the cell, and the seconds that writing them took. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "system.h"

#include <mrec.h>
#include <stdio.h>

typedef struct lj_output {
    mrec_writer *writer;
    double seconds;
} lj_output;

static inline void output_check(mrec_status status, const mrec_error *error) {
    if (status == MREC_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", error->path, mrec_status_name(status), error->message);
    exit(1);
}

static inline lj_output output_new(const char *path, const lj_system *s) {
    const mrec_column columns[3] = {{.name = "x", .dtype = MREC_F64, .precision = 1e-3},
                                    {.name = "y", .dtype = MREC_F64, .precision = 1e-3},
                                    {.name = "z", .dtype = MREC_F64, .precision = 1e-3}};
    const mrec_block atoms = {.name = "atoms", .ncolumns = 3, .columns = columns, .rows = s->n};
    const mrec_value pe = {.name = "pe", .dtype = MREC_F64, .width = 1};
    const mrec_schema schema = {.nblocks = 1, .blocks = &atoms, .nvalues = 1, .values = &pe};
    mrec_options options;
    mrec_options_init(&options);
    options.overwrite = true;
    options.meta_json = "{\"units\":{\"length\":\"sigma\",\"time\":\"tau\",\"energy\":\"epsilon\"}}";
    lj_output out = {0};
    mrec_error error;
    output_check(mrec_create(path, &schema, &options, &out.writer, &error), &error);
    return out;
}

static inline void output_append(lj_output *out, const lj_system *s, int64_t step) {
    const double start = seconds();
    double pe = 0;
    for (size_t i = 0; i < s->n; i++)
        pe += s->pe[i];
    const mrec_column_data columns[3] = {{.data = &s->r[0][0], .stride = sizeof *s->r},
                                         {.data = &s->r[0][1], .stride = sizeof *s->r},
                                         {.data = &s->r[0][2], .stride = sizeof *s->r}};
    const mrec_block_data atoms = {.present = true, .rows = s->n, .columns = columns};
    const mrec_value_data energy = {.data = &pe, .size = sizeof pe};
    const mrec_cell cell = {
        .defined = true, .vectors = {[0] = s->length, [4] = s->length, [8] = s->length}, .periodic = {1, 1, 1}};
    const mrec_frame frame = {.step = step,
                              .has_time = true,
                              .time = TIME_STEP * (double)step,
                              .cell = &cell,
                              .blocks = &atoms,
                              .values = &energy};
    mrec_error error;
    output_check(mrec_append(out->writer, &frame, &error), &error);
    out->seconds += seconds() - start;
}

static inline void output_close(lj_output *out) {
    mrec_error error;
    output_check(mrec_close(out->writer, &error), &error);
    mrec_free(out->writer);
}

static inline void output_report(const lj_output *out, const lj_system *s, long steps, double elapsed) {
    printf("%zu atoms, %ld steps: %.1f us a step, output %.1f us of it\n", s->n, steps, 1e6 * elapsed / (double)steps,
           1e6 * out->seconds / (double)steps);
}

#endif
