# The result of a tool call, as the client's connection makes it.

cdef class AnswerTail:
    cdef bytes line              # what stands behind the text, to the end of the line
    cdef bint is_error
    cdef bint is_bare            # the result has no members but its content and isError
    cdef dict members            # of the result, without its content

cdef class CallResult:
    cdef str only_text           # of a result of one text block whose line was like an earlier one
    cdef AnswerTail tail
    cdef dict received           # the result as a dict, once somebody wants it

cdef CallResult text_result(str text, AnswerTail tail)
cdef AnswerTail tail_of(const char* line, Py_ssize_t size, dict result)
