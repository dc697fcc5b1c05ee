/* SPDX-License-Identifier: BSD-3-Clause */
#include "encode.h"

#include "bytes.h"
#include "crc32c.h"
#include "index.h"

#include <string.h>

/* A file under way. */
typedef struct encoding_run {
    mrec_coder *coder;
    mrec_pool *pool;
    const mrec_encoding *form;
    const mrec_elements *elements;
    uint64_t counts[MREC_MAX_AXES];   /* chunks along each axis */
    ptrdiff_t strides[MREC_MAX_AXES]; /* of the array's axes in a gathered chunk */
    size_t chunk_units;
    uint64_t first; /* number of the first chunk of the elements in its shard */
    mrec_index_form index_form;
    mrec_buffer chunk, text;
    mrec_buffer *out, *index;
    bool any;
} encoding_run;

/* ---- checks ------------------------------------------------------------------------------------------------- */

static mrec_status check_encoding(const mrec_encoding *form, const mrec_elements *elements, mrec_error *error) {
    if (form->ndim > MREC_MAX_AXES)
        return mrec_fail(error, MREC_E_VALUE, NULL, "%u axes; at most %d are encoded", form->ndim, MREC_MAX_AXES);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < form->ndim; i++) {
        if (form->chunk[i] == 0 || form->grid[i] == 0 || form->grid[i] % form->chunk[i] != 0 ||
            (!form->sharded && form->grid[i] != form->chunk[i]))
            return mrec_fail(error, MREC_E_VALUE, NULL, "the chunk shape does not divide the shard in axis %u", i);
        if (elements->n[i] > form->grid[i])
            return mrec_fail(error, MREC_E_VALUE, NULL, "axis %u has more elements than its file", i);
        if (form->order[i] >= form->ndim || (seen & 1u << form->order[i]))
            return mrec_fail(error, MREC_E_VALUE, NULL, "the transpose is no permutation");
        seen |= 1u << form->order[i];
    }
    return MREC_OK;
}

static mrec_status set_sizes(encoding_run *run, mrec_error *error) {
    const mrec_encoding *form = run->form;
    uint64_t bytes = form->unit, nchunks = 1;
    bool fits = form->unit > 0;
    for (uint32_t i = form->ndim; i-- > 0 && fits;) {
        uint32_t axis = form->order[i];
        run->strides[axis] = (ptrdiff_t)bytes;
        run->counts[i] = form->grid[i] / form->chunk[i];
        fits = mrec_mul(bytes, form->chunk[axis], &bytes) && mrec_mul(nchunks, run->counts[i], &nchunks) &&
               bytes <= PTRDIFF_MAX;
    }
    run->index_form = (mrec_index_form){nchunks, form->index_at_end, form->index_checked, form->index_big};
    uint64_t index;
    if (!fits || !mrec_index_bytes(&run->index_form, &index))
        return mrec_fail(error, MREC_E_CODEC, NULL, "the chunk shape is too large to be encoded");
    run->chunk_units = (size_t)bytes / form->unit;
    return MREC_OK;
}

/* ---- one chunk ---------------------------------------------------------------------------------------------- */

static void fill_chunk(uint8_t *to, const void *fill, size_t unit, size_t units) {
    if (units == 0)
        return;
    memcpy(to, fill, unit);
    const size_t size = unit * units;
    for (size_t done = unit; done < size;) {
        size_t n = done < size - done ? done : size - done;
        memcpy(to + done, to, n);
        done += n;
    }
}

/* The elements of the chunk at these coordinates, in stored order: where they are, or gathered. */
static mrec_status gather_chunk(encoding_run *run, const uint64_t *at, const uint8_t **chunk, mrec_error *error) {
    const mrec_encoding *form = run->form;
    const uint8_t *from = run->elements->data;
    mrec_axis axes[MREC_MAX_AXES];
    bool whole = true, close = true;
    for (uint32_t i = 0; i < form->ndim; i++) {
        uint64_t first = at[i] * form->chunk[i], left = run->elements->n[i] - first;
        ptrdiff_t stride = run->elements->strides[i];
        axes[i] = (mrec_axis){left < form->chunk[i] ? left : form->chunk[i], stride, run->strides[i]};
        from += (ptrdiff_t)first * stride;
        whole = whole && axes[i].n == form->chunk[i];
        close = close && (stride == run->strides[i] || form->chunk[i] == 1);
    }
    *chunk = from;
    if (whole && close)
        return MREC_OK;
    MREC_TRY(mrec_buffer_reserve(&run->chunk, run->chunk_units * form->unit, error));
    if (!whole)
        fill_chunk(run->chunk.data, form->fill, form->unit, run->chunk_units);
    mrec_copy_strided(from, run->chunk.data, axes, form->ndim, form->unit);
    *chunk = run->chunk.data;
    return MREC_OK;
}

static bool are_strings(const encoding_run *run) {
    return run->form->pipeline.codecs[0].kind == MREC_CODEC_VLEN_UTF8;
}

static bool is_fill_text(const encoding_run *run, const mrec_ref *refs) {
    const mrec_ref *fill = run->form->fill;
    for (size_t i = 0; i < run->chunk_units; i++)
        if (refs[i].size != fill->size || (fill->size > 0 && memcmp(refs[i].text, fill->text, (size_t)fill->size) != 0))
            return false;
    return true;
}

static bool is_fill(const encoding_run *run, const uint8_t *chunk) {
    if (are_strings(run))
        return is_fill_text(run, (const mrec_ref *)(const void *)chunk);
    const size_t unit = run->form->unit;
    return memcmp(chunk, run->form->fill, unit) == 0 && memcmp(chunk, chunk + unit, unit * (run->chunk_units - 1)) == 0;
}

/* The strings of a chunk as vlen-utf8 has them, in run->text. */
static mrec_status lay_out_strings(encoding_run *run, const mrec_ref *refs, mrec_error *error) {
    uint8_t number[4];
    if (run->chunk_units > UINT32_MAX)
        return mrec_fail(error, MREC_E_CODEC, NULL, "%zu strings are too many for one chunk", run->chunk_units);
    run->text.size = 0;
    mrec_store_u32(number, (uint32_t)run->chunk_units);
    MREC_TRY(mrec_buffer_add(&run->text, number, 4, error));
    for (size_t i = 0; i < run->chunk_units; i++) {
        if (refs[i].size > UINT32_MAX)
            return mrec_fail(error, MREC_E_VALUE, NULL, "a string of more than 4 GiB");
        mrec_store_u32(number, (uint32_t)refs[i].size);
        MREC_TRY(mrec_buffer_add(&run->text, number, 4, error));
        MREC_TRY(mrec_buffer_add(&run->text, refs[i].text, (size_t)refs[i].size, error));
    }
    return MREC_OK;
}

/* ---- chunks into the file ----------------------------------------------------------------------------------- */

static void store_number(const mrec_index_form *form, uint8_t *to, uint64_t number) {
    for (int i = 0; i < 8; i++)
        to[form->big ? 7 - i : i] = (uint8_t)(number >> 8 * i);
}

/* The last `nbytes` of the file are this chunk. */
static void name_chunk(encoding_run *run, uint64_t number, size_t nbytes) {
    run->any = true;
    if (!run->form->sharded)
        return;
    uint8_t *entry = run->index->data + 16 * (run->first + number);
    store_number(&run->index_form, entry, run->out->size - nbytes);
    store_number(&run->index_form, entry + 8, nbytes);
}

/* Put the oldest chunk of the pool, if there is one, into the file. */
static mrec_status settle_chunk(encoding_run *run, bool *any, mrec_error *error) {
    mrec_job *job = mrec_pool_oldest(run->pool, run->coder);
    *any = job != NULL;
    if (job == NULL)
        return MREC_OK;
    mrec_status status = job->status;
    if (status == MREC_OK)
        status = mrec_buffer_add(run->out, job->encoded.data, job->encoded.size, error);
    else if (error != NULL)
        *error = job->error;
    if (status == MREC_OK)
        name_chunk(run, job->chunk, job->encoded.size);
    mrec_pool_end(run->pool, job);
    return status;
}

static mrec_status add_chunk(encoding_run *run, uint64_t number, const uint8_t *bytes, size_t n, mrec_error *error) {
    const mrec_pipeline *pipeline = &run->form->pipeline;
    if (run->pool != NULL && mrec_pipeline_compresses(pipeline)) {
        for (bool any = true; any && mrec_pool_full(run->pool, n);)
            MREC_TRY(settle_chunk(run, &any, error));
        return mrec_pool_submit(run->pool, run, number, pipeline, bytes, n, error);
    }
    size_t before = run->out->size;
    MREC_TRY(mrec_encode(run->coder, pipeline, bytes, n, run->out, error));
    name_chunk(run, number, run->out->size - before);
    return MREC_OK;
}

static mrec_status encode_chunk(encoding_run *run, const uint64_t *at, uint64_t number, mrec_error *error) {
    const uint8_t *chunk;
    MREC_TRY(gather_chunk(run, at, &chunk, error));
    if (run->form->skip_fill && is_fill(run, chunk))
        return MREC_OK;
    if (!are_strings(run))
        return add_chunk(run, number, chunk, run->chunk_units * run->form->unit, error);
    MREC_TRY(lay_out_strings(run, (const mrec_ref *)(const void *)chunk, error));
    return add_chunk(run, number, run->text.data, run->text.size, error);
}

static bool is_left_out(const encoding_run *run, const uint64_t *at, uint64_t number) {
    if (run->elements->present != NULL && run->elements->present[number] == 0)
        return true;
    for (uint32_t i = 0; i < run->form->ndim; i++)
        if (at[i] * run->form->chunk[i] >= run->elements->n[i])
            return true;
    return false;
}

/* To the next chunk in C order; false after the last. */
static bool step_chunk(const encoding_run *run, uint64_t *at) {
    for (uint32_t i = run->form->ndim; i-- > 0;) {
        if (++at[i] < run->counts[i])
            return true;
        at[i] = 0;
    }
    return false;
}

static mrec_status encode_chunks(encoding_run *run, mrec_error *error) {
    uint64_t at[MREC_MAX_AXES] = {0}, number = 0;
    do {
        if (!is_left_out(run, at, number))
            MREC_TRY(encode_chunk(run, at, number, error));
        number++;
    } while (step_chunk(run, at));
    for (bool any = run->pool != NULL; any;)
        MREC_TRY(settle_chunk(run, &any, error));
    return MREC_OK;
}

/* ---- the file ----------------------------------------------------------------------------------------------- */

/* An index in which every chunk is missing, and room for it where it stands first. */
static mrec_status begin_index(encoding_run *run, mrec_error *error) {
    uint64_t bytes = 0;
    mrec_index_bytes(&run->index_form, &bytes);
    MREC_TRY(mrec_buffer_reserve(run->index, (size_t)bytes, error));
    run->index->size = (size_t)bytes;
    memset(run->index->data, 0xff, run->index->size);
    return run->form->index_at_end ? MREC_OK : mrec_buffer_add(run->out, run->index->data, run->index->size, error);
}

static mrec_status end_index(encoding_run *run, mrec_error *error) {
    if (!run->any) {
        run->out->size = 0;
        return MREC_OK;
    }
    if (run->form->index_checked) {
        size_t n = run->index->size - 4;
        mrec_store_u32(run->index->data + n, mrec_crc32c(0, run->index->data, n));
    }
    if (run->form->index_at_end)
        return mrec_buffer_add(run->out, run->index->data, run->index->size, error);
    memcpy(run->out->data, run->index->data, run->index->size);
    return MREC_OK;
}

static mrec_status encode_file(encoding_run *run, mrec_error *error) {
    run->out->size = 0;
    MREC_TRY(check_encoding(run->form, run->elements, error));
    MREC_TRY(set_sizes(run, error));
    if (run->form->sharded)
        MREC_TRY(begin_index(run, error));
    MREC_TRY(encode_chunks(run, error));
    return run->form->sharded ? end_index(run, error) : MREC_OK;
}

/* What is under way in the pool after a failure is dropped. */
static void end_run(encoding_run *run, mrec_status status) {
    for (mrec_job *job; status != MREC_OK && run->pool != NULL && (job = mrec_pool_oldest(run->pool, run->coder));)
        mrec_pool_end(run->pool, job);
    mrec_buffer_free(&run->chunk);
    mrec_buffer_free(&run->text);
}

mrec_status mrec_encode_file(mrec_coder *coder, mrec_pool *pool, const mrec_encoding *form,
                             const mrec_elements *elements, mrec_buffer *out, bool *any, mrec_error *error) {
    mrec_buffer index = {0};
    encoding_run run = {.coder = coder, .pool = pool, .form = form, .elements = elements, .out = out, .index = &index};
    mrec_status status = encode_file(&run, error);
    if (status != MREC_OK)
        out->size = 0;
    *any = run.any;
    end_run(&run, status);
    mrec_buffer_free(&index);
    return status;
}

/* ---- a shard that grows ------------------------------------------------------------------------------------- */

/* Behind the rows that stay there is nothing: neither chunks nor entries. */
static mrec_status begin_rows(encoding_run *run, const mrec_partial *shard, mrec_error *error) {
    MREC_TRY(set_sizes(run, error));
    if (!run->form->sharded || !run->form->index_at_end || run->form->ndim == 0)
        return mrec_fail(error, MREC_E_VALUE, NULL, "only a shard with its index at the end grows");
    if (shard->rows == 0)
        MREC_TRY(begin_index(run, error));
    run->first = shard->rows * (run->index_form.nchunks / run->counts[0]);
    run->out->size = shard->kept;
    memset(run->index->data + 16 * run->first, 0xff, run->index->size - 16 * (size_t)run->first);
    return MREC_OK;
}

static mrec_status encode_rows(encoding_run *run, const mrec_partial *shard, mrec_error *error) {
    MREC_TRY(check_encoding(run->form, run->elements, error));
    MREC_TRY(begin_rows(run, shard, error));
    uint64_t n = run->elements->n[0], size = run->form->chunk[0], rows = n / size + (n % size != 0);
    if (rows > run->counts[0] - shard->rows)
        return mrec_fail(error, MREC_E_VALUE, NULL, "the shard has no room for %llu rows of chunks more",
                         (unsigned long long)rows);
    run->counts[0] = rows;
    return rows == 0 ? MREC_OK : encode_chunks(run, error);
}

mrec_status mrec_partial_add(mrec_coder *coder, mrec_pool *pool, const mrec_encoding *form,
                             const mrec_elements *elements, mrec_partial *shard, mrec_error *error) {
    encoding_run run = {
        .coder = coder, .pool = pool, .form = form, .elements = elements, .out = &shard->file, .index = &shard->index};
    mrec_status status = encode_rows(&run, shard, error);
    end_run(&run, status);
    MREC_TRY(status);
    shard->crc32c = mrec_crc32c(shard->crc32c, shard->file.data + shard->kept, shard->file.size - shard->kept);
    shard->kept = shard->file.size;
    shard->rows += run.counts[0];
    return MREC_OK;
}

mrec_status mrec_partial_file(mrec_coder *coder, mrec_pool *pool, const mrec_encoding *form,
                              const mrec_elements *elements, mrec_partial *shard, uint32_t *crc32c, mrec_error *error) {
    encoding_run run = {.coder = coder,
                        .pool = pool,
                        .form = form,
                        .elements = elements,
                        .out = &shard->file,
                        .index = &shard->index,
                        .any = true};
    mrec_status status = encode_rows(&run, shard, error);
    if (status == MREC_OK)
        status = end_index(&run, error);
    end_run(&run, status);
    MREC_TRY(status);
    *crc32c = mrec_crc32c(shard->crc32c, shard->file.data + shard->kept, shard->file.size - shard->kept);
    return MREC_OK;
}

void mrec_partial_free(mrec_partial *shard) {
    mrec_buffer_free(&shard->file);
    mrec_buffer_free(&shard->index);
}
