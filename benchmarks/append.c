/* SPDX-License-Identifier: BSD-3-Clause
 * append RECORD ATOMS FRAMES PRECISION [FLUSH_FRAMES]: what a simulator does. Every frame moves every atom; the random
 * walk costs the same in every build, and the frames are made before the first is appended. */
#include "mrec.h"

#include <stdio.h>
#include <stdlib.h>

enum { DISTINCT = 32 }; /* frames in memory, appended in turn: more than a chunk holds, or it would repeat itself */

static void fail(const mrec_error *error) {
    fprintf(stderr, "%s: %s\n", error->path, error->message);
    exit(1);
}

/* x, y and z of each frame, one after another: a box of 30 A, and steps of at most 0.1 A. */
static double *walk(size_t atoms) {
    double *xyz = malloc(DISTINCT * 3 * atoms * sizeof *xyz);
    if (xyz == NULL)
        exit(1);
    uint64_t seed = 1;
    for (size_t i = 0; i < DISTINCT * 3 * atoms; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double uniform = (double)(seed >> 11) / (double)(1ull << 53);
        xyz[i] = i < 3 * atoms ? 30 * uniform : xyz[i - 3 * atoms] + 0.2 * (uniform - 0.5);
    }
    return xyz;
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    size_t atoms = strtoul(argv[2], NULL, 10), frames = strtoul(argv[3], NULL, 10);
    double precision = strtod(argv[4], NULL), *xyz = walk(atoms);
    mrec_column columns[3] = {{.name = "x", .dtype = MREC_F64, .precision = precision},
                              {.name = "y", .dtype = MREC_F64, .precision = precision},
                              {.name = "z", .dtype = MREC_F64, .precision = precision}};
    mrec_block block = {.name = "atoms", .ncolumns = 3, .columns = columns, .rows = atoms};
    mrec_schema schema = {.nblocks = 1, .blocks = &block};
    mrec_options options;
    mrec_options_init(&options);
    options.flush_frames = argc > 5 ? strtoul(argv[5], NULL, 10) : 0;
    mrec_writer *writer;
    mrec_error error;
    if (mrec_create(argv[1], &schema, &options, &writer, &error) != MREC_OK)
        fail(&error);
    for (size_t i = 0; i < frames; i++) {
        const double *of_frame = xyz + i % DISTINCT * 3 * atoms;
        mrec_column_data data[3] = {{.data = of_frame}, {.data = of_frame + atoms}, {.data = of_frame + 2 * atoms}};
        mrec_block_data rows = {.present = true, .rows = atoms, .columns = data};
        mrec_frame frame = {.step = (int64_t)i, .blocks = &rows};
        if (mrec_append(writer, &frame, &error) != MREC_OK)
            fail(&error);
    }
    if (mrec_close(writer, &error) != MREC_OK)
        fail(&error);
    mrec_free(writer);
    free(xyz);
    return 0;
}
