# One call of a handler, as its Context knows it.

cdef class CallContext:
    cdef public bint cancelled
    cdef readonly bint ended
    cdef readonly bint asks_no_progress
    cdef object opener               # fills it in at its first use; None: it is filled in
    cdef const char* text            # the request, while it lies in the read buffer,
    cdef Py_ssize_t size
    cdef bytes line                  # and a copy afterwards
    cdef object plan
    cdef object _request_id
    cdef object _protocol_version
    cdef object _client_info
    cdef object link                 # the way to the client, or None

    cdef int open(self) except -1
    cdef int keep(self) except -1
    cdef bint is_untouched(self) noexcept

cdef CallContext new_context(type kind)
