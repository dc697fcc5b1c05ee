/* SPDX-License-Identifier: BSD-3-Clause
 * Reading: boxes of any strides, and one array under many threads (run it under -fsanitize=thread). */
#define _GNU_SOURCE
#include "tests.h"

#include "bytes.h"
#include "crc32c.h"
#include "reader.h"
#include "strided.h"

#include <pthread.h>
#include <unistd.h>

enum { ROWS = 1000, CHUNK = 24, PER_SHARD = 8, SHARDS = 6 };

void test_strided(void) {
    uint16_t from[4][3][5], to[5][4][3];
    for (int i = 0; i < 60; i++)
        ((uint16_t *)from)[i] = (uint16_t)i;
    mrec_axis axes[3] = {{4, 30, 6}, {3, 10, 2}, {5, 2, 24}};
    mrec_copy_strided((uint8_t *)from, (uint8_t *)to, axes, 3, 2);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 5; k++)
                assert(to[k][i][j] == from[i][j][k]);
    memset(to, 0, sizeof to);
    mrec_axis close[3] = {{4, 30, 30}, {3, 10, 10}, {5, 2, 2}};
    mrec_copy_strided((uint8_t *)from, (uint8_t *)to, close, 3, 2);
    assert(memcmp(from, to, sizeof from) == 0);
    mrec_axis none[2] = {{4, 2, 2}, {0, 2, 2}};
    mrec_copy_strided(NULL, NULL, none, 2, 2);
    uint16_t one = 7;
    mrec_axis same[1] = {{60, 0, 2}};
    mrec_copy_strided((uint8_t *)&one, (uint8_t *)to, same, 1, 2);
    assert(to[0][0][0] == 7 && to[4][3][2] == 7);
}

static double value(uint64_t row) {
    return (double)row * 1.25 - 3;
}

/* A shard of raw chunks with checksums, index first. */
static void write_shard(const char *directory, int shard, mrec_coder *coder, const mrec_pipeline *pipeline) {
    mrec_buffer file = {0};
    mrec_error error;
    size_t index = PER_SHARD * 16 + 4;
    assert(mrec_buffer_reserve(&file, index, &error) == MREC_OK);
    file.size = index;
    for (uint64_t c = 0; c < PER_SHARD; c++) {
        double rows[CHUNK];
        for (uint64_t i = 0; i < CHUNK; i++)
            rows[i] = value(((uint64_t)shard * PER_SHARD + c) * CHUNK + i);
        size_t before = file.size;
        assert(mrec_encode(coder, pipeline, rows, sizeof rows, &file, &error) == MREC_OK);
        mrec_store_u64(file.data + 16 * c, before);
        mrec_store_u64(file.data + 16 * c + 8, file.size - before);
    }
    mrec_store_u32(file.data + index - 4, mrec_crc32c(0, file.data, index - 4));
    char path[300];
    snprintf(path, sizeof path, "%s/c/%d", directory, shard);
    assert(mrec_file_replace(mrec_vfs_posix(), path, file.data, file.size, &error) == MREC_OK);
    mrec_buffer_free(&file);
}

typedef struct job {
    mrec_source *source;
    uint64_t seed;
} job;

static void *read_ranges(void *arg) {
    job *j = arg;
    double *out = malloc(ROWS * 3 * sizeof(double));
    assert(out != NULL);
    for (int k = 0; k < 500; k++) {
        uint64_t start = random_u64(&j->seed) % ROWS, n = random_u64(&j->seed) % (ROWS + 1 - start);
        size_t step = k % 2 ? 3 : 1; /* a column of three, and alone */
        mrec_error error;
        assert(mrec_source_read(j->source, start, start + n, out, (ptrdiff_t)(step * sizeof(double)), &error) ==
               MREC_OK);
        for (uint64_t i = 0; i < n; i++)
            assert(out[i * step] == value(start + i));
        if (k % 100 == 99)
            assert(mrec_source_refresh(j->source, ROWS, &error) == MREC_OK);
    }
    free(out);
    return NULL;
}

void test_reader(void) {
    char directory[] = "/tmp/mrec-reader-XXXXXX", chunks[64];
    assert(mkdtemp(directory) != NULL);
    mrec_error error;
    mrec_vfs *vfs = mrec_vfs_posix();
    snprintf(chunks, sizeof chunks, "%s/c", directory);
    assert(mrec_dir_make(vfs, chunks, &error) == MREC_OK);
    mrec_coder *coder;
    mrec_cache *cache;
    assert(mrec_coder_new(&coder, &error) == MREC_OK);
    assert(mrec_cache_new(vfs, 2, 3 * CHUNK * sizeof(double), &cache, &error) == MREC_OK); /* always too small */
    mrec_array_spec spec = {.path = directory,
                            .dtype = MREC_F64,
                            .ndim = 1,
                            .shape = {ROWS},
                            .grid = {CHUNK * PER_SHARD},
                            .chunk = {CHUNK},
                            .sharded = true,
                            .index_checked = true,
                            .separator = '/',
                            .pipeline = {2, {{.kind = MREC_CODEC_BYTES}, {.kind = MREC_CODEC_CRC32C}}},
                            .cache = cache};
    spec.pipeline.codecs[0].elementsize = sizeof(double);
    for (int i = 0; i < SHARDS; i++)
        write_shard(directory, i, coder, &spec.pipeline);
    mrec_source *source;
    assert(mrec_source_open(vfs, &spec, &source, &error) == MREC_OK);
    pthread_t threads[6];
    job jobs[6];
    for (uint64_t i = 0; i < 6; i++) {
        jobs[i] = (job){source, i + 1};
        assert(pthread_create(&threads[i], NULL, read_ranges, &jobs[i]) == 0);
    }
    for (int i = 0; i < 6; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    double out;
    assert(mrec_source_read(source, 3, 2, &out, 0, &error) == MREC_E_VALUE);
    assert(mrec_source_read(source, ROWS, ROWS + 1, &out, 0, &error) == MREC_E_VALUE);
    assert(mrec_source_refresh(source, UINT64_MAX, &error) == MREC_E_CORRUPT);
    assert(mrec_source_read(source, ROWS - 1, ROWS, &out, 0, &error) == MREC_OK && out == value(ROWS - 1));
    mrec_source_free(source);
    spec.chunk[0] = 5;
    assert(mrec_source_open(vfs, &spec, &source, &error) == MREC_E_VALUE && source == NULL);
    mrec_cache_free(cache);
    mrec_coder_free(coder);
    assert(mrec_tree_remove(vfs, directory, &error) == MREC_OK);
}
