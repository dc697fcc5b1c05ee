/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "vfs.h"

#include "thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

static int px_open(mrec_vfs *vfs, const char *path, int flags) {
    (void)vfs;
    int fd = open(path, flags | O_CLOEXEC, 0666);
    return fd < 0 ? -errno : fd;
}

static int px_close(mrec_vfs *vfs, int fd) {
    (void)vfs;
    return close(fd) < 0 ? -errno : 0;
}

static ssize_t px_pread(mrec_vfs *vfs, int fd, void *bytes, size_t n, uint64_t offset) {
    (void)vfs;
    ssize_t got = pread(fd, bytes, n, (off_t)offset);
    return got < 0 ? -errno : got;
}

#if defined(__linux__)
static ssize_t px_preadv(mrec_vfs *vfs, int fd, const struct iovec *parts, int n, uint64_t offset) {
    (void)vfs;
    ssize_t got = preadv(fd, parts, n, (off_t)offset);
    return got < 0 ? -errno : got;
}
#endif

static ssize_t px_pwrite(mrec_vfs *vfs, int fd, const void *bytes, size_t n, uint64_t offset) {
    (void)vfs;
    ssize_t put = pwrite(fd, bytes, n, (off_t)offset);
    return put < 0 ? -errno : put;
}

static int64_t px_size(mrec_vfs *vfs, int fd) {
    (void)vfs;
    struct stat st;
    return fstat(fd, &st) < 0 ? -errno : (int64_t)st.st_size;
}

static int px_names(mrec_vfs *vfs, const char *path, int fd) {
    (void)vfs;
    struct stat there, ours;
    if (stat(path, &there) < 0 || fstat(fd, &ours) < 0)
        return -errno;
    return there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

static int px_truncate(mrec_vfs *vfs, int fd, uint64_t size) {
    (void)vfs;
    return ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

static int px_sync(mrec_vfs *vfs, int fd, bool data_only) {
    (void)vfs;
#if defined(__APPLE__)
    (void)data_only;
    return fcntl(fd, F_FULLFSYNC) < 0 ? -errno : 0;
#else
    return (data_only ? fdatasync(fd) : fsync(fd)) < 0 ? -errno : 0;
#endif
}

/* ---- several syncs at the same time: a file system puts what waits together into one write of its journal ---- */

/* Where a sync takes less, threads cost more than they save. */
#define WORTH_THREADS ((uint64_t)200 * 1000)

typedef struct syncs {
    const int *fds;
    int *results;
    size_t n;
    _Atomic size_t next;
    _Atomic uint64_t took; /* nanoseconds, the last one */
} syncs;

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *sync_some(void *arg) {
    syncs *all = arg;
    for (size_t i; (i = atomic_fetch_add(&all->next, 1)) < all->n;) {
        const uint64_t start = nanoseconds();
        MREC_RETRY(all->results[i], px_sync(NULL, all->fds[i], true));
        atomic_store(&all->took, nanoseconds() - start);
    }
    return NULL;
}

static void px_sync_all(mrec_vfs *vfs, const int *fds, int *results, size_t n) {
    (void)vfs;
    static _Atomic uint64_t took; /* the last time: what storage it was */
    pthread_t threads[MREC_MAX_TOGETHER];
    size_t nthreads = 0;
    syncs all = {.fds = fds, .results = results, .n = n};
    if (atomic_load(&took) >= WORTH_THREADS)
        while (nthreads + 1 < n && mrec_thread_start(&threads[nthreads], sync_some, &all, NULL) == MREC_OK)
            nthreads++;
    sync_some(&all);
    while (nthreads > 0)
        pthread_join(threads[--nthreads], NULL);
    atomic_store(&took, atomic_load(&all.took));
}

#if defined(__linux__)
static int px_write_back(mrec_vfs *vfs, int fd, uint64_t offset, uint64_t n) {
    (void)vfs;
    return sync_file_range(fd, (off_t)offset, (off_t)n, SYNC_FILE_RANGE_WRITE) < 0 ? -errno : 0;
}
#endif

static int px_rename(mrec_vfs *vfs, const char *from, const char *to) {
    (void)vfs;
    return rename(from, to) < 0 ? -errno : 0;
}

static int px_unlink(mrec_vfs *vfs, const char *path) {
    (void)vfs;
    return unlink(path) < 0 ? -errno : 0;
}

static int px_rmdir(mrec_vfs *vfs, const char *path) {
    (void)vfs;
    return rmdir(path) < 0 ? -errno : 0;
}

static int px_mkdir(mrec_vfs *vfs, const char *path) {
    (void)vfs;
    return mkdir(path, 0777) < 0 ? -errno : 0;
}

/* Links count as files, so that nothing walks or removes through them. */
static bool is_directory(const char *path, const struct dirent *entry) {
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    char *full = mrec_path_join(path, entry->d_name);
    struct stat st;
    bool is = full && lstat(full, &st) == 0 && S_ISDIR(st.st_mode);
    free(full);
    return is;
}

static int px_list(mrec_vfs *vfs, const char *path, mrec_vfs_visit visit, void *arg) {
    (void)vfs;
    DIR *dir = opendir(path);
    if (!dir)
        return -errno;
    int result = 0;
    while (result == 0) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry) {
            result = -errno;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = visit(arg, entry->d_name, is_directory(path, entry));
    }
    closedir(dir);
    return result;
}

static int px_lock(mrec_vfs *vfs, int fd) {
    (void)vfs;
    return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static int px_unlock(mrec_vfs *vfs, int fd) {
    (void)vfs;
    return flock(fd, LOCK_UN) < 0 ? -errno : 0;
}

mrec_vfs *mrec_vfs_posix(void) {
    static mrec_vfs posix = {
        .open = px_open,
        .close = px_close,
        .pread = px_pread,
#if defined(__linux__)
        .preadv = px_preadv,
#endif
        .pwrite = px_pwrite,
        .size = px_size,
        .names = px_names,
        .truncate = px_truncate,
        .sync = px_sync,
        .sync_all = px_sync_all,
#if defined(__linux__)
        .write_back = px_write_back,
#endif
        .rename = px_rename,
        .unlink = px_unlink,
        .rmdir = px_rmdir,
        .mkdir = px_mkdir,
        .list = px_list,
        .lock = px_lock,
        .unlock = px_unlock,
    };
    return &posix;
}

void mrec_boot_id(char id[64]) {
    id[0] = '\0';
#if defined(__APPLE__)
    size_t size = 64;
    if (sysctlbyname("kern.bootsessionuuid", id, &size, NULL, 0) != 0)
        id[0] = '\0';
#else
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file)
        return;
    if (!fgets(id, 64, file))
        id[0] = '\0';
    id[strcspn(id, "\n")] = '\0';
    fclose(file);
#endif
}
