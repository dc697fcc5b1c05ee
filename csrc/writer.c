/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LAND_BYTES (4 * 1024 * 1024)
#define LAND_FRAMES 4096
#define LAND_SECONDS 10.0
#define DURABLE_SECONDS 60.0

static double now(void) {
    struct timespec t;
#if defined(CLOCK_MONOTONIC_COARSE)
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void mrec_options_init(mrec_options *options) {
    memset(options, 0, sizeof *options);
    options->flush_seconds = LAND_SECONDS;
    options->durable_seconds = DURABLE_SECONDS;
}

mrec_status mrec_writer_new(mrec_lock *lock, const mrec_options *options, mrec_writer **out, mrec_error *error) {
    mrec_writer *writer = calloc(1, sizeof *writer);
    *out = writer;
    if (!writer) {
        mrec_lock_free(lock);
        return mrec_fail_memory(error);
    }
    writer->lock = lock;
    writer->options = *options;
    if (writer->options.flush_seconds == 0)
        writer->options.flush_seconds = LAND_SECONDS;
    if (writer->options.durable_seconds == 0)
        writer->options.durable_seconds = DURABLE_SECONDS;
    writer->options.meta_json = NULL; /* the caller's */
    writer->fork_count = mrec_fork_count();
    atomic_flag_clear(&writer->busy);
    writer->landed_at = writer->durable_at = now();
    return MREC_OK;
}

void mrec_free(mrec_writer *writer) {
    if (!writer)
        return;
    mrec_sequence_free(&writer->sequence);
    mrec_lock_free(writer->lock);
    free(writer);
}

/* ---- one call at a time ---- */

static mrec_status repeat_error(const mrec_writer *writer, mrec_error *error) {
    if (error)
        *error = writer->first;
    return writer->first.status;
}

/* Every call that changes the writer stands between enter and leave. */
static mrec_status enter(mrec_writer *writer, mrec_error *error) {
    if (writer->fork_count != mrec_fork_count())
        return mrec_fail(error, MREC_E_FORKED, writer->sequence.store.root,
                         "this writer belongs to the parent process; only it can append");
    if (atomic_flag_test_and_set_explicit(&writer->busy, memory_order_acquire))
        return mrec_fail(error, MREC_E_BUSY, writer->sequence.store.root,
                         "the writer is inside another call; one writer serves one thread at a time");
    return MREC_OK;
}

static mrec_status leave(mrec_writer *writer, mrec_status status) {
    atomic_flag_clear_explicit(&writer->busy, memory_order_release);
    return status;
}

static mrec_status check_usable(const mrec_writer *writer, mrec_error *error) {
    if (writer->first.status != MREC_OK)
        return repeat_error(writer, error);
    if (writer->closed)
        return mrec_fail(error, MREC_E_CLOSED, writer->sequence.store.root, "the writer was closed");
    return MREC_OK;
}

/* Remember a failure after which memory and disk no longer agree. */
static mrec_status poison(mrec_writer *writer, mrec_status status, const mrec_error *local, mrec_error *error) {
    writer->first = *local;
    if (error)
        *error = *local;
    return status;
}

/* ---- landing ---- */

static mrec_status commit(mrec_writer *writer, mrec_commit_kind kind, mrec_error *error) {
    mrec_error local = {.status = MREC_OK};
    mrec_status status = mrec_commit(&writer->sequence, kind, &local);
    if (status != MREC_OK)
        return poison(writer, status, &local, error);
    writer->published = writer->sequence.nframes;
    writer->waiting_bytes = 0;
    writer->landed_at = now();
    if (kind == MREC_COMMIT_DURABLE || kind == MREC_COMMIT_CLOSE) {
        writer->durable = writer->published;
        writer->durable_at = writer->landed_at;
    }
    return MREC_OK;
}

static uint64_t staged_bytes(const mrec_sequence *seq, const mrec_frame *frame, const mrec_block_state **most) {
    uint64_t total = 0, largest = 0;
    for (size_t i = 0; frame->blocks && i < seq->declared.schema.nblocks; i++) {
        if (!frame->blocks[i].present)
            continue;
        uint64_t bytes = mrec_block_staged_bytes(&seq->blocks[i]);
        if (bytes > largest) {
            largest = bytes;
            *most = &seq->blocks[i];
        }
        total += bytes;
    }
    return total;
}

/* The cadence rule of storage.md: 4 MiB of frames, in whole chunks of the block with the most bytes, at most 4096. */
static uint64_t cadence(uint64_t frame_bytes, const mrec_block_state *most) {
    uint64_t frames = frame_bytes ? (LAND_BYTES + frame_bytes - 1) / frame_bytes : LAND_FRAMES;
    uint64_t per_chunk = 1;
    if (most && most->staged_rows && most->block->ncolumns)
        per_chunk = most->columns[0].rows->layout.rows_per_chunk / most->staged_rows;
    if (per_chunk < 1 || per_chunk > LAND_FRAMES)
        per_chunk = per_chunk < 1 ? 1 : LAND_FRAMES;
    uint64_t limit = LAND_FRAMES / per_chunk * per_chunk;
    if (frames > limit)
        return limit;
    return (frames + per_chunk - 1) / per_chunk * per_chunk;
}

static bool should_land(const mrec_writer *writer) {
    const mrec_options *options = &writer->options;
    uint64_t waiting = writer->sequence.nframes - writer->published;
    if (options->flush_frames && waiting >= options->flush_frames)
        return true;
    if (options->flush_bytes && writer->waiting_bytes >= options->flush_bytes)
        return true;
    if (!options->flush_frames && !options->flush_bytes && waiting >= writer->land_every)
        return true;
    return now() - writer->landed_at >= options->flush_seconds;
}

static mrec_status land_when_due(mrec_writer *writer, mrec_error *error) {
    if (!should_land(writer))
        return MREC_OK;
    bool durable = !writer->options.no_durable && now() - writer->durable_at >= writer->options.durable_seconds;
    return commit(writer, durable ? MREC_COMMIT_DURABLE : MREC_COMMIT_AUTO, error);
}

/* ---- calls ---- */

static mrec_status append(mrec_writer *writer, const mrec_frame *frame, mrec_error *error) {
    mrec_sequence *seq = &writer->sequence;
    mrec_error local = {.status = MREC_OK};
    MREC_TRY(check_usable(writer, error));
    MREC_TRY(mrec_sequence_stage(seq, frame, error));
    const mrec_block_state *most = NULL;
    uint64_t bytes = staged_bytes(seq, frame, &most);
    if (writer->land_every == 0)
        writer->land_every = cadence(bytes, most);
    writer->waiting_bytes += bytes;
    mrec_status status = mrec_sequence_apply(seq, frame, &local);
    if (status != MREC_OK)
        return poison(writer, status, &local, error);
    return land_when_due(writer, error);
}

mrec_status mrec_append(mrec_writer *writer, const mrec_frame *frame, mrec_error *error) {
    MREC_TRY(enter(writer, error));
    return leave(writer, append(writer, frame, error));
}

static mrec_status flush(mrec_writer *writer, bool durable, mrec_error *error) {
    MREC_TRY(check_usable(writer, error));
    durable = durable && !writer->options.no_durable;
    uint64_t safe = durable ? writer->durable : writer->published;
    if (safe == writer->sequence.nframes)
        return MREC_OK;
    return commit(writer, durable ? MREC_COMMIT_DURABLE : MREC_COMMIT_AUTO, error);
}

mrec_status mrec_flush(mrec_writer *writer, bool durable, mrec_error *error) {
    MREC_TRY(enter(writer, error));
    return leave(writer, flush(writer, durable, error));
}

static mrec_status close_writer(mrec_writer *writer, mrec_error *error) {
    if (writer->closed)
        return MREC_OK;
    writer->closed = true;
    mrec_status status =
        writer->first.status != MREC_OK
            ? repeat_error(writer, error)
            : commit(writer, writer->options.no_durable ? MREC_COMMIT_CLOSE_UNSYNCED : MREC_COMMIT_CLOSE, error);
    mrec_lock_free(writer->lock);
    writer->lock = NULL;
    writer->sequence.store.files.lock = NULL;
    return status;
}

mrec_status mrec_close(mrec_writer *writer, mrec_error *error) {
    MREC_TRY(enter(writer, error));
    return leave(writer, close_writer(writer, error));
}

bool mrec_closed(const mrec_writer *writer) {
    return writer->closed;
}

const mrec_schema *mrec_writer_schema(const mrec_writer *writer) {
    return &writer->sequence.declared.schema;
}

mrec_status mrec_check_schema(const mrec_writer *writer, const mrec_schema *schema, mrec_error *error) {
    return mrec_schema_match(mrec_writer_schema(writer), schema, error);
}

uint64_t mrec_nframes(const mrec_writer *writer) {
    return writer->sequence.nframes;
}

uint64_t mrec_npublished(const mrec_writer *writer) {
    return writer->published;
}

uint64_t mrec_ndurable(const mrec_writer *writer) {
    return writer->durable;
}

bool mrec_last_step(const mrec_writer *writer, int64_t *step) {
    *step = writer->sequence.steps.last;
    return writer->sequence.nframes > 0;
}

bool mrec_has_times(const mrec_writer *writer) {
    return writer->sequence.nframes > 0 && writer->sequence.times.given;
}
