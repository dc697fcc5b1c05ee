/* SPDX-License-Identifier: BSD-3-Clause
 * One writer in several threads (run it under -fsanitize=thread): a call is served whole, or refused as busy. */
#define _GNU_SOURCE
#include "tests.h"

#include "vfs.h"

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

void test_threads(void) {
    char directory[] = "/tmp/mrec-writer-XXXXXX", path[64];
    assert(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/a.mrec", directory);
    mrec_column column = {.name = "x", .dtype = MREC_F64};
    mrec_block block = {.name = "atoms", .ncolumns = 1, .columns = &column, .rows = 2};
    mrec_schema schema = {.nblocks = 1, .blocks = &block};
    mrec_options options;
    mrec_options_init(&options);
    options.no_durable = true;
    shared s = {0};
    mrec_error error;
    assert(mrec_create(path, &schema, &options, &s.writer, &error) == MREC_OK);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, append_frames, &s) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(s.taken > 0 && mrec_nframes(s.writer) == s.taken);
    assert(mrec_close(s.writer, &error) == MREC_OK && mrec_npublished(s.writer) == s.taken);
    mrec_free(s.writer);
    assert(mrec_tree_remove(mrec_vfs_posix(), directory, &error) == MREC_OK);
}
