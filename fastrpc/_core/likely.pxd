# The strict pass and its shapes, as the message reader uses them; likely.h tells what they are.

from libc.stdint cimport int64_t

from fastrpc._core cimport simdjson  # the pass has UTF-8 validated by simdjson: its header comes first

cdef extern from "likely.h":
    ctypedef struct LikelyArgument "struct fastrpc_argument":
        const char* key
        Py_ssize_t key_size
        const char* text
        Py_ssize_t size
        int64_t integer
        int beyond_ascii
        char type
    ctypedef struct Likely "struct fastrpc_likely":
        const char* id
        const char* name
        Py_ssize_t id_size
        Py_ssize_t name_size
        bint has_arguments
        bint has_meta
        int count
        int era
        LikelyArgument* arguments
    ctypedef struct Shape "struct fastrpc_shape":
        Likely call
        int values
        int misses
        int pause
    bint try_shape "fastrpc_try_shape"(const char* line, Py_ssize_t size, Shape* shape) noexcept
    void note_shape "fastrpc_note_shape"(
        const char* line, Py_ssize_t size, const Likely* call, Shape* shape
    ) noexcept
    bint read_likely "fastrpc_read_likely"(
        const char* line, Py_ssize_t size, const char* meta, Py_ssize_t meta_size, Likely* call
    ) noexcept
