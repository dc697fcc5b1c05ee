/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct mrec_lock {
    mrec_vfs *vfs;
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

mrec_status mrec_lock_take(mrec_vfs *vfs, const char *path, mrec_lock **out, mrec_error *error) {
    *out = NULL;
    pthread_once(&fork_once, watch_forks);
    mrec_lock *lock = malloc(sizeof *lock);
    if (!lock)
        return mrec_fail_memory(error);
    lock->vfs = vfs;
    MREC_RETRY(lock->fd, vfs->open(vfs, path, O_RDONLY | O_DIRECTORY));
    if (lock->fd < 0) {
        int err = -lock->fd;
        free(lock);
        return mrec_fail_errno(error, err, path, "cannot open");
    }
    int result;
    MREC_RETRY(result, vfs->lock(vfs, lock->fd));
    bool without_locks = result == -ENOLCK || result == -ENOSYS || result == -EOPNOTSUPP;
    if (result < 0 && !without_locks) {
        vfs->close(vfs, lock->fd);
        free(lock);
        return result == -EWOULDBLOCK
                   ? mrec_fail(error, MREC_E_LOCKED, path, "another writer holds the record; close it first")
                   : mrec_fail_errno(error, -result, path, "cannot lock");
    }
    pthread_mutex_lock(&held_mutex);
    lock->next = held;
    held = lock;
    pthread_mutex_unlock(&held_mutex);
    *out = lock;
    return MREC_OK;
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
    free(lock);
}
