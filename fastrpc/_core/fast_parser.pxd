# The strict pass, as the message reader uses it; fast_parser.h tells what it is.

from fastrpc._core cimport simdjson  # the pass has UTF-8 validated by simdjson: its header comes first
from fastrpc._core.call cimport Call

cdef extern from "fast_parser.h":
    bint parse_fast "fastrpc_parse_fast"(
        const char* line, Py_ssize_t size, const char* meta, Py_ssize_t meta_size, Call* call
    ) noexcept
