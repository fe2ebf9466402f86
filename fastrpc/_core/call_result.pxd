# The result of a tool call, made by the client's connection.

cdef class AnswerTail:
    cdef bytes line              # the bytes after the text, to the end of the line
    cdef bint is_error
    cdef bint is_bare            # the result has no members except content and isError
    cdef dict members            # the members of the result, except content

cdef class CallResult:
    cdef str only_text           # the text of the only block, if the line had a known tail; else None
    cdef AnswerTail tail
    cdef dict received           # the result as a dict; with a known tail None until `raw` is used

cdef CallResult text_result(str text, AnswerTail tail)
cdef AnswerTail tail_of(const char* line, Py_ssize_t size, dict result)
