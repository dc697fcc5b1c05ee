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
    mrec_cache_forget(source->cache, source, mrec_source_kind(source), chunk);
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

static bool is_tail(const mrec_source *source, const mrec_chunk *c) {
    const mrec_array_spec *spec = &source->spec;
    return spec->tail_nbytes != 0 && c->shard == spec->tail_shard && c->inner == spec->tail_chunk;
}

/* A chunk whose last rows are still to come. A writer moves it from slot to slot, and may then use its slot for the
 * next chunk, so that a right checksum does not make it the right chunk: its entry is read anew, and once more after
 * the bytes. */
static bool is_open(const mrec_source *source, const mrec_chunk *c) {
    const mrec_array_spec *spec = &source->spec;
    return spec->sharded && !spec->fixed && spec->ndim > 0 && (c->at[0] + 1) * spec->chunk[0] > spec->shape[0];
}

/* Where a chunk is. */
typedef struct place {
    mrec_file *file;
    mrec_item *index; /* that names it for good, or NULL */
    mrec_entry entry;
} place;

/* The index of a chunk's shard, kept or fresh; held. */
static mrec_status find_index(mrec_source *source, const mrec_chunk *c, mrec_file *file, mrec_worker *worker,
                              mrec_item **index, mrec_error *error) {
    *index = mrec_cache_find(source->cache, source, MREC_ITEM_INDEX, c->shard);
    if (*index != NULL)
        return MREC_OK;
    MREC_TRY(mrec_file_measure(source->cache, file, error));
    MREC_TRY(
        mrec_index_read(source->vfs, file->fd, file->path, file->size, &source->form, &worker->text, index, error));
    mrec_cache_add(source->cache, *index, source, MREC_ITEM_INDEX, c->shard);
    return MREC_OK;
}

static bool is_absent(const mrec_entry *entry) {
    return entry->offset == MREC_ABSENT && entry->nbytes == MREC_ABSENT;
}

/* The entry of an open chunk. Its checksum says whether the entry is right, so that the index is not needed. */
static mrec_status find_open(mrec_source *source, const mrec_chunk *c, mrec_worker *worker, place *at,
                             mrec_error *error) {
    if (mrec_pipeline_checked(&source->spec.pipeline) && !source->spec.unverified) {
        MREC_TRY(mrec_file_measure(source->cache, at->file, error));
        MREC_TRY(mrec_index_peek(source->vfs, at->file->fd, at->file->path, at->file->size, &source->form, c->inner,
                                 &at->entry, error));
        if (!is_absent(&at->entry))
            return MREC_OK;
    }
    mrec_cache_forget(source->cache, source, MREC_ITEM_INDEX, c->shard);
    mrec_item *index;
    MREC_TRY(find_index(source, c, at->file, worker, &index, error));
    at->entry = mrec_index_entry(index, c->inner);
    mrec_item_release(source->cache, index);
    return MREC_OK;
}

static mrec_status find_entry(mrec_source *source, const mrec_chunk *c, mrec_worker *worker, place *at,
                              mrec_error *error) {
    if (is_tail(source, c)) {
        at->entry = (mrec_entry){source->spec.tail_offset, source->spec.tail_nbytes, false};
    } else if (!source->spec.sharded) {
        MREC_TRY(mrec_file_measure(source->cache, at->file, error));
        at->entry = (mrec_entry){0, at->file->size, false};
    } else if (is_open(source, c)) {
        return find_open(source, c, worker, at, error);
    } else {
        MREC_TRY(find_index(source, c, at->file, worker, &at->index, error));
        at->entry = mrec_index_entry(at->index, c->inner);
    }
    return MREC_OK;
}

static bool is_valid(const mrec_source *source, const place *at) {
    return !source->spec.sharded || mrec_entry_valid(&at->entry, &source->form, at->file->size);
}

/* Where a chunk is in its open file; *found = false when it is not there. */
static mrec_status find_place(mrec_source *source, const mrec_chunk *c, mrec_worker *worker, place *at, bool *found,
                              mrec_error *error) {
    const char *path = at->file->path;
    MREC_TRY(find_entry(source, c, worker, at, error));
    *found = !is_absent(&at->entry);
    if (!*found)
        return at->entry.torn
                   ? mrec_fail(error, MREC_E_CORRUPT, path, "it is missing in an index that fails its checksum")
                   : MREC_OK;
    if (!is_valid(source, at)) /* the file may have grown */
        MREC_TRY(mrec_file_measure(source->cache, at->file, error));
    if (!is_valid(source, at))
        return mrec_fail(error, MREC_E_CORRUPT, path, "its index entry points outside the file or into the index");
    if (at->entry.torn && !mrec_pipeline_checked(&source->spec.pipeline))
        return mrec_fail(error, MREC_E_CORRUPT, path, "the index fails its checksum, and the chunk has none");
    return at->entry.nbytes > SIZE_MAX ? mrec_fail_memory(error) : MREC_OK;
}

/* ---- the bytes of a chunk ----------------------------------------------------------------------------------- */

static mrec_status check_unmoved(mrec_source *source, const mrec_chunk *c, const place *at, mrec_error *error) {
    if (!is_open(source, c) || is_tail(source, c))
        return MREC_OK;
    mrec_entry now;
    MREC_TRY(mrec_file_measure(source->cache, at->file, error));
    MREC_TRY(mrec_index_peek(source->vfs, at->file->fd, at->file->path, at->file->size, &source->form, c->inner, &now,
                             error));
    return now.offset == at->entry.offset && now.nbytes == at->entry.nbytes
               ? MREC_OK
               : mrec_fail(error, MREC_E_CORRUPT, at->file->path, "it moved while it was read");
}

static bool tail_holds(const mrec_source *source, const uint8_t *raw, size_t n) {
    if (mrec_pipeline_checked(&source->spec.pipeline))
        return n >= 4 && mrec_load_u32(raw + n - 4) == source->spec.tail_crc32c;
    return mrec_crc32c(0, raw, n) == source->spec.tail_crc32c;
}

/* How many chunks, at most `most`, stand right behind one another from this one on, in at most MREC_AHEAD bytes. */
static uint64_t count_run(const mrec_source *source, const mrec_chunk *c, const place *at, uint64_t most,
                          uint64_t *nbytes) {
    uint64_t n = 1, end = at->entry.offset + at->entry.nbytes;
    for (; n < most && at->index != NULL && c->inner + n < source->form.nchunks; n++) {
        mrec_entry next = mrec_index_entry(at->index, c->inner + n);
        uint64_t before = end - at->entry.offset;
        if (next.offset != end || next.nbytes > at->file->size - end || before > MREC_AHEAD ||
            next.nbytes > MREC_AHEAD - before)
            break;
        end += next.nbytes;
    }
    *nbytes = end - at->entry.offset;
    return n;
}

static bool has_read(const mrec_source *source, const mrec_chunk *c, const place *at, const mrec_worker *worker) {
    uint64_t behind = at->entry.offset - worker->offset;
    return at->index != NULL && worker->owner == source && worker->shard == c->shard &&
           at->entry.offset >= worker->offset && behind <= worker->raw.size &&
           at->entry.nbytes <= worker->raw.size - behind;
}

/* The stored bytes of a chunk, in worker->raw, with those of the chunks to come that stand behind it. */
static mrec_status load(mrec_source *source, const mrec_chunk *c, const place *at, const mrec_fetch *fetch,
                        const uint8_t **raw, mrec_error *error) {
    mrec_worker *worker = fetch->worker;
    if (!has_read(source, c, at, worker)) {
        uint64_t n;
        count_run(source, c, at, fetch->ahead, &n);
        worker->owner = NULL;
        MREC_TRY(mrec_buffer_reserve(&worker->raw, (size_t)n + 1, error)); /* 1: never NULL */
        MREC_TRY(mrec_file_read(source->vfs, at->file->fd, at->file->path, worker->raw.data, (size_t)n,
                                at->entry.offset, error));
        worker->raw.size = (size_t)n;
        worker->offset = at->entry.offset;
        worker->shard = c->shard;
        worker->owner = source;
    }
    *raw = worker->raw.data + (at->entry.offset - worker->offset);
    if (is_tail(source, c) && !tail_holds(source, *raw, (size_t)at->entry.nbytes))
        return mrec_fail(error, MREC_E_CORRUPT, at->file->path, "it is not the one that the durable file names");
    return check_unmoved(source, c, at, error);
}

/* Only the wanted bytes of a chunk that is stored as it is in memory, unverified. */
static mrec_status load_part(mrec_source *source, const mrec_chunk *c, const place *at, mrec_fetch *fetch,
                             mrec_error *error) {
    mrec_buffer *part = &fetch->worker->chunk;
    MREC_TRY(mrec_buffer_reserve(part, (size_t)fetch->size, error));
    MREC_TRY(mrec_file_read(source->vfs, at->file->fd, at->file->path, part->data, (size_t)fetch->size,
                            at->entry.offset + fetch->skip, error));
    fetch->bytes = part->data;
    return check_unmoved(source, c, at, error);
}

/* The crc32c behind a chunk that is stored as it is in memory. */
static mrec_status check_plain(const mrec_source *source, const place *at, const uint8_t *bytes, const uint8_t *trailer,
                               mrec_error *error) {
    if (source->trailer == 0 || (source->spec.unverified && !at->entry.torn))
        return MREC_OK;
    uint32_t computed = mrec_crc32c(0, bytes, (size_t)source->chunk_bytes), stored = mrec_load_u32(trailer);
    return computed == stored ? MREC_OK
                              : mrec_fail(error, MREC_E_CORRUPT, at->file->path, "crc32c is %08x where %08x is stored",
                                          (unsigned)computed, (unsigned)stored);
}

/* Chunks that are stored as they are in memory, from the file to their place: this one and those right behind it. */
static mrec_status read_straight(mrec_source *source, const mrec_chunk *c, const place *at, mrec_fetch *fetch,
                                 mrec_error *error) {
    struct iovec parts[MREC_MAX_PARTS];
    uint8_t trailers[MREC_MAX_PARTS / 2][4];
    uint8_t *to = fetch->to;
    const size_t size = (size_t)source->chunk_bytes;
    uint64_t most = fetch->straight < MREC_MAX_PARTS / 2 ? fetch->straight : MREC_MAX_PARTS / 2, nbytes, n = 0;
    most = count_run(source, c, at, most, &nbytes);
    while (n < most) {
        mrec_chunk next = {.shard = c->shard, .inner = c->inner + n};
        if (n > 0 && (mrec_index_entry(at->index, next.inner).nbytes != at->entry.nbytes || is_tail(source, &next)))
            break;
        parts[2 * n] = (struct iovec){to + n * size, size};
        parts[2 * n + 1] = (struct iovec){trailers[n], source->trailer};
        n++;
    }
    MREC_TRY(
        mrec_file_read_parts(source->vfs, at->file->fd, at->file->path, parts, (int)n * 2, at->entry.offset, error));
    for (fetch->done = 0; fetch->done < n; fetch->done++) {
        mrec_status status =
            check_plain(source, at, to + fetch->done * size, trailers[fetch->done], fetch->done == 0 ? error : NULL);
        if (status != MREC_OK) /* one behind the first is for the next call to look at */
            return fetch->done == 0 ? status : MREC_OK;
    }
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

static mrec_status decode_strings(mrec_source *source, const mrec_pipeline *pipeline, const uint8_t *raw, size_t n,
                                  mrec_fetch *fetch, mrec_error *error) {
    mrec_worker *worker = fetch->worker;
    uint64_t limit = n < LARGE ? LARGE + n * 2048 : LARGE * 2048;
    MREC_TRY(mrec_decode_any(worker->coder, pipeline, raw, n, (size_t)limit, &worker->text, error));
    MREC_TRY(parse_strings(source, &worker->text, &fetch->item, error));
    fetch->bytes = fetch->item->data;
    return MREC_OK;
}

/* Decode a chunk: strings and what is to be kept into a new item, other numbers to where they are wanted. */
static mrec_status decode(mrec_source *source, const place *at, const uint8_t *raw, mrec_fetch *fetch,
                          mrec_error *error) {
    const mrec_pipeline *pipeline = at->entry.torn ? &source->spec.pipeline : &source->pipeline;
    mrec_worker *worker = fetch->worker;
    size_t n = (size_t)at->entry.nbytes, size = (size_t)source->chunk_bytes;
    if (mrec_source_is_string(source))
        return decode_strings(source, pipeline, raw, n, fetch, error);
    if (size > LARGE && size / MAX_RATIO > n)
        return mrec_fail(error, MREC_E_CORRUPT, source->path, "%zu bytes can not hold a chunk of %zu", n, size);
    if (source->plain && n == size + source->trailer && fetch->to == NULL && !fetch->keep) {
        fetch->bytes = raw + fetch->skip;
        return check_plain(source, at, raw, raw + size, error);
    }
    uint8_t *to = fetch->to;
    mrec_item *made = NULL;
    if (to == NULL && fetch->keep) {
        made = mrec_item_new(size);
        if (made == NULL)
            return mrec_fail_memory(error);
        to = made->data;
    } else if (to == NULL) {
        MREC_TRY(mrec_buffer_reserve(&worker->chunk, size, error));
        to = worker->chunk.data;
    }
    mrec_status status = mrec_decode(worker->coder, pipeline, raw, n, to, size, error);
    if (status != MREC_OK) {
        free(made);
        return status;
    }
    fetch->item = made;
    fetch->bytes = to + fetch->skip;
    fetch->done = 1;
    return MREC_OK;
}

/* ---- all of it ---------------------------------------------------------------------------------------------- */

static mrec_status fetch_from(mrec_source *source, const mrec_chunk *c, place *at, mrec_fetch *fetch,
                              mrec_error *error) {
    const uint8_t *raw = NULL;
    MREC_TRY(find_place(source, c, fetch->worker, at, &fetch->found, error));
    if (!fetch->found)
        return MREC_OK;
    if (source->plain && !is_tail(source, c) && at->entry.nbytes == source->chunk_bytes + source->trailer) {
        if (fetch->to != NULL && !is_open(source, c))
            return read_straight(source, c, at, fetch, error);
        if (fetch->part && !at->entry.torn)
            return load_part(source, c, at, fetch, error);
    }
    MREC_TRY(load(source, c, at, fetch, &raw, error));
    return decode(source, at, raw, fetch, error);
}

static mrec_status fetch_once(mrec_source *source, const mrec_chunk *c, mrec_fetch *fetch, mrec_error *error) {
    mrec_buffer *path = &fetch->worker->text;
    place at = {.file = mrec_file_find(source->cache, source, c->shard)};
    fetch->found = false;
    fetch->done = 0;
    fetch->item = NULL;
    if (at.file == NULL) {
        MREC_TRY(shard_path(source, c, path, error));
        MREC_TRY(mrec_file_hold(source->cache, source, c->shard, (const char *)path->data, &at.file, error));
    }
    mrec_status status = MREC_OK;
    if (at.file != NULL) {
        status = fetch_from(source, c, &at, fetch, error);
        mrec_item_release(source->cache, at.index);
        mrec_file_release(source->cache, at.file);
    }
    if (status == MREC_OK && !fetch->found && source->spec.absent_is_loss)
        return mrec_fail(error, MREC_E_CORRUPT, source->path, "it is not there");
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

mrec_status mrec_chunk_fetch(mrec_source *source, const mrec_chunk *c, mrec_fetch *fetch, mrec_error *error) {
    mrec_error inner;
    mrec_status status;
    for (int attempt = 1;; attempt++) {
        status = fetch_once(source, c, fetch, &inner);
        if (status != MREC_E_CORRUPT || attempt == ATTEMPTS)
            break;
        fetch->worker->owner = NULL;
        mrec_source_forget(source, UINT64_MAX, c->shard);
        nanosleep(&(struct timespec){0, 100000L << attempt}, NULL);
    }
    return status == MREC_OK ? MREC_OK : name_damage(source, c, &inner, error);
}
