# The client side of a connection: sends requests, receives responses.

from libc.stdint cimport int64_t

from fastrpc._core.answer cimport Answer
from fastrpc._core.call_writer cimport CallWriter
from fastrpc._core.client_request cimport AnswerSink, PendingRequest, Resumptions
from fastrpc._core.encoder cimport OutputBuffer
from fastrpc._core.framer cimport Framer
from fastrpc._core.message cimport Message

cdef enum:
    TAILS = 4                    # the most that are stored
    MOST_UNSENT = 64 * 1024 * 1024  # bytes; where more wait, nothing further is sent

cdef class ClientStream:
    cdef readonly dict pending   # id -> PendingRequest
    cdef public object on_request
    cdef public object on_notification
    cdef public object on_unreadable
    cdef public object on_end
    cdef public object on_full
    cdef public object carry
    cdef public bint needs_loop
    cdef public bint sends_tokens   # a progress token in each call
    cdef public double max_seconds  # of a request with a time limit, with all its progress; 0: no bound
    cdef public str remark       # appended to the message of a RequestTimeout
    cdef Framer framer
    cdef Message message
    cdef OutputBuffer output
    cdef int64_t last_id
    cdef CallWriter calls        # encodes them into the output
    cdef object loop
    cdef int input
    cdef int sink
    cdef int extra_input         # a descriptor that only the event loop reads
    cdef bint flush_is_due
    cdef bint writing            # the output is full, and the loop watches it
    cdef bint at_end
    cdef object timer
    cdef int64_t timer_at
    cdef bint forwards           # some requests have a sink
    cdef AnswerSink sink_in_use  # has taken results of these lines
    cdef bint is_behind          # an interrupt has passed: lines that were read are not handled
    cdef bint are_limits_held
    cdef list tails              # of AnswerTail
    cdef int next_tail
    cdef object resolved         # a future of the loop that has the result None
    cdef Resumptions resumptions

    cdef PendingRequest begin(self, str method, bint is_call, object future, object context, double seconds)
    cdef int register(self, PendingRequest request, str method, bint is_call, double seconds) except -1
    cdef int start_call(
        self, PendingRequest request, str name, object arguments, double timeout_seconds, bint with_token
    ) except -1
    cdef int read_input(self) except -1
    cdef int check_congestion(self, str what) except -1
    cdef PendingRequest forward(
        self, str name, const char* arguments, Py_ssize_t size, bytes end, AnswerSink sink, object call
    )
    cdef int put_line(self, bytes line, PendingRequest request, dict params) except -1
    cdef int wrote(self) except -1
    cdef int write_out(self) except -1
    cdef int arm(self, PendingRequest request) except -1
    cdef bint read_now(self) except -1
    cdef int handle_lines(self) except -1
    cdef int handle_each(self) except -1
    cdef int pass_on(self, object callback, tuple values) except -1
    cdef int pass_request(self, dict message) except -1
    cdef int pass_to_peer(self, PendingRequest request, object params) except -1
    cdef int settle(self, PendingRequest request, dict message, Answer* likely) except -1
    cdef int lines_end(self) except -1
    cdef int handle(self, const char* line, Py_ssize_t size) except -1
    cdef bint match_tail(self, Answer* answer) except -1
    cdef bint take_raw(self, Answer* likely) except -1
    cdef int read_whole(self, const char* line, Py_ssize_t size, Answer* likely) except -1
    cdef int take_answer(self, dict message, Answer* likely) except -1
    cdef int take_batch(self) except -1
    cdef int take_unreadable(self) except -1
    cdef int learn(self, Answer* likely, dict result) except -1
    cdef int take_notification(self, dict message) except -1
    cdef int input_ended(self) except -1
