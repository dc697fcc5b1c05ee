/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "array.h"

#include "bytes.h"
#include "vlen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNSYNCED_SHARDS 8

static bool is_string(const mrec_array *array) {
    return array->layout.dtype == MREC_STRING;
}

/* Rows in the open chunk. */
static uint64_t open_rows(const mrec_array *array) {
    return array->length % array->layout.rows_per_chunk;
}

static mrec_shard *last_shard(const mrec_array *array) {
    return array->nshards ? array->shards[array->nshards - 1] : NULL;
}

/* ---- making and freeing ---- */

static mrec_status start_tail(mrec_array *array, mrec_error *error) {
    array->tail.size = 0;
    if (!is_string(array)) {
        const size_t n = array->row_bytes * (size_t)array->layout.rows_per_chunk;
        if (mrec_buffer_reserve(&array->tail, n, NULL) == MREC_OK)
            return MREC_OK;
        return mrec_fail(error, MREC_E_MEMORY, array->doc.key,
                         "there is no memory for a chunk of %zu bytes; the rows of its block decide how large it is",
                         n);
    }
    uint8_t count[4];
    mrec_store_u32(count, (uint32_t)(array->layout.rows_per_chunk * array->row_items));
    return mrec_buffer_add(&array->tail, count, 4, error);
}

mrec_status mrec_array_new(mrec_store *store, const char *key, const mrec_layout *layout, const char *prefix,
                           const char *suffix, const char *attributes, mrec_array **out, mrec_error *error) {
    *out = NULL;
    size_t row_items = 0;
    MREC_TRY(mrec_layout_check(layout, key, &row_items, error));
    mrec_array *array = calloc(1, sizeof *array);
    if (!array)
        return mrec_fail_memory(error);
    array->store = store;
    array->layout = *layout;
    array->row_items = row_items;
    array->row_bytes = row_items * mrec_dtype_size(layout->dtype);
    array->doc_length = MREC_NO_DOCUMENT;
    mrec_status status = mrec_document_init(&array->doc, store->root, key, error);
    if (status == MREC_OK && !prefix)
        status = mrec_layout_document(layout, attributes, &array->prefix, &array->suffix, error);
    else if (status == MREC_OK && (!(array->prefix = strdup(prefix)) || !(array->suffix = strdup(suffix))))
        status = mrec_fail_memory(error);
    if (status == MREC_OK)
        status = start_tail(array, error);
    if (status != MREC_OK) {
        mrec_array_free(array);
        return status;
    }
    *out = array;
    return MREC_OK;
}

void mrec_array_free(mrec_array *array) {
    if (!array)
        return;
    for (size_t i = 0; i < array->nshards; i++)
        mrec_shard_free(array->shards[i]);
    mrec_buffer_free(&array->tail);
    free(array->shards);
    mrec_document_free(&array->doc);
    free(array->prefix);
    free(array->suffix);
    free(array);
}

/* ---- shard files ---- */

/* The directory of shard files, and the file of one: "c/3" of a 1-d array, "c/3/0/0" of a 3-d one. */
static mrec_status shard_path(const mrec_array *array, uint64_t number, mrec_buffer *out, mrec_error *error) {
    MREC_TRY(mrec_buffer_print(out, error, "%s/c/%llu", array->doc.dir, (unsigned long long)number));
    for (size_t i = 0; i < array->layout.ntrailing; i++)
        MREC_TRY(mrec_buffer_print(out, error, "/0"));
    return MREC_OK;
}

/* Call `each` on every directory between the array and its shard file: the array, c, c/3, c/3/0. */
static mrec_status each_parent(const mrec_array *array, const char *file, bool deepest_first,
                               mrec_status (*each)(mrec_vfs *, const char *, mrec_error *), mrec_error *error) {
    char *path = strdup(file);
    if (!path)
        return mrec_fail_memory(error);
    size_t depth = array->layout.ntrailing + 2, top = strlen(array->doc.dir);
    mrec_status status = MREC_OK;
    for (size_t i = 0; status == MREC_OK && i < depth; i++) {
        strcpy(path, file);
        size_t cut = deepest_first ? i : depth - 1 - i;
        for (size_t k = 0; k <= cut; k++)
            *strrchr(path, '/') = '\0';
        if (strlen(path) >= top)
            status = each(array->store->files.vfs, path, error);
    }
    free(path);
    return status;
}

/* All but the last. */
static void drop_full_shards(mrec_array *array) {
    for (size_t i = 0; i + 1 < array->nshards; i++)
        mrec_shard_free(array->shards[i]);
    if (array->nshards > 1) {
        array->shards[0] = last_shard(array);
        array->nshards = 1;
    }
}

/* Full shards do not pile up in memory where nobody asks for a sync. */
static mrec_status let_full_shards_go(mrec_array *array, mrec_error *error) {
    for (size_t i = 0; i < array->nshards; i++)
        MREC_TRY(mrec_shard_land(array->shards[i], error));
    if (!array->store->never_sync)
        return mrec_array_sync(array, error);
    MREC_TRY(mrec_array_close(array, error));
    drop_full_shards(array);
    return MREC_OK;
}

static mrec_status add_shard(mrec_array *array, uint64_t number, mrec_shard *shard, mrec_error *error) {
    if (array->nshards == UNSYNCED_SHARDS)
        MREC_TRY(let_full_shards_go(array, error));
    mrec_shard **grown = realloc(array->shards, (array->nshards + 1) * sizeof *grown);
    if (!grown) {
        mrec_shard_free(shard);
        return mrec_fail_memory(error);
    }
    array->shards = grown;
    array->shards[array->nshards++] = shard;
    array->last_shard = number;
    return MREC_OK;
}

static mrec_status begin_shard(mrec_array *array, uint64_t number, mrec_error *error) {
    mrec_buffer path = {0};
    mrec_shard *shard = NULL;
    mrec_status status = shard_path(array, number, &path, error);
    if (status == MREC_OK)
        status = each_parent(array, (char *)path.data, false, mrec_dir_make, error);
    if (status == MREC_OK)
        status = mrec_shard_new(&array->store->files, (char *)path.data, array->layout.chunks_per_shard, &shard, error);
    mrec_buffer_free(&path);
    return status == MREC_OK ? add_shard(array, number, shard, error) : status;
}

/* The shard of chunk number `chunk`, the array's last; it begins when the one before is full. */
static mrec_status shard_of(mrec_array *array, uint64_t chunk, mrec_shard **shard, mrec_error *error) {
    uint64_t number = chunk / array->layout.chunks_per_shard;
    if (array->nshards == 0 || array->last_shard != number)
        MREC_TRY(begin_shard(array, number, error));
    *shard = last_shard(array);
    return MREC_OK;
}

/* ---- appending ---- */

static mrec_status put_encoded(mrec_array *array, uint64_t chunk, const mrec_buffer *encoded, mrec_error *error) {
    mrec_shard *shard;
    MREC_TRY(shard_of(array, chunk, &shard, error));
    return mrec_shard_put_encoded(shard, chunk % array->layout.chunks_per_shard, encoded, error);
}

/* The oldest chunk that the pool has goes to its shard: so the calls and their order are those of a single thread. */
static mrec_status settle_oldest(mrec_store *store, bool *any, mrec_error *error) {
    mrec_job *job = mrec_pool_oldest(store->pool, store->coder);
    *any = job != NULL;
    if (!job)
        return MREC_OK;
    mrec_status status = job->status;
    if (status == MREC_OK)
        status = put_encoded(job->owner, job->chunk, &job->encoded, error);
    else if (error)
        *error = job->error;
    mrec_pool_end(store->pool, job);
    return status;
}

mrec_status mrec_store_settle(mrec_store *store, mrec_error *error) {
    for (bool any = store->pool != NULL; any;)
        MREC_TRY(settle_oldest(store, &any, error));
    return MREC_OK;
}

static mrec_status submit_chunk(mrec_array *array, uint64_t chunk, const void *bytes, size_t n, mrec_error *error) {
    mrec_store *store = array->store;
    for (bool any = true; any && mrec_pool_full(store->pool, n);)
        MREC_TRY(settle_oldest(store, &any, error));
    return mrec_pool_submit(store->pool, array, chunk, &array->layout.pipeline, bytes, n, error);
}

static mrec_status put_chunk(mrec_array *array, const void *bytes, size_t n, uint64_t rows, mrec_error *error) {
    uint64_t chunk = array->length / array->layout.rows_per_chunk;
    array->length += rows;
    if (array->store->pool && mrec_pipeline_compresses(&array->layout.pipeline))
        return submit_chunk(array, chunk, bytes, n, error);
    mrec_shard *shard;
    MREC_TRY(shard_of(array, chunk, &shard, error));
    return mrec_shard_put(shard, chunk % array->layout.chunks_per_shard, array->store->coder, &array->layout.pipeline,
                          bytes, n, error);
}

/* The bytes that the first `count` strings take. */
static size_t strings_size(const uint8_t *at, uint64_t count) {
    const uint8_t *start = at;
    while (count-- > 0)
        at += 4 + (size_t)mrec_load_u32(at);
    return (size_t)(at - start);
}

mrec_status mrec_array_append(mrec_array *array, const void *rows, uint64_t nrows, size_t n, mrec_error *error) {
    const uint8_t *at = rows;
    const uint64_t per_chunk = array->layout.rows_per_chunk;
    while (nrows > 0) {
        uint64_t open = open_rows(array);
        uint64_t take = nrows < per_chunk - open ? nrows : per_chunk - open;
        size_t size = take == nrows      ? n
                      : is_string(array) ? strings_size(at, take * array->row_items)
                                         : (size_t)take * array->row_bytes;
        if (take == per_chunk && !is_string(array)) {
            MREC_TRY(put_chunk(array, at, size, take, error));
        } else {
            MREC_TRY(mrec_buffer_add(&array->tail, at, size, error));
            if (open + take < per_chunk) {
                array->length += take;
            } else {
                MREC_TRY(put_chunk(array, array->tail.data, array->tail.size, take, error));
                MREC_TRY(start_tail(array, error));
            }
        }
        at += size;
        n -= size;
        nrows -= take;
    }
    return MREC_OK;
}

/* A chunk always encodes its full extent: zeros, which are empty strings too, stand for the rows to come. */
static mrec_status put_open_chunk(mrec_array *array, mrec_error *error) {
    uint64_t chunk = array->length / array->layout.rows_per_chunk;
    size_t missing = (size_t)(array->layout.rows_per_chunk - open_rows(array)) *
                     (is_string(array) ? 4 * array->row_items : array->row_bytes);
    mrec_shard *shard;
    MREC_TRY(shard_of(array, chunk, &shard, error));
    MREC_TRY(mrec_buffer_reserve(&array->tail, array->tail.size + missing, error));
    memset(array->tail.data + array->tail.size, 0, missing);
    return mrec_shard_put_open(shard, chunk % array->layout.chunks_per_shard, array->store->coder,
                               &array->layout.pipeline, array->tail.data, array->tail.size + missing, error);
}

mrec_status mrec_array_land(mrec_array *array, mrec_error *error) {
    if (open_rows(array) > 0 && array->landed != array->length)
        MREC_TRY(put_open_chunk(array, error));
    for (size_t i = 0; i < array->nshards; i++)
        MREC_TRY(mrec_shard_land(array->shards[i], error));
    array->landed = array->length;
    return MREC_OK;
}

mrec_status mrec_array_sync(mrec_array *array, mrec_error *error) {
    for (size_t i = 0; i < array->nshards; i++) {
        mrec_shard *shard = array->shards[i];
        MREC_TRY(mrec_shard_sync(shard, error));
        if (mrec_shard_take_created(shard))
            MREC_TRY(each_parent(array, mrec_shard_path(shard), true, mrec_dir_sync, error));
    }
    drop_full_shards(array);
    return MREC_OK;
}

mrec_status mrec_array_close(mrec_array *array, mrec_error *error) {
    for (size_t i = 0; i < array->nshards; i++)
        MREC_TRY(mrec_shard_close(array->shards[i], error));
    return MREC_OK;
}

/* ---- the document and the durable file ---- */

mrec_status mrec_array_document(const mrec_array *array, uint64_t length, mrec_buffer *out, mrec_error *error) {
    MREC_TRY(mrec_buffer_add(out, array->prefix, strlen(array->prefix), error));
    MREC_TRY(mrec_buffer_print(out, error, "%llu", (unsigned long long)length));
    return mrec_buffer_add(out, array->suffix, strlen(array->suffix), error);
}

mrec_status mrec_array_write_document(mrec_array *array, uint64_t ahead, mrec_replacements *synced, mrec_error *error) {
    const bool there = array->doc_length != MREC_NO_DOCUMENT;
    if (there && (ahead ? array->doc_length >= array->length : array->doc_length == array->length))
        return MREC_OK;
    uint64_t length = array->length;
    if (ahead)
        length += (length / 8 / ahead + 1) * ahead;
    mrec_buffer text = {0};
    mrec_status status = mrec_array_document(array, length, &text, error);
    if (status == MREC_OK)
        status = mrec_document_write(array->store->files.vfs, &array->doc, text.data, text.size, synced, error);
    mrec_buffer_free(&text);
    if (status == MREC_OK)
        array->doc_length = length;
    return status;
}

static uint64_t last_chunk(const mrec_array *array) {
    return (array->length - 1) / array->layout.rows_per_chunk;
}

mrec_status mrec_array_tail(mrec_array *array, mrec_tail *tail, mrec_error *error) {
    mrec_shard *shard = last_shard(array);
    tail->shard = array->last_shard;
    tail->chunk = last_chunk(array) % array->layout.chunks_per_shard;
    tail->place = mrec_shard_place(shard, tail->chunk);
    tail->crc32c = 0;
    if (tail->place.offset == MREC_NO_PLACE) /* left out by another program, so it reads as fill */
        return MREC_OK;
    return mrec_shard_checksum(shard, tail->chunk, &array->layout.pipeline, &tail->crc32c, error);
}

void mrec_array_set_durable(mrec_array *array) {
    if (array->nshards && array->length)
        mrec_shard_set_durable(
            last_shard(array),
            mrec_shard_place(last_shard(array), last_chunk(array) % array->layout.chunks_per_shard).offset);
}

mrec_status mrec_array_last_chunk(mrec_array *array, mrec_buffer *out, mrec_error *error) {
    const size_t whole = array->row_bytes * (size_t)array->layout.rows_per_chunk;
    mrec_buffer stored = {0};
    MREC_TRY(mrec_store_settle(array->store, error));
    MREC_TRY(mrec_buffer_reserve(out, whole, error));
    out->size = whole;
    mrec_status status =
        mrec_shard_get(last_shard(array), last_chunk(array) % array->layout.chunks_per_shard, &stored, error);
    if (status == MREC_OK)
        status = mrec_decode(array->store->coder, &array->layout.pipeline, stored.data, stored.size, out->data, whole,
                             error);
    mrec_buffer_free(&stored);
    return status;
}

/* ---- opening to append ---- */

static void fill_tail(mrec_array *array, uint64_t rows) {
    if (is_string(array)) {
        array->tail.size = 4 + (size_t)rows * array->row_items * 4;
        memset(array->tail.data + 4, 0, array->tail.size - 4);
        return;
    }
    size_t element = mrec_dtype_size(array->layout.dtype), size = (size_t)rows * array->row_bytes;
    for (size_t at = 0; at < size; at += element)
        memcpy(array->tail.data + at, array->layout.fill, element);
    array->tail.size = size;
}

static mrec_status decode_strings(mrec_array *array, const mrec_buffer *stored, uint64_t rows, mrec_error *error) {
    size_t limit = SIZE_MAX / 4;
    MREC_TRY(mrec_decode_any(array->store->coder, &array->layout.pipeline, stored->data, stored->size, limit,
                             &array->tail, error));
    MREC_TRY(mrec_vlen_walk(array->tail.data, array->tail.size, array->layout.rows_per_chunk * array->row_items, NULL,
                            error));
    array->tail.size = 4 + strings_size(array->tail.data + 4, rows * array->row_items);
    return MREC_OK;
}

/* Read the rows of the open chunk back into the tail buffer. */
static mrec_status load_tail(mrec_array *array, uint64_t rows, mrec_error *error) {
    mrec_shard *shard = last_shard(array);
    uint64_t chunk = last_chunk(array) % array->layout.chunks_per_shard;
    size_t whole = array->row_bytes * (size_t)array->layout.rows_per_chunk;
    if (!shard || mrec_shard_place(shard, chunk).offset == MREC_NO_PLACE) {
        size_t strings = 4 + (size_t)rows * array->row_items * 4;
        MREC_TRY(mrec_buffer_reserve(&array->tail, is_string(array) ? strings : whole, error));
        fill_tail(array, rows);
        return MREC_OK;
    }
    mrec_buffer stored = {0};
    mrec_status status = mrec_shard_get(shard, chunk, &stored, error);
    if (status == MREC_OK && is_string(array))
        status = decode_strings(array, &stored, rows, error);
    else if (status == MREC_OK)
        status = mrec_decode(array->store->coder, &array->layout.pipeline, stored.data, stored.size, array->tail.data,
                             whole, error);
    if (status == MREC_OK && !is_string(array))
        array->tail.size = (size_t)rows * array->row_bytes;
    mrec_buffer_free(&stored);
    return status;
}

/* The index names what .durable names, which has to be there. */
static mrec_status restore_tail(mrec_array *array, mrec_shard *shard, const mrec_tail *durable, mrec_error *error) {
    uint32_t crc = 0;
    mrec_place now = mrec_shard_place(shard, durable->chunk);
    if (now.offset != durable->place.offset || now.nbytes != durable->place.nbytes)
        mrec_shard_set_place(shard, durable->chunk, durable->place);
    MREC_TRY(mrec_shard_checksum(shard, durable->chunk, &array->layout.pipeline, &crc, error));
    if (crc == durable->crc32c)
        return MREC_OK;
    return mrec_fail(error, MREC_E_CORRUPT, mrec_shard_path(shard), "chunk %llu is not the one that .durable names",
                     (unsigned long long)durable->chunk);
}

static mrec_status load_shard(mrec_array *array, uint64_t number, uint64_t chunk, const mrec_tail *durable,
                              mrec_error *error) {
    mrec_buffer path = {0};
    mrec_shard *shard = NULL;
    mrec_status status = shard_path(array, number, &path, error);
    bool there = false;
    if (status == MREC_OK)
        status = mrec_file_exists(array->store->files.vfs, (char *)path.data, &there, error);
    if (status == MREC_OK && !there && durable)
        status = mrec_fail(error, MREC_E_CORRUPT, (char *)path.data, "the shard file that .durable names is not there");
    if (status == MREC_OK && !there) { /* another program leaves out files without chunks */
        mrec_buffer_free(&path);
        return begin_shard(array, number, error);
    }
    if (status == MREC_OK)
        status = mrec_shard_load(&array->store->files, (char *)path.data, array->layout.chunks_per_shard,
                                 &array->layout.pipeline, durable ? chunk : chunk + 1, &shard, error);
    mrec_buffer_free(&path);
    if (status == MREC_OK)
        status = add_shard(array, number, shard, error);
    return status == MREC_OK && durable ? restore_tail(array, shard, durable, error) : status;
}

mrec_status mrec_array_load(mrec_array *array, uint64_t length, const mrec_tail *durable, mrec_error *error) {
    array->length = array->landed = length;
    if (length == 0)
        return MREC_OK;
    uint64_t chunk = last_chunk(array), per_shard = array->layout.chunks_per_shard;
    if (durable && (durable->shard != chunk / per_shard || durable->chunk != chunk % per_shard))
        return mrec_fail(error, MREC_E_CORRUPT, array->doc.dir,
                         ".durable names chunk %llu of shard %llu, not the last one",
                         (unsigned long long)durable->chunk, (unsigned long long)durable->shard);
    MREC_TRY(load_shard(array, chunk / per_shard, chunk % per_shard, durable, error));
    return open_rows(array) ? load_tail(array, open_rows(array), error) : MREC_OK;
}

typedef struct doomed {
    uint64_t keep; /* shard numbers below this stay */
    mrec_buffer names;
    mrec_status status;
    mrec_error *error;
} doomed;

static int find_doomed(void *arg, const char *name, bool is_directory) {
    (void)is_directory;
    doomed *d = arg;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(name, &end, 10);
    bool temporary = name[0] == '.' && strlen(name) > 4 && strcmp(name + strlen(name) - 4, ".tmp") == 0;
    bool later = name[0] >= '0' && name[0] <= '9' && *end == '\0' && (errno != 0 || number >= d->keep);
    if (later || temporary)
        d->status = mrec_buffer_add(&d->names, name, strlen(name) + 1, d->error);
    return d->status != MREC_OK;
}

static mrec_status remove_later_shards(mrec_array *array, mrec_error *error) {
    char *dir = mrec_path_join(array->doc.dir, "c");
    if (!dir)
        return mrec_fail_memory(error);
    bool there = false;
    doomed d = {.keep = array->length ? last_chunk(array) / array->layout.chunks_per_shard + 1 : 0, .error = error};
    mrec_status status = mrec_file_exists(array->store->files.vfs, dir, &there, error);
    if (status == MREC_OK && there)
        status = mrec_dir_list(array->store->files.vfs, dir, find_doomed, &d, error);
    if (status == MREC_OK)
        status = d.status;
    for (size_t at = 0; status == MREC_OK && at < d.names.size; at += strlen((char *)d.names.data + at) + 1) {
        char *path = mrec_path_join(dir, (char *)d.names.data + at);
        status = path ? mrec_tree_remove(array->store->files.vfs, path, error) : mrec_fail_memory(error);
        free(path);
    }
    if (status == MREC_OK && d.names.size)
        status = mrec_dir_sync(array->store->files.vfs, dir, error);
    mrec_buffer_free(&d.names);
    free(dir);
    return status;
}

mrec_status mrec_array_trim(mrec_array *array, mrec_error *error) {
    mrec_shard *shard = last_shard(array);
    if (shard && array->length) {
        const mrec_place missing = {MREC_NO_PLACE, MREC_NO_PLACE};
        uint64_t first = last_chunk(array) % array->layout.chunks_per_shard + 1;
        for (uint64_t chunk = first; chunk < array->layout.chunks_per_shard; chunk++)
            if (mrec_shard_place(shard, chunk).offset != MREC_NO_PLACE)
                mrec_shard_set_place(shard, chunk, missing);
        MREC_TRY(mrec_shard_land(shard, error));
        MREC_TRY(mrec_shard_sync(shard, error));
    }
    MREC_TRY(remove_later_shards(array, error));
    if (!shard || !array->length)
        return MREC_OK;
    size_t slot = 0;
    if (!is_string(array))
        MREC_TRY(mrec_encode_bound(&array->layout.pipeline, array->row_bytes * (size_t)array->layout.rows_per_chunk,
                                   &slot, error));
    MREC_TRY(mrec_shard_cut(shard, slot, error));
    return mrec_array_sync(array, error);
}
