/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

char *mrec_path_join(const char *a, const char *b) {
    size_t na = strlen(a), nb = strlen(b);
    char *path = malloc(na + nb + 2);
    if (!path)
        return NULL;
    memcpy(path, a, na);
    path[na] = '/';
    memcpy(path + na + 1, b, nb + 1);
    return path;
}

/* "dir" of "dir/name" and ".<name>.tmp" beside it. */
static char *temporary_name(const char *path) {
    const char *slash = strrchr(path, '/');
    size_t dir = slash ? (size_t)(slash - path) + 1 : 0;
    size_t name = strlen(path + dir);
    char *tmp = malloc(dir + name + 6);
    if (!tmp)
        return NULL;
    memcpy(tmp, path, dir);
    tmp[dir] = '.';
    memcpy(tmp + dir + 1, path + dir, name);
    memcpy(tmp + dir + 1 + name, ".tmp", 5);
    return tmp;
}

static int open_retrying(mrec_vfs *vfs, const char *path, int flags) {
    int fd;
    MREC_RETRY(fd, vfs->open(vfs, path, flags));
    return fd;
}

static mrec_status sync_fd(mrec_vfs *vfs, int fd, const char *path, bool data_only, mrec_error *error) {
    int result;
    MREC_RETRY(result, vfs->sync(vfs, fd, data_only));
    return result < 0 ? mrec_fail_errno(error, -result, path, "cannot sync") : MREC_OK;
}

mrec_status mrec_file_open(mrec_vfs *vfs, const char *path, int flags, int *fd, mrec_error *error) {
    *fd = open_retrying(vfs, path, flags);
    return *fd < 0 ? mrec_fail_errno(error, -*fd, path, "cannot open") : MREC_OK;
}

mrec_status mrec_file_close(mrec_vfs *vfs, int fd, const char *path, mrec_error *error) {
    int result = vfs->close(vfs, fd);
    /* Linux closes the descriptor also when it says EINTR; a second close could hit another thread's file. */
    return result < 0 && result != -EINTR ? mrec_fail_errno(error, -result, path, "cannot close") : MREC_OK;
}

static mrec_status fails_checksum(const char *path, mrec_error *error) {
    return mrec_fail(error, MREC_E_CORRUPT, path, "what is stored fails the checksum of its storage");
}

mrec_status mrec_file_read(mrec_vfs *vfs, int fd, const char *path, void *bytes, size_t n, uint64_t offset,
                           mrec_error *error) {
    uint8_t *at = bytes;
    while (n > 0) {
        ssize_t got;
        MREC_RETRY(got, vfs->pread(vfs, fd, at, n, offset));
        if (got == -EBADMSG)
            return fails_checksum(path, error);
        if (got < 0)
            return mrec_fail_errno(error, (int)-got, path, "cannot read");
        if (got == 0)
            return mrec_fail(error, MREC_E_CORRUPT, path, "the file ends at byte %llu where more bytes should stand",
                             (unsigned long long)offset);
        at += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return MREC_OK;
}

mrec_status mrec_file_read_parts(mrec_vfs *vfs, int fd, const char *path, const struct iovec *parts, int n,
                                 uint64_t offset, mrec_error *error) {
    ssize_t got = -EINTR;
    while (vfs->preadv != NULL && got == -EINTR)
        got = vfs->preadv(vfs, fd, parts, n, offset);
    if (got == -EBADMSG)
        return fails_checksum(path, error);
    size_t done = got > 0 ? (size_t)got : 0; /* one by one, what it left or failed at */
    for (int i = 0; i < n; i++) {
        size_t skip = done < parts[i].iov_len ? done : parts[i].iov_len;
        if (skip < parts[i].iov_len)
            MREC_TRY(mrec_file_read(vfs, fd, path, (uint8_t *)parts[i].iov_base + skip, parts[i].iov_len - skip,
                                    offset + skip, error));
        done -= skip;
        offset += parts[i].iov_len;
    }
    return MREC_OK;
}

mrec_status mrec_file_write(mrec_vfs *vfs, int fd, const char *path, const void *bytes, size_t n, uint64_t offset,
                            mrec_error *error) {
    const uint8_t *at = bytes;
    while (n > 0) {
        ssize_t put;
        MREC_RETRY(put, vfs->pwrite(vfs, fd, at, n, offset));
        if (put <= 0)
            return mrec_fail_errno(error, put == 0 ? EIO : (int)-put, path, "cannot write");
        at += put;
        n -= (size_t)put;
        offset += (uint64_t)put;
    }
    return MREC_OK;
}

mrec_status mrec_file_size(mrec_vfs *vfs, int fd, const char *path, uint64_t *size, mrec_error *error) {
    int64_t result;
    MREC_RETRY(result, vfs->size(vfs, fd));
    if (result < 0)
        return mrec_fail_errno(error, (int)-result, path, "cannot tell the size of");
    *size = (uint64_t)result;
    return MREC_OK;
}

mrec_status mrec_file_truncate(mrec_vfs *vfs, int fd, const char *path, uint64_t size, mrec_error *error) {
    int result;
    MREC_RETRY(result, vfs->truncate(vfs, fd, size));
    return result < 0 ? mrec_fail_errno(error, -result, path, "cannot cut") : MREC_OK;
}

mrec_status mrec_file_sync(mrec_vfs *vfs, int fd, const char *path, mrec_error *error) {
    return sync_fd(vfs, fd, path, true, error);
}

mrec_status mrec_files_sync(mrec_vfs *vfs, const mrec_open_file *files, size_t n, mrec_error *error) {
    int fds[MREC_MAX_TOGETHER] = {0}, results[MREC_MAX_TOGETHER] = {0};
    if (vfs->sync_all == NULL || n <= 1) {
        for (size_t i = 0; i < n; i++)
            MREC_TRY(mrec_file_sync(vfs, files[i].fd, files[i].path, error));
        return MREC_OK;
    }
    for (size_t i = 0; i < n; i++)
        fds[i] = files[i].fd;
    vfs->sync_all(vfs, fds, results, n);
    for (size_t i = 0; i < n; i++)
        if (results[i] < 0)
            return mrec_fail_errno(error, -results[i], files[i].path, "cannot sync");
    return MREC_OK;
}

void mrec_file_write_back(mrec_vfs *vfs, int fd, uint64_t offset, uint64_t n) {
    if (vfs->write_back)
        vfs->write_back(vfs, fd, offset, n);
}

/* Open, sync, close: whatever was written through any descriptor of the file. */
static mrec_status sync_path(mrec_vfs *vfs, const char *path, bool directory, mrec_error *error) {
    int fd = open_retrying(vfs, path, directory ? O_RDONLY | O_DIRECTORY : O_RDONLY);
    if (fd < 0)
        return mrec_fail_errno(error, -fd, path, "cannot open");
    mrec_status status = sync_fd(vfs, fd, path, !directory, error);
    mrec_status closed = mrec_file_close(vfs, fd, path, status == MREC_OK ? error : NULL);
    return status != MREC_OK ? status : closed;
}

mrec_status mrec_path_sync(mrec_vfs *vfs, const char *path, mrec_error *error) {
    return sync_path(vfs, path, false, error);
}

mrec_status mrec_dir_sync(mrec_vfs *vfs, const char *path, mrec_error *error) {
    return sync_path(vfs, path, true, error);
}

mrec_status mrec_parent_sync(mrec_vfs *vfs, const char *path, mrec_error *error) {
    char *parent = strdup(path);
    if (!parent)
        return mrec_fail_memory(error);
    char *slash = strrchr(parent, '/');
    if (slash)
        *(slash == parent ? slash + 1 : slash) = '\0';
    mrec_status status = mrec_dir_sync(vfs, slash ? parent : ".", error);
    free(parent);
    return status;
}

mrec_status mrec_file_load(mrec_vfs *vfs, const char *path, mrec_buffer *out, bool *found, mrec_error *error) {
    int fd = open_retrying(vfs, path, O_RDONLY);
    *found = fd >= 0;
    if (fd == -ENOENT || fd == -ENOTDIR)
        return MREC_OK;
    if (fd < 0)
        return mrec_fail_errno(error, -fd, path, "cannot open");
    uint64_t size = 0;
    mrec_status status = mrec_file_size(vfs, fd, path, &size, error);
    if (status == MREC_OK)
        status = mrec_buffer_reserve(out, out->size + (size_t)size, error);
    if (status == MREC_OK)
        status = mrec_file_read(vfs, fd, path, out->data + out->size, (size_t)size, 0, error);
    if (status == MREC_OK)
        out->size += (size_t)size;
    mrec_status closed = mrec_file_close(vfs, fd, path, status == MREC_OK ? error : NULL);
    return status != MREC_OK ? status : closed;
}

mrec_status mrec_file_exists(mrec_vfs *vfs, const char *path, bool *exists, mrec_error *error) {
    int fd = open_retrying(vfs, path, O_RDONLY);
    *exists = fd >= 0;
    if (fd == -ENOENT || fd == -ENOTDIR)
        return MREC_OK;
    return fd < 0 ? mrec_fail_errno(error, -fd, path, "cannot open") : mrec_file_close(vfs, fd, path, error);
}

static mrec_status write_whole(mrec_vfs *vfs, const char *path, const void *bytes, size_t n, mrec_error *error) {
    int fd = open_retrying(vfs, path, O_RDWR | O_CREAT | O_TRUNC);
    if (fd < 0)
        return mrec_fail_errno(error, -fd, path, "cannot create");
    mrec_status status = mrec_file_write(vfs, fd, path, bytes, n, 0, error);
    mrec_status closed = mrec_file_close(vfs, fd, path, status == MREC_OK ? error : NULL);
    return status != MREC_OK ? status : closed;
}

mrec_status mrec_file_replace(mrec_vfs *vfs, const char *path, const void *bytes, size_t n, mrec_error *error) {
    char *tmp = temporary_name(path);
    if (!tmp)
        return mrec_fail_memory(error);
    mrec_status status = write_whole(vfs, tmp, bytes, n, error);
    if (status == MREC_OK) {
        int result;
        MREC_RETRY(result, vfs->rename(vfs, tmp, path));
        if (result < 0)
            status = mrec_fail_errno(error, -result, path, "cannot rename to");
    }
    if (status != MREC_OK)
        vfs->unlink(vfs, tmp);
    free(tmp);
    return status;
}

/* ---- several files in the place of others ---- */

void mrec_files_drop(mrec_vfs *vfs, mrec_replacements *all) {
    for (size_t i = 0; i < all->n; i++) {
        const mrec_open_file *temporary = &all->list[i].temporary;
        if (temporary->fd >= 0)
            vfs->close(vfs, temporary->fd);
        if (i >= all->named)
            vfs->unlink(vfs, temporary->path);
        free((char *)temporary->path);
        free(all->list[i].path);
    }
    free(all->list);
    *all = (mrec_replacements){0};
}

mrec_status mrec_files_settle(mrec_vfs *vfs, mrec_replacements *all, mrec_error *error) {
    mrec_open_file files[MREC_MAX_TOGETHER];
    const size_t n = all->n - all->settled;
    for (size_t i = 0; i < n; i++)
        files[i] = all->list[all->settled + i].temporary;
    MREC_TRY(mrec_files_sync(vfs, files, n, error));
    for (; all->settled < all->n; all->settled++) {
        mrec_open_file *temporary = &all->list[all->settled].temporary;
        int fd = temporary->fd;
        temporary->fd = -1;
        MREC_TRY(mrec_file_close(vfs, fd, temporary->path, error));
    }
    return MREC_OK;
}

mrec_status mrec_files_name(mrec_vfs *vfs, mrec_replacements *all, size_t n, mrec_error *error) {
    for (size_t i = 0; i < n; i++, all->named++) {
        const struct mrec_replacement *next = &all->list[all->named];
        int result;
        MREC_RETRY(result, vfs->rename(vfs, next->temporary.path, next->path));
        if (result < 0)
            return mrec_fail_errno(error, -result, next->path, "cannot rename to");
    }
    return MREC_OK;
}

mrec_status mrec_files_publish(mrec_vfs *vfs, mrec_replacements *all, mrec_error *error) {
    MREC_TRY(mrec_files_settle(vfs, all, error));
    return mrec_files_name(vfs, all, all->n - all->named, error);
}

/* Room for one more, and a descriptor. */
static mrec_status make_room(mrec_vfs *vfs, mrec_replacements *all, mrec_error *error) {
    if (all->n - all->settled == MREC_MAX_TOGETHER)
        MREC_TRY(mrec_files_settle(vfs, all, error));
    if (all->n < all->max)
        return MREC_OK;
    const size_t max = all->max ? 2 * all->max : MREC_MAX_TOGETHER;
    struct mrec_replacement *list = realloc(all->list, max * sizeof *list);
    if (!list)
        return mrec_fail_memory(error);
    all->list = list;
    all->max = max;
    return MREC_OK;
}

static mrec_status create_temporary(mrec_vfs *vfs, const char *path, mrec_replacements *all, int *fd,
                                    mrec_error *error) {
    const int flags = O_RDWR | O_CREAT | O_TRUNC;
    *fd = open_retrying(vfs, path, flags);
    if ((*fd == -EMFILE || *fd == -ENFILE) && all->settled < all->n) {
        MREC_TRY(mrec_files_settle(vfs, all, error));
        *fd = open_retrying(vfs, path, flags);
    }
    return *fd < 0 ? mrec_fail_errno(error, -*fd, path, "cannot create") : MREC_OK;
}

mrec_status mrec_file_prepare(mrec_vfs *vfs, const char *path, const void *bytes, size_t n, mrec_replacements *all,
                              mrec_error *error) {
    MREC_TRY(make_room(vfs, all, error));
    char *tmp = temporary_name(path), *own = strdup(path);
    int fd = -1;
    mrec_status status = tmp && own ? create_temporary(vfs, tmp, all, &fd, error) : mrec_fail_memory(error);
    if (status != MREC_OK) {
        free(tmp);
        free(own);
        return status;
    }
    all->list[all->n++] = (struct mrec_replacement){{fd, tmp}, own};
    return mrec_file_write(vfs, fd, tmp, bytes, n, 0, error);
}

mrec_status mrec_file_remove(mrec_vfs *vfs, const char *path, mrec_error *error) {
    int result;
    MREC_RETRY(result, vfs->unlink(vfs, path));
    return result < 0 && result != -ENOENT ? mrec_fail_errno(error, -result, path, "cannot remove") : MREC_OK;
}

mrec_status mrec_dir_make(mrec_vfs *vfs, const char *path, mrec_error *error) {
    int result;
    MREC_RETRY(result, vfs->mkdir(vfs, path));
    return result < 0 && result != -EEXIST ? mrec_fail_errno(error, -result, path, "cannot create") : MREC_OK;
}

mrec_status mrec_dir_list(mrec_vfs *vfs, const char *path, mrec_vfs_visit visit, void *arg, mrec_error *error) {
    int result;
    MREC_RETRY(result, vfs->list(vfs, path, visit, arg));
    return result < 0 ? mrec_fail_errno(error, -result, path, "cannot list") : MREC_OK;
}

/* The names in a directory, collected before anything in it is touched. */
typedef struct listing {
    mrec_buffer names; /* NUL-terminated, each after one byte: 1 for a directory */
    mrec_error *error;
    mrec_status status;
} listing;

static int collect(void *arg, const char *name, bool is_directory) {
    listing *l = arg;
    uint8_t kind = is_directory;
    l->status = mrec_buffer_add(&l->names, &kind, 1, l->error);
    if (l->status == MREC_OK)
        l->status = mrec_buffer_add(&l->names, name, strlen(name) + 1, l->error);
    return l->status != MREC_OK;
}

typedef mrec_status (*tree_action)(mrec_vfs *, const char *path, bool is_directory, mrec_error *);

/* The action on everything below path and then on path itself, children first. */
static mrec_status walk_tree(mrec_vfs *vfs, const char *path, tree_action action, mrec_error *error) {
    listing l = {.error = error, .status = MREC_OK};
    mrec_status status = mrec_dir_list(vfs, path, collect, &l, error);
    if (status == MREC_OK)
        status = l.status;
    for (size_t at = 0; status == MREC_OK && at < l.names.size;) {
        bool is_directory = l.names.data[at];
        const char *name = (const char *)l.names.data + at + 1;
        at += strlen(name) + 2;
        char *child = mrec_path_join(path, name);
        if (!child)
            status = mrec_fail_memory(error);
        else
            status = is_directory ? walk_tree(vfs, child, action, error) : action(vfs, child, false, error);
        free(child);
    }
    mrec_buffer_free(&l.names);
    return status == MREC_OK ? action(vfs, path, true, error) : status;
}

static mrec_status remove_one(mrec_vfs *vfs, const char *path, bool is_directory, mrec_error *error) {
    if (!is_directory)
        return mrec_file_remove(vfs, path, error);
    int result;
    MREC_RETRY(result, vfs->rmdir(vfs, path));
    return result < 0 && result != -ENOENT ? mrec_fail_errno(error, -result, path, "cannot remove") : MREC_OK;
}

mrec_status mrec_tree_remove(mrec_vfs *vfs, const char *path, mrec_error *error) {
    int result;
    MREC_RETRY(result, vfs->unlink(vfs, path));
    if (result == 0 || result == -ENOENT || result == -ENOTDIR)
        return MREC_OK;
    /* A directory: EISDIR on Linux, EPERM by POSIX. */
    return result == -EISDIR || result == -EPERM ? walk_tree(vfs, path, remove_one, error)
                                                 : mrec_fail_errno(error, -result, path, "cannot remove");
}

mrec_status mrec_tree_sync(mrec_vfs *vfs, const char *path, mrec_error *error) {
    return walk_tree(vfs, path, sync_path, error);
}
