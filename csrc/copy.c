/* SPDX-License-Identifier: BSD-3-Clause */
#include "copy.h"

#include "crc32c.h"

#include <stdlib.h>
#include <string.h>

/* What is read, checksummed and written at a time: it stays in the processor's second cache in between. */
#define BLOCK ((size_t)256 << 10)

/* What the device is told to begin with at a time. */
#define WINDOW ((uint64_t)8 << 20)

/* Runs of zeros of this size, at multiples of it in the source, are not written. */
#define HOLE ((size_t)64 << 10)

static bool is_zero(const uint8_t *bytes, size_t n) {
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0;
}

/* Write the block but for its holes. */
static mrec_status put(mrec_vfs *vfs, const mrec_span *to, uint64_t offset, const uint8_t *block, size_t n,
                       mrec_error *error) {
    size_t start = 0; /* of what is not yet written */
    for (size_t at = 0; at < n; at += HOLE) {
        size_t piece = n - at < HOLE ? n - at : HOLE;
        if (piece < HOLE || !is_zero(block + at, piece))
            continue;
        MREC_TRY(mrec_file_write(vfs, to->fd, to->path, block + start, at - start, offset + start, error));
        start = at + piece;
    }
    return mrec_file_write(vfs, to->fd, to->path, block + start, n - start, offset + start, error);
}

mrec_status mrec_copy(mrec_vfs *vfs, const mrec_span *from, const mrec_span *to, uint64_t n, uint32_t *crc,
                      mrec_error *error) {
    uint8_t *block = malloc(n < BLOCK ? (size_t)n + 1 : BLOCK);
    if (!block)
        return mrec_fail_memory(error);
    mrec_status status = MREC_OK;
    for (uint64_t done = 0; status == MREC_OK && done < n;) {
        size_t piece = n - done < BLOCK ? (size_t)(n - done) : BLOCK;
        status = mrec_file_read(vfs, from->fd, from->path, block, piece, from->offset + done, error);
        if (status == MREC_OK) {
            *crc = mrec_crc32(*crc, block, piece);
            status = put(vfs, to, to->offset + done, block, piece, error);
        }
        done += piece;
        if (status == MREC_OK && done % WINDOW == 0)
            mrec_file_write_back(vfs, to->fd, to->offset + done - WINDOW, WINDOW);
    }
    free(block);
    return status;
}
