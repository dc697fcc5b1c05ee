/* SPDX-License-Identifier: BSD-3-Clause
 * Every system call on a file or directory goes through one table of functions, so that tests can count calls, make
 * them fail, stop the world at any of them, or record them. */
#ifndef MREC_VFS_H
#define MREC_VFS_H

#include "buffer.h"

#include <errno.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct mrec_vfs mrec_vfs;

/* What a directory holds: a callback for each name; non-zero ends the listing and is returned. */
typedef int (*mrec_vfs_visit)(void *arg, const char *name, bool is_directory);

/* The raw calls. Each returns 0 (or a count) or the negated errno; the functions below add retries and messages.
 * The POSIX table has no state and may be used from any thread. */
struct mrec_vfs {
    int (*open)(mrec_vfs *, const char *path, int flags); /* O_CLOEXEC is added; new files get mode 0666 */
    int (*close)(mrec_vfs *, int fd);
    ssize_t (*pread)(mrec_vfs *, int fd, void *bytes, size_t n, uint64_t offset);
    /* One run of bytes into several places. NULL where the system has no such call. */
    ssize_t (*preadv)(mrec_vfs *, int fd, const struct iovec *, int n, uint64_t offset);
    ssize_t (*pwrite)(mrec_vfs *, int fd, const void *bytes, size_t n, uint64_t offset);
    int64_t (*size)(mrec_vfs *, int fd);
    int (*names)(mrec_vfs *, const char *path, int fd); /* 1: the path names what fd has open; 0: something else */
    int (*truncate)(mrec_vfs *, int fd, uint64_t size);
    int (*sync)(mrec_vfs *, int fd, bool data_only); /* fdatasync or fsync; the full one on macOS */
    /* fdatasync of several files at the same time; what each call returned. NULL: they are synced one by one. */
    void (*sync_all)(mrec_vfs *, const int *fds, int *results, size_t n);
    /* Begin to write a range to the device, not waiting. NULL where the system has no such call. */
    int (*write_back)(mrec_vfs *, int fd, uint64_t offset, uint64_t n);
    int (*rename)(mrec_vfs *, const char *from, const char *to);
    int (*unlink)(mrec_vfs *, const char *path);
    int (*rmdir)(mrec_vfs *, const char *path);
    int (*mkdir)(mrec_vfs *, const char *path);
    int (*list)(mrec_vfs *, const char *path, mrec_vfs_visit visit, void *arg);
    int (*lock)(mrec_vfs *, int fd); /* flock exclusive, not waiting; -EWOULDBLOCK when held elsewhere */
    int (*unlock)(mrec_vfs *, int fd);
};

/* Make a call, and again while a signal interrupted it before it did anything: MREC_RETRY(fd, vfs->open(...)). */
#define MREC_RETRY(result, call)                                                                                       \
    do                                                                                                                 \
        (result) = (call);                                                                                             \
    while ((result) == -EINTR)

/* The operating system's. Never NULL, never freed. */
mrec_vfs *mrec_vfs_posix(void);

/* flags: O_RDONLY or O_RDWR, with O_CREAT when it may be missing. */
mrec_status mrec_file_open(mrec_vfs *, const char *path, int flags, int *fd, mrec_error *);

/* Close, reporting an error that only shows there. */
mrec_status mrec_file_close(mrec_vfs *, int fd, const char *path, mrec_error *);

/* Exactly n bytes. A file that ends before, or whose storage found its own checksum wrong (EBADMSG): CORRUPT. */
mrec_status mrec_file_read(mrec_vfs *, int fd, const char *path, void *bytes, size_t n, uint64_t offset, mrec_error *);

/* The same into several places, at most MREC_MAX_PARTS. */
#define MREC_MAX_PARTS 64
mrec_status mrec_file_read_parts(mrec_vfs *, int fd, const char *path, const struct iovec *, int n, uint64_t offset,
                                 mrec_error *);

mrec_status mrec_file_write(mrec_vfs *, int fd, const char *path, const void *bytes, size_t n, uint64_t offset,
                            mrec_error *);
mrec_status mrec_file_size(mrec_vfs *, int fd, const char *path, uint64_t *size, mrec_error *);
mrec_status mrec_file_truncate(mrec_vfs *, int fd, const char *path, uint64_t size, mrec_error *);
mrec_status mrec_file_sync(mrec_vfs *, int fd, const char *path, mrec_error *);

/* The same for several, at most MREC_MAX_TOGETHER; which of them are there for good after an error is not known. */
#define MREC_MAX_TOGETHER 16
typedef struct mrec_open_file {
    int fd;
    const char *path;
} mrec_open_file;
mrec_status mrec_files_sync(mrec_vfs *, const mrec_open_file *files, size_t n, mrec_error *);

/* Advice: this range will be synced soon, so let the device begin. Promises nothing, and so can not fail. */
void mrec_file_write_back(mrec_vfs *, int fd, uint64_t offset, uint64_t n);

/* fdatasync of a file that is not open here. */
mrec_status mrec_path_sync(mrec_vfs *, const char *path, mrec_error *);

/* The whole file appended to *out. *found = false (and OK) when it does not exist. */
mrec_status mrec_file_load(mrec_vfs *, const char *path, mrec_buffer *out, bool *found, mrec_error *);

mrec_status mrec_file_exists(mrec_vfs *, const char *path, bool *exists, mrec_error *);

/* Put n bytes at path whole or not at all: a temporary file beside it (".<name>.tmp"), then renamed. Nothing is synced.
 * A failure leaves no temporary file where it can be helped. */
mrec_status mrec_file_replace(mrec_vfs *, const char *path, const void *bytes, size_t n, mrec_error *);

/* Files on the way to their names, in temporary ones: {0} is none. */
typedef struct mrec_replacements {
    struct mrec_replacement {
        mrec_open_file temporary; /* its descriptor is -1 when it is synced and closed */
        char *path;
    } * list;
    size_t n, max;
    size_t settled; /* of them, the first ones that are synced and closed */
    size_t named;   /* of these, the first ones that have their names */
} mrec_replacements;

/* Write the temporary file. Those that were there before are settled first where they hold too many descriptors. */
mrec_status mrec_file_prepare(mrec_vfs *, const char *path, const void *bytes, size_t n, mrec_replacements *,
                              mrec_error *);

/* Sync all at the same time, and close them. */
mrec_status mrec_files_settle(mrec_vfs *, mrec_replacements *, mrec_error *);

/* The next n that are settled get their names, in the order in which they were prepared. */
mrec_status mrec_files_name(mrec_vfs *, mrec_replacements *, size_t n, mrec_error *);

/* Settle all, and give all that have none their names. */
mrec_status mrec_files_publish(mrec_vfs *, mrec_replacements *, mrec_error *);

/* None are left; those without a name are removed. */
void mrec_files_drop(mrec_vfs *, mrec_replacements *);

/* Remove a file; one that is not there is no error. */
mrec_status mrec_file_remove(mrec_vfs *, const char *path, mrec_error *);

mrec_status mrec_dir_make(mrec_vfs *, const char *path, mrec_error *); /* one that is there is no error */
mrec_status mrec_dir_sync(mrec_vfs *, const char *path, mrec_error *);
mrec_status mrec_parent_sync(mrec_vfs *, const char *path, mrec_error *); /* fsync of the directory it is in */
mrec_status mrec_dir_list(mrec_vfs *, const char *path, mrec_vfs_visit visit, void *arg, mrec_error *);

/* Remove a file, or a directory and all below it, never following links. */
mrec_status mrec_tree_remove(mrec_vfs *, const char *path, mrec_error *);

/* fdatasync every file and fsync every directory at and below path, children before their directory. */
mrec_status mrec_tree_sync(mrec_vfs *, const char *path, mrec_error *);

/* a + "/" + b in a new string (free()), NULL when memory ran out. */
char *mrec_path_join(const char *a, const char *b);

/* The kernel's identity of this boot (36 characters and NUL), "" where the system has none. */
void mrec_boot_id(char id[64]);

#endif
