/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "archive.h"

#include "crc32c.h"
#include "vfs_read_only.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct mrec_archive {
    mrec_vfs vfs; /* first, so that a call gets from its table to the archive */
    mrec_vfs *base;
    int fd;
    char *root;
    size_t root_size, n;
    mrec_archive_entry *entries; /* a descriptor is the number of its entry */
    char *keys;
};

static mrec_archive *archive_of(mrec_vfs *vfs) {
    return (mrec_archive *)(void *)vfs;
}

/* ---- the calls ---------------------------------------------------------------------------------------------- */

static int by_key(const void *key, const void *entry) {
    return strcmp(key, ((const mrec_archive_entry *)entry)->key);
}

static int ar_open(mrec_vfs *vfs, const char *path, int flags) {
    const mrec_archive *a = archive_of(vfs);
    if ((flags & O_ACCMODE) != O_RDONLY)
        return -EROFS;
    if (strncmp(path, a->root, a->root_size) != 0 || path[a->root_size] != '/')
        return -ENOENT;
    const char *key = path + a->root_size + 1;
    const mrec_archive_entry *entry = a->n ? bsearch(key, a->entries, a->n, sizeof *entry, by_key) : NULL;
    return entry ? (int)(entry - a->entries) : -ENOENT;
}

static int ar_close(mrec_vfs *vfs, int fd) {
    (void)vfs;
    (void)fd;
    return 0;
}

static ssize_t read_part(const mrec_archive *a, const mrec_archive_entry *entry, uint8_t *bytes, size_t n,
                         uint64_t offset) {
    uint64_t left = offset < entry->size ? entry->size - offset : 0;
    if (n > left)
        n = (size_t)left;
    size_t done = 0;
    while (done < n) {
        ssize_t got = a->base->pread(a->base, a->fd, bytes + done, n - done, entry->offset + offset + done);
        if (got < 0 && got != -EINTR)
            return got;
        if (got == 0)
            break;
        done += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)done;
}

static ssize_t ar_preadv(mrec_vfs *vfs, int fd, const struct iovec *parts, int n, uint64_t offset) {
    const mrec_archive *a = archive_of(vfs);
    const mrec_archive_entry *entry = &a->entries[fd];
    uint64_t done = 0;
    for (int i = 0; i < n; i++) {
        ssize_t got = read_part(a, entry, parts[i].iov_base, parts[i].iov_len, offset + done);
        if (got < 0)
            return got;
        done += (uint64_t)got;
        if ((size_t)got < parts[i].iov_len)
            break;
    }
    if (offset > 0 || done < entry->size)
        return (ssize_t)done;
    uint32_t crc = 0;
    for (uint64_t left = done; left > 0; parts++) {
        size_t size = parts->iov_len < left ? parts->iov_len : (size_t)left;
        crc = mrec_crc32(crc, parts->iov_base, size);
        left -= size;
    }
    return crc == entry->crc32 ? (ssize_t)done : -EBADMSG;
}

static ssize_t ar_pread(mrec_vfs *vfs, int fd, void *bytes, size_t n, uint64_t offset) {
    return ar_preadv(vfs, fd, &(struct iovec){bytes, n}, 1, offset);
}

static int64_t ar_size(mrec_vfs *vfs, int fd) {
    return (int64_t)archive_of(vfs)->entries[fd].size;
}

/* ---- making one --------------------------------------------------------------------------------------------- */

static mrec_status copy_entries(mrec_archive *a, const mrec_archive_entry *entries, size_t n, mrec_error *error) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && strcmp(entries[i - 1].key, entries[i].key) >= 0)
            return mrec_fail(error, MREC_E_VALUE, a->root, "the keys of the archive do not ascend at %s",
                             entries[i].key);
        bytes += strlen(entries[i].key) + 1;
    }
    a->entries = calloc(n + 1, sizeof *a->entries);
    a->keys = malloc(bytes + 1);
    if (!a->entries || !a->keys)
        return mrec_fail_memory(error);
    char *at = a->keys;
    for (size_t i = 0; i < n; i++) {
        a->entries[i] = entries[i];
        a->entries[i].key = at;
        at = stpcpy(at, entries[i].key) + 1;
    }
    a->n = n;
    return MREC_OK;
}

mrec_status mrec_archive_new(mrec_vfs *base, int fd, const char *root, const mrec_archive_entry *entries, size_t n,
                             mrec_archive **out, mrec_error *error) {
    *out = NULL;
    mrec_archive *a = calloc(1, sizeof *a);
    if (!a) {
        base->close(base, fd);
        return mrec_fail_memory(error);
    }
    *a = (mrec_archive){
        .vfs = mrec_vfs_read_only, .base = base, .fd = fd, .root = strdup(root), .root_size = strlen(root)};
    a->vfs.open = ar_open;
    a->vfs.close = ar_close;
    a->vfs.pread = ar_pread;
    a->vfs.preadv = ar_preadv;
    a->vfs.size = ar_size;
    mrec_status status = a->root ? MREC_OK : mrec_fail_memory(error);
    if (status == MREC_OK && n > INT_MAX)
        status = mrec_fail(error, MREC_E_VALUE, root, "the archive has too many entries");
    if (status == MREC_OK)
        status = copy_entries(a, entries, n, error);
    if (status != MREC_OK) {
        mrec_archive_free(a);
        return status;
    }
    *out = a;
    return MREC_OK;
}

void mrec_archive_free(mrec_archive *a) {
    if (!a)
        return;
    a->base->close(a->base, a->fd);
    free(a->root);
    free(a->entries);
    free(a->keys);
    free(a);
}

mrec_vfs *mrec_archive_vfs(mrec_archive *a) {
    return &a->vfs;
}
