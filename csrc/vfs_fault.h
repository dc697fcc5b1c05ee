/* SPDX-License-Identifier: BSD-3-Clause
 * System calls for tests: the operating system's, counted, made to fail at a chosen call, and recorded. Nothing but
 * tests makes one. Not thread-safe. */
#ifndef MREC_VFS_FAULT_H
#define MREC_VFS_FAULT_H

#include "vfs.h"

typedef enum mrec_fault_kind {
    MREC_FAULT_NONE,
    MREC_FAULT_ERROR, /* the call does nothing and fails */
    MREC_FAULT_SHORT, /* a read or write moves fewer bytes than it was asked to; other calls are left alone */
    MREC_FAULT_STOP   /* the process is as good as dead: this call and all later ones do nothing */
} mrec_fault_kind;

typedef struct mrec_fault {
    mrec_fault_kind kind;
    uint64_t at;     /* the call that it strikes, counted from 1 */
    bool persistent; /* ... and all later ones */
    int sys_errno;   /* of ERROR */
    size_t keep;     /* of SHORT: bytes moved, 0 = half. Of STOP: not 0 = a write gets as far as a page border near its
                        middle, as one that SIGKILL interrupts may */
} mrec_fault;

/* What is recorded, one after another: this, then `size` bytes. Only calls that succeed and change something, and the
 * opens and closes that tell what a descriptor is. */
typedef struct mrec_call {
    char op;         /* o open, c close, w write, t truncate, s sync, r rename, u unlink, d rmdir, m mkdir */
    int fd;          /* of o c w t s */
    uint64_t number; /* offset of w, size of t, flags of o */
    uint64_t size;   /* of the path (o u d m), of both paths with a NUL between (r), or of the bytes written (w) */
} mrec_call;

/* No fault, not recording. NULL when memory ran out. */
mrec_vfs *mrec_vfs_fault_new(void);
void mrec_vfs_fault_free(mrec_vfs *);

/* Set the fault, and begin to count anew. */
void mrec_vfs_fault_arm(mrec_vfs *, const mrec_fault *);

/* Whether the fault struck. */
bool mrec_vfs_fault_struck(const mrec_vfs *);

/* The calls since arming, a letter each: those of mrec_call, and p read, z size, n names, l list, k lock. */
const mrec_buffer *mrec_vfs_fault_calls(const mrec_vfs *);

/* The recorded calls; NULL when memory ran out on the way. Recording begins with the first `on`. */
void mrec_vfs_fault_record(mrec_vfs *, bool on);
const mrec_buffer *mrec_vfs_fault_log(const mrec_vfs *);

#endif
