/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "source.h"

#include "bytes.h"
#include "crc32c.h"
#include "vlen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often an index and a chunk are read before damage is believed: a writer may be replacing them. */
#define ATTEMPTS 4

/* No compressor makes more of a byte than this (a run of zeros in zstd); a chunk that claims to is refused before its
 * memory is taken. */
#define LARGE ((uint64_t)64 << 20)
#define MAX_RATIO ((uint64_t)1 << 17)

void mrec_source_forget(mrec_source *source, uint64_t chunk, uint64_t shard) {
    mrec_cache_forget(source->cache, source, MREC_ITEM_CHUNK, chunk);
    mrec_cache_forget(source->cache, source, MREC_ITEM_INDEX, shard);
    mrec_file_forget(source->cache, source, shard);
}

/* ---- where a chunk is --------------------------------------------------------------------------------------- */

void mrec_chunk_locate(const mrec_source *source, mrec_chunk *c) {
    const mrec_array_spec *spec = &source->spec;
    c->number = c->shard = c->inner = 0;
    for (uint32_t i = 0; i < spec->ndim; i++) {
        uint64_t per_shard = spec->grid[i] / spec->chunk[i];
        if (i > 0) {
            c->number *= mrec_ceil_div(spec->shape[i], spec->chunk[i]);
            c->shard *= mrec_ceil_div(spec->shape[i], spec->grid[i]);
        }
        c->number += c->at[i];
        c->shard += c->at[i] / per_shard;
        c->inner = c->inner * per_shard + c->at[i] % per_shard;
    }
}

/* The name of a chunk's file below the array's directory: c/0/0. */
static mrec_status shard_path(const mrec_source *source, const mrec_chunk *c, mrec_buffer *path, mrec_error *error) {
    const mrec_array_spec *spec = &source->spec;
    path->size = 0;
    MREC_TRY(mrec_buffer_print(path, error, "%s/", source->path));
    if (!spec->v2_keys)
        MREC_TRY(mrec_buffer_print(path, error, spec->ndim ? "c%c" : "c", spec->separator));
    else if (spec->ndim == 0)
        MREC_TRY(mrec_buffer_print(path, error, "0"));
    for (uint32_t i = 0; i < spec->ndim; i++) {
        if (i > 0)
            MREC_TRY(mrec_buffer_print(path, error, "%c", spec->separator));
        MREC_TRY(mrec_buffer_print(path, error, "%" PRIu64, c->at[i] / (spec->grid[i] / spec->chunk[i])));
    }
    return MREC_OK;
}

/* The entry of a chunk of a sharded file, from the kept index or a fresh one. */
static mrec_status find_entry(mrec_source *source, const mrec_chunk *c, const mrec_file *file, uint64_t size,
                              mrec_worker *worker, mrec_entry *entry, mrec_error *error) {
    mrec_item *index = mrec_cache_find(source->cache, source, MREC_ITEM_INDEX, c->shard);
    if (index == NULL) {
        const char *path = (const char *)worker->text.data;
        MREC_TRY(mrec_index_read(source->vfs, file->fd, path, size, &source->form, &worker->raw, &index, error));
        mrec_cache_add(source->cache, index, source, MREC_ITEM_INDEX, c->shard);
    }
    *entry = mrec_index_entry(index, c->inner);
    mrec_item_release(source->cache, index);
    return MREC_OK;
}

static bool is_tail(const mrec_source *source, const mrec_chunk *c) {
    const mrec_array_spec *spec = &source->spec;
    return spec->tail_nbytes != 0 && c->shard == spec->tail_shard && c->inner == spec->tail_chunk;
}

/* A chunk whose last rows are still to come. A writer moves it from slot to slot, and may then use its slot for the
 * next chunk, so that a right checksum does not make it the right chunk: its entry is read anew, and once more after
 * the bytes. */
static bool is_open(const mrec_source *source, const mrec_chunk *c) {
    const mrec_array_spec *spec = &source->spec;
    return spec->sharded && spec->ndim > 0 && (c->at[0] + 1) * spec->chunk[0] > spec->shape[0];
}

static mrec_status check_unmoved(mrec_source *source, const mrec_chunk *c, const mrec_file *file,
                                 const mrec_entry *entry, const char *path, mrec_error *error) {
    uint64_t size;
    bool still = false;
    MREC_TRY(mrec_file_size(source->vfs, file->fd, path, &size, error));
    MREC_TRY(mrec_index_still(source->vfs, file->fd, path, size, &source->form, c->inner, entry, &still, error));
    return still ? MREC_OK : mrec_fail(error, MREC_E_CORRUPT, path, "it moved while it was read");
}

static bool tail_holds(const mrec_source *source, const uint8_t *raw, size_t n) {
    if (mrec_pipeline_checked(&source->spec.pipeline))
        return n >= 4 && mrec_load_u32(raw + n - 4) == source->spec.tail_crc32c;
    return mrec_crc32c(0, raw, n) == source->spec.tail_crc32c;
}

/* The stored bytes of a chunk into worker->raw; *found = false when it is not there. */
static mrec_status load(mrec_source *source, const mrec_chunk *c, const mrec_file *file, mrec_worker *worker,
                        bool *found, mrec_error *error) {
    const char *path = (const char *)worker->text.data;
    uint64_t size;
    MREC_TRY(mrec_file_size(source->vfs, file->fd, path, &size, error));
    mrec_entry entry = {0, size, false};
    if (is_tail(source, c)) {
        entry = (mrec_entry){source->spec.tail_offset, source->spec.tail_nbytes, false};
    } else if (source->spec.sharded) {
        if (is_open(source, c))
            mrec_cache_forget(source->cache, source, MREC_ITEM_INDEX, c->shard);
        MREC_TRY(find_entry(source, c, file, size, worker, &entry, error));
        MREC_TRY(mrec_file_size(source->vfs, file->fd, path, &size, error));
    }
    *found = entry.offset != MREC_ABSENT || entry.nbytes != MREC_ABSENT;
    if (!*found)
        return entry.torn ? mrec_fail(error, MREC_E_CORRUPT, path, "it is missing in an index that fails its checksum")
                          : MREC_OK;
    if (source->spec.sharded && !mrec_entry_valid(&entry, &source->form, size))
        return mrec_fail(error, MREC_E_CORRUPT, path, "its index entry points outside the file or into the index");
    if (entry.torn && !mrec_pipeline_checked(&source->spec.pipeline))
        return mrec_fail(error, MREC_E_CORRUPT, path, "the index fails its checksum, and the chunk has none");
    if (entry.nbytes > SIZE_MAX)
        return mrec_fail_memory(error);
    worker->raw.size = 0;
    MREC_TRY(mrec_buffer_reserve(&worker->raw, (size_t)entry.nbytes, error));
    MREC_TRY(mrec_file_read(source->vfs, file->fd, path, worker->raw.data, (size_t)entry.nbytes, entry.offset, error));
    worker->raw.size = (size_t)entry.nbytes;
    if (is_tail(source, c) && !tail_holds(source, worker->raw.data, worker->raw.size))
        return mrec_fail(error, MREC_E_CORRUPT, path, "it is not the one that the durable file names");
    if (is_open(source, c) && !is_tail(source, c))
        return check_unmoved(source, c, file, &entry, path, error);
    return MREC_OK;
}

/* ---- decoding ----------------------------------------------------------------------------------------------- */

/* Turn the text of a decoded string chunk into an item: refs, then the bytes they point to. */
static mrec_status parse_strings(const mrec_source *source, const mrec_buffer *text, mrec_item **out,
                                 mrec_error *error) {
    uint64_t count = source->chunk_bytes / sizeof(mrec_ref);
    if (count > text->size / 4)
        return mrec_fail(error, MREC_E_CORRUPT, source->path, "%zu bytes can not hold %" PRIu64 " strings", text->size,
                         count);
    size_t bytes = (size_t)count * sizeof(mrec_ref);
    mrec_item *item = mrec_item_new(bytes + text->size);
    if (item == NULL)
        return mrec_fail_memory(error);
    mrec_ref *refs = (mrec_ref *)(void *)item->data;
    uint8_t *copy = item->data + bytes;
    memcpy(copy, text->data, text->size);
    /* The ends stand in the upper half of the refs: a ref covers only ends that were read before it is written. */
    uint64_t *ends = (uint64_t *)(void *)refs + count;
    mrec_status status = mrec_vlen_walk(copy, text->size, count, ends, error);
    if (status != MREC_OK) {
        free(item);
        return status;
    }
    uint64_t end = 4;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t start = end + 4;
        end = ends[i];
        refs[i] = (mrec_ref){copy + start, end - start};
    }
    *out = item;
    return MREC_OK;
}

/* Decode worker->raw: numbers into `to`, or into a new item when `to` is NULL. */
static mrec_status decode(mrec_source *source, mrec_worker *worker, void *to, mrec_item **item, mrec_error *error) {
    const mrec_pipeline *pipeline = &source->spec.pipeline;
    const mrec_buffer *raw = &worker->raw;
    if (mrec_source_is_string(source)) {
        uint64_t limit = raw->size < LARGE ? LARGE + raw->size * 2048 : LARGE * 2048;
        MREC_TRY(mrec_decode_any(worker->coder, pipeline, raw->data, raw->size, (size_t)limit, &worker->text, error));
        return parse_strings(source, &worker->text, item, error);
    }
    if (source->chunk_bytes > LARGE && source->chunk_bytes / MAX_RATIO > raw->size)
        return mrec_fail(error, MREC_E_CORRUPT, source->path, "%zu bytes can not hold a chunk of %" PRIu64, raw->size,
                         source->chunk_bytes);
    if (to != NULL)
        return mrec_decode(worker->coder, pipeline, raw->data, raw->size, to, (size_t)source->chunk_bytes, error);
    mrec_item *made = mrec_item_new((size_t)source->chunk_bytes);
    if (made == NULL)
        return mrec_fail_memory(error);
    mrec_status status = mrec_decode(worker->coder, pipeline, raw->data, raw->size, made->data, made->size, error);
    if (status != MREC_OK) {
        free(made);
        return status;
    }
    *item = made;
    return MREC_OK;
}

static mrec_status fetch_once(mrec_source *source, const mrec_chunk *c, mrec_worker *worker, void *to, mrec_item **item,
                              bool *found, mrec_error *error) {
    *found = false;
    MREC_TRY(shard_path(source, c, &worker->text, error));
    mrec_file *file;
    MREC_TRY(mrec_file_hold(source->cache, source, c->shard, (const char *)worker->text.data, &file, error));
    mrec_status status = MREC_OK;
    if (file != NULL) {
        status = load(source, c, file, worker, found, error);
        mrec_file_release(source->cache, file);
    }
    if (status == MREC_OK && *found)
        status = decode(source, worker, to, item, error);
    if (status == MREC_OK && !*found && source->spec.absent_is_loss)
        return mrec_fail(error, MREC_E_CORRUPT, (const char *)worker->text.data, "it is not there");
    return status;
}

/* Say which array, file and chunk the trouble is in. */
static mrec_status name_damage(const mrec_source *source, const mrec_chunk *c, const mrec_error *inner,
                               mrec_error *error) {
    mrec_buffer path = {0};
    if (inner->status != MREC_E_CORRUPT || shard_path(source, c, &path, NULL) != MREC_OK) {
        if (error != NULL)
            *error = *inner;
    } else if (source->spec.sharded) {
        mrec_fail(error, MREC_E_CORRUPT, source->path, "shard %s, chunk %" PRIu64 " of it: %s",
                  (const char *)path.data + strlen(source->path) + 1, c->inner, inner->message);
    } else {
        mrec_fail(error, MREC_E_CORRUPT, source->path, "chunk %s: %s",
                  (const char *)path.data + strlen(source->path) + 1, inner->message);
    }
    mrec_buffer_free(&path);
    return inner->status;
}

mrec_status mrec_chunk_fetch(mrec_source *source, const mrec_chunk *c, void *to, mrec_item **item, bool *found,
                             mrec_error *error) {
    mrec_worker *worker;
    MREC_TRY(mrec_worker_take(source->cache, &worker, error));
    mrec_error inner = {0};
    mrec_status status;
    for (int attempt = 1;; attempt++) {
        status = fetch_once(source, c, worker, to, item, found, &inner);
        if (status != MREC_E_CORRUPT || attempt == ATTEMPTS)
            break;
        mrec_source_forget(source, UINT64_MAX, c->shard);
        nanosleep(&(struct timespec){0, 100000L << attempt}, NULL);
    }
    mrec_worker_give(source->cache, worker);
    return status == MREC_OK ? MREC_OK : name_damage(source, c, &inner, error);
}
