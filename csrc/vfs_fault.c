/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "vfs_fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

typedef struct fault_vfs {
    mrec_vfs table; /* first: a mrec_vfs of this kind is one of these */
    mrec_vfs *inner;
    mrec_fault fault;
    mrec_buffer calls, log;
    bool struck, stopped, recording, incomplete;
} fault_vfs;

static fault_vfs *own(mrec_vfs *vfs) {
    return (fault_vfs *)vfs;
}

/* ---- the fault ---- */

static bool due(const fault_vfs *f) {
    return f->fault.kind != MREC_FAULT_NONE &&
           (f->fault.persistent ? f->calls.size >= f->fault.at : f->calls.size == f->fault.at);
}

/* Count a call. 0: make it; otherwise what it returns instead. */
static int verdict(fault_vfs *f, char op) {
    f->incomplete = mrec_buffer_add(&f->calls, &op, 1, NULL) != MREC_OK || f->incomplete;
    if (f->stopped)
        return -EIO;
    if (!due(f) || f->fault.kind == MREC_FAULT_SHORT)
        return 0;
    f->struck = true;
    f->stopped = f->fault.kind == MREC_FAULT_STOP;
    return f->stopped ? -EIO : -f->fault.sys_errno;
}

/* The bytes of a read or write of n that a SHORT fault leaves. */
static size_t shortened(fault_vfs *f, size_t n) {
    if (!due(f) || f->fault.kind != MREC_FAULT_SHORT || n < 2)
        return n;
    f->struck = true;
    return f->fault.keep && f->fault.keep < n ? f->fault.keep : n / 2;
}

/* ---- the record ---- */

static void record(fault_vfs *f, char op, int fd, uint64_t number, const void *bytes, size_t n) {
    if (!f->recording || f->incomplete)
        return;
    mrec_call call;
    memset(&call, 0, sizeof call);
    call.op = op;
    call.fd = fd;
    call.number = number;
    call.size = n;
    f->incomplete = mrec_buffer_add(&f->log, &call, sizeof call, NULL) != MREC_OK ||
                    (n && mrec_buffer_add(&f->log, bytes, n, NULL) != MREC_OK);
}

/* A call on one path that returns 0 or more when it succeeds. */
static int recorded(fault_vfs *f, char op, int result, uint64_t number, const char *path) {
    if (result >= 0)
        record(f, op, result, number, path, strlen(path));
    return result;
}

/* ---- the calls ---- */

static int ft_open(mrec_vfs *vfs, const char *path, int flags) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 'o');
    return instead ? instead : recorded(f, 'o', f->inner->open(f->inner, path, flags), (uint64_t)flags, path);
}

/* The descriptor is closed in any case, as Linux does it and as a dead process leaves it. */
static int ft_close(mrec_vfs *vfs, int fd) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 'c'), result = f->inner->close(f->inner, fd);
    if (!f->stopped)
        record(f, 'c', fd, 0, NULL, 0);
    return instead ? instead : result;
}

static ssize_t ft_pread(mrec_vfs *vfs, int fd, void *bytes, size_t n, uint64_t offset) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 'p');
    return instead ? instead : f->inner->pread(f->inner, fd, bytes, shortened(f, n), offset);
}

static ssize_t write_recorded(fault_vfs *f, int fd, const void *bytes, size_t n, uint64_t offset) {
    ssize_t put = f->inner->pwrite(f->inner, fd, bytes, n, offset);
    if (put > 0)
        record(f, 'w', fd, offset, bytes, (size_t)put);
    return put;
}

static ssize_t ft_pwrite(mrec_vfs *vfs, int fd, const void *bytes, size_t n, uint64_t offset) {
    fault_vfs *f = own(vfs);
    bool was_stopped = f->stopped;
    int instead = verdict(f, 'w');
    if (!instead)
        return write_recorded(f, fd, bytes, shortened(f, n), offset);
    uint64_t border = (offset + n / 2 + PAGE / 2) / PAGE * PAGE;
    if (f->stopped && !was_stopped && f->fault.keep && border > offset && border < offset + n)
        write_recorded(f, fd, bytes, (size_t)(border - offset), offset);
    return instead;
}

static int64_t ft_size(mrec_vfs *vfs, int fd) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 'z');
    return instead ? instead : f->inner->size(f->inner, fd);
}

static int ft_names(mrec_vfs *vfs, const char *path, int fd) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 'n');
    return instead ? instead : f->inner->names(f->inner, path, fd);
}

static int ft_truncate(mrec_vfs *vfs, int fd, uint64_t size) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 't'), result = instead ? instead : f->inner->truncate(f->inner, fd, size);
    if (result == 0)
        record(f, 't', fd, size, NULL, 0);
    return result;
}

static int ft_sync(mrec_vfs *vfs, int fd, bool data_only) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 's'), result = instead ? instead : f->inner->sync(f->inner, fd, data_only);
    if (result == 0)
        record(f, 's', fd, 0, NULL, 0);
    return result;
}

static int ft_rename(mrec_vfs *vfs, const char *from, const char *to) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 'r'), result = instead ? instead : f->inner->rename(f->inner, from, to);
    if (result == 0 && f->recording) {
        mrec_buffer both = {0};
        if (mrec_buffer_add(&both, from, strlen(from) + 1, NULL) == MREC_OK &&
            mrec_buffer_add(&both, to, strlen(to), NULL) == MREC_OK)
            record(f, 'r', 0, 0, both.data, both.size);
        else
            f->incomplete = true;
        mrec_buffer_free(&both);
    }
    return result;
}

static int ft_unlink(mrec_vfs *vfs, const char *path) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 'u');
    return instead ? instead : recorded(f, 'u', f->inner->unlink(f->inner, path), 0, path);
}

static int ft_rmdir(mrec_vfs *vfs, const char *path) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 'd');
    return instead ? instead : recorded(f, 'd', f->inner->rmdir(f->inner, path), 0, path);
}

static int ft_mkdir(mrec_vfs *vfs, const char *path) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 'm');
    return instead ? instead : recorded(f, 'm', f->inner->mkdir(f->inner, path), 0, path);
}

static int ft_list(mrec_vfs *vfs, const char *path, mrec_vfs_visit visit, void *arg) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 'l');
    return instead ? instead : f->inner->list(f->inner, path, visit, arg);
}

static int ft_lock(mrec_vfs *vfs, int fd) {
    fault_vfs *f = own(vfs);
    int instead = verdict(f, 'k');
    return instead ? instead : f->inner->lock(f->inner, fd);
}

/* Not a call that can fail or be counted: it only comes before the close that does the same. */
static int ft_unlock(mrec_vfs *vfs, int fd) {
    return own(vfs)->inner->unlock(own(vfs)->inner, fd);
}

/* ---- the handle ---- */

mrec_vfs *mrec_vfs_fault_new(void) {
    static const mrec_vfs table = {
        .open = ft_open,
        .close = ft_close,
        .pread = ft_pread,
        .pwrite = ft_pwrite,
        .size = ft_size,
        .names = ft_names,
        .truncate = ft_truncate,
        .sync = ft_sync,
        .rename = ft_rename,
        .unlink = ft_unlink,
        .rmdir = ft_rmdir,
        .mkdir = ft_mkdir,
        .list = ft_list,
        .lock = ft_lock,
        .unlock = ft_unlock,
    };
    fault_vfs *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->table = table;
    f->inner = mrec_vfs_posix();
    return &f->table;
}

void mrec_vfs_fault_free(mrec_vfs *vfs) {
    if (!vfs)
        return;
    mrec_buffer_free(&own(vfs)->calls);
    mrec_buffer_free(&own(vfs)->log);
    free(vfs);
}

void mrec_vfs_fault_arm(mrec_vfs *vfs, const mrec_fault *fault) {
    fault_vfs *f = own(vfs);
    f->fault = *fault;
    f->calls.size = 0;
    f->struck = f->stopped = false;
}

bool mrec_vfs_fault_struck(const mrec_vfs *vfs) {
    return ((const fault_vfs *)vfs)->struck;
}

const mrec_buffer *mrec_vfs_fault_calls(const mrec_vfs *vfs) {
    return &((const fault_vfs *)vfs)->calls;
}

void mrec_vfs_fault_record(mrec_vfs *vfs, bool on) {
    own(vfs)->recording = on;
}

const mrec_buffer *mrec_vfs_fault_log(const mrec_vfs *vfs) {
    const fault_vfs *f = (const fault_vfs *)vfs;
    return f->incomplete ? NULL : &f->log;
}
