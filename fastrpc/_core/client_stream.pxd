# A client's side of a connection: requests go out, their answers come in.

from libc.stdint cimport int64_t

from fastrpc._core.answer cimport Answer
from fastrpc._core.encoder cimport Output
from fastrpc._core.framer cimport Framer
from fastrpc._core.message cimport Message

cdef enum:
    TAILS = 4                    # that are remembered

cdef class PendingRequest:
    cdef readonly int64_t id
    cdef readonly str method
    cdef readonly bint is_call   # of a tool: its result is a CallResult
    cdef readonly bint done
    cdef readonly object context  # whatever the caller gave
    cdef object future           # of asyncio, or None
    cdef object value
    cdef object error
    cdef int64_t limit           # nanoseconds; 0 for none
    cdef int64_t deadline

    cdef int finish(self, object value) except -1
    cdef int fail(self, object error) except -1

cdef class ClientStream:
    cdef readonly dict pending   # id -> PendingRequest
    cdef public object on_request
    cdef public object on_notification
    cdef public object on_unreadable
    cdef public object on_end
    cdef public object carry
    cdef public bint needs_loop
    cdef public str remark       # what an error about a missing answer says besides; "" for nothing
    cdef Framer framer
    cdef Message message
    cdef Output output
    cdef int64_t last_id
    cdef dict heads              # of calls, by the tool's name: what stands between the id and the arguments
    cdef bytes call_end          # what stands behind the arguments
    cdef object loop
    cdef int input
    cdef int sink
    cdef int also                # a descriptor whose bytes are the loop's affair
    cdef bint flush_is_due
    cdef bint writing            # the loop watches the output, which is full
    cdef bint at_end
    cdef object timer
    cdef int64_t timer_at
    cdef list tails              # of AnswerTail
    cdef int next_tail

    cdef PendingRequest begin(self, str method, bint is_call, object future, object context, double seconds)
    cdef int put_line(self, bytes line, PendingRequest request, dict params) except -1
    cdef int put_head(self, str name) except -1
    cdef int put_arguments(self, object arguments) except -1
    cdef int wrote(self) except -1
    cdef int write_out(self) except -1
    cdef int arm(self, PendingRequest request) except -1
    cdef int handle_lines(self) except -1
    cdef int handle(self, const char* line, Py_ssize_t size) except -1
    cdef bint take_likely(self, Answer* answer) except -1
    cdef int read_whole(self, const char* line, Py_ssize_t size, Answer* likely) except -1
    cdef int take_answer(self, dict message, Answer* likely) except -1
    cdef int take_batch(self) except -1
    cdef int learn(self, Answer* likely, dict result) except -1
    cdef int take_notification(self, dict message) except -1
    cdef int input_ended(self) except -1
