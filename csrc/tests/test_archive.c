/* SPDX-License-Identifier: BSD-3-Clause
 * Entries of an archive read as files, and copies that are checksummed on the way. */
#define _GNU_SOURCE
#include "tests.h"

#include "archive.h"
#include "copy.h"
#include "crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE ((size_t)3 << 20)

/* A new file without a name. */
static int new_file(void) {
    char path[] = "/tmp/mrec-test-XXXXXX";
    int fd = mkstemp(path);
    assert(fd >= 0 && unlink(path) == 0);
    return fd;
}

static void check_entry(mrec_vfs *vfs, const char *path, const uint8_t *right, size_t n) {
    int fd = vfs->open(vfs, path, O_RDONLY);
    assert(fd >= 0 && vfs->size(vfs, fd) == (int64_t)n);
    uint8_t *found = malloc(n + 8);
    assert(vfs->pread(vfs, fd, found, n + 8, 0) == (ssize_t)n && memcmp(found, right, n) == 0);
    assert(vfs->pread(vfs, fd, found, 8, n) == 0 && vfs->pread(vfs, fd, found, 8, UINT64_MAX) == 0);
    if (n > 5)
        assert(vfs->pread(vfs, fd, found, n, 5) == (ssize_t)n - 5 && memcmp(found, right + 5, n - 5) == 0);
    assert(vfs->close(vfs, fd) == 0);
    free(found);
}

static void check_refusals(mrec_vfs *vfs) {
    char byte;
    mrec_buffer out = {0};
    mrec_error error;
    bool found;
    assert(vfs->open(vfs, "/r.zip/a", O_RDWR) == -EROFS && vfs->open(vfs, "/r.zip/none", O_RDONLY) == -ENOENT);
    assert(vfs->open(vfs, "/r.zip", O_RDONLY) == -ENOENT && vfs->open(vfs, "/other/a", O_RDONLY) == -ENOENT);
    assert(vfs->open(vfs, "/r.zipa", O_RDONLY) == -ENOENT && vfs->pwrite(vfs, 0, "x", 1, 0) == -EROFS);
    assert(vfs->truncate(vfs, 0, 0) == -EROFS && vfs->sync(vfs, 0, true) == -EROFS && vfs->lock(vfs, 0) == -EROFS);
    assert(vfs->rename(vfs, "a", "b") == -EROFS && vfs->unlink(vfs, "a") == -EROFS && vfs->mkdir(vfs, "a") == -EROFS);
    assert(vfs->rmdir(vfs, "a") == -EROFS && vfs->list(vfs, "a", NULL, NULL) == -EROFS);
    int fd = vfs->open(vfs, "/r.zip/wrong", O_RDONLY);
    assert(vfs->pread(vfs, fd, &byte, 1, 0) == 1); /* a part is not checked */
    assert(mrec_file_load(vfs, "/r.zip/wrong", &out, &found, &error) == MREC_E_CORRUPT && error.path[0] == '/');
    mrec_buffer_free(&out);
}

static void check_archive(void) {
    uint8_t *bytes = random_bytes(1000, 1);
    int fd = new_file();
    assert(pwrite(fd, bytes, 1000, 0) == 1000);
    mrec_archive_entry entries[] = {{"a", 0, 10, mrec_crc32(0, bytes, 10)},
                                    {"a/b", 990, 10, mrec_crc32(0, bytes + 990, 10)},
                                    {"empty", 7, 0, 0},
                                    {"wrong", 1, 20, 99}};
    mrec_archive *archive;
    mrec_error error;
    assert(mrec_archive_new(mrec_vfs_posix(), fd, "/r.zip", entries, 4, &archive, &error) == MREC_OK);
    mrec_vfs *vfs = mrec_archive_vfs(archive);
    check_entry(vfs, "/r.zip/a", bytes, 10);
    check_entry(vfs, "/r.zip/a/b", bytes + 990, 10);
    check_entry(vfs, "/r.zip/empty", bytes, 0);
    check_refusals(vfs);
    mrec_archive_free(archive);
    mrec_archive_free(NULL);
    assert(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    entries[1].key = "a"; /* twice */
    assert(mrec_archive_new(mrec_vfs_posix(), new_file(), "/r", entries, 4, &archive, &error) == MREC_E_VALUE);
    assert(mrec_archive_new(mrec_vfs_posix(), new_file(), "/r", NULL, 0, &archive, &error) == MREC_OK);
    assert(mrec_archive_vfs(archive)->open(mrec_archive_vfs(archive), "/r/a", O_RDONLY) == -ENOENT);
    mrec_archive_free(archive);
    free(bytes);
}

/* Bytes with zeros in them, to an odd place and in two calls. */
static void check_copy(void) {
    uint8_t *bytes = random_bytes(SIZE, 2), *found = malloc(SIZE);
    memset(bytes + 100000, 0, (size_t)1 << 20);
    memset(bytes + SIZE - 100, 0, 100);
    mrec_span from = {new_file(), "from", 0}, to = {new_file(), "to", 77};
    mrec_error error;
    assert(pwrite(from.fd, bytes, SIZE, 0) == (ssize_t)SIZE);
    uint32_t crc = 0;
    assert(mrec_copy(mrec_vfs_posix(), &from, &to, 1001, &crc, &error) == MREC_OK);
    from.offset = 1001;
    to.offset += 1001;
    assert(mrec_copy(mrec_vfs_posix(), &from, &to, SIZE - 1001, &crc, &error) == MREC_OK);
    assert(crc == mrec_crc32(0, bytes, SIZE));
    assert(pread(to.fd, found, SIZE, 77) == (ssize_t)SIZE && memcmp(found, bytes, SIZE) == 0);
    assert(mrec_copy(mrec_vfs_posix(), &from, &to, 0, &crc, &error) == MREC_OK && crc == mrec_crc32(0, bytes, SIZE));
    assert(mrec_copy(mrec_vfs_posix(), &from, &to, SIZE, &crc, &error) == MREC_E_CORRUPT);
    to.fd = -1;
    assert(mrec_copy(mrec_vfs_posix(), &from, &to, 10, &crc, &error) == MREC_E_IO && error.sys_errno == EBADF);
    free(bytes);
    free(found);
    close(from.fd);
}

void test_archive(void) {
    check_archive();
    check_copy();
}
