# The strict pass and its shapes, as the message reader uses them; fast_parser.h tells what they are.

from fastrpc._core cimport simdjson  # the pass has UTF-8 validated by simdjson: its header comes first
from fastrpc._core.call cimport Call

cdef extern from "fast_parser.h":
    ctypedef struct Shape "struct fastrpc_shape":
        Call call
        int values
        int misses
        int pause
    Py_ssize_t try_shape "fastrpc_try_shape"(const char* line, const char* limit, Shape* shape) noexcept
    bint note_shape "fastrpc_note_shape"(
        const char* line, Py_ssize_t size, const Call* call, Shape* shape
    ) noexcept
    bint read_likely "fastrpc_read_likely"(
        const char* line, Py_ssize_t size, const char* meta, Py_ssize_t meta_size, Call* call
    ) noexcept
