# A call as the strict pass finds it; call.h tells what is what.

from libc.stdint cimport int64_t

cdef extern from "call.h":
    enum:
        MOST_ARGUMENTS "FASTRPC_MOST_ARGUMENTS"
    ctypedef struct CallArgument "struct fastrpc_argument":
        const char* key
        Py_ssize_t key_size
        const char* to               # the end of the value in the line
        const char* text
        Py_ssize_t size
        int64_t integer
        int beyond_ascii
        int escaped
        char type
    ctypedef struct Call "struct fastrpc_call":
        const char* id
        const char* method
        const char* name
        Py_ssize_t id_size
        Py_ssize_t method_size
        Py_ssize_t name_size
        bint has_arguments
        bint has_meta
        int count
        int wire
        CallArgument* arguments
