# A call that has not been answered, and what its handler knows of it.

cdef class CallContext

cdef class InFlightCall:
    cdef readonly object plan
    cdef public CallContext context      # None: nothing of the call needs one
    cdef public object request           # a Request; None until one is needed
    cdef public object task              # the CallTask of its coroutine, or of its guard's decision; or None
    cdef public str state
    cdef object timer                    # of its time limit, or None

    cpdef take(self, plan, CallContext context, request, str state)
    cpdef bint leave(self) except -1
    cpdef send_rest(self)
    cpdef limit(self, loop, double passed)
    cpdef break_off(self, error)
    cpdef end(self, object result, object error)
    cpdef drop(self)
    cpdef stop(self)

cdef class CallContext:
    cdef public bint cancelled
    cdef readonly bint ended
    cdef readonly bint asks_no_progress
    cdef object opener               # fills it in at its first use; None: it is filled in
    cdef const char* text            # the request, while it lies in the read buffer,
    cdef Py_ssize_t size
    cdef bytes line                  # and a copy afterwards
    cdef object plan
    cdef InFlightCall call           # of the connection, while it waits; or None
    cdef object _request_id
    cdef object _protocol_version
    cdef object _client_info
    cdef object link                 # the way to the client, or None

    cdef int open(self) except -1
    cdef int keep(self) except -1
    cdef bint is_untouched(self) noexcept

cdef CallContext new_context(type kind)
