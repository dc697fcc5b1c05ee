/* SPDX-License-Identifier: BSD-3-Clause
 * What the arrays of a store keep between reads: open files within a budget of descriptors, and parsed indexes and
 * decoded chunks within a budget of bytes; what was used longest ago goes first. Thread-safe. */
#ifndef MREC_CACHE_H
#define MREC_CACHE_H

#include "codec.h"
#include "vfs.h"

#include <stdalign.h>
#include <stdatomic.h>

#define MREC_CACHE_FILES 64
#define MREC_CACHE_BYTES ((size_t)64 << 20)

typedef struct mrec_cache mrec_cache;

/* Descriptors and bytes kept at most; 0: the defaults above. */
mrec_status mrec_cache_new(mrec_vfs *, size_t files, size_t bytes, mrec_cache **, mrec_error *);

/* Every source that uses it must be gone. */
void mrec_cache_free(mrec_cache *);

/* The bytes it keeps at most. */
size_t mrec_cache_budget(const mrec_cache *);

/* ---- memory ------------------------------------------------------------------------------------------------- */

/* A plain chunk is stored as it is in memory, and soon read again: these have a quarter of the budget, whose memory
 * is used over and over and so stays near the processor. */
typedef enum mrec_item_kind { MREC_ITEM_CHUNK, MREC_ITEM_INDEX, MREC_ITEM_PLAIN } mrec_item_kind;

/* A run of bytes under a name; nobody changes the bytes of one that was added. */
typedef struct mrec_item {
    const void *owner;
    uint64_t number;
    mrec_item_kind kind;
    bool added;
    unsigned pins;
    struct mrec_item *chain, *newer, *older;
    size_t size;
    alignas(16) uint8_t data[];
} mrec_item;

/* A new one, held by the caller; NULL when memory ran out. */
mrec_item *mrec_item_new(size_t size);

/* The item of that name, held until mrec_item_release, or NULL. */
mrec_item *mrec_cache_find(mrec_cache *, const void *owner, mrec_item_kind kind, uint64_t number);

/* Let others find the item, which the caller goes on holding. */
void mrec_cache_add(mrec_cache *, mrec_item *, const void *owner, mrec_item_kind kind, uint64_t number);

/* NULL is allowed. */
void mrec_item_release(mrec_cache *, mrec_item *);

/* Make the owner's items of a kind with a number of at least `from` unfindable. */
void mrec_cache_forget(mrec_cache *, const void *owner, mrec_item_kind kind, uint64_t from);

/* ---- files -------------------------------------------------------------------------------------------------- */

typedef struct mrec_file {
    const void *owner;
    uint64_t number;
    int fd;
    bool kept;
    unsigned pins;
    uint64_t used;
    _Atomic uint64_t size; /* when it was last asked for */
    char path[];
} mrec_file;

/* The file known as (owner, number), held until mrec_file_release; NULL when it is not open. */
mrec_file *mrec_file_find(mrec_cache *, const void *owner, uint64_t number);

/* The same, opened at path under that name. *file = NULL (and OK) when there is none. Where the process has no
 * descriptor left, some of the others are closed, and fewer kept. */
mrec_status mrec_file_hold(mrec_cache *, const void *owner, uint64_t number, const char *path, mrec_file **file,
                           mrec_error *);
void mrec_file_release(mrec_cache *, mrec_file *);

/* Ask for its size anew. */
mrec_status mrec_file_measure(mrec_cache *, mrec_file *, mrec_error *);

/* Close the owner's files with a number of at least `from`, as soon as nobody holds them. */
void mrec_file_forget(mrec_cache *, const void *owner, uint64_t from);

/* ---- workers ------------------------------------------------------------------------------------------------ */

/* What one thread needs to read and decode chunks. raw: the stored bytes of a shard from `offset` on. */
typedef struct mrec_worker {
    mrec_coder *coder;
    mrec_buffer raw, text, chunk;
    const void *owner; /* NULL: raw holds nothing */
    uint64_t shard, offset;
    struct mrec_worker *next;
} mrec_worker;

mrec_status mrec_worker_take(mrec_cache *, mrec_worker **, mrec_error *);
void mrec_worker_give(mrec_cache *, mrec_worker *);

#endif
