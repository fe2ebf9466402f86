"""Converts arrays of numbers that clients wrote as another type: reals and texts for integers, integers and
texts for reals.

An array of the right type is never brought here. One of another may have millions of elements, so each costs
some ten nanoseconds and no Python; what is neither common nor short goes to `accept`, the one definition of
which values pass and of the error message for the others (`schema/shapes.py`).
"""

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_FromDouble
from cpython.long cimport PyLong_FromDouble, PyLong_FromLongLong
from libc.math cimport floor
from libc.string cimport memcpy

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    const unsigned char* PyUnicode_1BYTE_DATA(object text)
    double PyOS_string_to_double(const char* text, char** end, object overflow) except? -1.0
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

cdef double EXACT = 9007199254740992.0  # 2**53: integers below survive the way through a double
cdef enum:
    LONGEST = 24         # characters of a text that is read here
    MOST_DIGITS = 18     # of an integer that surely fits 64 bits


def extend_integers(list accepted, list values, accept, bint lenient):
    """Append every value as an integer. Raises what `accept` raises; `accepted` ends before that value."""
    cdef long long integer
    cdef double real
    for value in values:
        if type(value) is float and _is_exact_integer(PyFloat_AS_DOUBLE(value)):
            accepted.append(PyLong_FromDouble(PyFloat_AS_DOUBLE(value)))
        elif type(value) is int:
            accepted.append(value)
        elif lenient and type(value) is str and _read_integer(value, &integer):
            accepted.append(PyLong_FromLongLong(integer))
        elif lenient and type(value) is str and _read_real(value, &real) and _is_exact_integer(real):
            accepted.append(PyLong_FromDouble(real))
        else:
            accepted.append(accept(value, lenient))


def extend_reals(list accepted, list values, accept, bint lenient):
    """Append every value as a float. Raises what `accept` raises; `accepted` then ends before that value."""
    cdef long long integer
    cdef double real
    cdef int overflow = 0
    for value in values:
        if type(value) is float:
            accepted.append(value)
        elif type(value) is int:
            integer = PyLong_AsLongLongAndOverflow(value, &overflow)
            accepted.append(accept(value, lenient) if overflow else PyFloat_FromDouble(<double> integer))
        elif lenient and type(value) is str and _read_real(value, &real):
            accepted.append(PyFloat_FromDouble(real))
        else:
            accepted.append(accept(value, lenient))


cdef inline bint _is_exact_integer(double real) noexcept:
    return -EXACT < real < EXACT and floor(real) == real


cdef inline const char* _trim(object text, Py_ssize_t* size) noexcept:
    """Return where a short text of ASCII begins behind its spaces, NULL for any other."""
    cdef const char* at
    cdef Py_ssize_t left
    if not PyUnicode_IS_COMPACT_ASCII(text) or PyUnicode_GET_LENGTH(text) > LONGEST:
        return NULL
    at = <const char*> PyUnicode_1BYTE_DATA(text)
    left = PyUnicode_GET_LENGTH(text)
    while left > 0 and at[0] == c" ":
        at += 1
        left -= 1
    while left > 0 and at[left - 1] == c" ":
        left -= 1
    size[0] = left
    return at if left > 0 else NULL


cdef bint _read_integer(object text, long long* integer) noexcept:
    """Read a sign and up to eighteen digits; False for whatever else the text says."""
    cdef Py_ssize_t size = 0
    cdef const char* at = _trim(text, &size)
    cdef bint negative
    cdef long long value = 0
    cdef Py_ssize_t i
    if at == NULL:
        return False
    negative = at[0] == c"-"
    if negative or at[0] == c"+":
        at += 1
        size -= 1
    if size < 1 or size > MOST_DIGITS:
        return False
    for i in range(size):
        if not c"0" <= at[i] <= c"9":
            return False
        value = 10 * value + (at[i] - c"0")
    integer[0] = -value if negative else value
    return True


cdef bint _read_real(object text, double* real) noexcept:
    """Read a real that Python's `float` takes, is finite, and is written with digits, signs, a point and an
    exponent alone; False for whatever else the text says."""
    cdef Py_ssize_t size = 0
    cdef const char* at = _trim(text, &size)
    cdef char buffer[LONGEST + 1]
    cdef char* end = NULL
    cdef double value
    cdef Py_ssize_t i
    if at == NULL:
        return False
    for i in range(size):
        if not (c"0" <= at[i] <= c"9" or at[i] in (c"+", c"-", c".", c"e", c"E")):
            return False
    memcpy(buffer, at, size)
    buffer[size] = 0
    try:
        value = PyOS_string_to_double(buffer, &end, None)
    except Exception:  # the text is no number
        return False
    if end != buffer + size or value - value != 0:
        return False
    real[0] = value
    return True
