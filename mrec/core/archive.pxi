# SPDX-License-Identifier: BSD-3-Clause
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.errno cimport EIO, ENOENT
from libc.string cimport memcpy, memset

import os as _os
import threading as _threading


cdef extern from "lock.h" nogil:
    unsigned mrec_fork_count()

cdef extern from "vfs.h" nogil:
    ctypedef struct mrec_vfs:
        int (*open)(mrec_vfs *, const char *, int) noexcept nogil
        int (*close)(mrec_vfs *, int) noexcept nogil
        ssize_t (*pread)(mrec_vfs *, int, void *, size_t, uint64_t) noexcept nogil
        int64_t (*size)(mrec_vfs *, int) noexcept nogil

    mrec_vfs *mrec_vfs_posix()

cdef extern from "vfs_read_only.h" nogil:
    const mrec_vfs mrec_vfs_read_only

cdef extern from "archive.h" nogil:
    ctypedef struct mrec_archive:
        pass

    ctypedef struct mrec_archive_entry:
        const char *key
        uint64_t offset
        uint64_t size
        uint32_t crc32

    mrec_status mrec_archive_new(mrec_vfs *, int fd, const char *root, const mrec_archive_entry *, size_t,
                                 mrec_archive **, mrec_error *)
    void mrec_archive_free(mrec_archive *)
    mrec_vfs *mrec_archive_vfs(mrec_archive *)

cdef extern from "copy.h" nogil:
    ctypedef struct mrec_span:
        int fd
        const char *path
        uint64_t offset

    mrec_status mrec_copy(mrec_vfs *, const mrec_span *, const mrec_span *, uint64_t n, uint32_t *crc, mrec_error *)


# What went wrong in Python under a call of the core, for the exception that the call raises.
cdef object _failures = _threading.local()


cdef struct _object_calls:
    mrec_vfs vfs  # first, so that a call gets from its table to what is behind it
    void *objects


cdef class Objects:
    """The values of a store as files <root>/<key> that a Source reads.

    open_object(key) returns what has a `size` and `read(offset, n)`, or None where there is no value. A descriptor
    stands for a key: what was opened last under it is what is read.
    """

    cdef _object_calls calls
    cdef object open_object
    cdef str root
    cdef dict descriptors  # key -> its number
    cdef list values  # what is open under each

    def __cinit__(self, str root, open_object):
        self.root = root
        self.open_object = open_object
        self.descriptors = {}
        self.values = []
        self.calls.vfs = mrec_vfs_read_only
        self.calls.vfs.open = _object_open
        self.calls.vfs.close = _object_close
        self.calls.vfs.pread = _object_read
        self.calls.vfs.size = _object_size
        self.calls.objects = <void *>self

    def hold(self, key):
        """The descriptor of a key, opened anew; -1 when there is no value."""
        value = self.open_object(key)
        if value is None:
            return -1
        fd = self.descriptors.setdefault(key, len(self.descriptors))
        while fd >= len(self.values):
            self.values.append(None)
        self.values[fd] = value
        return fd

    cdef object at(self, int fd):
        return self.values[fd]


cdef Objects _objects_of(mrec_vfs *vfs):
    return <Objects>(<_object_calls *>vfs).objects


cdef int _failed(exception) noexcept:
    _failures.exception = exception
    errno = getattr(exception, "errno", None)
    return -errno if isinstance(errno, int) and errno > 0 else -EIO


cdef int _object_open(mrec_vfs *vfs, const char *path, int flags) noexcept with gil:
    try:
        objects = _objects_of(vfs)
        key = _os.fsdecode(<bytes>path)
        if not key.startswith(objects.root + "/"):
            return -ENOENT
        fd = objects.hold(key[len(objects.root) + 1 :])
        return -ENOENT if fd < 0 else fd
    except BaseException as e:
        return _failed(e)


cdef int _object_close(mrec_vfs *vfs, int fd) noexcept nogil:
    return 0  # also called where a lock of the cache is held, so that nothing here may wait


cdef ssize_t _object_read(mrec_vfs *vfs, int fd, void *to, size_t n, uint64_t offset) noexcept with gil:
    cdef _Input found
    try:
        found = _Input(_objects_of(vfs).at(fd).read(offset, n))
        n = min(n, <size_t>found.view.len)
        memcpy(to, found.view.buf, n)
        return n
    except BaseException as e:
        return _failed(e)


cdef int64_t _object_size(mrec_vfs *vfs, int fd) noexcept with gil:
    try:
        return _objects_of(vfs).at(fd).size
    except BaseException as e:
        return _failed(e)


@cython.no_gc_clear  # it closes its descriptor in the objects
cdef class Archive:
    """The entries of an open zip file, as files <root>/<key> that a Source reads.

    entries: (key, offset, size, crc32), ascending by the UTF-8 bytes of the key, checked. The descriptor is taken over;
    it is one of `objects`, or of the operating system.
    """

    cdef mrec_archive *archive
    cdef Objects objects

    def __cinit__(self, int fd, root, list entries not None, Objects objects=None):
        self.objects = objects
        cdef mrec_vfs *base = mrec_vfs_posix() if objects is None else &objects.calls.vfs
        cdef mrec_error error
        cdef size_t i, n = len(entries)
        cdef bytes where = _os.fsencode(root)
        cdef list keys = [entry[0].encode() for entry in entries]
        cdef mrec_archive_entry *table = <mrec_archive_entry *>PyMem_Calloc(n + 1, sizeof(mrec_archive_entry))
        if table == NULL:
            base.close(base, fd)
            raise MemoryError
        try:
            for i in range(n):
                table[i].key = <bytes>keys[i]
                _, table[i].offset, table[i].size, table[i].crc32 = entries[i]
            check(mrec_archive_new(base, fd, where, table, n, &self.archive, &error), &error)
        finally:
            PyMem_Free(table)

    def __dealloc__(self):
        mrec_archive_free(self.archive)


def copy(int source, source_path, uint64_t offset, int target, target_path, uint64_t to, uint64_t n, uint32_t crc=0):
    """Copy n bytes between open files; the CRC-32 of what came before and of them. (csrc/copy.h)"""
    cdef mrec_error error
    cdef bytes a = _os.fsencode(source_path), b = _os.fsencode(target_path)
    cdef mrec_span here, there
    here.fd, here.path, here.offset = source, a, offset
    there.fd, there.path, there.offset = target, b, to
    with nogil:
        check(mrec_copy(mrec_vfs_posix(), &here, &there, n, &crc, &error), &error)
    return crc
