/* SPDX-License-Identifier: BSD-3-Clause
 * A whole shard under the reader: index, chunks, strings, all axes; any bytes as the file. */
#define _GNU_SOURCE
#include "input.h"

#include "source.h"

static mrec_array_spec take_spec(input *in) {
    static const mrec_dtype types[] = {MREC_BOOL, MREC_I16, MREC_F64, MREC_C128, MREC_STRING};
    mrec_array_spec spec = {.path = "a", .separator = '/', .fill = {1, 2, 3, 4, 5, 6, 7, 8}};
    spec.dtype = types[choose(in, 5)];
    unsigned flags = take(in), turn = take(in);
    spec.ndim = flags & 3;
    spec.sharded = flags & 4;
    spec.index_at_end = flags & 8;
    spec.index_checked = flags & 16;
    spec.index_big = flags & 32;
    spec.absent_is_loss = flags & 64;
    spec.unverified = turn & 128;
    spec.fill_text = flags & 128 ? "fill" : NULL;
    spec.fill_text_size = flags & 128 ? 4 : 0;
    for (uint32_t i = 0; i < spec.ndim; i++) {
        unsigned extents = take(in);
        spec.shape[i] = extents & 7;
        spec.chunk[i] = 1 + (extents >> 3 & 3);
        spec.grid[i] = spec.chunk[i] * (spec.sharded ? 1 + (extents >> 5 & 3) : 1);
        spec.order[i] = (i + turn) % spec.ndim;
    }
    size_t unit = mrec_dtype_size(spec.dtype);
    spec.pipeline = take_pipeline(in, spec.dtype == MREC_STRING, (uint32_t)(spec.dtype == MREC_C128 ? 8 : unit));
    if (turn & 64) { /* the last chunk as a durable file names it */
        spec.tail_offset = take(in);
        spec.tail_nbytes = take(in);
        spec.tail_chunk = choose(in, 4);
    }
    return spec;
}

/* Make right what is checked, so that what stands behind the checks is reached. */
static void mend(uint8_t *bytes, size_t n, mrec_array_spec *spec) {
    mrec_index_form form = {1, spec->index_at_end, spec->index_checked, spec->index_big};
    for (uint32_t i = 0; i < spec->ndim; i++)
        form.nchunks *= spec->grid[i] / spec->chunk[i];
    uint64_t size = 0;
    if (spec->sharded && (!mrec_index_bytes(&form, &size) || size > n))
        return;
    uint8_t *index = bytes + (form.at_end ? n - size : 0);
    for (uint64_t i = 0; spec->sharded && !form.big && i < form.nchunks; i++) {
        mrec_entry entry = {mrec_load_u64(index + 16 * i), mrec_load_u64(index + 16 * i + 8), false};
        if (mrec_entry_valid(&entry, &form, n) && mrec_pipeline_checked(&spec->pipeline))
            mend_checksum(bytes + entry.offset, (size_t)entry.nbytes);
    }
    if (spec->sharded && form.checked)
        mend_checksum(index, (size_t)size);
    if (!spec->sharded && mrec_pipeline_checked(&spec->pipeline))
        mend_checksum(bytes, n);
    uint64_t end = spec->tail_offset + spec->tail_nbytes;
    if (spec->tail_nbytes >= 4 && end <= n)
        spec->tail_crc32c = mrec_pipeline_checked(&spec->pipeline)
                                ? mrec_load_u32(bytes + end - 4)
                                : mrec_crc32c(0, bytes + spec->tail_offset, (size_t)spec->tail_nbytes);
}

static bool is_expected(mrec_status status) {
    return status == MREC_OK || status == MREC_E_CORRUPT || status == MREC_E_CODEC;
}

static void read_numbers(mrec_source *source, uint64_t start, uint64_t stop) {
    size_t n = (size_t)((stop - start) * source->row_elements) * source->unit;
    uint8_t *one = malloc(n + (n == 0)), *two = malloc(n + (n == 0));
    assert(one != NULL && two != NULL);
    mrec_error error;
    mrec_status status = mrec_source_read(source, start, stop, one, 0, &error);
    assert(is_expected(status));
    assert(mrec_source_read(source, start, stop, two, 0, &error) == status);
    assert(status != MREC_OK || memcmp(one, two, n) == 0);
    if (status == MREC_OK && stop > start + 1) { /* row by row, as one call */
        int64_t starts[8];
        size_t row = n / (size_t)(stop - start);
        for (uint64_t i = 0; i < stop - start; i++)
            starts[i] = (int64_t)(stop - 1 - i);
        assert(mrec_source_gather(source, starts, stop - start, 1, two, (ptrdiff_t)row, 0, &error) == MREC_OK);
        for (uint64_t i = 0; i < stop - start; i++)
            assert(memcmp(one + (stop - start - 1 - i) * row, two + i * row, row) == 0);
    }
    free(one);
    free(two);
}

static void read_strings(mrec_source *source, uint64_t start, uint64_t stop) {
    mrec_buffer text = {0}, ends = {0};
    mrec_error error;
    uint64_t low[MREC_MAX_AXES] = {start}, high[MREC_MAX_AXES];
    memcpy(high, source->spec.shape, sizeof high);
    high[0] = stop;
    mrec_status status = mrec_source_read_strings(source, low, high, &text, &ends, &error);
    assert(is_expected(status));
    if (status == MREC_OK) /* without axes a box is the one element */
        assert(ends.size == (source->spec.ndim ? (stop - start) * source->row_elements : 1) * 8);
    mrec_buffer_free(&text);
    mrec_buffer_free(&ends);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    input in = {data, n};
    bool mended = take(&in) & 1;
    mrec_array_spec spec = take_spec(&in);
    uint64_t length = spec.ndim ? spec.shape[0] : 1;
    uint8_t *bytes = take_rest(&in);
    if (mended)
        mend(bytes, in.n, &spec);
    static const char *const paths[] = {"a/c", "a/c/0", "a/c/0/0", "a/c/0/0/0"};
    memory_file file = memory_file_of(paths[spec.ndim], bytes, in.n);
    mrec_source *source;
    mrec_error error;
    assert(mrec_source_open(&file.vfs, &spec, &source, &error) == MREC_OK);
    for (uint64_t start = 0; start < 2 && start <= length; start++)
        (spec.dtype == MREC_STRING ? read_strings : read_numbers)(source, start, length);
    mrec_source_free(source);
    free(bytes);
    return 0;
}
