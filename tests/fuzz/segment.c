/* SPDX-License-Identifier: BSD-3-Clause
 * The footer of a segment: any bytes, of which all is looked at; what can be read is built anew and read again. */
#include "input.h"

#include "segment.h"

static void look_at_value(const mrec_segment *segment, uint32_t i) {
    mrec_segment_attribute value;
    mrec_error error;
    if (mrec_segment_value_at(segment, i, &value, &error) != MREC_OK)
        return;
    assert(value.tag <= 25);
    unsigned width = mrec_segment_width(value.tag);
    for (uint64_t k = 0; value.tag > 11 && k < value.n * (width + (width == 0)); k++)
        assert(value.bytes + k < segment->bytes + segment->n && value.bytes[k] <= 255);
    mrec_text text;
    for (uint64_t k = 0; value.tag == 25 && k < value.n && k < 1000; k++)
        if (mrec_segment_binary(segment, &value, k, &text, &error) == MREC_OK)
            assert(text.n <= segment->n);
}

static void look_at_array(const mrec_segment *segment, uint64_t i) {
    mrec_segment_array array;
    mrec_segment_chunk chunk;
    mrec_segment_block block;
    mrec_error error;
    mrec_text text;
    uint32_t key, value;
    if (mrec_segment_array_at(segment, i, &array, &error) != MREC_OK)
        return;
    for (uint64_t k = 0; k < array.rank && k < 1000; k++)
        if (mrec_segment_dim(segment, &array, k, &text, &error) == MREC_OK)
            assert(text.n <= segment->n);
    for (uint64_t k = 0; k < array.chunks.n && k < 1000; k++)
        if (mrec_segment_chunk_at(segment, &array, k, &chunk, &error) == MREC_OK) {
            assert(mrec_segment_block_at(segment, chunk.block, &block, &error) == MREC_OK);
            assert((uint64_t)chunk.offset + chunk.size <= block.raw);
            assert(block.offset + block.stored <= segment->data);
        }
    for (uint64_t k = 0; k < array.attributes.n && k < 1000; k++)
        if (mrec_segment_pair(segment, &array, k, &key, &value, &error) == MREC_OK) {
            if (mrec_segment_string_at(segment, key, &text, &error) == MREC_OK)
                assert(text.n <= segment->n);
            look_at_value(segment, value);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    input in = {data, n};
    uint64_t before = (uint64_t)take(&in) << (take(&in) & 31);
    uint8_t *bytes = take_rest(&in);
    mrec_segment segment;
    mrec_error error;
    mrec_status status = mrec_segment_open(&segment, bytes, in.n, before, &error);
    assert(status == MREC_OK || status == MREC_E_CORRUPT);
    for (uint64_t i = 0; status == MREC_OK && i < segment.arrays.n; i++)
        look_at_array(&segment, i);
    free(bytes);
    return 0;
}
