/* SPDX-License-Identifier: BSD-3-Clause
 * Files of an array from elements at any stride: each chunk, decoded, is what a loop over the elements says. */
#include "tests.h"

#include "bytes.h"
#include "crc32c.h"
#include "encode.h"

static const mrec_codec BYTES = {.kind = MREC_CODEC_BYTES, .elementsize = 2};
static const mrec_codec TEXT = {.kind = MREC_CODEC_VLEN_UTF8};
static const mrec_codec ZSTD = {.kind = MREC_CODEC_ZSTD, .level = 3};
static const mrec_codec CRC = {.kind = MREC_CODEC_CRC32C};

enum { ROWS = 7, COLUMNS = 5, GRID = 8, CHUNK_ROWS = 4, CHUNK_COLUMNS = 2, CHUNKS = 8, UNITS = 8 };
static const uint16_t FILL = 0xfade;

/* An 8 x 8 shard of 4 x 2 chunks, of which 7 x 5 elements are inside the array. */
static mrec_encoding form_of(bool at_end, bool checked, bool big) {
    mrec_encoding form = {.ndim = 2,
                          .grid = {GRID, GRID},
                          .chunk = {CHUNK_ROWS, CHUNK_COLUMNS},
                          .sharded = true,
                          .index_at_end = at_end,
                          .index_checked = checked,
                          .index_big = big,
                          .order = {1, 0},
                          .pipeline = {3, {BYTES, ZSTD, CRC}},
                          .unit = 2,
                          .fill = &FILL};
    return form;
}

static uint64_t load(const mrec_encoding *form, const uint8_t *b) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | b[form->index_big ? i : 7 - i];
    return v;
}

/* What the stored chunk holds at (row, column) of the shard. */
static uint16_t expected(const uint16_t *values, const mrec_elements *from, uint64_t row, uint64_t column) {
    if (row >= ROWS || column >= COLUMNS)
        return FILL;
    return values[(ptrdiff_t)row * (from->strides[0] / 2) + (ptrdiff_t)column * (from->strides[1] / 2)];
}

static void check_shard(mrec_coder *coder, const mrec_encoding *form, const mrec_elements *from,
                        const mrec_buffer *file, const bool *there) {
    size_t size = 16 * CHUNKS + (form->index_checked ? 4 : 0);
    const uint8_t *index = form->index_at_end ? file->data + file->size - size : file->data;
    mrec_error error;
    if (form->index_checked)
        assert(mrec_load_u32(index + 16 * CHUNKS) == mrec_crc32c(0, index, 16 * CHUNKS));
    for (uint64_t c = 0; c < CHUNKS; c++) {
        uint64_t offset = load(form, index + 16 * c), nbytes = load(form, index + 16 * c + 8);
        assert((offset != UINT64_MAX) == there[c] && (nbytes != UINT64_MAX) == there[c]);
        if (!there[c])
            continue;
        uint16_t chunk[UNITS];
        assert(mrec_decode(coder, &form->pipeline, file->data + offset, (size_t)nbytes, chunk, sizeof chunk, &error) ==
               MREC_OK);
        for (uint64_t i = 0; i < UNITS; i++) /* stored columns first */
            assert(chunk[i] == expected(from->data, from, c / 4 * CHUNK_ROWS + i % CHUNK_ROWS,
                                        c % 4 * CHUNK_COLUMNS + i / CHUNK_ROWS));
    }
}

static void check_numbers(mrec_coder *coder, mrec_pool *pool) {
    uint8_t *bytes = random_bytes(2 * ROWS * COLUMNS * 3, 5);
    const uint8_t present[CHUNKS] = {1, 1, 1, 1, 1, 0, 1, 1};
    const bool inside[CHUNKS] = {true, true, true, false, true, true, true, false};
    const bool chosen[CHUNKS] = {true, true, true, false, true, false, true, false};
    mrec_buffer file = {0};
    mrec_error error;
    bool any;
    for (int i = 0; i < 16; i++) {
        mrec_encoding form = form_of(i & 1, i & 2, i & 4);
        mrec_elements from = {.data = bytes, .n = {ROWS, COLUMNS}, .strides = {2 * COLUMNS * 3, 2 * 3}};
        if (i & 8)
            from = (mrec_elements){bytes, {ROWS, COLUMNS}, {2, 2 * ROWS}, present};
        assert(mrec_encode_file(coder, pool, &form, &from, &file, &any, &error) == MREC_OK && any);
        check_shard(coder, &form, &from, &file, i & 8 ? chosen : inside);
    }
    mrec_buffer_free(&file);
    free(bytes);
}

/* A shard that grows by a row of chunks is, at any time, the file of the elements that are in it. */
static void check_partial(mrec_coder *coder, mrec_pool *pool) {
    uint8_t *bytes = random_bytes(2 * GRID * COLUMNS, 11);
    mrec_encoding form = form_of(true, true, false);
    mrec_elements from = {.data = bytes, .strides = {2 * COLUMNS, 2}, .n = {0, COLUMNS}};
    mrec_buffer file = {0};
    mrec_partial shard = {0};
    mrec_error error;
    uint32_t crc;
    bool any;
    for (int round = 0; round < 2; round++) {
        for (uint64_t n = 1; n <= GRID; n++) {
            mrec_elements rest = from;
            const uint64_t before = (n - 1) / CHUNK_ROWS * CHUNK_ROWS;
            rest.n[0] = n - before;
            rest.data = bytes + before * 2 * COLUMNS;
            from.n[0] = n;
            assert(mrec_encode_file(coder, pool, &form, &from, &file, &any, &error) == MREC_OK && any);
            assert(mrec_partial_file(coder, pool, &form, &rest, &shard, &crc, &error) == MREC_OK);
            assert(shard.file.size == file.size && memcmp(shard.file.data, file.data, file.size) == 0);
            assert(crc == mrec_crc32c(0, file.data, file.size) && shard.rows == before / CHUNK_ROWS);
            if (n % CHUNK_ROWS != 0)
                continue;
            mrec_encoding bad = form;
            bad.pipeline.codecs[1].level = 99;
            assert(mrec_partial_add(coder, pool, &bad, &rest, &shard, &error) == MREC_E_VALUE);
            assert(mrec_partial_add(coder, pool, &form, &rest, &shard, &error) == MREC_OK);
        }
        from.n[0] = 1;
        assert(mrec_partial_add(coder, pool, &form, &from, &shard, &error) == MREC_E_VALUE && shard.rows == 2);
        from.n[0] = 0; /* none */
        assert(mrec_partial_file(coder, pool, &form, &from, &shard, &crc, &error) == MREC_OK);
        assert(shard.file.size == file.size && memcmp(shard.file.data, file.data, file.size) == 0);
        shard.rows = shard.kept = shard.crc32c = 0;
    }
    form = form_of(false, true, false);
    assert(mrec_partial_add(coder, pool, &form, &from, &shard, &error) == MREC_E_VALUE);
    mrec_partial_free(&shard);
    mrec_buffer_free(&file);
    free(bytes);
}

static void check_left_out(mrec_coder *coder, mrec_pool *pool) {
    uint16_t values[GRID * GRID];
    for (int i = 0; i < GRID * GRID; i++)
        values[i] = FILL;
    mrec_encoding form = form_of(true, true, false);
    mrec_elements from = {.data = values, .n = {ROWS, COLUMNS}, .strides = {2 * GRID, 2}};
    mrec_buffer file = {0};
    mrec_error error;
    bool any;
    form.skip_fill = true;
    assert(mrec_encode_file(coder, pool, &form, &from, &file, &any, &error) == MREC_OK && !any && file.size == 0);
    form.sharded = false;
    memcpy(form.chunk, form.grid, sizeof form.grid);
    assert(mrec_encode_file(coder, pool, &form, &from, &file, &any, &error) == MREC_OK && !any && file.size == 0);
    form = form_of(true, true, false);
    form.skip_fill = true;
    values[6 * GRID + 3]++;
    const bool there[CHUNKS] = {[5] = true};
    assert(mrec_encode_file(coder, pool, &form, &from, &file, &any, &error) == MREC_OK && any);
    check_shard(coder, &form, &from, &file, there);
    from.n[1] = 0;
    assert(mrec_encode_file(coder, pool, &form, &from, &file, &any, &error) == MREC_OK && !any);
    mrec_buffer_free(&file);
}

/* Elements that lie as they are stored are not gathered: the same bytes come of them. */
static void check_alone(mrec_coder *coder) {
    uint8_t *bytes = random_bytes(2 * 3 * 4, 7);
    mrec_encoding form = {.ndim = 2, .grid = {3, 4}, .chunk = {3, 4}, .order = {0, 1}, .unit = 2, .fill = &FILL};
    mrec_elements from = {.data = bytes, .n = {3, 4}, .strides = {8, 2}};
    mrec_buffer file = {0};
    mrec_error error;
    bool any;
    form.pipeline = (mrec_pipeline){1, {BYTES}};
    assert(mrec_encode_file(coder, NULL, &form, &from, &file, &any, &error) == MREC_OK && any);
    assert(file.size == 24 && memcmp(file.data, bytes, 24) == 0);
    form.ndim = 0;
    assert(mrec_encode_file(coder, NULL, &form, &from, &file, &any, &error) == MREC_OK && file.size == 2);
    mrec_buffer_free(&file);
    free(bytes);
}

static void check_strings(mrec_coder *coder) {
    static const mrec_ref words[] = {{(const uint8_t *)"a", 1}, {NULL, 0}, {(const uint8_t *)"\xc3\xbc", 2}};
    static const mrec_ref none = {(const uint8_t *)"-", 1};
    mrec_encoding form = {.ndim = 1, .grid = {4}, .chunk = {4}, .pipeline = {1, {TEXT}}, .fill = &none};
    mrec_elements from = {.data = words, .n = {3}, .strides = {sizeof(mrec_ref)}};
    mrec_buffer file = {0};
    mrec_error error;
    bool any;
    form.unit = sizeof(mrec_ref);
    assert(mrec_encode_file(coder, NULL, &form, &from, &file, &any, &error) == MREC_OK && any);
    assert(file.size == 24 && memcmp(file.data, "\4\0\0\0\1\0\0\0a\0\0\0\0\2\0\0\0\xc3\xbc\1\0\0\0-", 24) == 0);
    mrec_buffer_free(&file);
}

static void check_refusals(mrec_coder *coder, mrec_pool *pool) {
    uint16_t value[GRID * GRID] = {0};
    mrec_elements from = {.data = value, .n = {ROWS, COLUMNS}, .strides = {2 * GRID, 2}};
    mrec_buffer file = {0};
    mrec_error error;
    bool any;
    for (int i = 0; i < 8; i++) {
        mrec_encoding form = form_of(false, true, false);
        mrec_elements bad = from;
        mrec_status status = MREC_E_VALUE;
        if (i == 0)
            form.chunk[1] = 3;
        else if (i == 1)
            form.chunk[0] = 0;
        else if (i == 2)
            form.order[0] = 0;
        else if (i == 3)
            form.ndim = MREC_MAX_AXES + 1;
        else if (i == 4)
            bad.n[0] = GRID + 1;
        else if (i == 5)
            form.sharded = false;
        else if (i == 6) { /* the fourth chunk's failure is told, and nothing of the others stays in the pool */
            form.pipeline.codecs[1].level = 99;
        } else {
            form.grid[0] = form.grid[1] = form.chunk[0] = form.chunk[1] = (uint64_t)1 << 40;
            status = MREC_E_CODEC;
        }
        assert(mrec_encode_file(coder, pool, &form, &bad, &file, &any, &error) == status && file.size == 0);
    }
    check_numbers(coder, pool);
    check_partial(coder, pool);
    mrec_buffer_free(&file);
}

void test_encode(void) {
    mrec_coder *coder;
    mrec_pool *pool;
    mrec_error error;
    assert(mrec_coder_new(&coder, &error) == MREC_OK && mrec_pool_new(2, &pool, &error) == MREC_OK);
    check_numbers(coder, NULL);
    check_left_out(coder, NULL);
    check_refusals(coder, NULL);
    check_numbers(coder, pool);
    check_left_out(coder, pool);
    check_refusals(coder, pool);
    check_alone(coder);
    check_strings(coder);
    mrec_pool_free(pool);
    mrec_coder_free(coder);
}
