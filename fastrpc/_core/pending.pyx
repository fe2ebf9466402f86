"""Coroutines of calls that the connection begins by itself, and the calls that wait for them.

The first step of most coroutines is their last one: their value goes back to the connection at once. A
coroutine that waits makes its call a `PendingCall`, which is in flight until the task ends, the time limit
passes or the client cancels, whichever comes first. The connection encodes the answer then, as it does that
of any other call. Imported with the first coroutine, since it needs asyncio. When the function reads its
Context, the call becomes a `fastrpc.engine.call.Call`, which has all that a Context can be asked for.
"""

from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF
from libc.string cimport memchr

from fastrpc._core.connection cimport CALL_ENDED, CALL_RAISED, CALL_WAITS, Connection, Steps, ticks
from fastrpc._core.context cimport CallContext
from fastrpc._core.encoder cimport ID_ROOM
from fastrpc._core.plan cimport FramedPlan, Plan
from fastrpc._core.recorder cimport decided_of
from fastrpc._core.task cimport CANCELLED, PENDING, CallTask, begun, forget

from fastrpc import forks
from fastrpc.errors import CallTimeout, ToolError


cdef bytes UNANSWERABLE = b'{"code":-32603,"message":"Internal error; see the server\'s log"}'


cdef class InFlightCall:
    """A call that is answered later. Stands among the requests in flight, as their request and its call."""

    @property
    def call(self):
        return self

    @property
    def dispatcher(self):
        return self.connection.dispatcher

    @property
    def batch(self):
        return None

    cdef int enter(self, Connection connection, Plan plan, Steps* steps) except -1:
        """Put the call in flight."""
        self.connection = connection
        self.plan = plan
        self.id = steps.id[: steps.id_size]
        self.roomy_id = self.id if steps.id_size >= ID_ROOM else steps.id[:ID_ROOM]
        self.stateless = steps.stateless
        if steps.frame != NULL:
            self.frame = <FramedPlan> steps.frame
        if steps.line != NULL:
            self.recorded_line = <bytes> steps.line
        self.began = steps.began
        self.bound = steps.bound
        self.allowed = steps.allowed
        self.key = self.id
        if memchr(steps.id, c"\\", steps.id_size):
            self.key = connection.delegate.key_of(self.id)
        connection.in_flight[self.key] = self
        connection.calls.count += 1
        return 0

    cdef bint leave(self) except -1:
        """Take the call out of those in flight; False if it is out already."""
        if self.ended:
            return False
        self.ended = True
        del self.connection.in_flight[self.key]
        return True

    cdef void fill(self, Steps* steps) noexcept:
        steps.id = self.roomy_id
        steps.id_size = len(self.id)
        steps.stateless = self.stateless
        steps.refused = False
        steps.frame = NULL if self.frame is None else <PyObject*> self.frame
        steps.line = NULL if self.recorded_line is None else <PyObject*> self.recorded_line
        steps.began = self.began
        steps.bound = self.bound
        steps.allowed = self.allowed

    # Sending an answer may close the connection, which has no dispatcher from then on: it is looked up first.
    # The caller ends further calls after this one, so an exception in a callback stops neither.

    cdef int end(self, object result, object error) except -1:
        """Answer, unless the call has ended for its client, or its connection is closed."""
        cdef Steps steps
        cdef Connection connection = self.connection
        cdef object dispatcher = connection.dispatcher
        cdef long long before = connection.output.written()
        if self.leave() and dispatcher is not None:
            self.fill(&steps)
            try:
                connection.finish(self.plan, &steps, self.context, result, error)
                connection.wrote()
                dispatcher.requests.check_idle()
            except KeyboardInterrupt:
                raise
            except BaseException as failure:
                self.failed(dispatcher, before, failure)
        return 0

    cdef int drop(self) except -1:
        """The client has cancelled, or is gone: answer nothing."""
        cdef Steps steps
        cdef Connection connection = self.connection
        cdef object dispatcher = connection.dispatcher
        if self.leave() and dispatcher is not None:
            self.fill(&steps)
            connection.last_outcome = self.outcome or "cancelled"
            try:
                if self.plan.recorder is not None:
                    connection.record(self.plan, &steps, ticks(), 0)
                dispatcher.requests.check_idle()
                dispatcher.requests.dropped()
            except KeyboardInterrupt:
                raise
            except BaseException as failure:
                self.failed(None, -1, failure)
        return 0

    cdef int failed(self, object dispatcher, long long before, object error) except -1:
        """Ending the call has raised: log it, and tell the client, if nothing has been written since
        `before`."""
        from fastrpc import tracebacks

        tracebacks.report("a call could not be ended", error)
        if dispatcher is not None:
            if self.connection.output.written() == before:
                self.connection.output.put_error(self.id, len(self.id), UNANSWERABLE, len(UNANSWERABLE))
            self.connection.wrote()
            tracebacks.call("a call could not be ended", dispatcher.requests.check_idle)
        return 0


cdef class PendingCall(InFlightCall):
    """A call whose coroutine is suspended. Its Context calls `open_call` when the function first reads it;
    `opener`, the connection's delegate, then fills the Context in."""

    cdef CallTask task
    cdef object timer
    cdef object opener

    def __call__(self, task):
        """The coroutine has ended."""
        cdef object error = None
        cdef object result = None
        self.connection.calls.count -= 1
        if task.state == CANCELLED:
            error = ToolError("the call was cancelled")
        elif task.failed:
            error = task.value
        else:
            result = task.value
        if self.is_forked():
            forks.leave(error)
        self.end(result, error)

    cdef bint is_forked(self) except -1:
        cdef Connection connection = self.connection
        return connection.generation is not None and connection.generation != forks.generation

    cdef bint leave(self) except -1:
        if not InFlightCall.leave(self):
            return False
        if self.timer is not None:
            self.timer.cancel()
        if self.context is not None and self.context.opener is self:
            self.context.opener = self.opener
        return True

    def open_call(self, context, line, plan):
        """A function uses the Context: fill it in, and leave the call to the dispatcher, on its thread."""
        self.opener.open_call(context, line, plan)
        self.opener.dispatcher.outbound.post(self.hand_over)

    def hand_over(self):
        """Leave the call to the dispatcher, unless it has ended."""
        if self.leave():
            self.connection.calls.count -= 1  # where the dispatcher counts it again
            self.opener.call_waits(self.id, self.plan, self.task, self.stateless, self.began, self.context)
            state_decided(self.context, self.recorded_line)

    def expire(self):
        """The time limit has passed: answer now, and stop the work."""
        seconds = self.plan.tool.timeout_seconds
        self.end(None, CallTimeout(f"{self.plan.name} did not end within {seconds:g} s and was stopped"))
        self.stop()

    def cancel(self, said=None):
        """The client has cancelled, or is gone: stop the work and answer nothing."""
        self.drop()
        self.stop()

    cdef int stop(self) except -1:
        if self.context is not None:
            self.context.ended = True  # for code that uses it later: it sends nothing to the client
            self.context.cancelled = True
        self.task.cancel()
        return 0


cdef int begin(
    Connection connection, Plan plan, Steps* steps, CallContext context, object awaitable, PyObject** value
) except -1:
    """Take the first step of a call's coroutine; `value` gets a reference to what it returns or raises."""
    cdef CallTask task = begun(awaitable, connection.loop)
    cdef int outcome
    if connection.generation is not None and connection.generation != forks.generation:
        forks.leave(task.value if task.failed else None)
    if task.state == PENDING:
        if context is not None:
            context.keep()
        if context is None or context.opener is not None:
            wait(connection, plan, steps, task, context)
        else:
            connection.delegate.call_waits(
                steps.id[: steps.id_size], plan, task, steps.stateless, steps.began, context
            )
            state_decided(context, <object> steps.line if steps.line != NULL else None)
        return CALL_WAITS
    result = ToolError("the call was cancelled") if task.state == CANCELLED else task.value
    outcome = CALL_RAISED if task.failed else CALL_ENDED
    forget(task)
    Py_INCREF(result)
    value[0] = <PyObject*> result
    return outcome


cdef int state_decided(CallContext context, object line) except -1:
    """Have the record of a call that the dispatcher has now carry what a guard has decided about it."""
    decided = decided_of(line)
    if decided is not None:
        context.link.request.take_decided(decided)
    return 0


cdef int wait(
    Connection connection, Plan plan, Steps* steps, CallTask task, CallContext context
) except -1:
    """Have a call wait for its task, with an unused Context, if there is one."""
    cdef PendingCall call = PendingCall.__new__(PendingCall)
    call.enter(connection, plan, steps)
    call.task = task
    if context is not None:
        call.context = context
        call.opener = context.opener
        context.opener = call
    limit = plan.tool.timeout_seconds
    if limit is not None:
        seconds = limit - connection.seconds_since(steps.began)
        call.timer = connection.loop.call_later(max(seconds, 0), call.expire)
    task.on_done = call
    return 0


begin_call = PyCapsule_New(<void*> begin, "fastrpc._core.pending.begin", NULL)
"""`begin`, for the connection: a C function of a module that is not there from the start."""
