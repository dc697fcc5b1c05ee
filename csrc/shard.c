/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "shard.h"

#include "bytes.h"
#include "crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NSLOTS 3
#define GATHER (256 * 1024) /* write calls of this size run at the speed of memory */

typedef struct slot {
    uint64_t offset;
    uint64_t capacity; /* 0: not taken yet */
} slot;

struct mrec_shard {
    mrec_files *files;
    mrec_shard *newer, *older; /* among the open ones */
    char *path;
    int fd; /* -1 while closed */
    bool on_disk, created, unsynced;
    uint64_t nchunks;
    uint8_t *index;       /* as the next landing writes it */
    uint64_t first_dirty; /* nchunks: nothing to write */
    uint64_t end;         /* first byte never used */
    mrec_buffer waiting;  /* whole chunks for [end - waiting.size, end) */
    slot slots[NSLOTS];
    uint64_t open_offset;    /* the open chunk's place as the next landing names it */
    uint64_t named_offset;   /* ... as the index on disk names it */
    uint64_t durable_offset; /* ... as the durable file names it */
};

static size_t index_size(const mrec_shard *shard) {
    return (size_t)shard->nchunks * 16 + 4;
}

/* ---- descriptors ---- */

static void unlink_open(mrec_shard *shard) {
    mrec_files *files = shard->files;
    *(shard->newer ? &shard->newer->older : &files->newest) = shard->older;
    *(shard->older ? &shard->older->newer : &files->oldest) = shard->newer;
    shard->newer = shard->older = NULL;
    files->open--;
}

static void link_open(mrec_shard *shard) {
    mrec_files *files = shard->files;
    shard->older = files->newest;
    *(files->newest ? &files->newest->newer : &files->oldest) = shard;
    files->newest = shard;
    files->open++;
}

mrec_status mrec_shard_close(mrec_shard *shard, mrec_error *error) {
    if (shard->fd < 0)
        return MREC_OK;
    unlink_open(shard);
    int fd = shard->fd;
    shard->fd = -1;
    return mrec_file_close(shard->files->vfs, fd, shard->path, error);
}

/* An error of write-back can vanish with the descriptor, so a file is synced before it is closed. */
static mrec_status evict_oldest(mrec_files *files, mrec_error *error) {
    mrec_shard *shard = files->oldest;
    MREC_TRY(mrec_shard_sync(shard, error));
    return mrec_shard_close(shard, error);
}

/* Until one more stays within n. */
static mrec_status evict_to(mrec_files *files, unsigned n, mrec_error *error) {
    while (files->open >= n)
        MREC_TRY(evict_oldest(files, error));
    return MREC_OK;
}

static bool none_left(int code) {
    return code == EMFILE || code == ENFILE;
}

/* Whether this was the last descriptor. */
static bool is_last(int fd) {
    int spare = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (spare < 0)
        return none_left(errno);
    close(spare);
    return false;
}

/* Close others than this one, which is open and not linked yet. */
static mrec_status leave_one(mrec_shard *shard, mrec_error *error) {
    mrec_status status = evict_to(shard->files, shard->files->budget, error);
    if (status != MREC_OK) {
        (void)mrec_file_close(shard->files->vfs, shard->fd, shard->path, NULL);
        shard->fd = -1;
    }
    return status;
}

/* Where the process has no descriptor left, half of ours do from now on: others need some too, and so do documents. */
static mrec_status open_within_budget(mrec_shard *shard, mrec_error *error) {
    mrec_files *files = shard->files;
    /* A file that was there is not made anew: what it held would be missing. */
    const int flags = O_RDWR | (shard->on_disk ? 0 : O_CREAT);
    for (;;) {
        MREC_TRY(evict_to(files, files->budget, error));
        mrec_error local;
        mrec_status status = mrec_file_open(files->vfs, shard->path, flags, &shard->fd, &local);
        if (status == MREC_OK && (files->open == 0 || !is_last(shard->fd)))
            return MREC_OK;
        if (status != MREC_OK && (!none_left(local.sys_errno) || files->open == 0)) {
            *error = local;
            return status;
        }
        files->budget = (files->open + 1) / 2;
        if (status == MREC_OK)
            return leave_one(shard, error);
    }
}

static mrec_status open_file(mrec_shard *shard, mrec_error *error) {
    if (shard->fd >= 0) {
        if (shard->files->newest != shard) {
            unlink_open(shard);
            link_open(shard);
        }
        return MREC_OK;
    }
    if (shard->files->lock)
        MREC_TRY(mrec_lock_check(shard->files->lock, error));
    MREC_TRY(open_within_budget(shard, error));
    link_open(shard);
    if (!shard->on_disk)
        shard->on_disk = shard->created = true;
    return MREC_OK;
}

static mrec_status write_at(mrec_shard *shard, const void *bytes, size_t n, uint64_t offset, mrec_error *error) {
    MREC_TRY(open_file(shard, error));
    shard->unsynced = true;
    return mrec_file_write(shard->files->vfs, shard->fd, shard->path, bytes, n, offset, error);
}

/* ---- making and freeing ---- */

mrec_status mrec_shard_new(mrec_files *files, const char *path, uint64_t nchunks, mrec_shard **out, mrec_error *error) {
    *out = NULL;
    uint64_t bytes;
    if (!mrec_mul(nchunks, 16, &bytes) || !mrec_add(bytes, 4, &bytes) || bytes > SIZE_MAX / 2)
        return mrec_fail(error, MREC_E_CORRUPT, path, "a shard of %llu chunks is too large",
                         (unsigned long long)nchunks);
    mrec_shard *shard = calloc(1, sizeof *shard);
    if (!shard)
        return mrec_fail_memory(error);
    shard->files = files;
    shard->fd = -1;
    shard->index = malloc((size_t)bytes);
    shard->path = malloc(strlen(path) + 1);
    if (!shard->index || !shard->path) {
        mrec_shard_free(shard);
        return mrec_fail_memory(error);
    }
    strcpy(shard->path, path);
    memset(shard->index, 0xff, (size_t)bytes);
    shard->nchunks = nchunks;
    shard->end = bytes;
    shard->open_offset = shard->named_offset = shard->durable_offset = MREC_NO_PLACE;
    *out = shard;
    return MREC_OK;
}

void mrec_shard_free(mrec_shard *shard) {
    if (!shard)
        return;
    mrec_shard_close(shard, NULL);
    mrec_buffer_free(&shard->waiting);
    free(shard->index);
    free(shard->path);
    free(shard);
}

/* ---- entries ---- */

mrec_place mrec_shard_place(const mrec_shard *shard, uint64_t chunk) {
    const uint8_t *entry = shard->index + chunk * 16;
    return (mrec_place){mrec_load_u64(entry), mrec_load_u64(entry + 8)};
}

void mrec_shard_set_place(mrec_shard *shard, uint64_t chunk, mrec_place place) {
    uint8_t *entry = shard->index + chunk * 16;
    mrec_store_u64(entry, place.offset);
    mrec_store_u64(entry + 8, place.nbytes);
    if (chunk < shard->first_dirty)
        shard->first_dirty = chunk;
}

void mrec_shard_set_durable(mrec_shard *shard, uint64_t offset) {
    shard->durable_offset = offset;
}

const char *mrec_shard_path(const mrec_shard *shard) {
    return shard->path;
}

bool mrec_shard_take_created(mrec_shard *shard) {
    bool created = shard->created;
    shard->created = false;
    return created;
}

/* ---- writing ---- */

static mrec_status write_waiting(mrec_shard *shard, mrec_error *error) {
    if (shard->waiting.size == 0)
        return MREC_OK;
    MREC_TRY(write_at(shard, shard->waiting.data, shard->waiting.size, shard->end - shard->waiting.size, error));
    shard->waiting.size = 0;
    return MREC_OK;
}

static void place_chunk(mrec_shard *shard, uint64_t chunk, size_t nbytes) {
    mrec_shard_set_place(shard, chunk, (mrec_place){shard->end, nbytes});
    shard->end += nbytes;
    shard->open_offset = MREC_NO_PLACE;
}

/* The last nbytes that wait are this chunk. */
static mrec_status take_waiting(mrec_shard *shard, uint64_t chunk, size_t nbytes, mrec_error *error) {
    place_chunk(shard, chunk, nbytes);
    return shard->waiting.size >= GATHER ? write_waiting(shard, error) : MREC_OK;
}

/* A large chunk that is stored as it stands goes out without a copy, while what was summed is still in the cache. */
static mrec_status put_plain(mrec_shard *shard, uint64_t chunk, const uint8_t *bytes, size_t n, mrec_error *error) {
    uint32_t crc = 0;
    uint8_t sum[4];
    MREC_TRY(write_waiting(shard, error));
    for (size_t at = 0, size; at < n; at += size) {
        size = n - at < GATHER ? n - at : GATHER;
        crc = mrec_crc32c(crc, bytes + at, size);
        MREC_TRY(write_at(shard, bytes + at, size, shard->end + at, error));
    }
    mrec_store_u32(sum, crc);
    MREC_TRY(write_at(shard, sum, sizeof sum, shard->end + n, error));
    place_chunk(shard, chunk, n + sizeof sum);
    return MREC_OK;
}

mrec_status mrec_shard_put(mrec_shard *shard, uint64_t chunk, mrec_coder *coder, const mrec_pipeline *pipeline,
                           const void *bytes, size_t n, mrec_error *error) {
    size_t checksums;
    if (n >= GATHER / 2 && mrec_pipeline_plain(pipeline, &checksums) && checksums == 4)
        return put_plain(shard, chunk, bytes, n, error);
    size_t before = shard->waiting.size;
    MREC_TRY(mrec_encode(coder, pipeline, bytes, n, &shard->waiting, error));
    return take_waiting(shard, chunk, shard->waiting.size - before, error);
}

mrec_status mrec_shard_put_encoded(mrec_shard *shard, uint64_t chunk, const mrec_buffer *encoded, mrec_error *error) {
    MREC_TRY(mrec_buffer_add(&shard->waiting, encoded->data, encoded->size, error));
    return take_waiting(shard, chunk, encoded->size, error);
}

static bool is_free(const mrec_shard *shard, const slot *s) {
    return s->capacity != 0 && s->offset != shard->named_offset && s->offset != shard->durable_offset;
}

/* A free slot of at least n bytes: one there is, or a new one at the end. With a string chunk, whose encodings have no
 * bound, a slot that became too small is given up for one of twice the size. */
static slot *take_slot(mrec_shard *shard, uint64_t n, uint64_t capacity) {
    slot *room = NULL;
    for (slot *s = shard->slots; s < shard->slots + NSLOTS; s++) {
        if (is_free(shard, s) && s->capacity >= n)
            return s;
        if (s->capacity == 0 || (is_free(shard, s) && !room))
            room = s;
    }
    room->offset = shard->end;
    room->capacity = capacity >= n ? capacity : 2 * n;
    shard->end += room->capacity;
    return room;
}

mrec_status mrec_shard_put_open(mrec_shard *shard, uint64_t chunk, mrec_coder *coder, const mrec_pipeline *pipeline,
                                const void *bytes, size_t n, mrec_error *error) {
    MREC_TRY(write_waiting(shard, error));
    size_t bound = 0;
    MREC_TRY(mrec_encode_bound(pipeline, n, &bound, error));
    MREC_TRY(mrec_encode(coder, pipeline, bytes, n, &shard->waiting, error));
    uint64_t nbytes = shard->waiting.size;
    slot *s = take_slot(shard, nbytes, pipeline->codecs[0].kind == MREC_CODEC_VLEN_UTF8 ? 0 : bound);
    mrec_status status = write_at(shard, shard->waiting.data, (size_t)nbytes, s->offset, error);
    shard->waiting.size = 0;
    MREC_TRY(status);
    mrec_shard_set_place(shard, chunk, (mrec_place){s->offset, nbytes});
    shard->open_offset = s->offset;
    return MREC_OK;
}

mrec_status mrec_shard_land(mrec_shard *shard, mrec_error *error) {
    MREC_TRY(write_waiting(shard, error));
    if (shard->first_dirty >= shard->nchunks)
        return MREC_OK;
    size_t size = index_size(shard), from = (size_t)shard->first_dirty * 16;
    mrec_store_u32(shard->index + size - 4, mrec_crc32c(0, shard->index, size - 4));
    MREC_TRY(write_at(shard, shard->index + from, size - from, from, error));
    shard->first_dirty = shard->nchunks;
    shard->named_offset = shard->open_offset;
    return MREC_OK;
}

mrec_status mrec_shard_sync(mrec_shard *shard, mrec_error *error) {
    if (!shard->unsynced)
        return MREC_OK;
    MREC_TRY(open_file(shard, error));
    MREC_TRY(mrec_file_sync(shard->files->vfs, shard->fd, shard->path, error));
    shard->unsynced = false;
    return MREC_OK;
}

bool mrec_shard_is_open_unsynced(const mrec_shard *shard) {
    return shard->unsynced && shard->fd >= 0;
}

mrec_status mrec_shards_sync(mrec_shard *const *shards, size_t n, mrec_error *error) {
    mrec_open_file files[MREC_MAX_TOGETHER];
    for (size_t i = 0; i < n; i++)
        files[i] = (mrec_open_file){shards[i]->fd, shards[i]->path};
    if (n > 0)
        MREC_TRY(mrec_files_sync(shards[0]->files->vfs, files, n, error));
    for (size_t i = 0; i < n; i++)
        shards[i]->unsynced = false;
    return MREC_OK;
}

/* ---- reading back, for recovery ---- */

mrec_status mrec_shard_get(mrec_shard *shard, uint64_t chunk, mrec_buffer *out, mrec_error *error) {
    mrec_place place = mrec_shard_place(shard, chunk);
    uint64_t size = 0, stop;
    MREC_TRY(write_waiting(shard, error));
    MREC_TRY(open_file(shard, error));
    MREC_TRY(mrec_file_size(shard->files->vfs, shard->fd, shard->path, &size, error));
    if (!mrec_add(place.offset, place.nbytes, &stop) || stop > size || place.offset < index_size(shard))
        return mrec_fail(error, MREC_E_CORRUPT, shard->path,
                         "chunk %llu: its index entry (%llu, %llu) is outside the file", (unsigned long long)chunk,
                         (unsigned long long)place.offset, (unsigned long long)place.nbytes);
    MREC_TRY(mrec_buffer_reserve(out, out->size + (size_t)place.nbytes, error));
    MREC_TRY(mrec_file_read(shard->files->vfs, shard->fd, shard->path, out->data + out->size, (size_t)place.nbytes,
                            place.offset, error));
    out->size += (size_t)place.nbytes;
    return MREC_OK;
}

static uint32_t version_of(const mrec_pipeline *pipeline, const uint8_t *bytes, size_t n) {
    return mrec_pipeline_checked(pipeline) && n >= 4 ? mrec_load_u32(bytes + n - 4) : mrec_crc32c(0, bytes, n);
}

mrec_status mrec_shard_checksum(mrec_shard *shard, uint64_t chunk, const mrec_pipeline *pipeline, uint32_t *crc,
                                mrec_error *error) {
    mrec_buffer stored = {0};
    mrec_status status = mrec_shard_get(shard, chunk, &stored, error);
    if (status == MREC_OK)
        *crc = version_of(pipeline, stored.data, stored.size);
    mrec_buffer_free(&stored);
    return status;
}

static mrec_status verify_chunk(mrec_shard *shard, uint64_t chunk, const mrec_pipeline *pipeline, mrec_error *error) {
    mrec_buffer stored = {0};
    mrec_status status = mrec_shard_get(shard, chunk, &stored, error);
    bool good = status == MREC_OK && mrec_pipeline_checked(pipeline) && stored.size >= 4 &&
                mrec_crc32c(0, stored.data, stored.size - 4) == mrec_load_u32(stored.data + stored.size - 4);
    mrec_buffer_free(&stored);
    if (status != MREC_OK || good)
        return status;
    return mrec_fail(error, MREC_E_CORRUPT, shard->path,
                     "the index is torn and chunk %llu does not verify; run mrec repair to save what does",
                     (unsigned long long)chunk);
}

/* The whole index counts as changed, so that the next landing writes it with a right checksum. */
static mrec_status mend_index(mrec_shard *shard, const mrec_pipeline *pipeline, uint64_t named, mrec_error *error) {
    for (uint64_t chunk = 0; chunk < shard->nchunks; chunk++) {
        if (chunk >= named)
            mrec_shard_set_place(shard, chunk, (mrec_place){MREC_NO_PLACE, MREC_NO_PLACE});
        else if (mrec_shard_place(shard, chunk).offset != MREC_NO_PLACE)
            MREC_TRY(verify_chunk(shard, chunk, pipeline, error));
    }
    shard->first_dirty = 0;
    return MREC_OK;
}

static mrec_status read_index(mrec_shard *shard, const mrec_pipeline *pipeline, uint64_t named, mrec_error *error) {
    size_t size = index_size(shard);
    MREC_TRY(open_file(shard, error));
    MREC_TRY(mrec_file_size(shard->files->vfs, shard->fd, shard->path, &shard->end, error));
    size_t there = shard->end < size ? (size_t)shard->end : size;
    MREC_TRY(mrec_file_read(shard->files->vfs, shard->fd, shard->path, shard->index, there, 0, error));
    if (shard->end < size)
        shard->end = size;
    shard->first_dirty = shard->nchunks;
    if (there == size && mrec_crc32c(0, shard->index, size - 4) == mrec_load_u32(shard->index + size - 4))
        return MREC_OK;
    return mend_index(shard, pipeline, named, error);
}

mrec_status mrec_shard_load(mrec_files *files, const char *path, uint64_t nchunks, const mrec_pipeline *pipeline,
                            uint64_t named, mrec_shard **out, mrec_error *error) {
    MREC_TRY(mrec_shard_new(files, path, nchunks, out, error));
    (*out)->on_disk = true;
    mrec_status status = read_index(*out, pipeline, named, error);
    if (status != MREC_OK) {
        mrec_shard_free(*out);
        *out = NULL;
    }
    return status;
}

static int by_offset(const void *a, const void *b) {
    uint64_t x = ((const mrec_place *)a)->offset, y = ((const mrec_place *)b)->offset;
    return (x > y) - (x < y);
}

mrec_status mrec_shard_cut(mrec_shard *shard, uint64_t capacity, mrec_error *error) {
    mrec_place *places = malloc((size_t)shard->nchunks * sizeof *places);
    if (!places)
        return mrec_fail_memory(error);
    size_t n = 0, nslots = 0;
    for (uint64_t chunk = 0; chunk < shard->nchunks; chunk++) {
        mrec_place place = mrec_shard_place(shard, chunk);
        if (place.offset != MREC_NO_PLACE)
            places[n++] = place;
    }
    qsort(places, n, sizeof *places, by_offset);
    uint64_t end = index_size(shard);
    for (size_t i = 0; i < n; i++) {
        if (capacity > 0 && places[i].offset >= end && places[i].offset - end >= capacity && nslots < NSLOTS)
            shard->slots[nslots++] = (slot){end, places[i].offset - end};
        if (places[i].offset + places[i].nbytes > end)
            end = places[i].offset + places[i].nbytes;
    }
    free(places);
    shard->end = end;
    uint64_t size = 0;
    MREC_TRY(open_file(shard, error));
    MREC_TRY(mrec_file_size(shard->files->vfs, shard->fd, shard->path, &size, error));
    if (size <= end)
        return MREC_OK;
    shard->unsynced = true;
    return mrec_file_truncate(shard->files->vfs, shard->fd, shard->path, end, error);
}
