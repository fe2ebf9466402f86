# A request of a client, and who gets its result.

from libc.stdint cimport int64_t

from fastrpc._core.answer cimport Answer, ToolResult
from fastrpc._core.call_result cimport AnswerTail
from fastrpc._core.message cimport Message

cdef enum:
    EXCERPT = 200                # the most bytes that an error or a callback gets of an unreadable message

cdef tuple INTERRUPTIONS         # exceptions that end the program: no reader contains them

# Takes the results of forwarded calls where they are read. `take` gets a CallResult or a dict, or an error.
cdef class AnswerSink:
    cdef int take_text(self, PendingRequest request, Answer* answer, AnswerTail tail) except -1
    cdef bint take_raw(self, PendingRequest request, ToolResult* result) except -1
    cdef int take(self, PendingRequest request, object value, object error) except -1
    cdef int lines_end(self) except -1

cdef class PendingRequest:
    cdef readonly int64_t id
    cdef readonly str method
    cdef readonly bint is_call   # of a tool: its result is a CallResult
    cdef readonly bint done
    cdef public object context   # of the caller, not used here
    cdef AnswerSink sink         # takes the result of a forwarded call; None for others
    cdef object future           # of asyncio, or None
    cdef readonly object value
    cdef readonly object error
    cdef int64_t limit           # nanoseconds; 0 for none
    cdef int64_t deadline
    cdef int64_t most            # nanoseconds, however much progress comes; 0 for no such bound
    cdef int64_t last            # the deadline that progress does not move; 0 for none

    cdef int begin_limits(self, double seconds, double max_seconds) except -1
    cdef void restart_limits(self) noexcept
    cdef void restart_limit(self) noexcept
    cdef object timed_out(self, str remark)
    cdef int finish(self, object value) except -1
    cdef int fail(self, object error) except -1
    cdef bint waits_in_loop(self) noexcept
    cdef int resume(self) except -1
    cdef int resume_soon(self) except -1

cpdef object sent_id(object id)
cdef int report(object error) except -1
cdef bytes refusal(dict message)
cdef bytes text_of(Message message)
cdef object unreadable(PendingRequest request, Message message)

# Completed requests whose tasks wait for them, in the order in which to resume these.
cdef class Resumptions:
    cdef list waiting
    cdef Py_ssize_t resumed      # how many of them have been resumed
    cdef bint are_collected      # responses are read where no task is running: they are resumed afterwards

    cdef int add(self, PendingRequest request) except -1
    cdef int resume_all(self) except -1
    cdef int leave_rest(self) except -1
