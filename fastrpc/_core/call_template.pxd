# The last call's line without its values, as the message reader uses it; call_template.h tells what it is.

from fastrpc._core cimport fast_parser  # its header comes first
from fastrpc._core.call cimport Call

cdef extern from "call_template.h":
    ctypedef struct CallTemplate "struct fastrpc_template":
        Call call
        int values
        int misses
        int pause
    Py_ssize_t try_template "fastrpc_try_template"(
        const char* line, const char* limit, CallTemplate* pattern
    ) noexcept
    bint learn_template "fastrpc_learn_template"(
        const char* line, Py_ssize_t size, const Call* call, CallTemplate* pattern
    ) noexcept
