# Parts of CPython's C API that Cython does not declare, or not as they are needed here.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT
    PySendResult PyIter_Send(object iterator, object value, PyObject** result)
    object PyContext_CopyCurrent()
    int PyContext_Enter(object context) except -1
    int PyContext_Exit(object context) except -1

cdef inline object owned(PyObject* reference):
    """Return the object of a new reference."""
    result = <object> reference
    Py_DECREF(result)
    return result

cdef inline int reraise() except -1:
    """Raise the exception that a function of the C API has set. It adds no line to the traceback."""
    return -1
