# One call of a handler, as its Context knows it.

cdef class CallContext:
    cdef public bint cancelled
    cdef readonly bint ended
    cdef readonly bint asks_no_progress
    cdef object opener               # who fills it in when somebody asks; None: it is filled in
    cdef bytes line                  # the request
    cdef object plan
    cdef object _request_id
    cdef object _protocol_version
    cdef object _client_info
    cdef object link                 # the way to the client, or None

    cdef int open(self) except -1

cdef CallContext context_of_call(type kind, object opener, bytes line, object plan, bint asks_no_progress)
