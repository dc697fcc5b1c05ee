/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mrec.h for extension modules of Python in C and C++: the functions of the installed mrec, through a capsule. Nothing
 * is linked. Compile with -I$(python -c "import mrec; print(mrec.get_include())") and call import_mrec() once, in the
 * module's init function; from then on every source file of the module that includes this header may call what mrec.h
 * declares, by the same names. A call before import_mrec() is a call through NULL.
 *
 * The functions of mrec.h want no GIL, neither held nor released, from any thread. Release it around them: they write
 * files.
 */
#ifndef MREC_CAPI_H
#define MREC_CAPI_H

#include <Python.h>

#include "mrec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The capsule mrec._core._C_API. Functions are only ever added at its end; any other change raises the version. */
typedef struct mrec_capi {
    uint32_t abi_version; /* MREC_ABI_VERSION */
    uint32_t struct_size; /* bytes of this table */
    const char *(*status_name)(mrec_status);
    size_t (*dtype_size)(mrec_dtype);
    void (*options_init)(mrec_options *);
    mrec_status (*create)(const char *, const mrec_schema *, const mrec_options *, mrec_writer **, mrec_error *);
    mrec_status (*append)(mrec_writer *, const mrec_frame *, mrec_error *);
    mrec_status (*flush)(mrec_writer *, bool, mrec_error *);
    mrec_status (*close)(mrec_writer *, mrec_error *);
    void (*free)(mrec_writer *);
    const mrec_schema *(*writer_schema)(const mrec_writer *);
    mrec_status (*check_schema)(const mrec_writer *, const mrec_schema *, mrec_error *);
    uint64_t (*nframes)(const mrec_writer *);
    uint64_t (*npublished)(const mrec_writer *);
    uint64_t (*ndurable)(const mrec_writer *);
    bool (*last_step)(const mrec_writer *, int64_t *);
    bool (*has_times)(const mrec_writer *);
    mrec_writer *(*writer_of)(PyObject *);
    int (*raise)(const mrec_error *);
    bool (*closed)(const mrec_writer *);
} mrec_capi;

#ifndef MREC_CAPI_TABLE_ONLY

/* One for all source files of a module. */
__attribute__((weak, visibility("hidden"))) const mrec_capi *mrec_capi_table = NULL;

/* Find the functions. 0, or -1 with ImportError set: mrec is not there, or is one that this module was not compiled
 * for. Needs the GIL. */
static inline int import_mrec(void) {
    const mrec_capi *table = (const mrec_capi *)PyCapsule_Import("mrec._core._C_API", 0);
    if (table == NULL)
        return -1;
    if (table->abi_version != MREC_ABI_VERSION) {
        PyErr_Format(PyExc_ImportError,
                     "this module was compiled for ABI %d of mrec, and the mrec installed has %d; "
                     "compile it again",
                     (int)MREC_ABI_VERSION, (int)table->abi_version);
        return -1;
    }
    if (table->struct_size < sizeof(mrec_capi)) {
        PyErr_SetString(PyExc_ImportError, "this module was compiled for a newer mrec than the one installed; install "
                                           "that one");
        return -1;
    }
    mrec_capi_table = table;
    return 0;
}

/* The writer inside a mrec.TrajectoryWriter; NULL with TypeError set when `writer` is none. Needs the GIL.
 * It belongs to the object: hold a reference to that while using it, and never give it to mrec_free. After the object's
 * close(), calls get MREC_E_CLOSED. While a thread is inside a call on it, methods of the object raise WriterBusy. */
#define mrec_writer_of (mrec_capi_table->writer_of)

/* 0 when status is MREC_OK; otherwise -1, and the exception set that mrec raises for *error. For threads of
 * Python, with or without the GIL. */
static inline int mrec_check(mrec_status status, const mrec_error *error) {
    return status == MREC_OK ? 0 : mrec_capi_table->raise(error);
}

#define mrec_status_name (mrec_capi_table->status_name)
#define mrec_dtype_size (mrec_capi_table->dtype_size)
#define mrec_options_init (mrec_capi_table->options_init)
#define mrec_create (mrec_capi_table->create)
#define mrec_append (mrec_capi_table->append)
#define mrec_flush (mrec_capi_table->flush)
#define mrec_close (mrec_capi_table->close)
#define mrec_closed (mrec_capi_table->closed)
#define mrec_free (mrec_capi_table->free)
#define mrec_writer_schema (mrec_capi_table->writer_schema)
#define mrec_check_schema (mrec_capi_table->check_schema)
#define mrec_nframes (mrec_capi_table->nframes)
#define mrec_npublished (mrec_capi_table->npublished)
#define mrec_ndurable (mrec_capi_table->ndurable)
#define mrec_last_step (mrec_capi_table->last_step)
#define mrec_has_times (mrec_capi_table->has_times)

#endif

#ifdef __cplusplus
}
#endif
#endif /* MREC_CAPI_H */
