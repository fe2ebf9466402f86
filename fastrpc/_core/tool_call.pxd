# A tool call of AsyncClient, which sends its request when it is first awaited.

from fastrpc._core.client_request cimport PendingRequest
from fastrpc._core.client_stream cimport ClientStream

cdef enum CallState:
    CREATED
    SENT            # the request; a task waits for the response
    FINISHING       # the coroutine `rest` runs
    ENDED

cdef class ToolCaller:
    cdef public ClientStream _stream
    cdef public object _loop
    cdef public object _output_schemas   # a dict by the names of tools
    cdef public double _timeout_seconds
    cdef public bint _is_open

cdef class ToolCall(PendingRequest):
    cdef readonly str name
    cdef readonly object arguments
    cdef readonly object as_type
    cdef readonly object timeout_seconds
    cdef ToolCaller client
    cdef ClientStream stream     # on which the request was sent
    cdef object rest
    cdef object callback         # of the task that waits
    cdef object callback_context
    cdef object cancellation     # a CancelledError, when the task is cancelled
    cdef CallState state
    cdef bint blocking

    cdef object step(self, object value, int* has_ended)
    cdef int begin(self) except -1
    cdef object likely_result(self)
    cdef int wake(self) except -1
    cpdef _resume(self)
    cdef int withdraw(self) except -1
