/* SPDX-License-Identifier: BSD-3-Clause
 * Bytes from one file into another, checksummed on the way. */
#ifndef MREC_COPY_H
#define MREC_COPY_H

#include "vfs.h"

/* A run of bytes of an open file; the path is for messages. */
typedef struct mrec_span {
    int fd;
    const char *path;
    uint64_t offset;
} mrec_span;

/* Copy n bytes, and go on with their CRC-32 in *crc. Memory does not grow with n. `to` must read as zeros there, or end
 * before: long runs of zeros are not written, so that a sparse file stays sparse, and where the file is to end with
 * such a run the caller sets its size. The device begins to write on the way, for a sync afterwards. CORRUPT when
 * `from` ends before. */
mrec_status mrec_copy(mrec_vfs *, const mrec_span *from, const mrec_span *to, uint64_t n, uint32_t *crc, mrec_error *);

#endif
