# SPDX-License-Identifier: BSD-3-Clause
from cpython.unicode cimport PyUnicode_DecodeUTF8

cdef extern from "msgpack.h" nogil:
    ctypedef enum mrec_packed_kind:
        MREC_PACKED_NIL
        MREC_PACKED_BOOL
        MREC_PACKED_INT
        MREC_PACKED_UINT
        MREC_PACKED_FLOAT
        MREC_PACKED_TEXT
        MREC_PACKED_BYTES
        MREC_PACKED_ARRAY
        MREC_PACKED_MAP

    ctypedef struct mrec_packed_item:
        mrec_packed_kind kind
        uint64_t number
        const uint8_t *bytes
        size_t size

    mrec_status mrec_msgpack_next(const uint8_t *, size_t, size_t *, mrec_packed_item *, mrec_error *)


cdef object _unpack(const uint8_t *bytes, size_t n, size_t *at, int depth):
    cdef mrec_packed_item item
    cdef mrec_error error
    cdef size_t i
    cdef list items
    cdef double number
    check(mrec_msgpack_next(bytes, n, at, &item, &error), &error)
    if item.kind == MREC_PACKED_UINT:
        return item.number
    if item.kind == MREC_PACKED_TEXT:
        return PyUnicode_DecodeUTF8(<const char *>item.bytes, item.size, NULL)
    if item.kind == MREC_PACKED_ARRAY:
        if depth == 0:
            raise _CorruptData("the footer is nested too deep")
        items = []
        for i in range(item.size):
            items.append(_unpack(bytes, n, at, depth - 1))
        return items
    if item.kind == MREC_PACKED_MAP:
        if depth == 0:
            raise _CorruptData("the footer is nested too deep")
        return {_key(_unpack(bytes, n, at, 0)): _unpack(bytes, n, at, depth - 1) for i in range(item.size)}
    if item.kind == MREC_PACKED_INT:
        return <int64_t>item.number
    if item.kind == MREC_PACKED_BOOL:
        return item.number == 1
    if item.kind == MREC_PACKED_FLOAT:
        memcpy(&number, &item.number, sizeof(number))
        return number
    return item.bytes[:item.size] if item.kind == MREC_PACKED_BYTES else None


cdef object _key(key):
    if not isinstance(key, str):
        raise _CorruptData("the footer has a map whose key is no text")
    return key


cdef size_t _array_head(const uint8_t *bytes, size_t n, size_t *at, str what) except? 0:
    cdef mrec_packed_item item
    cdef mrec_error error
    check(mrec_msgpack_next(bytes, n, at, &item, &error), &error)
    if item.kind != MREC_PACKED_ARRAY:
        raise _CorruptData(f"the footer is damaged: {what}")
    return item.size


def unpack_catalogue(bytes data):
    """The footer of a container: (its first seven parts, names of the data sets, numbers of their schemas). CorruptData.

    The data sets, of which there may be many, go straight into two lists.
    """
    cdef size_t at = 0, i, n = len(data)
    cdef const uint8_t *bytes = <const uint8_t *>PyBytes_AS_STRING(data)
    cdef mrec_packed_item item
    cdef mrec_error error
    cdef list names = [], numbers = []
    if _array_head(bytes, n, &at, "it has not eight parts") != 8:
        raise _CorruptData("the footer is damaged: it has not eight parts")
    head = [_unpack(bytes, n, &at, 7) for i in range(7)]
    for i in range(_array_head(bytes, n, &at, "the data sets")):
        if _array_head(bytes, n, &at, "a data set") != 2:
            raise _CorruptData("the footer is damaged: a data set")
        check(mrec_msgpack_next(bytes, n, &at, &item, &error), &error)
        if item.kind != MREC_PACKED_TEXT:
            raise _CorruptData("the footer is damaged: the name of a data set")
        names.append(PyUnicode_DecodeUTF8(<const char *>item.bytes, item.size, NULL))
        check(mrec_msgpack_next(bytes, n, &at, &item, &error), &error)
        if item.kind != MREC_PACKED_UINT:
            raise _CorruptData("the footer is damaged: the schema of a data set")
        numbers.append(item.number)
    if at != n:
        raise _CorruptData(f"{n - at} bytes follow the footer's item")
    return head, names, numbers
