/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct mrec_lock {
    mrec_vfs *vfs;
    char *path;
    int fd; /* -1 in a forked child */
    mrec_lock *next;
};

/* A flock belongs to the open file, which fork() shares: a child that outlives its parent would keep the record locked.
 * So the locks of this process are on a list, and a child closes them first thing. */
static mrec_lock *held;
static pthread_mutex_t held_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static atomic_uint fork_count;

static void before_fork(void) {
    pthread_mutex_lock(&held_mutex);
}

static void in_parent(void) {
    pthread_mutex_unlock(&held_mutex);
}

static void in_child(void) {
    atomic_fetch_add(&fork_count, 1);
    for (mrec_lock *lock = held; lock; lock = lock->next) {
        lock->vfs->close(lock->vfs, lock->fd);
        lock->fd = -1;
    }
    held = NULL;
    pthread_mutex_unlock(&held_mutex);
}

static void watch_forks(void) {
    pthread_atfork(before_fork, in_parent, in_child);
}

unsigned mrec_fork_count(void) {
    pthread_once(&fork_once, watch_forks);
    return atomic_load_explicit(&fork_count, memory_order_relaxed);
}

static mrec_status hold(mrec_lock *lock, mrec_error *error) {
    MREC_RETRY(lock->fd, lock->vfs->open(lock->vfs, lock->path, O_RDONLY | O_DIRECTORY));
    if (lock->fd < 0)
        return mrec_fail_errno(error, -lock->fd, lock->path, "cannot open");
    int result;
    MREC_RETRY(result, lock->vfs->lock(lock->vfs, lock->fd));
    if (result == -EWOULDBLOCK)
        return mrec_fail(error, MREC_E_LOCKED, lock->path, "another writer holds the record; close it first");
    bool without_locks = result == -ENOLCK || result == -ENOSYS || result == -EOPNOTSUPP;
    if (result < 0 && !without_locks)
        return mrec_fail_errno(error, -result, lock->path, "cannot lock");
    return mrec_lock_check(lock, error); /* it may have been moved away before it was held */
}

mrec_status mrec_lock_take(mrec_vfs *vfs, const char *path, mrec_lock **out, mrec_error *error) {
    *out = NULL;
    pthread_once(&fork_once, watch_forks);
    mrec_lock *lock = malloc(sizeof *lock);
    if (!lock)
        return mrec_fail_memory(error);
    *lock = (mrec_lock){.vfs = vfs, .path = strdup(path), .fd = -1};
    mrec_status status = lock->path ? hold(lock, error) : mrec_fail_memory(error);
    if (status != MREC_OK) {
        if (lock->fd >= 0)
            vfs->close(vfs, lock->fd);
        free(lock->path);
        free(lock);
        return status;
    }
    pthread_mutex_lock(&held_mutex);
    lock->next = held;
    held = lock;
    pthread_mutex_unlock(&held_mutex);
    *out = lock;
    return MREC_OK;
}

mrec_status mrec_lock_check(const mrec_lock *lock, mrec_error *error) {
    int result;
    MREC_RETRY(result, lock->vfs->names(lock->vfs, lock->path, lock->fd));
    if (result > 0)
        return MREC_OK;
    if (result == 0)
        return mrec_fail_errno(
            error, ESTALE, lock->path,
            "the record was moved away or removed under its writer, and something else is there now");
    return mrec_fail_errno(error, -result, lock->path,
                           result == -ENOENT || result == -ENOTDIR || result == -ESTALE
                               ? "the record was moved away or removed under its writer"
                               : "cannot tell whether the record is still there");
}

void mrec_lock_free(mrec_lock *lock) {
    if (!lock)
        return;
    pthread_mutex_lock(&held_mutex);
    for (mrec_lock **at = &held; *at; at = &(*at)->next) {
        if (*at == lock) {
            *at = lock->next;
            break;
        }
    }
    pthread_mutex_unlock(&held_mutex);
    if (lock->fd >= 0) {
        lock->vfs->unlock(lock->vfs, lock->fd); /* a child that was forked just now may not have closed its own yet */
        lock->vfs->close(lock->vfs, lock->fd);
    }
    free(lock->path);
    free(lock);
}
