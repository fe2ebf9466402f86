# Bytes that another object owns, and copies of them in a row. A `put_` returns where the next one goes.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcpy, strlen

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef struct Slice:
    const char* data
    Py_ssize_t size

cdef inline Slice slice_of(bytes text) noexcept:
    """Return the bytes of an object, which is not None, as long as it lives."""
    return Slice(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))

cdef inline Slice text_of(str text) except *:
    """Return the UTF-8 of a text, which the text keeps."""
    cdef Slice found
    found.data = PyUnicode_AsUTF8AndSize(text, &found.size)
    return found

cdef inline char* put_bytes(char* to, const char* data, Py_ssize_t size) noexcept nogil:
    memcpy(to, data, size)
    return to + size

cdef inline char* put_slice(char* to, Slice found) noexcept nogil:
    return put_bytes(to, found.data, found.size)

cdef inline char* put_literal(char* to, const char* text) noexcept nogil:
    """The size is known when this is compiled."""
    return put_bytes(to, text, strlen(text))

cdef inline char* put_integer(char* to, int64_t number) noexcept nogil:
    """Write a number, 0 for one below."""
    cdef char text[20]
    cdef int at = 20
    if number < 0:
        number = 0
    while True:
        at -= 1
        text[at] = c"0" + <char> (number % 10)
        number //= 10
        if number == 0:
            break
    return put_bytes(to, text + at, 20 - at)
