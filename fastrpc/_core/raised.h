/* What a function has raised, without a frame of ours in its traceback, and where that was. */
#ifndef FASTRPC_RAISED_H
#define FASTRPC_RAISED_H

#include <Python.h>
#include <frameobject.h>

/* Take the exception that is set: a new reference, its traceback in it. */
static inline PyObject* fastrpc_take_raised(void) {
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(error, traceback);
        Py_DECREF(traceback);
    }
    Py_DECREF(type);
    return error;
#endif
}

/* Return the only argument of an exception: a new reference, to None where there is another number of them. */
static inline PyObject* fastrpc_only_argument(PyObject* error) {
    PyObject* arguments = ((PyBaseExceptionObject*)error)->args;
    PyObject* only = arguments != NULL && PyTuple_GET_SIZE(arguments) == 1 ? PyTuple_GET_ITEM(arguments, 0) : Py_None;
    Py_INCREF(only);
    return only;
}

/* Find the innermost frame: return its instruction that raised, and set its code, a reference that the error
   holds; -1, and NULL, where there is no frame. */
static inline int fastrpc_place_of(PyObject* error, PyObject** code) {
    PyTracebackObject* at = (PyTracebackObject*)PyException_GetTraceback(error);
    int instruction = -1;
    *code = NULL;
    if (at != NULL) {
        PyTracebackObject* inner = at;
        while (inner->tb_next != NULL) { inner = inner->tb_next; }
        instruction = inner->tb_lasti;
        *code = (PyObject*)PyFrame_GetCode(inner->tb_frame);
        Py_DECREF(*code);
        Py_DECREF(at);
    }
    return instruction;
}

#endif
