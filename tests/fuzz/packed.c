/* SPDX-License-Identifier: BSD-3-Clause
 * MessagePack items and LZ4 blocks: any bytes as them; and any bytes into an LZ4 block and back. */
#include "input.h"

#include "lz4.h"
#include "msgpack.h"

static void walk(const uint8_t *bytes, size_t n) {
    mrec_packed_item item;
    mrec_error error;
    size_t at = 0;
    while (at < n && mrec_msgpack_next(bytes, n, &at, &item, &error) == MREC_OK) {
        assert(at <= n);
        if (item.kind == MREC_PACKED_TEXT || item.kind == MREC_PACKED_BYTES)
            assert(item.bytes + item.size <= bytes + n);
        if (item.kind == MREC_PACKED_ARRAY)
            assert(item.size <= n - at);
    }
}

static void decode_lz4(const uint8_t *bytes, size_t n, size_t size) {
    uint8_t *out = malloc(size + (size == 0));
    assert(out != NULL);
    mrec_lz4_decode(bytes, n, out, size);
    free(out);
}

static void around_lz4(const uint8_t *bytes, size_t n) {
    uint8_t *block = malloc(mrec_lz4_bound(n)), *out = malloc(n + (n == 0));
    assert(block != NULL && out != NULL);
    size_t size = mrec_lz4_encode(bytes, n, block);
    assert(size <= mrec_lz4_bound(n) && mrec_lz4_decode(block, size, out, n));
    assert(n == 0 || memcmp(out, bytes, n) == 0);
    assert(n == 0 || !mrec_lz4_decode(block, size, out, n - 1));
    free(block);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    input in = {data, n};
    unsigned what = choose(&in, 3);
    size_t size = (size_t)take(&in) << (what == 1 ? take(&in) & 7 : 0);
    uint8_t *bytes = take_rest(&in);
    if (what == 0)
        walk(bytes, in.n);
    else if (what == 1)
        decode_lz4(bytes, in.n, size);
    else
        around_lz4(bytes, in.n);
    free(bytes);
    return 0;
}
