/* SPDX-License-Identifier: BSD-3-Clause */
#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FEWEST_BUCKETS ((size_t)256)
#define PLAIN_SHARE 4

/* A worker that had to decode something large does not keep that memory. */
#define WORKER_BYTES ((size_t)16 << 20)

struct mrec_cache {
    mrec_vfs *vfs;
    pthread_mutex_t lock;
    size_t max_bytes;
    struct recent {
        size_t bytes, max_bytes;
        mrec_item *newest, *oldest;
    } plain, others;
    mrec_item **buckets;
    size_t nbuckets, nitems; /* buckets: a power of two */
    uint64_t clock;
    size_t nfiles, max_files;
    mrec_file **files;
    mrec_worker *workers;
};

mrec_status mrec_cache_new(mrec_vfs *vfs, size_t files, size_t bytes, mrec_cache **out, mrec_error *error) {
    mrec_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return mrec_fail_memory(error);
    cache->vfs = vfs;
    cache->max_bytes = bytes ? bytes : MREC_CACHE_BYTES;
    cache->plain.max_bytes = cache->max_bytes / PLAIN_SHARE;
    cache->others.max_bytes = cache->max_bytes - cache->plain.max_bytes;
    cache->max_files = files ? files : MREC_CACHE_FILES;
    cache->nbuckets = FEWEST_BUCKETS;
    cache->buckets = calloc(cache->nbuckets, sizeof(mrec_item *));
    cache->files = calloc(cache->max_files, sizeof *cache->files);
    if (cache->buckets == NULL || cache->files == NULL || pthread_mutex_init(&cache->lock, NULL) != 0) {
        free(cache->buckets);
        free(cache->files);
        free(cache);
        return mrec_fail_memory(error);
    }
    *out = cache;
    return MREC_OK;
}

static void worker_free(mrec_worker *worker) {
    mrec_coder_free(worker->coder);
    mrec_buffer_free(&worker->raw);
    mrec_buffer_free(&worker->text);
    mrec_buffer_free(&worker->chunk);
    free(worker);
}

static void file_close(mrec_cache *cache, mrec_file *file) {
    if (file == NULL)
        return;
    cache->vfs->close(cache->vfs, file->fd); /* read only: nothing can be lost here */
    free(file);
}

static void free_items(struct recent *list) {
    while (list->newest != NULL) {
        mrec_item *item = list->newest;
        list->newest = item->older;
        free(item);
    }
}

void mrec_cache_free(mrec_cache *cache) {
    if (cache == NULL)
        return;
    free_items(&cache->plain);
    free_items(&cache->others);
    for (size_t i = 0; i < cache->nfiles; i++)
        file_close(cache, cache->files[i]);
    while (cache->workers != NULL) {
        mrec_worker *worker = cache->workers;
        cache->workers = worker->next;
        worker_free(worker);
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache->buckets);
    free(cache->files);
    free(cache);
}

size_t mrec_cache_budget(const mrec_cache *cache) {
    return cache->max_bytes;
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

static mrec_item **bucket(mrec_cache *cache, const void *owner, mrec_item_kind kind, uint64_t number) {
    uint64_t h = (uint64_t)(uintptr_t)owner + (number * 2 + (uint64_t)kind) * UINT64_C(0x9E3779B97F4A7C15);
    h *= UINT64_C(0xFF51AFD7ED558CCD);
    return &cache->buckets[(h >> 32) & (cache->nbuckets - 1)];
}

static void put_in_bucket(mrec_cache *cache, mrec_item *item) {
    mrec_item **link = bucket(cache, item->owner, item->kind, item->number);
    item->chain = *link;
    *link = item;
}

/* Twice the buckets; where memory ran out, chains get longer. */
static void spread(mrec_cache *cache) {
    mrec_item **buckets = calloc(cache->nbuckets * 2, sizeof(mrec_item *));
    if (buckets == NULL)
        return;
    free(cache->buckets);
    cache->buckets = buckets;
    cache->nbuckets *= 2;
    for (mrec_item *item = cache->plain.oldest; item != NULL; item = item->newer)
        put_in_bucket(cache, item);
    for (mrec_item *item = cache->others.oldest; item != NULL; item = item->newer)
        put_in_bucket(cache, item);
}

static struct recent *list_of(mrec_cache *cache, mrec_item_kind kind) {
    return kind == MREC_ITEM_PLAIN ? &cache->plain : &cache->others;
}

static void list_add(struct recent *list, mrec_item *item) {
    item->newer = NULL;
    item->older = list->newest;
    *(list->newest ? &list->newest->newer : &list->oldest) = item;
    list->newest = item;
    list->bytes += item->size + sizeof *item;
}

static void list_remove(struct recent *list, mrec_item *item) {
    *(item->newer ? &item->newer->older : &list->newest) = item->older;
    *(item->older ? &item->older->newer : &list->oldest) = item->newer;
    list->bytes -= item->size + sizeof *item;
}

/* Make an item unfindable; it is freed when nobody holds it. */
static void drop(mrec_cache *cache, mrec_item *item) {
    mrec_item **link = bucket(cache, item->owner, item->kind, item->number);
    while (*link != item)
        link = &(*link)->chain;
    *link = item->chain;
    list_remove(list_of(cache, item->kind), item);
    cache->nitems--;
    item->added = false;
    if (item->pins == 0)
        free(item);
}

mrec_item *mrec_item_new(size_t size) {
    if (size > SIZE_MAX - sizeof(mrec_item))
        return NULL;
    mrec_item *item = malloc(sizeof *item + size);
    if (item != NULL)
        *item = (mrec_item){.pins = 1, .size = size};
    return item;
}

mrec_item *mrec_cache_find(mrec_cache *cache, const void *owner, mrec_item_kind kind, uint64_t number) {
    pthread_mutex_lock(&cache->lock);
    mrec_item *item = *bucket(cache, owner, kind, number);
    while (item != NULL && (item->owner != owner || item->number != number || item->kind != kind))
        item = item->chain;
    if (item != NULL) {
        item->pins++;
        list_remove(list_of(cache, kind), item);
        list_add(list_of(cache, kind), item);
    }
    pthread_mutex_unlock(&cache->lock);
    return item;
}

void mrec_cache_add(mrec_cache *cache, mrec_item *item, const void *owner, mrec_item_kind kind, uint64_t number) {
    item->owner = owner;
    item->kind = kind;
    item->number = number;
    pthread_mutex_lock(&cache->lock);
    if (cache->nitems == cache->nbuckets)
        spread(cache);
    struct recent *list = list_of(cache, kind);
    put_in_bucket(cache, item);
    list_add(list, item);
    item->added = true;
    cache->nitems++;
    while (list->bytes > list->max_bytes && list->oldest != item)
        drop(cache, list->oldest);
    pthread_mutex_unlock(&cache->lock);
}

void mrec_item_release(mrec_cache *cache, mrec_item *item) {
    if (item == NULL)
        return;
    pthread_mutex_lock(&cache->lock);
    bool unused = --item->pins == 0 && !item->added;
    pthread_mutex_unlock(&cache->lock);
    if (unused)
        free(item);
}

void mrec_cache_forget(mrec_cache *cache, const void *owner, mrec_item_kind kind, uint64_t from) {
    pthread_mutex_lock(&cache->lock);
    for (mrec_item *item = list_of(cache, kind)->oldest; item != NULL;) {
        mrec_item *newer = item->newer;
        if (item->owner == owner && item->kind == kind && item->number >= from)
            drop(cache, item);
        item = newer;
    }
    pthread_mutex_unlock(&cache->lock);
}

/* ---- files -------------------------------------------------------------------------------------------------- */

/* The slot of the file used longest ago among those that nobody holds; nfiles when there is none. */
static size_t oldest_file(const mrec_cache *cache) {
    size_t oldest = cache->nfiles;
    for (size_t i = 0; i < cache->nfiles; i++)
        if (cache->files[i]->pins == 0 &&
            (oldest == cache->nfiles || cache->files[i]->used < cache->files[oldest]->used))
            oldest = i;
    return oldest;
}

static mrec_file *find_file(mrec_cache *cache, const void *owner, uint64_t number) {
    for (size_t i = 0; i < cache->nfiles; i++)
        if (cache->files[i]->owner == owner && cache->files[i]->number == number)
            return cache->files[i];
    return NULL;
}

/* Keep a file, in the place of another when the budget is used up; returns the other, to be closed. Where every
 * file is held by a thread, this one is closed when it is released. */
static mrec_file *keep_file(mrec_cache *cache, mrec_file *file) {
    size_t slot = cache->nfiles;
    mrec_file *other = NULL;
    if (slot >= cache->max_files) {
        slot = oldest_file(cache);
        if (slot == cache->nfiles)
            return NULL;
        other = cache->files[slot];
    } else {
        cache->nfiles++;
    }
    cache->files[slot] = file;
    file->kept = true;
    return other;
}

/* The process has no descriptor left: keep half of the files from now on. False when there is none to give up. */
static bool keep_fewer_files(mrec_cache *cache) {
    bool closed = false;
    pthread_mutex_lock(&cache->lock);
    cache->max_files = cache->nfiles > 1 ? cache->nfiles / 2 : 1;
    for (size_t slot = oldest_file(cache); slot < cache->nfiles; slot = oldest_file(cache)) {
        if (closed && cache->nfiles <= cache->max_files)
            break;
        file_close(cache, cache->files[slot]);
        cache->files[slot] = cache->files[--cache->nfiles];
        closed = true;
    }
    pthread_mutex_unlock(&cache->lock);
    return closed;
}

mrec_file *mrec_file_find(mrec_cache *cache, const void *owner, uint64_t number) {
    pthread_mutex_lock(&cache->lock);
    mrec_file *file = find_file(cache, owner, number);
    if (file != NULL) {
        file->pins++;
        file->used = ++cache->clock;
    }
    pthread_mutex_unlock(&cache->lock);
    return file;
}

/* A file that is open, not kept yet; the descriptor goes when this fails. */
static mrec_status new_file(mrec_cache *cache, int fd, const char *path, mrec_file **out, mrec_error *error) {
    size_t n = strlen(path) + 1;
    mrec_file *file = malloc(sizeof *file + n);
    if (file == NULL) {
        cache->vfs->close(cache->vfs, fd);
        return mrec_fail_memory(error);
    }
    *file = (mrec_file){.fd = fd, .pins = 1};
    memcpy(file->path, path, n);
    mrec_status status = mrec_file_measure(cache, file, error);
    if (status != MREC_OK) {
        file_close(cache, file);
        return status;
    }
    *out = file;
    return MREC_OK;
}

mrec_status mrec_file_hold(mrec_cache *cache, const void *owner, uint64_t number, const char *path, mrec_file **out,
                           mrec_error *error) {
    *out = NULL;
    int fd;
    mrec_error failed;
    mrec_status status;
    do {
        failed.sys_errno = 0;
        status = mrec_file_open(cache->vfs, path, O_RDONLY, &fd, &failed);
    } while ((failed.sys_errno == EMFILE || failed.sys_errno == ENFILE) && keep_fewer_files(cache));
    if (status == MREC_E_IO && failed.sys_errno == ENOENT)
        return MREC_OK;
    if (status != MREC_OK) {
        if (error != NULL)
            *error = failed;
        return status;
    }
    mrec_file *file = NULL;
    MREC_TRY(new_file(cache, fd, path, &file, error));
    pthread_mutex_lock(&cache->lock);
    file->owner = owner;
    file->number = number;
    file->used = ++cache->clock;
    mrec_file *other = keep_file(cache, file);
    pthread_mutex_unlock(&cache->lock);
    file_close(cache, other);
    *out = file;
    return MREC_OK;
}

mrec_status mrec_file_measure(mrec_cache *cache, mrec_file *file, mrec_error *error) {
    uint64_t size;
    MREC_TRY(mrec_file_size(cache->vfs, file->fd, file->path, &size, error));
    file->size = size;
    return MREC_OK;
}

void mrec_file_release(mrec_cache *cache, mrec_file *file) {
    pthread_mutex_lock(&cache->lock);
    bool unused = --file->pins == 0 && !file->kept;
    pthread_mutex_unlock(&cache->lock);
    if (unused)
        file_close(cache, file);
}

void mrec_file_forget(mrec_cache *cache, const void *owner, uint64_t from) {
    pthread_mutex_lock(&cache->lock);
    for (size_t i = cache->nfiles; i-- > 0;) {
        mrec_file *file = cache->files[i];
        if (file->owner != owner || file->number < from)
            continue;
        cache->files[i] = cache->files[--cache->nfiles];
        file->kept = false;
        if (file->pins == 0)
            file_close(cache, file);
    }
    pthread_mutex_unlock(&cache->lock);
}

/* ---- workers ------------------------------------------------------------------------------------------------ */

mrec_status mrec_worker_take(mrec_cache *cache, mrec_worker **out, mrec_error *error) {
    pthread_mutex_lock(&cache->lock);
    mrec_worker *worker = cache->workers;
    if (worker != NULL)
        cache->workers = worker->next;
    pthread_mutex_unlock(&cache->lock);
    if (worker == NULL) {
        worker = calloc(1, sizeof *worker);
        if (worker == NULL)
            return mrec_fail_memory(error);
        mrec_status status = mrec_coder_new(&worker->coder, error);
        if (status != MREC_OK) {
            free(worker);
            return status;
        }
    }
    worker->owner = NULL;
    *out = worker;
    return MREC_OK;
}

void mrec_worker_give(mrec_cache *cache, mrec_worker *worker) {
    if (worker->raw.capacity > WORKER_BYTES)
        mrec_buffer_free(&worker->raw);
    if (worker->text.capacity > WORKER_BYTES)
        mrec_buffer_free(&worker->text);
    if (worker->chunk.capacity > WORKER_BYTES)
        mrec_buffer_free(&worker->chunk);
    pthread_mutex_lock(&cache->lock);
    worker->next = cache->workers;
    cache->workers = worker;
    pthread_mutex_unlock(&cache->lock);
}
