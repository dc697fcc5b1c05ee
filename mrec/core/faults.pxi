# SPDX-License-Identifier: BSD-3-Clause
cdef extern from "vfs.h" nogil:
    void mrec_boot_id(char *id)

cdef extern from "vfs_fault.h" nogil:
    ctypedef enum mrec_fault_kind:
        MREC_FAULT_NONE
        MREC_FAULT_ERROR
        MREC_FAULT_SHORT
        MREC_FAULT_STOP

    ctypedef struct mrec_fault:
        mrec_fault_kind kind
        uint64_t at
        bint persistent
        int sys_errno
        size_t keep

    ctypedef struct mrec_call:
        char op
        int fd
        uint64_t number
        uint64_t size

    mrec_vfs *mrec_vfs_fault_new()
    void mrec_vfs_fault_free(mrec_vfs *)
    void mrec_vfs_fault_arm(mrec_vfs *, const mrec_fault *)
    bint mrec_vfs_fault_struck(const mrec_vfs *)
    const mrec_buffer *mrec_vfs_fault_calls(const mrec_vfs *)
    void mrec_vfs_fault_record(mrec_vfs *, bint)
    const mrec_buffer *mrec_vfs_fault_log(const mrec_vfs *)


cdef FaultFiles _files = None


cdef mrec_vfs *vfs_in_use():
    """The system calls of a writer that is made now."""
    return mrec_vfs_posix() if _files is None else _files.vfs


cdef class FaultFiles:
    """System calls for tests (csrc/vfs_fault.h): inside `with files:` every writer is made on them."""

    cdef mrec_vfs *vfs
    cdef FaultFiles before

    def __cinit__(self):
        self.vfs = mrec_vfs_fault_new()
        if self.vfs == NULL:
            raise MemoryError()

    def __dealloc__(self):
        mrec_vfs_fault_free(self.vfs)

    def __enter__(self):
        global _files
        self.before = _files
        _files = self
        return self

    def __exit__(self, *exception):
        global _files
        _files = self.before
        self.before = None

    def arm(self, uint64_t at=0, *, int error=0, size_t short=0, stop=None, bint persistent=False):
        """Strike at call `at`, from 1: error= an errno, short= bytes (1: one, 2: half), stop= "before" the call or
        "within" a write. Nothing: no fault. Calls are counted anew."""
        cdef mrec_fault fault
        memset(&fault, 0, sizeof(fault))
        fault.at = at
        fault.persistent = persistent
        fault.sys_errno = error
        if error:
            fault.kind = MREC_FAULT_ERROR
        elif short:
            fault.kind = MREC_FAULT_SHORT
            fault.keep = 1 if short == 1 else 0
        elif stop is not None:
            fault.kind = MREC_FAULT_STOP
            fault.keep = stop == "within"
        mrec_vfs_fault_arm(self.vfs, &fault)

    @property
    def struck(self):
        """Whether the fault struck."""
        return mrec_vfs_fault_struck(self.vfs)

    @property
    def calls(self):
        """The calls since arming, a letter each."""
        cdef const mrec_buffer *calls = mrec_vfs_fault_calls(self.vfs)
        return (<const char *>calls.data)[:calls.size].decode("ascii")

    def record(self, bint on=True):
        """Begin or pause recording."""
        mrec_vfs_fault_record(self.vfs, on)

    @property
    def recorded(self):
        """How many bytes of calls were recorded: a position in time."""
        cdef const mrec_buffer *log = mrec_vfs_fault_log(self.vfs)
        if log == NULL:
            raise MemoryError()
        return log.size

    def log(self):
        """The recorded calls: (position behind it, op, fd, number, bytes)."""
        cdef const mrec_buffer *log = mrec_vfs_fault_log(self.vfs)
        cdef mrec_call call
        cdef size_t at = 0
        if log == NULL:
            raise MemoryError()
        found = []
        while at < log.size:
            memcpy(&call, log.data + at, sizeof(call))
            at += sizeof(call)
            data = (<const char *>log.data)[at:at + call.size]
            at += call.size
            found.append((at, chr(call.op), call.fd, call.number, data))
        return found


def boot_id():
    """The kernel's identity of this boot; "" where the system has none."""
    cdef char found[64]
    mrec_boot_id(found)
    return (<bytes>found).decode("ascii", "replace")
