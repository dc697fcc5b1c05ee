/* SPDX-License-Identifier: BSD-3-Clause */
#include "vfs_read_only.h"

static ssize_t ro_pwrite(mrec_vfs *vfs, int fd, const void *bytes, size_t n, uint64_t offset) {
    (void)vfs;
    (void)fd;
    (void)bytes;
    (void)n;
    (void)offset;
    return -EROFS;
}

static int ro_truncate(mrec_vfs *vfs, int fd, uint64_t size) {
    (void)vfs;
    (void)fd;
    (void)size;
    return -EROFS;
}

static int ro_sync(mrec_vfs *vfs, int fd, bool data_only) {
    (void)vfs;
    (void)fd;
    (void)data_only;
    return -EROFS;
}

static int ro_rename(mrec_vfs *vfs, const char *from, const char *to) {
    (void)vfs;
    (void)from;
    (void)to;
    return -EROFS;
}

static int ro_change(mrec_vfs *vfs, const char *path) {
    (void)vfs;
    (void)path;
    return -EROFS;
}

static int ro_list(mrec_vfs *vfs, const char *path, mrec_vfs_visit visit, void *arg) {
    (void)vfs;
    (void)path;
    (void)visit;
    (void)arg;
    return -EROFS;
}

static int ro_lock(mrec_vfs *vfs, int fd) {
    (void)vfs;
    (void)fd;
    return -EROFS;
}

const mrec_vfs mrec_vfs_read_only = {
    .pwrite = ro_pwrite,
    .truncate = ro_truncate,
    .sync = ro_sync,
    .rename = ro_rename,
    .unlink = ro_change,
    .rmdir = ro_change,
    .mkdir = ro_change,
    .list = ro_list,
    .lock = ro_lock,
    .unlock = ro_lock,
};
