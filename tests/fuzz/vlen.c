/* SPDX-License-Identifier: BSD-3-Clause
 * vlen-utf8: any bytes as a decoded chunk of strings. */
#include "input.h"

#include "vlen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    input in = {data, n};
    unsigned form = take(&in);
    uint8_t *chunk = take_rest(&in);
    /* the count that the chunk says, or another; as parse_strings in chunk.c refuses it before it takes memory */
    uint64_t count = form & 1 || in.n < 4 ? form / 2 : mrec_load_u32(chunk);
    if (count <= in.n / 4) {
        uint64_t *ends = malloc((size_t)count * 8 + 1);
        assert(ends != NULL);
        mrec_error error;
        mrec_status status = mrec_vlen_walk(chunk, in.n, count, ends, &error);
        assert(status == mrec_vlen_walk(chunk, in.n, count, NULL, NULL));
        assert(status == MREC_OK || status == MREC_E_CORRUPT);
        if (status == MREC_OK)
            for (uint64_t i = 0; i < count; i++) {
                uint64_t start = mrec_vlen_start(ends, i);
                assert(start <= ends[i] && ends[i] <= in.n);
                assert(mrec_utf8_valid(chunk + start, (size_t)(ends[i] - start)));
            }
        free(ends);
    }
    mrec_utf8_valid(chunk, in.n);
    free(chunk);
    return 0;
}
