/* SPDX-License-Identifier: BSD-3-Clause
 * One writer in several threads (run it under -fsanitize=thread): a call is served whole, or refused as busy; and a
 * writer with threads of its own. */
#define _GNU_SOURCE
#include "tests.h"

#include "vfs_fault.h"
#include "writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 4, CALLS = 300 };

typedef struct shared {
    mrec_writer *writer;
    atomic_llong step;
    atomic_ullong taken;
} shared;

static void *append_frames(void *arg) {
    shared *s = arg;
    for (int i = 0; i < CALLS; i++) {
        double x[2] = {i, -i};
        mrec_column_data column = {.data = x};
        mrec_block_data block = {.present = true, .rows = 2, .columns = &column};
        mrec_frame frame = {.step = atomic_fetch_add(&s->step, 1), .blocks = &block};
        mrec_error error;
        mrec_status status = mrec_append(s->writer, &frame, &error);
        if (status == MREC_OK)
            atomic_fetch_add(&s->taken, 1);
        else /* VALUE: another thread's later step was first */
            assert(status == MREC_E_BUSY || status == MREC_E_VALUE);
        if (i % 50 == 49) {
            status = mrec_flush(s->writer, false, &error);
            assert(status == MREC_OK || status == MREC_E_BUSY);
        }
    }
    return NULL;
}

static mrec_writer *begin(mrec_vfs *vfs, const char *path, unsigned threads, double precision) {
    mrec_column column = {.name = "x", .dtype = MREC_F64, .precision = precision};
    mrec_block block = {.name = "atoms", .ncolumns = 1, .columns = &column, .rows = 2};
    mrec_schema schema = {.nblocks = 1, .blocks = &block};
    mrec_options options;
    mrec_options_init(&options);
    options.no_durable = true;
    options.threads = threads;
    mrec_writer *writer;
    mrec_error error;
    assert(mrec_create_on(vfs, path, &schema, NULL, &options, &writer, &error) == MREC_OK);
    return writer;
}

static void check_one_writer_for_several(const char *path) {
    shared s = {.writer = begin(mrec_vfs_posix(), path, 1, 0)};
    mrec_error error;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, append_frames, &s) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(s.taken > 0 && mrec_nframes(s.writer) == s.taken);
    assert(mrec_close(s.writer, &error) == MREC_OK && mrec_npublished(s.writer) == s.taken);
    mrec_free(s.writer);
}

static mrec_status append_noise(mrec_writer *writer, int64_t step, uint64_t rows, mrec_error *error) {
    static double x[40000];
    for (uint64_t i = 0; i < rows; i += 7)
        x[i] = (double)((step + 1) * (int64_t)(i + 3) % 1009) / 8;
    mrec_column_data column = {.data = x};
    mrec_block_data block = {.present = true, .rows = rows, .columns = &column};
    mrec_frame frame = {.step = step, .blocks = &block};
    return mrec_append(writer, &frame, error);
}

/* Frames of all sizes: more than the queue may hold, and some larger than all that it may hold together. */
static void check_threads_of_a_writer(const char *path, unsigned threads, bool close) {
    mrec_writer *writer = begin(mrec_vfs_posix(), path, threads, 1e-3);
    mrec_error error;
    for (int64_t step = 0; step < 3000; step++) {
        assert(append_noise(writer, step, step % 100 == 99 ? 40000 : (uint64_t)(step % 40), &error) == MREC_OK);
        if (step % 700 == 699)
            assert(mrec_flush(writer, false, &error) == MREC_OK && mrec_npublished(writer) == (uint64_t)step + 1);
        assert(mrec_npublished(writer) <= mrec_nframes(writer) && mrec_nframes(writer) == (uint64_t)step + 1);
    }
    if (close)
        assert(mrec_close(writer, &error) == MREC_OK && mrec_npublished(writer) == 3000);
    mrec_free(writer);
}

/* The first failure is what every later call reports, whichever thread met it. */
static void check_failure_behind(const char *path, unsigned threads) {
    mrec_vfs *vfs = mrec_vfs_fault_new();
    mrec_writer *writer = begin(vfs, path, threads, 1e-3);
    mrec_error error;
    assert(append_noise(writer, 0, 100, &error) == MREC_OK && mrec_flush(writer, false, &error) == MREC_OK);
    mrec_writer_wait(writer);
    mrec_vfs_fault_arm(vfs, &(mrec_fault){.kind = MREC_FAULT_ERROR, .at = 3, .persistent = true, .sys_errno = 28});
    mrec_status status = MREC_OK;
    for (int64_t step = 1; status == MREC_OK && step < 100000; step++)
        status = append_noise(writer, step, 5000, &error);
    assert(status == MREC_E_IO && error.sys_errno == 28);
    assert(mrec_npublished(writer) == 1 && mrec_ndurable(writer) == 0);
    mrec_error again;
    assert(mrec_flush(writer, true, &again) == MREC_E_IO && strcmp(again.message, error.message) == 0);
    assert(mrec_close(writer, &again) == MREC_E_IO && strcmp(again.message, error.message) == 0);
    mrec_free(writer);
    mrec_vfs_fault_free(vfs);
}

void test_threads(void) {
    char directory[] = "/tmp/mrec-writer-XXXXXX", path[64];
    assert(mkdtemp(directory) != NULL);
    for (unsigned i = 0; i < 9; i++) {
        snprintf(path, sizeof path, "%s/%u.mrec", directory, i);
        if (i < 2)
            check_failure_behind(path, 2 + i);
        else if (i < 8)
            check_threads_of_a_writer(path, i / 2 + 1, i % 2);
        else
            check_one_writer_for_several(path);
    }
    mrec_error error;
    assert(mrec_tree_remove(mrec_vfs_posix(), directory, &error) == MREC_OK);
}
