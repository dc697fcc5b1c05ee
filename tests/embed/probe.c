/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe.h"

#include <string.h>

/* append(writer, step, rows) */
static PyObject *append(PyObject *module, PyObject *args) {
    PyObject *object;
    long long step;
    Py_buffer rows;
    (void)module;
    if (!PyArg_ParseTuple(args, "OLy*", &object, &step, &rows))
        return NULL;
    mrec_writer *writer = mrec_writer_of(object);
    int failed =
        writer == NULL || probe_append(writer, step, rows.buf, (uint64_t)rows.len / mrec_dtype_size(MREC_F64)) < 0;
    PyBuffer_Release(&rows);
    if (failed)
        return NULL;
    return PyLong_FromUnsignedLongLong(mrec_nframes(writer));
}

/* declared(writer): the names of its blocks and columns */
static PyObject *declared(PyObject *module, PyObject *object) {
    (void)module;
    mrec_writer *writer = mrec_writer_of(object);
    if (writer == NULL)
        return NULL;
    const mrec_schema *schema = mrec_writer_schema(writer);
    return Py_BuildValue("(ss)", schema->blocks[0].name, schema->blocks[0].columns[0].name);
}

/* alone(path): a record with one frame, without a TrajectoryWriter; whether that was open, and is closed */
static PyObject *alone(PyObject *module, PyObject *args) {
    const char *path;
    const double rows[2] = {1, 2};
    mrec_column x;
    mrec_block atoms;
    mrec_schema schema;
    mrec_writer *writer;
    mrec_error error;
    (void)module;
    if (!PyArg_ParseTuple(args, "s", &path))
        return NULL;
    memset(&x, 0, sizeof x);
    memset(&atoms, 0, sizeof atoms);
    memset(&schema, 0, sizeof schema);
    x.name = "x";
    x.dtype = MREC_F64;
    atoms.name = "atoms";
    atoms.ncolumns = 1;
    atoms.columns = &x;
    schema.nblocks = 1;
    schema.blocks = &atoms;
    if (mrec_check(mrec_create(path, &schema, NULL, &writer, &error), &error) < 0)
        return NULL;
    bool open = !mrec_closed(writer);
    int failed = probe_append(writer, 7, rows, 2) < 0 || mrec_check(mrec_close(writer, &error), &error) < 0;
    bool closed = mrec_closed(writer);
    mrec_free(writer);
    return failed ? NULL : Py_BuildValue("(OO)", open ? Py_True : Py_False, closed ? Py_True : Py_False);
}

static PyMethodDef methods[] = {{"append", append, METH_VARARGS, NULL},
                                {"declared", declared, METH_O, NULL},
                                {"alone", alone, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "probe", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_probe(void) {
    if (import_mrec() < 0)
        return NULL;
    return PyModule_Create(&definition);
}
