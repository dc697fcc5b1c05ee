# SPDX-License-Identifier: BSD-3-Clause
cdef extern from "layout.h" nogil:
    ctypedef struct mrec_layout:
        mrec_dtype dtype
        size_t ntrailing
        uint64_t trailing[6]
        uint64_t rows_per_chunk
        uint64_t chunks_per_shard
        mrec_pipeline pipeline
        uint8_t fill[16]

cdef extern from "array.h" nogil:
    ctypedef struct mrec_place:
        uint64_t offset
        uint64_t nbytes

    ctypedef struct mrec_tail:
        uint64_t shard
        uint64_t chunk
        mrec_place place
        uint32_t crc32c

    uint64_t MREC_NO_DOCUMENT

cdef extern from "block.h" nogil:
    ctypedef enum mrec_form:
        pass

cdef extern from "lock.h" nogil:
    ctypedef struct mrec_lock:
        pass

    mrec_status mrec_lock_take(mrec_vfs *, const char *path, mrec_lock **lock, mrec_error *)
    void mrec_lock_free(mrec_lock *lock)
    mrec_status mrec_lock_check(const mrec_lock *lock, mrec_error *)

cdef extern from "reopen.h" nogil:
    ctypedef struct mrec_array_state:
        const char *key
        const char *prefix
        const char *suffix
        mrec_layout layout
        uint64_t length
        uint64_t doc_length
        bint has_tail
        mrec_tail tail

    ctypedef struct mrec_group_state:
        bint on_disk
        const char *members

    ctypedef struct mrec_block_standing:
        mrec_group_state group
        mrec_group_state masks
        mrec_form form
        uint64_t updates
        uint64_t rows
        uint64_t uniform_rows
        const mrec_array_state *columns
        const mrec_array_state *valid
        mrec_array_state step_index
        mrec_array_state offset

    ctypedef struct mrec_standing:
        const char *schema_json
        const char *other_attributes
        bint complete
        uint64_t nframes
        mrec_frame last
        int64_t step_start
        int64_t step_stride
        double time_start
        double time_stride
        mrec_array_state step
        mrec_array_state time
        const mrec_block_standing *blocks
        mrec_group_state box
        mrec_form cell_form
        uint64_t cell_updates
        mrec_array_state box_step_index
        mrec_array_state box_vectors
        mrec_array_state box_origin
        mrec_array_state box_boundary
        mrec_group_state values_group
        const mrec_array_state *values
        size_t ndead
        const char **dead
        const char *marker_text
        bint truncate

    mrec_status mrec_reopen_sync(mrec_vfs *, const char *path, mrec_error *)
    mrec_status mrec_reopen(mrec_vfs *, const char *path, mrec_lock *, const mrec_schema *, const mrec_options *,
                            const mrec_standing *, mrec_writer **, mrec_error *)
    mrec_lock *mrec_writer_release(mrec_writer *)


@cython.no_gc_clear
cdef class Lock:
    """The hold on a record's directory that one writer has. RecordLocked when another has it."""

    cdef mrec_lock *lock
    cdef FaultFiles files

    def __cinit__(self, path):
        cdef mrec_error error
        cdef mrec_vfs *vfs = vfs_in_use()
        self.files = _files
        if path is None:  # one that is handed over
            return
        cdef bytes where = path.encode("utf-8", "surrogateescape")
        cdef const char *text = where
        with nogil:
            check(mrec_lock_take(vfs, text, &self.lock, &error), &error)

    cdef mrec_lock *give(self):
        cdef mrec_lock *lock = self.lock
        self.lock = NULL
        return lock

    def check(self):
        """OSError (ENOENT, ESTALE) when the record was moved away or removed meanwhile; not after `release`."""
        cdef mrec_error error
        with nogil:
            check(mrec_lock_check(self.lock, &error), &error)

    def release(self):
        """Let go of it."""
        mrec_lock_free(self.give())

    def __dealloc__(self):
        mrec_lock_free(self.lock)


def sync_found(path):
    """Sync every file and directory of a record as found, and its own name."""
    cdef mrec_error error
    cdef bytes where = path.encode("utf-8", "surrogateescape")
    cdef const char *text = where
    cdef mrec_vfs *vfs = vfs_in_use()
    with nogil:
        check(mrec_reopen_sync(vfs, text, &error), &error)


cdef class _StandingState:
    """A mrec.trajectory.reopen.Plan as the core takes it."""

    cdef _Memory memory
    cdef mrec_standing standing
    cdef _FrameSlots last

    def __cinit__(self, plan, schema):
        self.memory = _Memory()
        cdef mrec_standing *out = &self.standing
        out.schema_json = self.memory.text(plan.schema_json)
        out.other_attributes = self.memory.text(plan.other_attributes)
        out.complete = plan.complete
        out.nframes = plan.nframes
        self.last = _FrameSlots(schema)
        if plan.nframes:
            self.last.fill(plan.step, plan.time, plan.box, plan.last_blocks, [None] * len(schema.values), 1)
            out.last = self.last.frame
        out.step_start, out.step_stride = plan.step_progression
        out.time_start, out.time_stride = plan.time_progression
        self.fill_array(&out.step, plan.arrays.get("step"))
        self.fill_array(&out.time, plan.arrays.get("time"))
        out.blocks = self.blocks(plan, schema)
        self.fill_group(&out.box, plan.groups["box"])
        out.cell_form = <mrec_form><int>plan.cell_form
        out.cell_updates = plan.cell_updates
        self.fill_array(&out.box_step_index, plan.arrays.get("box/step_index"))
        self.fill_array(&out.box_vectors, plan.arrays.get("box/vectors"))
        self.fill_array(&out.box_origin, plan.arrays.get("box/origin"))
        self.fill_array(&out.box_boundary, plan.arrays.get("box/boundary"))
        self.fill_group(&out.values_group, plan.groups["meta"])
        out.values = self.arrays([plan.arrays.get(f"meta/{name}") for name in schema.values])
        out.ndead = len(plan.dead)
        out.dead = self.paths(plan.dead)
        if plan.marker_text is not None:
            out.marker_text = self.memory.text(plan.marker_text)
        out.truncate = plan.truncate

    cdef const char **paths(self, names) except NULL:
        cdef const char **out = <const char **>self.memory.take(len(names), sizeof(char *))
        for i, name in enumerate(names):
            out[i] = self.memory.text(name)
        return out

    cdef const mrec_block_standing *blocks(self, plan, schema) except NULL:
        cdef mrec_block_standing *out = <mrec_block_standing *>self.memory.take(
            len(schema.blocks), sizeof(mrec_block_standing)
        )
        for i, (name, block) in enumerate(schema.blocks.items()):
            form = plan.forms[name]
            self.fill_group(&out[i].group, plan.groups[name])
            self.fill_group(&out[i].masks, plan.groups[f"{name}/_validity"])
            out[i].form = <mrec_form><int>form.form
            out[i].updates = form.updates
            out[i].rows = form.rows
            out[i].uniform_rows = form.uniform_rows
            out[i].columns = self.arrays([plan.arrays.get(f"{name}/{column}") for column in block.columns])
            out[i].valid = self.arrays([plan.arrays.get(f"{name}/_validity/{column}") for column in block.columns])
            self.fill_array(&out[i].step_index, plan.arrays.get(f"{name}/step_index"))
            self.fill_array(&out[i].offset, plan.arrays.get(f"{name}/offset"))
        return out

    cdef const mrec_array_state *arrays(self, states) except NULL:
        cdef mrec_array_state *out = <mrec_array_state *>self.memory.take(len(states), sizeof(mrec_array_state))
        for i, state in enumerate(states):
            self.fill_array(&out[i], state)
        return out

    cdef int fill_group(self, mrec_group_state *out, state) except -1:
        out.on_disk, members = state
        out.members = self.memory.text(members)
        return 0

    cdef int fill_array(self, mrec_array_state *out, state) except -1:
        if state is None:
            return 0
        cdef bytes fill = state.fill
        out.key = self.memory.text(state.key)
        out.prefix = self.memory.text(state.prefix)
        out.suffix = self.memory.text(state.suffix)
        out.length = state.length
        out.doc_length = MREC_NO_DOCUMENT if state.doc_length is None else <uint64_t>state.doc_length
        out.layout.dtype = <mrec_dtype><int>state.code
        out.layout.ntrailing = len(state.trailing)
        for i, n in enumerate(state.trailing):
            out.layout.trailing[i] = n
        out.layout.rows_per_chunk = state.rows_per_chunk
        out.layout.chunks_per_shard = state.chunks_per_shard
        fill_pipeline(&out.layout.pipeline, state.pipeline)
        memcpy(out.layout.fill, <const char *>fill, min(len(fill), 16))
        out.has_tail = state.tail is not None
        if state.tail is not None:
            out.tail.shard, out.tail.chunk, out.tail.place.offset, out.tail.place.nbytes, out.tail.crc32c = state.tail
        return 0


def reopen(path, Lock lock not None, schema, dict options not None, plan):
    """The Writer of a record that is there, in the state that `plan` describes (mrec/trajectory/reopen.py).

    Takes the lock over.
    """
    cdef Writer self = Writer.__new__(Writer)
    cdef _Declaration declaration = _Declaration(schema)
    cdef _StandingState state = _StandingState(plan, schema)
    cdef _Memory memory = _Memory()
    cdef mrec_options filled
    cdef mrec_error error
    _fill_options(&filled, options, memory)
    cdef const char *where = memory.text(path)
    cdef mrec_lock *taken = lock.give()
    cdef mrec_vfs *vfs = vfs_in_use()
    self.files = _files
    with nogil:
        check(mrec_reopen(vfs, where, taken, &declaration.schema, &filled, &state.standing, &self.writer,
                          &error), &error)
    self._prepare(schema, path)
    return self


def release(Writer writer not None):
    """End a writer without publishing, and hand its lock back."""
    cdef Lock lock = Lock.__new__(Lock, None)
    lock.lock = mrec_writer_release(writer.writer)
    lock.files = writer.files
    writer.writer = NULL
    return lock
