"""Binds arguments that the call plan could not bind at once, and converts what clients wrote as another type.

A `Binder` returns the values of all parameters, or says what is wrong with them. The common cases, right or
wrong, cost some hundred nanoseconds an argument and no Python. An array of numbers of another type may have
millions of elements: each costs some ten nanoseconds. What is neither common nor short goes to `accept`, the
one definition of which values pass and of the error message for the others (`schema/converters.py`).
"""

from cpython.dict cimport PyDict_GetItem
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_FromDouble
from cpython.long cimport PyLong_FromDouble, PyLong_FromLongLong
from cpython.object cimport PyObject
from libc.math cimport floor
from libc.string cimport memcpy

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    const unsigned char* PyUnicode_1BYTE_DATA(object text)
    double PyOS_string_to_double(const char* text, char** end, object overflow) except? -1.0
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

cdef double EXACT = 9007199254740992.0  # 2**53: integers below survive the way through a double
cdef long long LARGEST_SHOWN = 1_000_000_000_000_000_000
cdef enum:
    LONGEST = 24         # characters of a text that is read here
    MOST_DIGITS = 18     # of an integer that surely fits 64 bits
    LONGEST_SHOWN = 40   # characters of a text that an error shows
    SHORT_PROBLEM = 200  # characters that need no cutting


cdef class Binder:
    """Binds the arguments of a signature, leniently (`Signature.bind`)."""

    cdef tuple parameters
    cdef tuple loaders           # what reads a value that needs no leniency, or None, for each
    cdef tuple names
    cdef bytes kinds             # a letter of KINDS for each parameter
    cdef object missing
    cdef object words

    def __init__(self, tuple parameters, missing, words):
        """`parameters` are `fastrpc.schema.Parameter`; ``missing(name, arguments)`` says what is wrong where
        a required one is not there. `words` is the module `fastrpc.schema.converters`, which imports this
        one."""
        self.parameters = parameters
        self.words = words
        self.names = tuple([parameter.name for parameter in parameters])
        self.loaders = tuple([parameter.converter.load for parameter in parameters])
        self.kinds = bytes([KINDS.get(parameter.kind, c"?") for parameter in parameters])
        self.missing = missing

    def bind(self, dict arguments):
        """Return the values of all parameters in order, a list; or a str that says what does not fit."""
        cdef list values = []
        cdef list problems = []
        cdef PyObject* found
        cdef object value
        cdef str name
        cdef str problem
        cdef Py_ssize_t at
        for at in range(len(self.names)):
            name = self.names[at]
            found = PyDict_GetItem(arguments, name)
            problem = value = None
            if found != NULL and is_exact(self.kinds[at], <object> found):
                value = <object> found
            elif found != NULL:
                if self.loaders[at] is not None and <object> found is not None:
                    try:
                        values.append(self.loaders[at](<object> found))
                        continue
                    except Exception:  # said, or mended, by `accept`
                        pass
                problem = wrong(self.kinds[at], <object> found)
                if problem is not None:
                    problem = f"{name}: expected {problem}, got {self.shown(<object> found)}"
                else:
                    try:
                        value = self.parameters[at].accept(<object> found)
                    except self.words.Mismatch as mismatch:
                        problem = mismatch.of(name)
            elif self.parameters[at].required:
                problem = self.missing(name, arguments)
            else:
                value = self.parameters[at].default
            if problem is None:
                values.append(value)
            else:
                problems.append(problem)
        if not problems:
            return values
        problem = problems[0]
        if len(problems) == 1 and len(problem) <= SHORT_PROBLEM:
            return problem
        return self.words.text_of_problems(problems)

    cdef str shown(self, object value):
        """Return a value as an error shows it (`shorten`)."""
        cdef Py_ssize_t at
        cdef unsigned char letter
        cdef int overflow = 0
        cdef type kind = type(value)
        if kind is list:
            return "an array" if value else "an empty array"
        if kind is dict:
            return "an object" if value else "an empty object"
        if kind is int and -LARGEST_SHOWN < PyLong_AsLongLongAndOverflow(value, &overflow) < LARGEST_SHOWN:
            return str(value)
        if kind is not str or not PyUnicode_IS_COMPACT_ASCII(value) or len(<str> value) > LONGEST_SHOWN:
            return self.words.shorten(value)
        for at in range(len(<str> value)):
            letter = PyUnicode_1BYTE_DATA(value)[at]
            if letter < 0x20 or letter == c'"' or letter == 0x7F:
                return self.words.shorten(value)
        return f'"{<str> value}"'


cdef dict KINDS = {"str": c"s", "int": c"i", "float": c"f", "bool": c"b", "json": c"*"}


cdef inline bint is_exact(char kind, object value) noexcept:
    """Does a value pass as it is, at a glance?"""
    if kind == c"s":
        return type(value) is str
    if kind == c"i":
        return type(value) is int
    if kind == c"f":
        return type(value) is float
    if kind == c"b":
        return type(value) is bool
    return kind == c"*"


cdef inline str wrong(char kind, object value):
    """Return what was expected where that is plain; None where `accept` has to look."""
    if value is None or (type(value) is str and not is_word(value)):
        return None
    if kind == c"s":
        return "string"
    if kind == c"i":
        return None if type(value) is float else "integer"
    if kind == c"f":
        return None if type(value) is int else "number"
    return None


cdef bint is_word(object text) noexcept:
    """Is there a letter in it that no number has?"""
    cdef Py_ssize_t at
    cdef unsigned char letter
    if not PyUnicode_IS_COMPACT_ASCII(text):
        return False
    for at in range(min(PyUnicode_GET_LENGTH(text), LONGEST)):
        letter = PyUnicode_1BYTE_DATA(text)[at] | 0x20
        if c"a" <= letter <= c"z" and letter != c"e":
            return True
    return False


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
    """Return where a short text of ASCII begins after its spaces, NULL for any other."""
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
