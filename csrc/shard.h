/* SPDX-License-Identifier: BSD-3-Clause
 * One shard file under a writer: [index: nchunks x (u64 offset, u64 nbytes), little-endian][u32 crc32c], then chunk
 * bytes at any place. Committed bytes are never overwritten (docs/order-of-writes.md). Not thread-safe. */
#ifndef MREC_SHARD_H
#define MREC_SHARD_H

#include "codec.h"
#include "lock.h"

#define MREC_NO_PLACE UINT64_MAX /* offset of an entry whose chunk is not there */

typedef struct mrec_shard mrec_shard;

/* The open descriptors of a writer, at most `budget` at a time (fewer once the process had none left); the one used
 * longest ago is synced and closed. */
typedef struct mrec_files {
    mrec_vfs *vfs;
    const mrec_lock *lock; /* of the record that the files are of; NULL before it is taken and after it is let go */
    unsigned budget;
    unsigned open;
    mrec_shard *newest, *oldest;
} mrec_files;

/* Where a chunk's bytes stand in their shard file. */
typedef struct mrec_place {
    uint64_t offset;
    uint64_t nbytes;
} mrec_place;

/* A shard whose file does not exist yet; it appears with the first write. The path is copied. */
mrec_status mrec_shard_new(mrec_files *files, const char *path, uint64_t nchunks, mrec_shard **shard, mrec_error *);

/* A shard that is on disk. Where its index is torn, each entry whose chunk verifies under `pipeline` is kept; one that
 * is present and does not verify is CORRUPT, except those from `named` on (they are past the end, or written anew). */
mrec_status mrec_shard_load(mrec_files *files, const char *path, uint64_t nchunks, const mrec_pipeline *pipeline,
                            uint64_t named, mrec_shard **shard, mrec_error *);

/* Close the file, if it is open; the next call that needs it opens it again. */
mrec_status mrec_shard_close(mrec_shard *shard, mrec_error *);

void mrec_shard_free(mrec_shard *shard);

/* Encode n bytes as the whole chunk `chunk` to a place never used. The bytes may wait in memory until
 * mrec_shard_land. */
mrec_status mrec_shard_put(mrec_shard *shard, uint64_t chunk, mrec_coder *, const mrec_pipeline *, const void *bytes,
                           size_t n, mrec_error *);

/* The same with a chunk that is encoded already. */
mrec_status mrec_shard_put_encoded(mrec_shard *shard, uint64_t chunk, const mrec_buffer *encoded, mrec_error *);

/* The same for a chunk that is still open: to a slot that neither the index on disk nor the durable file names. */
mrec_status mrec_shard_put_open(mrec_shard *shard, uint64_t chunk, mrec_coder *, const mrec_pipeline *,
                                const void *bytes, size_t n, mrec_error *);

/* Write what waits, then the index from its first changed entry to its checksum in one call. */
mrec_status mrec_shard_land(mrec_shard *shard, mrec_error *);

/* fdatasync, when anything was written since the last one. */
mrec_status mrec_shard_sync(mrec_shard *shard, mrec_error *);

/* Whether it has something to sync, and its file is open. */
bool mrec_shard_is_open_unsynced(const mrec_shard *shard);

/* The same as mrec_shard_sync for several such, at most MREC_MAX_TOGETHER, of one writer. */
mrec_status mrec_shards_sync(mrec_shard *const *shards, size_t n, mrec_error *);

/* The durable file on disk now names this place (MREC_NO_PLACE: none): no slot there is reused. */
void mrec_shard_set_durable(mrec_shard *shard, uint64_t offset);

/* The entry of a chunk; offset MREC_NO_PLACE when it is missing. */
mrec_place mrec_shard_place(const mrec_shard *shard, uint64_t chunk);

/* Change an entry (recovery, and cutting back). Takes effect on disk with mrec_shard_land. */
void mrec_shard_set_place(mrec_shard *shard, uint64_t chunk, mrec_place place);

/* The last four stored bytes of a chunk when the pipeline ends in crc32c, which is its checksum; otherwise the crc32c
 * of all its bytes. Identifies a version of the chunk. Reads the file. */
mrec_status mrec_shard_checksum(mrec_shard *shard, uint64_t chunk, const mrec_pipeline *, uint32_t *crc, mrec_error *);

/* The stored bytes of a chunk appended to *out, after what waits is written; the entry is checked against the file. */
mrec_status mrec_shard_get(mrec_shard *shard, uint64_t chunk, mrec_buffer *out, mrec_error *);

/* Cut the file behind the last place that an entry names, and let slots of `slot` bytes be taken from the gaps before
 * it. Only before the first put. */
mrec_status mrec_shard_cut(mrec_shard *shard, uint64_t slot, mrec_error *);

/* The path of the file. */
const char *mrec_shard_path(const mrec_shard *shard);

/* True once after the file was created: its directory has to be synced. */
bool mrec_shard_take_created(mrec_shard *shard);

#endif
