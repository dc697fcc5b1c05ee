/* SPDX-License-Identifier: BSD-3-Clause
 * Every codec, in any legal order: any bytes as a chunk, and one byte changed of a chunk that was right. */
#include "input.h"

enum { LIMIT = 1 << 16 };

/* Decode in both ways: into `size` bytes exactly, and into what the chunk needs up to `size`. True when the first
 * gives the bytes `expected` (unless NULL). */
static bool decode(mrec_coder *coder, const mrec_pipeline *pipeline, const uint8_t *bytes, size_t n, size_t size,
                   const uint8_t *expected) {
    mrec_error error;
    uint8_t *out = malloc(size + (size == 0));
    assert(out != NULL);
    mrec_status fixed = mrec_decode(coder, pipeline, bytes, n, out, size, &error);
    assert(fixed == MREC_OK || fixed == MREC_E_CORRUPT || (fixed == MREC_E_CODEC && pipeline->n > 1));
    mrec_buffer any = {0};
    mrec_status free_size = mrec_decode_any(coder, pipeline, bytes, n, size, &any, &error);
    if (free_size == MREC_OK)
        assert(any.size <= size && (any.size == size) == (fixed == MREC_OK));
    else
        assert(fixed != MREC_OK);
    if (fixed == MREC_OK)
        assert(size == 0 || memcmp(out, any.data, size) == 0);
    bool same = fixed == MREC_OK && (expected == NULL || memcmp(out, expected, size) == 0);
    mrec_buffer_free(&any);
    free(out);
    return same;
}

/* What was encoded comes back; with a byte of it changed, what a checksum covers does not. */
static void go_round(mrec_coder *coder, const mrec_pipeline *pipeline, const uint8_t *plain, size_t n, unsigned where,
                     unsigned change) {
    mrec_buffer encoded = {0};
    mrec_error error;
    mrec_status status = mrec_encode(coder, pipeline, plain, n, &encoded, &error);
    assert(status == MREC_OK || status == MREC_E_CODEC);
    if (status == MREC_OK) {
        size_t bound;
        assert(mrec_encode_bound(pipeline, n, &bound, &error) == MREC_OK && encoded.size <= bound);
        assert(decode(coder, pipeline, encoded.data, encoded.size, n, plain));
        if (encoded.size > 0) {
            encoded.data[where % encoded.size] ^= (uint8_t)change;
            bool passed = decode(coder, pipeline, encoded.data, encoded.size, n, NULL);
            assert(change == 0 || !passed || !mrec_pipeline_checked(pipeline));
        }
    }
    mrec_buffer_free(&encoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const uint32_t units[] = {1, 2, 4, 8};
    input in = {data, n};
    unsigned flags = take(&in);
    mrec_pipeline pipeline = take_pipeline(&in, flags & 1, units[flags >> 1 & 3]);
    unsigned first = take(&in), second = take(&in), third = take(&in);
    uint8_t *bytes = take_rest(&in);
    mrec_coder *coder;
    assert(mrec_coder_new(&coder, NULL) == MREC_OK);
    if (flags & 8) {
        go_round(coder, &pipeline, bytes, in.n, first << 8 | second, third);
    } else {
        if (flags & 16 && mrec_pipeline_checked(&pipeline))
            mend_checksum(bytes, in.n);
        decode(coder, &pipeline, bytes, in.n, (first << 8 | second) % LIMIT, NULL);
    }
    mrec_coder_free(coder);
    free(bytes);
    return 0;
}
