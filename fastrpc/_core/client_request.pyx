"""A request of a client, and who gets its result: a future, a task, or the sink of a forwarded call."""

from cython cimport freelist
from libc.stdint cimport int64_t

from fastrpc._core.answer cimport Answer, ToolResult
from fastrpc._core.call_result cimport AnswerTail
from fastrpc._core.clock cimport clock

from fastrpc.errors import ClientError, InvalidAnswer, RequestTimeout
from fastrpc.json_encoding import to_json


cdef enum:
    LONGEST_ID = 18              # digits
    INTERNAL_ERROR = -32603

cdef tuple INTERRUPTIONS = (KeyboardInterrupt, SystemExit)


cdef class AnswerSink:
    """Takes the results of forwarded calls where they are read, in place of a future."""

    cdef int take_text(self, PendingRequest request, Answer* answer, AnswerTail tail) except -1:
        """Take a result of one text and nothing else; its bytes are valid during this call alone."""
        raise NotImplementedError

    cdef bint take_raw(self, PendingRequest request, ToolResult* result) except -1:
        """Take a result as bytes of its line; False: the caller wants a dict."""
        raise NotImplementedError

    cdef int take(self, PendingRequest request, object value, object error) except -1:
        """Take a result, a CallResult or a dict, or an error."""
        raise NotImplementedError

    cdef int lines_end(self) except -1:
        """All lines that have come together are handled."""
        raise NotImplementedError


@freelist(256)
cdef class PendingRequest:
    """A request that has been sent. `done`: its result or error is available.

    Ending one raises nothing, since others are ended after it: an error of a future becomes the request's.
    """

    cdef int begin_limits(self, double seconds, double max_seconds) except -1:
        """Set the time limit, which progress restarts, and, if `max_seconds` is not 0, the bound of both
        together (MCP, lifecycle: timeouts)."""
        self.limit = <int64_t> (seconds * 1e9)
        self.most = <int64_t> (max(max_seconds, seconds) * 1e9) if max_seconds > 0 else 0
        self.restart_limits()
        return 0

    cdef void restart_limits(self) noexcept:
        """Give the request its whole time again."""
        cdef int64_t now = clock()
        self.deadline = now + self.limit
        self.last = now + self.most if self.most else 0

    cdef void restart_limit(self) noexcept:
        """The server has reported progress."""
        self.deadline = clock() + self.limit
        if self.last and self.deadline > self.last:
            self.deadline = self.last

    cdef object timed_out(self, str remark):
        """Return the error for a request whose time is over."""
        if self.deadline == self.last and self.most > self.limit:
            over = f"no end within {self.most * 1e-9:g} s, though it reports progress"
        else:
            over = f"no answer within {self.limit * 1e-9:g} s{remark}"
        return RequestTimeout(f"{self.method}: {over}")

    cdef int finish(self, object value) except -1:
        self.done = True
        self.value = value
        if self.sink is not None:
            return self.sink.take(self, value, None)
        if self.future is not None:
            try:
                if not self.future.done():
                    self.future.set_result(value)
            except Exception as error:
                self.value = None
                self.fail(error)
        return 0

    cdef int fail(self, object error) except -1:
        """End the request with an error, which is raised to its caller. CancelledError, KeyboardInterrupt,
        SystemExit and StopIteration become a ClientError: they would end the caller's task or loop."""
        if not isinstance(error, Exception) or isinstance(error, StopIteration):
            error = ClientError(f"a callback of the client raised {type(error).__name__}")
        self.done = True
        self.error = error
        if self.sink is not None:
            return self.sink.take(self, None, error)
        if self.future is not None:
            try:
                if not self.future.done():
                    self.future.set_exception(error)
            except Exception:  # its loop is closed: no task waits
                pass
        return 0

    cdef bint waits_in_loop(self) noexcept:
        """Whether the event loop has to watch its time limit."""
        return self.future is not None

    cdef int resume(self) except -1:
        """Resume the task that awaits the response, now."""
        raise NotImplementedError

    cdef int resume_soon(self) except -1:
        """Have the event loop resume the task that awaits the response."""
        raise NotImplementedError

    @property
    def is_forwarded(self):
        """Whether its result goes to another connection, as a forwarded call's does."""
        return self.sink is not None

    def result(self):
        """Return the result. Raises the error."""
        if self.error is not None:
            raise self.error
        return self.value


cdef int report(object error) except -1:
    """Log what a callback of the client has raised."""
    from fastrpc import tracebacks

    tracebacks.report("a callback of the client failed", error)
    return 0


cdef bytes refusal(dict message):
    """Return the error response to a request of the server: the callback for it has raised."""
    failure = {"code": INTERNAL_ERROR, "message": "Internal error"}
    return to_json({"jsonrpc": "2.0", "id": message["id"], "error": failure})


cdef bytes text_of(Message message):
    """Return the first bytes of a message's line."""
    return message.line.data[: min(message.line.size, EXCERPT)]


cdef object unreadable(PendingRequest request, Message message):
    """Return the error that fails a request: the response to it cannot be parsed."""
    why = message.error or "more than 1,000,000 arrays and objects"
    if not message.has_outcome:
        why = "neither a result nor an error"
    return InvalidAnswer(f"{request.method}: the answer cannot be read: {why}")


cpdef object sent_id(object id):
    """Return which of our ids, which are integers, an answer bears; None for none. Some peers keep ids as
    texts, or all numbers as real ones, and answer "3" or 3.0 to 3."""
    if type(id) is int:
        return id
    if type(id) is float and id.is_integer():
        return int(id)
    if type(id) is str and len(id) <= LONGEST_ID and id.isascii() and id.isdigit():
        return int(id)
    return None


cdef class Resumptions:
    def __cinit__(self):
        self.waiting = []

    cdef int add(self, PendingRequest request) except -1:
        """Resume the task that awaits this response: in `resume_all`, or from the event loop if another task
        may be running."""
        if self.are_collected:
            self.waiting.append(request)
        else:
            request.resume_soon()
        return 0

    cdef int resume_all(self) except -1:
        cdef PendingRequest request
        while self.resumed < len(self.waiting):  # a task may add to it, for instance by closing the client
            request = self.waiting[self.resumed]
            self.resumed += 1
            request.resume()
        self.waiting.clear()
        self.resumed = 0
        return 0

    cdef int leave_rest(self) except -1:
        """Responses are no longer collected. If a task has raised KeyboardInterrupt or SystemExit, have the
        event loop resume those after it."""
        cdef PendingRequest request
        self.are_collected = False
        if self.waiting:
            for request in self.waiting[self.resumed:]:
                request.resume_soon()
            self.waiting.clear()
            self.resumed = 0
        return 0
