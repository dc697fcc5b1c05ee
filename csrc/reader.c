/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "reader.h"

#include "bytes.h"
#include "crc32c.h"
#include "index.h"
#include "strided.h"
#include "vlen.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often an index and a chunk are read before damage is believed: a writer may be replacing them. */
#define ATTEMPTS 4

/* No compressor makes more of a byte than this (a run of zeros in zstd); a chunk that claims to is refused before its
 * memory is taken. */
#define LARGE ((uint64_t)64 << 20)
#define MAX_RATIO ((uint64_t)1 << 17)

struct mrec_source {
    mrec_vfs *vfs;
    mrec_cache *cache;
    bool own_cache;
    mrec_array_spec spec;
    char *path, *fill_text;
    mrec_index_form form;
    size_t unit;                            /* bytes of an element as it is copied: a string is a ref */
    uint64_t row_elements;                  /* of all axes after the first */
    uint64_t chunk_bytes;                   /* decoded */
    uint64_t chunks_per_row;                /* chunks that cover the axes after the first */
    bool close_rows;                        /* the rows of a decoded chunk are rows of the array, close together */
    ptrdiff_t chunk_strides[MREC_MAX_AXES]; /* of the array's axes in a decoded chunk */
    pthread_rwlock_t lock;                  /* the length, which a refresh changes */
};

/* A string of a decoded chunk, or the fill. */
typedef struct ref {
    const uint8_t *text;
    uint64_t size;
} ref;

/* A chunk by its coordinates in the grid of chunks. */
typedef struct chunk_at {
    uint64_t at[MREC_MAX_AXES];
    uint64_t number; /* in C order over all chunks */
    uint64_t shard;  /* in C order over all files */
    uint64_t inner;  /* in C order over the chunks of its file */
} chunk_at;

/* The rows that a call wants, and where they go. */
typedef struct request {
    uint64_t start, stop;
    uint8_t *out;
    ptrdiff_t stride;
    mrec_item **held; /* strings: chunks that refs point into */
    size_t nheld, max_held;
} request;

static bool is_string(const mrec_source *source) {
    return source->spec.dtype == MREC_STRING;
}

static uint64_t ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

/* ---- opening ------------------------------------------------------------------------------------------------ */

static mrec_status check_axes(const mrec_array_spec *spec, mrec_error *error) {
    if (spec->ndim > MREC_MAX_AXES)
        return mrec_fail(error, MREC_E_VALUE, spec->path, "%u axes; at most %d are read", spec->ndim, MREC_MAX_AXES);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < spec->ndim; i++) {
        if (spec->chunk[i] == 0 || spec->grid[i] == 0 || spec->grid[i] % spec->chunk[i] != 0)
            return mrec_fail(error, MREC_E_VALUE, spec->path, "chunk shape does not divide the chunk grid in axis %u",
                             i);
        if (!spec->sharded && spec->grid[i] != spec->chunk[i])
            return mrec_fail(error, MREC_E_VALUE, spec->path, "inner chunks without a shard");
        if (spec->order[i] >= spec->ndim || (seen & 1u << spec->order[i]))
            return mrec_fail(error, MREC_E_VALUE, spec->path, "the transpose is no permutation");
        seen |= 1u << spec->order[i];
    }
    if (spec->pipeline.n == 0 || spec->pipeline.n > MREC_MAX_CODECS ||
        (spec->dtype == MREC_STRING) != (spec->pipeline.codecs[0].kind == MREC_CODEC_VLEN_UTF8))
        return mrec_fail(error, MREC_E_VALUE, spec->path, "the pipeline does not fit the data type");
    return MREC_OK;
}

static mrec_status check_sizes(mrec_source *source, mrec_error *error) {
    const mrec_array_spec *spec = &source->spec;
    uint64_t elements = 1, total = source->unit, chunk = source->unit, inner = 1;
    bool fits = true;
    source->chunks_per_row = 1;
    for (uint32_t i = 0; i < spec->ndim; i++) {
        fits =
            fits && mrec_mul(chunk, spec->chunk[i], &chunk) && mrec_mul(inner, spec->grid[i] / spec->chunk[i], &inner);
        fits = fits && mrec_mul(total, spec->shape[i], &total);
        if (i > 0)
            fits = fits && mrec_mul(elements, spec->shape[i], &elements) &&
                   mrec_mul(source->chunks_per_row, ceil_div(spec->shape[i], spec->chunk[i]), &source->chunks_per_row);
    }
    uint64_t row_bytes;
    fits = fits && mrec_mul(elements, source->unit, &row_bytes) && row_bytes < PTRDIFF_MAX;
    if (!fits || total > PTRDIFF_MAX || chunk > PTRDIFF_MAX)
        return mrec_fail(error, MREC_E_CORRUPT, source->path, "the shape or chunk shape is too large");
    source->row_elements = elements;
    source->chunk_bytes = chunk;
    source->form = (mrec_index_form){inner, spec->index_at_end, spec->index_checked, spec->index_big};
    return MREC_OK;
}

static void set_strides(mrec_source *source) {
    const mrec_array_spec *spec = &source->spec;
    ptrdiff_t stride = (ptrdiff_t)source->unit;
    source->close_rows = true;
    for (uint32_t i = spec->ndim; i-- > 0;) {
        source->chunk_strides[spec->order[i]] = stride;
        stride *= (ptrdiff_t)spec->chunk[spec->order[i]];
        if (spec->order[i] != i || (i > 0 && spec->chunk[i] != spec->shape[i]))
            source->close_rows = false;
    }
}

static mrec_status copy_spec(mrec_source *source, const mrec_array_spec *spec, mrec_error *error) {
    source->spec = *spec;
    source->path = mrec_path_join(spec->path, "");
    if (source->path == NULL)
        return mrec_fail_memory(error);
    source->path[strlen(spec->path)] = '\0';
    source->spec.path = source->path;
    size_t n = spec->fill_text ? spec->fill_text_size : 0;
    source->fill_text = malloc(n + 1);
    if (source->fill_text == NULL)
        return mrec_fail_memory(error);
    if (n > 0)
        memcpy(source->fill_text, spec->fill_text, n);
    source->spec.fill_text_size = n;
    return MREC_OK;
}

static mrec_status prepare(mrec_source *source, const mrec_array_spec *spec, mrec_error *error) {
    MREC_TRY(copy_spec(source, spec, error));
    MREC_TRY(check_axes(&source->spec, error));
    source->unit = is_string(source) ? sizeof(ref) : mrec_dtype_size(spec->dtype);
    MREC_TRY(check_sizes(source, error));
    set_strides(source);
    source->cache = spec->cache;
    if (source->cache == NULL) {
        MREC_TRY(mrec_cache_new(source->vfs, 4, 0, &source->cache, error));
        source->own_cache = true;
    }
    return MREC_OK;
}

mrec_status mrec_source_open(mrec_vfs *vfs, const mrec_array_spec *spec, mrec_source **out, mrec_error *error) {
    *out = NULL;
    mrec_source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return mrec_fail_memory(error);
    source->vfs = vfs;
    if (pthread_rwlock_init(&source->lock, NULL) != 0) {
        free(source);
        return mrec_fail_memory(error);
    }
    mrec_status status = prepare(source, spec, error);
    if (status != MREC_OK) {
        mrec_source_free(source);
        return status;
    }
    *out = source;
    return MREC_OK;
}

/* Forget what is kept of this source from a chunk and a shard on. */
static void forget(mrec_source *source, uint64_t chunk, uint64_t shard) {
    mrec_cache_forget(source->cache, source, MREC_ITEM_CHUNK, chunk);
    mrec_cache_forget(source->cache, source, MREC_ITEM_INDEX, shard);
    mrec_file_forget(source->cache, source, shard);
}

void mrec_source_free(mrec_source *source) {
    if (source == NULL)
        return;
    if (source->cache != NULL)
        forget(source, 0, 0);
    if (source->own_cache)
        mrec_cache_free(source->cache);
    pthread_rwlock_destroy(&source->lock);
    free(source->path);
    free(source->fill_text);
    free(source);
}

mrec_status mrec_source_refresh(mrec_source *source, uint64_t length, mrec_error *error) {
    if (source->spec.ndim == 0)
        return mrec_fail(error, MREC_E_VALUE, source->path, "an array without axes has no length");
    pthread_rwlock_wrlock(&source->lock);
    uint64_t old = source->spec.shape[0];
    source->spec.shape[0] = length;
    mrec_status status = check_sizes(source, error);
    if (status != MREC_OK)
        source->spec.shape[0] = old;
    uint64_t whole = (old < length ? old : length) / source->spec.chunk[0]; /* these can not change any more */
    forget(source, whole * source->chunks_per_row, 0);
    pthread_rwlock_unlock(&source->lock);
    return status;
}

/* ---- where a chunk is --------------------------------------------------------------------------------------- */

static void locate(const mrec_source *source, chunk_at *c) {
    const mrec_array_spec *spec = &source->spec;
    c->number = c->shard = c->inner = 0;
    for (uint32_t i = 0; i < spec->ndim; i++) {
        uint64_t per_shard = spec->grid[i] / spec->chunk[i];
        if (i > 0) {
            c->number *= ceil_div(spec->shape[i], spec->chunk[i]);
            c->shard *= ceil_div(spec->shape[i], spec->grid[i]);
        }
        c->number += c->at[i];
        c->shard += c->at[i] / per_shard;
        c->inner = c->inner * per_shard + c->at[i] % per_shard;
    }
}

/* The name of a chunk's file below the array's directory: c/0/0. */
static mrec_status shard_path(const mrec_source *source, const chunk_at *c, mrec_buffer *path, mrec_error *error) {
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
static mrec_status find_entry(mrec_source *source, const chunk_at *c, const mrec_file *file, uint64_t size,
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

static bool is_tail(const mrec_source *source, const chunk_at *c) {
    const mrec_array_spec *spec = &source->spec;
    return spec->tail_nbytes != 0 && c->shard == spec->tail_shard && c->inner == spec->tail_chunk;
}

/* A chunk whose last rows are still to come. A writer moves it from slot to slot, and may then use its slot for the
 * next chunk, so that a right checksum does not make it the right chunk: its entry is read anew, and once more after
 * the bytes. */
static bool is_open(const mrec_source *source, const chunk_at *c) {
    const mrec_array_spec *spec = &source->spec;
    return spec->sharded && spec->ndim > 0 && (c->at[0] + 1) * spec->chunk[0] > spec->shape[0];
}

static mrec_status check_unmoved(mrec_source *source, const chunk_at *c, const mrec_file *file, const mrec_entry *entry,
                                 const char *path, mrec_error *error) {
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
static mrec_status load(mrec_source *source, const chunk_at *c, const mrec_file *file, mrec_worker *worker, bool *found,
                        mrec_error *error) {
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
    uint64_t count = source->chunk_bytes / sizeof(ref);
    if (count > text->size / 4)
        return mrec_fail(error, MREC_E_CORRUPT, source->path, "%zu bytes can not hold %" PRIu64 " strings", text->size,
                         count);
    size_t bytes = (size_t)count * sizeof(ref);
    mrec_item *item = mrec_item_new(bytes + text->size);
    if (item == NULL)
        return mrec_fail_memory(error);
    ref *refs = (ref *)(void *)item->data;
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
        refs[i] = (ref){copy + start, end - start};
    }
    *out = item;
    return MREC_OK;
}

/* Decode worker->raw: numbers into `to`, or into a new item when `to` is NULL. */
static mrec_status decode(mrec_source *source, mrec_worker *worker, void *to, mrec_item **item, mrec_error *error) {
    const mrec_pipeline *pipeline = &source->spec.pipeline;
    const mrec_buffer *raw = &worker->raw;
    if (is_string(source)) {
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

static mrec_status fetch_once(mrec_source *source, const chunk_at *c, mrec_worker *worker, void *to, mrec_item **item,
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
static mrec_status name_damage(const mrec_source *source, const chunk_at *c, const mrec_error *inner,
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

/* The chunk, decoded into `to` or a new item; *found = false when it reads as fill. */
static mrec_status fetch(mrec_source *source, const chunk_at *c, void *to, mrec_item **item, bool *found,
                         mrec_error *error) {
    mrec_worker *worker;
    MREC_TRY(mrec_worker_take(source->cache, &worker, error));
    mrec_error inner = {0};
    mrec_status status;
    for (int attempt = 1;; attempt++) {
        status = fetch_once(source, c, worker, to, item, found, &inner);
        if (status != MREC_E_CORRUPT || attempt == ATTEMPTS)
            break;
        forget(source, UINT64_MAX, c->shard);
        nanosleep(&(struct timespec){0, 100000L << attempt}, NULL);
    }
    mrec_worker_give(source->cache, worker);
    return status == MREC_OK ? MREC_OK : name_damage(source, c, &inner, error);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

/* Copy the part of a chunk that is wanted; chunk NULL: fill. */
static void scatter(const mrec_source *source, const chunk_at *c, const uint8_t *chunk, const uint8_t *fill,
                    const request *want) {
    const mrec_array_spec *spec = &source->spec;
    mrec_axis axes[MREC_MAX_AXES];
    const uint8_t *from = chunk ? chunk : fill;
    uint8_t *to = want->out;
    ptrdiff_t stride = (ptrdiff_t)source->unit;
    for (uint32_t i = spec->ndim; i-- > 0;) {
        uint64_t first = c->at[i] * spec->chunk[i], last = spec->shape[i], low = 0, begin = first;
        if (i == 0) {
            low = want->start;
            last = want->stop;
            stride = want->stride;
            begin = first > low ? first : low;
        }
        if (last - first > spec->chunk[i])
            last = first + spec->chunk[i];
        axes[i] = (mrec_axis){last - begin, chunk ? source->chunk_strides[i] : 0, stride};
        from += (ptrdiff_t)(begin - first) * axes[i].from;
        to += (ptrdiff_t)(begin - low) * stride;
        stride *= (ptrdiff_t)spec->shape[i];
    }
    mrec_copy_strided(from, to, axes, spec->ndim, source->unit);
}

/* Refs point into a chunk's memory: hold it until the strings were copied. */
static mrec_status hold(mrec_source *source, request *want, mrec_item *item, mrec_error *error) {
    if (want->nheld == want->max_held) {
        size_t n = want->max_held * 2 + 16;
        mrec_item **held = realloc(want->held, n * sizeof(mrec_item *));
        if (held == NULL) {
            mrec_item_release(source->cache, item);
            return mrec_fail_memory(error);
        }
        want->held = held;
        want->max_held = n;
    }
    want->held[want->nheld++] = item;
    return MREC_OK;
}

/* Whether all of the chunk goes to one place of the caller's memory; then *to is that place. */
static bool goes_straight(const mrec_source *source, const chunk_at *c, const request *want, void **to) {
    uint64_t rows = source->spec.ndim ? source->spec.chunk[0] : 1, first = source->spec.ndim ? c->at[0] * rows : 0;
    if (is_string(source) || !source->close_rows || first < want->start || want->stop - first < rows ||
        want->stride != (ptrdiff_t)(source->row_elements * source->unit))
        return false;
    *to = want->out + (ptrdiff_t)(first - want->start) * want->stride;
    return true;
}

static mrec_status read_chunk(mrec_source *source, chunk_at *c, request *want, mrec_error *error) {
    locate(source, c);
    mrec_item *item = mrec_cache_find(source->cache, source, MREC_ITEM_CHUNK, c->number);
    if (item == NULL) {
        bool found;
        void *to = NULL;
        bool straight = goes_straight(source, c, want, &to);
        MREC_TRY(fetch(source, c, to, &item, &found, error));
        if (found && straight)
            return MREC_OK;
        if (found)
            mrec_cache_add(source->cache, item, source, MREC_ITEM_CHUNK, c->number);
    }
    ref text = {(const uint8_t *)source->fill_text, source->spec.fill_text_size};
    const uint8_t *fill = is_string(source) ? (const uint8_t *)&text : source->spec.fill;
    scatter(source, c, item ? item->data : NULL, fill, want);
    if (item != NULL && is_string(source))
        return hold(source, want, item, error);
    mrec_item_release(source->cache, item);
    return MREC_OK;
}

/* Step to the next chunk in C order within the wanted rows; false after the last. */
static bool next_chunk(const mrec_source *source, chunk_at *c, uint64_t last_row_chunk) {
    const mrec_array_spec *spec = &source->spec;
    for (uint32_t i = spec->ndim; i-- > 0;) {
        uint64_t last = i == 0 ? last_row_chunk : (spec->shape[i] - 1) / spec->chunk[i];
        if (c->at[i] < last) {
            c->at[i]++;
            return true;
        }
        c->at[i] = 0;
    }
    return false;
}

static mrec_status check_rows(const mrec_source *source, uint64_t start, uint64_t stop, mrec_error *error) {
    uint64_t length = source->spec.ndim ? source->spec.shape[0] : 1;
    if (start <= stop && stop <= length)
        return MREC_OK;
    return mrec_fail(error, MREC_E_VALUE, source->path, "rows %" PRIu64 " to %" PRIu64 " of %" PRIu64, start, stop,
                     length);
}

static mrec_status read_rows(mrec_source *source, request *want, mrec_error *error) {
    const mrec_array_spec *spec = &source->spec;
    if (want->start == want->stop || source->row_elements == 0)
        return MREC_OK;
    chunk_at c = {0};
    uint64_t last = 0;
    if (spec->ndim > 0) {
        c.at[0] = want->start / spec->chunk[0];
        last = (want->stop - 1) / spec->chunk[0];
    }
    do
        MREC_TRY(read_chunk(source, &c, want, error));
    while (next_chunk(source, &c, last));
    return MREC_OK;
}

mrec_status mrec_source_read(mrec_source *source, uint64_t start, uint64_t stop, void *out, ptrdiff_t stride,
                             mrec_error *error) {
    if (is_string(source))
        return mrec_fail(error, MREC_E_VALUE, source->path, "an array of strings is read by mrec_source_read_strings");
    request want = {.start = start, .stop = stop, .out = out, .stride = stride};
    pthread_rwlock_rdlock(&source->lock);
    if (stride == 0)
        want.stride = (ptrdiff_t)(source->row_elements * source->unit);
    mrec_status status = check_rows(source, start, stop, error);
    if (status == MREC_OK)
        status = read_rows(source, &want, error);
    pthread_rwlock_unlock(&source->lock);
    return status;
}

static mrec_status add_strings(const ref *refs, size_t n, mrec_buffer *text, mrec_buffer *ends, mrec_error *error) {
    for (size_t i = 0; i < n; i++) {
        MREC_TRY(mrec_buffer_add(text, refs[i].text, (size_t)refs[i].size, error));
        uint64_t end = text->size;
        MREC_TRY(mrec_buffer_add(ends, &end, sizeof end, error));
    }
    return MREC_OK;
}

/* Under the read lock, the range checked: refs to all strings, then the strings. */
static mrec_status gather_strings(mrec_source *source, request *want, mrec_buffer *text, mrec_buffer *ends,
                                  mrec_error *error) {
    size_t n = (size_t)((want->stop - want->start) * source->row_elements);
    want->stride = (ptrdiff_t)(source->row_elements * sizeof(ref));
    want->out = malloc(n * sizeof(ref) + 1);
    if (want->out == NULL)
        return mrec_fail_memory(error);
    mrec_status status = read_rows(source, want, error);
    if (status == MREC_OK)
        status = add_strings((const ref *)(void *)want->out, n, text, ends, error);
    for (size_t i = 0; i < want->nheld; i++)
        mrec_item_release(source->cache, want->held[i]);
    free(want->held);
    free(want->out);
    return status;
}

mrec_status mrec_source_read_strings(mrec_source *source, uint64_t start, uint64_t stop, mrec_buffer *text,
                                     mrec_buffer *ends, mrec_error *error) {
    if (!is_string(source))
        return mrec_fail(error, MREC_E_VALUE, source->path, "not an array of strings");
    request want = {.start = start, .stop = stop};
    pthread_rwlock_rdlock(&source->lock);
    mrec_status status = check_rows(source, start, stop, error);
    if (status == MREC_OK)
        status = gather_strings(source, &want, text, ends, error);
    pthread_rwlock_unlock(&source->lock);
    return status;
}
