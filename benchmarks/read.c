/* SPDX-License-Identifier: BSD-3-Clause
 * read ARRAY ROWS GRID CHUNK SHUFFLED READ TIMES: an array of f64 as append.c makes it, READ rows at a time, all of it
 * so many times over. ROWS, GRID and CHUNK are the lengths in its zarr.json: of the array, of a file, of a chunk. */
#include "reader.h"

#include <stdio.h>
#include <stdlib.h>

static void need(mrec_status status, const mrec_error *error) {
    if (status == MREC_OK)
        return;
    fprintf(stderr, "%s: %s\n", error->path, error->message);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 8)
        return 2;
    uint64_t n[6];
    for (int i = 0; i < 6; i++)
        n[i] = strtoull(argv[i + 2], NULL, 10);
    uint64_t rows = n[0], at_once = n[4];
    mrec_array_spec spec = {.path = argv[1],
                            .dtype = MREC_F64,
                            .ndim = 1,
                            .shape = {rows},
                            .grid = {n[1]},
                            .chunk = {n[2]},
                            .sharded = true,
                            .index_checked = true,
                            .separator = '/'};
    mrec_codec *codecs = spec.pipeline.codecs;
    codecs[spec.pipeline.n++] = (mrec_codec){.kind = MREC_CODEC_BYTES, .elementsize = 8};
    if (n[3]) {
        codecs[spec.pipeline.n++] = (mrec_codec){.kind = MREC_CODEC_SHUFFLE, .elementsize = 8};
        codecs[spec.pipeline.n++] = (mrec_codec){.kind = MREC_CODEC_ZSTD, .level = 3};
    }
    codecs[spec.pipeline.n++] = (mrec_codec){.kind = MREC_CODEC_CRC32C};
    double *out = malloc(at_once * sizeof *out), sum = 0;
    if (out == NULL)
        return 1;
    mrec_error error;
    for (uint64_t turn = 0; turn < n[5]; turn++) {
        mrec_source *source; /* a new one, which has decoded nothing yet */
        need(mrec_source_open(mrec_vfs_posix(), &spec, &source, &error), &error);
        for (uint64_t start = 0; start < rows; start += at_once) {
            uint64_t stop = start + at_once < rows ? start + at_once : rows;
            need(mrec_source_read(source, start, stop, out, 0, &error), &error);
            sum += out[0];
        }
        mrec_source_free(source);
    }
    printf("%g\n", sum);
    free(out);
    return 0;
}
