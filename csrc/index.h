/* SPDX-License-Identifier: BSD-3-Clause
 * The index of a shard file under a reader. Nothing in it is trusted. */
#ifndef MREC_INDEX_H
#define MREC_INDEX_H

#include "cache.h"

/* How the index is stored. */
typedef struct mrec_index_form {
    uint64_t nchunks;
    bool at_end;
    bool checked; /* ends in a crc32c */
    bool big;
} mrec_index_form;

/* Where a chunk's bytes are. */
typedef struct mrec_entry {
    uint64_t offset, nbytes;
    bool torn; /* the index failed its checksum: only a chunk that verifies may be believed */
} mrec_entry;

#define MREC_ABSENT UINT64_MAX /* both numbers of an entry whose chunk is not there */

/* Bytes of an index; false when they do not fit. */
bool mrec_index_bytes(const mrec_index_form *form, uint64_t *bytes);

/* Read and parse the index of an open file of `size` bytes. One whose checksum fails is read once more, then taken as
 * torn when it is at the start. CORRUPT when the file is shorter than its index. The caller holds *index. */
mrec_status mrec_index_read(mrec_vfs *, int fd, const char *path, uint64_t size, const mrec_index_form *, mrec_buffer *,
                            mrec_item **index, mrec_error *);

/* The entry of a chunk, as it stands. */
mrec_entry mrec_index_entry(const mrec_item *index, uint64_t chunk);

/* The entry of a chunk as a file of `size` bytes has it now, whatever the checksum of the index; CORRUPT when the file
 * is shorter than its index. */
mrec_status mrec_index_peek(mrec_vfs *, int fd, const char *path, uint64_t size, const mrec_index_form *,
                            uint64_t chunk, mrec_entry *, mrec_error *);

/* Whether an entry lies inside a file of `size` bytes and outside its index. */
bool mrec_entry_valid(const mrec_entry *, const mrec_index_form *, uint64_t size);

#endif
