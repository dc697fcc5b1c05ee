/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "source.h"

#include "strided.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A call that needs fewer decoded bytes than these keeps its chunks for the next; one that needs more would only drive
 * out what others kept. A chunk that is stored as it is in memory is read again at little more than the cost of a copy.
 */
#define KEPT_PLAIN ((uint64_t)256 << 10)
#define KEPT_SHARE 4 /* of the budget */

/* Where less than this can be left out of a chunk, it is read whole: a call costs as much. */
#ifndef MREC_LEFT_OUT
#define MREC_LEFT_OUT 8192
#endif

/* The rows that a call wants, and where they go. */
typedef struct request {
    mrec_worker *worker;
    uint64_t start, stop;
    uint64_t low[MREC_MAX_AXES], high[MREC_MAX_AXES]; /* of the axes after the first */
    uint64_t row_elements;                            /* within these */
    uint8_t *out;
    ptrdiff_t stride;
    const int64_t *next; /* where the stretches begin that are wanted after these rows, `rows` each */
    uint64_t nnext, rows;
    uint64_t planned;    /* chunks below this number are wanted in a row */
    bool few;            /* the call needs few chunks */
    uint64_t passed;     /* it will not come back to chunks before this one of the first axis, nor will the next call */
    const uint8_t *last; /* numbers: the chunk that was read last, which the next rows may be in too */
    mrec_item *last_item; /* that holds it, or NULL: the worker does */
    uint64_t last_number;
    mrec_item **held; /* strings: chunks that refs point into */
    size_t nheld, max_held;
} request;

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
                   mrec_mul(source->chunks_per_row, mrec_ceil_div(spec->shape[i], spec->chunk[i]),
                            &source->chunks_per_row);
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
    source->in_rows = spec->ndim > 0;
    for (uint32_t i = spec->ndim; i-- > 0;) {
        source->chunk_strides[spec->order[i]] = stride;
        stride *= (ptrdiff_t)spec->chunk[spec->order[i]];
        if (spec->order[i] != i || (i > 0 && spec->chunk[i] != spec->shape[i]))
            source->close_rows = false;
        if (i > 0 && (spec->grid[i] != spec->chunk[i] || spec->chunk[i] < spec->shape[i]))
            source->in_rows = false;
    }
}

static void set_pipeline(mrec_source *source) {
    source->pipeline = source->spec.pipeline;
    source->plain = mrec_pipeline_plain(&source->pipeline, &source->trailer) && source->trailer <= 4;
    for (uint32_t i = 0; i < source->pipeline.n && source->spec.unverified; i++)
        source->pipeline.codecs[i].unchecked = true;
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
    source->unit = mrec_source_is_string(source) ? sizeof(mrec_ref) : mrec_dtype_size(spec->dtype);
    MREC_TRY(check_sizes(source, error));
    set_strides(source);
    set_pipeline(source);
    source->cache = spec->cache;
    atomic_init(&source->reached, UINT64_MAX);
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

void mrec_source_free(mrec_source *source) {
    if (source == NULL)
        return;
    if (source->cache != NULL)
        mrec_source_forget(source, 0, 0);
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
    mrec_source_forget(source, whole * source->chunks_per_row, 0);
    pthread_rwlock_unlock(&source->lock);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

/* All of the axes after the first. */
static void want_rows(const mrec_source *source, request *want) {
    for (uint32_t i = 1; i < source->spec.ndim; i++)
        want->high[i] = source->spec.shape[i];
    want->row_elements = source->row_elements;
}

/* Whether the rows are wanted whole. */
static bool wants_rows(const mrec_source *source, const request *want) {
    return want->row_elements == source->row_elements;
}

/* Copy the part of a chunk that is wanted. chunk: from its row `row` on; NULL: fill. */
static void scatter(const mrec_source *source, const mrec_chunk *c, const uint8_t *chunk, uint64_t row,
                    const uint8_t *fill, const request *want) {
    const mrec_array_spec *spec = &source->spec;
    mrec_axis axes[MREC_MAX_AXES];
    const uint8_t *from = chunk ? chunk : fill;
    uint8_t *to = want->out;
    ptrdiff_t stride = (ptrdiff_t)source->unit;
    for (uint32_t i = spec->ndim; i-- > 0;) {
        uint64_t first = c->at[i] * spec->chunk[i], last = want->high[i], low = want->low[i];
        if (i == 0) {
            low = want->start;
            last = want->stop;
            stride = want->stride;
        }
        uint64_t begin = first > low ? first : low;
        if (last - first > spec->chunk[i])
            last = first + spec->chunk[i];
        axes[i] = (mrec_axis){last - begin, chunk ? source->chunk_strides[i] : 0, stride};
        from += (ptrdiff_t)(begin - first - (i == 0 ? row : 0)) * axes[i].from;
        to += (ptrdiff_t)(begin - low) * stride;
        stride *= (ptrdiff_t)(want->high[i] - want->low[i]);
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

/* How many chunks from this one on go whole to one place of the caller's memory, one behind the other; then *to is
 * that place. */
static uint64_t count_straight(const mrec_source *source, const mrec_chunk *c, const request *want, void **to) {
    uint64_t rows = source->spec.ndim ? source->spec.chunk[0] : 1, first = source->spec.ndim ? c->at[0] * rows : 0;
    if (mrec_source_is_string(source) || !source->close_rows || !wants_rows(source, want) || first < want->start ||
        want->stop - first < rows || want->stride != (ptrdiff_t)(source->row_elements * source->unit))
        return 0;
    *to = want->out + (ptrdiff_t)(first - want->start) * want->stride;
    return source->in_rows ? (want->stop - first) / rows : 1;
}

/* How many chunks in a row, with this one, the call goes on to need; no more than can be read in one go. */
static uint64_t count_ahead(const mrec_source *source, const mrec_chunk *c, request *want) {
    if (!source->in_rows)
        return 1;
    if (c->number >= want->planned) {
        uint64_t rows = source->spec.chunk[0], last = (want->stop - 1) / rows;
        uint64_t most = c->at[0] + MREC_AHEAD / (source->chunk_bytes + 1);
        for (uint64_t k = 0; k < want->nnext && last < most && want->next[k] >= 0; k++) {
            uint64_t first = (uint64_t)want->next[k];
            if (first / rows < c->at[0] || first / rows > last + 1)
                break;
            uint64_t end = (first + want->rows - 1) / rows;
            last = end > last ? end : last;
        }
        want->planned = (last < most ? last : most) + 1;
    }
    return want->planned - c->number;
}

/* The rows of a chunk that are wanted: *first counts from its own first. */
static uint64_t wanted_rows(const mrec_source *source, const mrec_chunk *c, const request *want, uint64_t *first) {
    if (source->spec.ndim == 0) {
        *first = 0;
        return 1;
    }
    uint64_t rows = source->spec.chunk[0], base = c->at[0] * rows;
    *first = base < want->start ? want->start - base : 0;
    uint64_t stop = want->stop - base < rows ? want->stop - base : rows;
    return stop - *first;
}

/* What to ask of a chunk that is not at hand. */
static mrec_fetch plan(const mrec_source *source, const mrec_chunk *c, request *want) {
    mrec_fetch fetch = {.worker = want->worker, .ahead = count_ahead(source, c, want)};
    fetch.straight = count_straight(source, c, want, &fetch.to);
    const bool keep = want->few && (source->spec.ndim == 0 || c->at[0] >= want->passed);
    fetch.keep = keep && mrec_source_is_string(source);
    if (fetch.straight > 0 || mrec_source_is_string(source) || source->spec.ndim == 0)
        return fetch;
    uint64_t first, rows = source->spec.chunk[0], n = wanted_rows(source, c, want, &first);
    bool again = want->nnext > 0 && want->next[0] >= 0 && (uint64_t)want->next[0] / rows == c->at[0];
    uint64_t row_bytes = source->row_elements * source->unit;
    if (source->spec.unverified && source->plain && source->close_rows && !again && wants_rows(source, want) &&
        source->chunk_bytes - n * row_bytes >= MREC_LEFT_OUT) {
        fetch.part = true;
        fetch.skip = first * row_bytes;
        fetch.size = n * row_bytes;
    } else {
        fetch.keep = keep && (n < rows || !wants_rows(source, want)); /* what was wanted whole seldom is again */
    }
    return fetch;
}

/* A decoded chunk that is at hand; false when it is not. */
static bool find_chunk(mrec_source *source, const mrec_chunk *c, request *want) {
    if (want->last != NULL && want->last_number == c->number)
        return true;
    mrec_item_release(source->cache, want->last_item);
    want->last_item = mrec_cache_find(source->cache, source, mrec_source_kind(source), c->number);
    want->last = want->last_item ? want->last_item->data : NULL;
    want->last_number = c->number;
    return want->last != NULL;
}

/* Read a chunk, or *done of them in a row. */
static mrec_status read_chunk(mrec_source *source, mrec_chunk *c, request *want, uint64_t *done, mrec_error *error) {
    mrec_chunk_locate(source, c);
    *done = 1;
    uint64_t row = 0;
    if (!find_chunk(source, c, want)) {
        mrec_fetch fetch = plan(source, c, want);
        MREC_TRY(mrec_chunk_fetch(source, c, &fetch, error));
        if (fetch.found && fetch.to != NULL) {
            *done = fetch.done;
            return MREC_OK;
        }
        if (fetch.found && fetch.keep)
            mrec_cache_add(source->cache, fetch.item, source, mrec_source_kind(source), c->number);
        if (fetch.found && fetch.part) {
            row = fetch.skip / (source->row_elements * source->unit);
            scatter(source, c, fetch.bytes, row, NULL, want);
            return MREC_OK;
        }
        want->last = fetch.found ? fetch.bytes : NULL;
        want->last_item = fetch.found ? fetch.item : NULL;
    }
    mrec_ref text = {(const uint8_t *)source->fill_text, source->spec.fill_text_size};
    const uint8_t *fill = mrec_source_is_string(source) ? (const uint8_t *)&text : source->spec.fill;
    scatter(source, c, want->last, row, fill, want);
    if (!mrec_source_is_string(source) || want->last_item == NULL)
        return MREC_OK;
    mrec_item *item = want->last_item;
    want->last = NULL;
    want->last_item = NULL;
    return hold(source, want, item, error);
}

/* Step to the next chunk in C order within the wanted rows; false after the last. */
static bool next_chunk(const mrec_source *source, const request *want, mrec_chunk *c) {
    const mrec_array_spec *spec = &source->spec;
    for (uint32_t i = spec->ndim; i-- > 0;) {
        uint64_t last = ((i == 0 ? want->stop : want->high[i]) - 1) / spec->chunk[i];
        if (c->at[i] < last) {
            c->at[i]++;
            return true;
        }
        c->at[i] = want->low[i] / spec->chunk[i]; /* of the first axis nothing follows */
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
    if (want->start == want->stop || want->row_elements == 0)
        return MREC_OK;
    mrec_chunk c = {0};
    for (uint32_t i = 0; i < spec->ndim; i++)
        c.at[i] = (i == 0 ? want->start : want->low[i]) / spec->chunk[i];
    uint64_t done;
    do {
        MREC_TRY(read_chunk(source, &c, want, &done, error));
        c.at[0] += done - 1;
    } while (next_chunk(source, want, &c));
    return MREC_OK;
}

/* How many of the n items from the first on follow one another, in the array and in the caller's memory. */
static uint64_t run_length(const int64_t *starts, uint64_t n, uint64_t rows, ptrdiff_t item, ptrdiff_t stride) {
    uint64_t run = 1;
    if (item == (ptrdiff_t)rows * stride)
        while (run < n && starts[run] > 0 && (uint64_t)starts[run] == (uint64_t)starts[run - 1] + rows)
            run++;
    return run;
}

/* How many chunks a call needs at most decides what becomes of them; and whether it goes on where the one before it
 * ended: a reader that goes through an array from its beginning to its end comes back to none but the last of a call.
 */
static void estimate(mrec_source *source, const int64_t *starts, uint64_t n, request *want) {
    uint64_t rows = source->spec.ndim ? source->spec.chunk[0] : 1, each = want->rows / rows + 2, all, bytes;
    uint64_t first = (uint64_t)starts[0] / rows, last = ((uint64_t)starts[n - 1] + want->rows - 1) / rows;
    if (n == 1)
        each = last - first + 1;
    if (!mrec_mul(n, each, &all))
        all = UINT64_MAX;
    if (n > 1 && starts[0] <= starts[n - 1] && last - first < all)
        all = last - first + 1;
    bool goes_on = first >= atomic_exchange_explicit(&source->reached, last, memory_order_relaxed);
    want->passed = goes_on && last > first + 1 ? last : 0;
    uint64_t budget = source->plain ? KEPT_PLAIN : mrec_cache_budget(source->cache) / KEPT_SHARE;
    want->few =
        mrec_mul(all, source->chunks_per_row, &all) && mrec_mul(all, source->chunk_bytes, &bytes) && bytes <= budget;
}

/* Under the read lock. */
static mrec_status gather(mrec_source *source, const int64_t *starts, uint64_t n, request *want, ptrdiff_t item,
                          mrec_error *error) {
    uint8_t *out = want->out;
    for (uint64_t i = 0, run; i < n; i += run) {
        run = run_length(starts + i, n - i, want->rows, item, want->stride);
        want->start = (uint64_t)starts[i];
        if (starts[i] < 0 || !mrec_mul(run, want->rows, &want->stop) || !mrec_add(want->stop, want->start, &want->stop))
            return mrec_fail(error, MREC_E_VALUE, source->path, "%" PRIu64 " rows from %" PRId64, want->rows,
                             starts[i]);
        MREC_TRY(check_rows(source, want->start, want->stop, error));
        want->out = out + (ptrdiff_t)i * item;
        want->next = starts + i + run;
        want->nnext = n - i - run;
        if (i == 0)
            estimate(source, starts, n, want);
        MREC_TRY(read_rows(source, want, error));
    }
    return MREC_OK;
}

mrec_status mrec_source_gather(mrec_source *source, const int64_t *starts, uint64_t n, uint64_t rows, void *out,
                               ptrdiff_t item, ptrdiff_t stride, mrec_error *error) {
    if (mrec_source_is_string(source))
        return mrec_fail(error, MREC_E_VALUE, source->path, "an array of strings is read by mrec_source_read_strings");
    request want = {.out = out, .stride = stride, .rows = rows};
    MREC_TRY(mrec_worker_take(source->cache, &want.worker, error));
    pthread_rwlock_rdlock(&source->lock);
    want_rows(source, &want);
    if (stride == 0)
        want.stride = (ptrdiff_t)(source->row_elements * source->unit);
    mrec_status status = gather(source, starts, n, &want, item, error);
    pthread_rwlock_unlock(&source->lock);
    mrec_item_release(source->cache, want.last_item);
    mrec_worker_give(source->cache, want.worker);
    return status;
}

mrec_status mrec_source_read(mrec_source *source, uint64_t start, uint64_t stop, void *out, ptrdiff_t stride,
                             mrec_error *error) {
    if (start > stop || stop > INT64_MAX)
        return mrec_fail(error, MREC_E_VALUE, source->path, "rows %" PRIu64 " to %" PRIu64, start, stop);
    int64_t first = (int64_t)start;
    return mrec_source_gather(source, &first, 1, stop - start, out, 0, stride, error);
}

static mrec_status add_strings(const mrec_ref *refs, size_t n, mrec_buffer *text, mrec_buffer *ends,
                               mrec_error *error) {
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
    int64_t first = (int64_t)want->start;
    size_t n = (size_t)((want->stop - want->start) * want->row_elements);
    estimate(source, &first, 1, want);
    want->stride = (ptrdiff_t)(want->row_elements * sizeof(mrec_ref));
    want->out = malloc(n * sizeof(mrec_ref) + 1);
    if (want->out == NULL)
        return mrec_fail_memory(error);
    mrec_status status = read_rows(source, want, error);
    if (status == MREC_OK)
        status = add_strings((const mrec_ref *)(void *)want->out, n, text, ends, error);
    for (size_t i = 0; i < want->nheld; i++)
        mrec_item_release(source->cache, want->held[i]);
    free(want->held);
    free(want->out);
    return status;
}

/* A request for a box, which is checked. Under the read lock. */
static mrec_status want_box(const mrec_source *source, const uint64_t *low, const uint64_t *high, request *want,
                            mrec_error *error) {
    const uint32_t ndim = source->spec.ndim;
    want->start = ndim ? low[0] : 0;
    want->stop = ndim ? high[0] : 1;
    want->row_elements = 1;
    MREC_TRY(check_rows(source, want->start, want->stop, error));
    for (uint32_t i = 1; i < ndim; i++) {
        if (low[i] > high[i] || high[i] > source->spec.shape[i])
            return mrec_fail(error, MREC_E_VALUE, source->path, "%" PRIu64 " to %" PRIu64 " of %" PRIu64 " in axis %u",
                             low[i], high[i], source->spec.shape[i], i);
        want->low[i] = low[i];
        want->high[i] = high[i];
        want->row_elements *= high[i] - low[i];
    }
    want->rows = want->stop - want->start;
    return MREC_OK;
}

mrec_status mrec_source_read_box(mrec_source *source, const uint64_t *low, const uint64_t *high, void *out,
                                 mrec_error *error) {
    if (mrec_source_is_string(source))
        return mrec_fail(error, MREC_E_VALUE, source->path, "an array of strings is read by mrec_source_read_strings");
    request want = {.out = out};
    MREC_TRY(mrec_worker_take(source->cache, &want.worker, error));
    pthread_rwlock_rdlock(&source->lock);
    mrec_status status = want_box(source, low, high, &want, error);
    if (status == MREC_OK) {
        int64_t first = (int64_t)want.start;
        want.stride = (ptrdiff_t)(want.row_elements * source->unit);
        estimate(source, &first, 1, &want);
        status = read_rows(source, &want, error);
    }
    pthread_rwlock_unlock(&source->lock);
    mrec_item_release(source->cache, want.last_item);
    mrec_worker_give(source->cache, want.worker);
    return status;
}

mrec_status mrec_source_read_strings(mrec_source *source, const uint64_t *low, const uint64_t *high, mrec_buffer *text,
                                     mrec_buffer *ends, mrec_error *error) {
    if (!mrec_source_is_string(source))
        return mrec_fail(error, MREC_E_VALUE, source->path, "not an array of strings");
    request want = {0};
    MREC_TRY(mrec_worker_take(source->cache, &want.worker, error));
    pthread_rwlock_rdlock(&source->lock);
    mrec_status status = want_box(source, low, high, &want, error);
    if (status == MREC_OK)
        status = gather_strings(source, &want, text, ends, error);
    pthread_rwlock_unlock(&source->lock);
    mrec_item_release(source->cache, want.last_item);
    mrec_worker_give(source->cache, want.worker);
    return status;
}
