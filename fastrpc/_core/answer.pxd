# The likely answer to a call; answer.h tells what it is.

from libc.stdint cimport int64_t

from fastrpc._core.call cimport CallArgument

cdef extern from "answer.h":
    ctypedef struct Answer "struct fastrpc_answer":
        int64_t id
        CallArgument text            # `text`, `size`, `beyond_ascii` and `escaped` of it
        const char* tail             # from the text's closing quote to the end of the line
        Py_ssize_t tail_size
    ctypedef struct ToolResult "struct fastrpc_tool_result":
        int64_t id
        const char* text
        Py_ssize_t size
        bint is_error
