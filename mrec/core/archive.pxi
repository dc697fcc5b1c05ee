# SPDX-License-Identifier: BSD-3-Clause
from cpython.mem cimport PyMem_Calloc, PyMem_Free

import os as _os


cdef extern from "lock.h" nogil:
    unsigned mrec_fork_count()

cdef extern from "vfs.h" nogil:
    ctypedef struct mrec_vfs:
        pass

    mrec_vfs *mrec_vfs_posix()

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


cdef class Archive:
    """The entries of an open zip file, as files <root>/<key> that a Source reads.

    entries: (key, offset, size, crc32), ascending by the UTF-8 bytes of the key, checked. The descriptor is taken over.
    """

    cdef mrec_archive *archive

    def __cinit__(self, int fd, root, list entries not None):
        cdef mrec_error error
        cdef size_t i, n = len(entries)
        cdef bytes where = _os.fsencode(root)
        cdef list keys = [entry[0].encode() for entry in entries]
        cdef mrec_archive_entry *table = <mrec_archive_entry *>PyMem_Calloc(n + 1, sizeof(mrec_archive_entry))
        if table == NULL:
            _os.close(fd)
            raise MemoryError
        try:
            for i in range(n):
                table[i].key = <bytes>keys[i]
                _, table[i].offset, table[i].size, table[i].crc32 = entries[i]
            check(mrec_archive_new(mrec_vfs_posix(), fd, where, table, n, &self.archive, &error), &error)
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
