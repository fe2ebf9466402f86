"""Coroutines of calls that the connection begins by itself, and the calls that wait for them.

The first step of most coroutines is their last one: their value goes back to the connection at once. A
coroutine that waits makes its call a `PendingCall`, which is in flight until the task ends, the time limit
passes or the client cancels, whichever comes first. The connection encodes the answer then, as it does that
of any other call. Imported with the first coroutine, since it needs asyncio.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memchr

from fastrpc._core cimport connection as serving
from fastrpc._core.clock cimport ticks
from fastrpc._core.connection cimport CALL_ENDED, CALL_RAISED, CALL_WAITS, Connection, Steps
from fastrpc._core.contained cimport contained
from fastrpc._core.context cimport CallContext, InFlightCall
from fastrpc._core.encoder cimport ID_ROOM
from fastrpc._core.plan cimport FramedPlan, Plan
from fastrpc._core.slices cimport Slice, slice_of
from fastrpc._core.task cimport PENDING, CallTask, begun, forget

from asyncio import _get_running_loop

from fastrpc import forks


cdef bytes UNANSWERABLE = b'{"code":-32603,"message":"Internal error; see the server\'s log"}'


cdef class ConnectionCall(InFlightCall):
    """A call that the connection has begun. It is among the requests in flight, as their request and its
    call."""

    @property
    def call(self):
        return self

    @property
    def dispatcher(self):
        return self.connection.dispatcher

    @property
    def batch(self):
        return None

    @property
    def began(self):
        """When the message had been read, in ticks."""
        return self.times.began

    cdef int enter(self, Connection connection, Plan plan, Steps* steps) except -1:
        """Put the call in flight."""
        self.connection = connection
        self.plan = plan
        self.state = "running"
        self.id = steps.id.data[: steps.id.size]
        self.roomy_id = self.id if steps.id.size >= ID_ROOM else steps.id.data[:ID_ROOM]
        self.stateless = steps.stateless
        if steps.frame != NULL:
            self.frame = <FramedPlan> steps.frame
        if steps.line != NULL:
            self.recorded_line = <bytes> steps.line
        self.times = steps.times
        self.key = self.id
        if memchr(steps.id.data, c"\\", steps.id.size):
            self.key = connection.delegate.key_of(self.id)
        connection.in_flight[self.key] = self
        connection.calls.count += 1
        return 0

    cpdef bint leave(self) except -1:
        if not InFlightCall.leave(self):
            return False
        del self.connection.in_flight[self.key]
        return True

    cdef void fill(self, Steps* steps) noexcept:
        steps.id = Slice(<char*> self.roomy_id, len(self.id))
        steps.stateless = self.stateless
        steps.refused = False
        steps.frame = NULL if self.frame is None else <PyObject*> self.frame
        steps.line = NULL if self.recorded_line is None else <PyObject*> self.recorded_line
        steps.times = self.times

    # Sending an answer may close the connection, which has no dispatcher from then on: it is looked up first.
    # The caller ends further calls after this one, so an exception in a callback stops neither.

    cpdef end(self, object result, object error):
        """Have the connection answer and record the call, unless it is closed."""
        cdef Steps steps
        cdef Connection connection = self.connection
        cdef object dispatcher = connection.dispatcher
        cdef long long before
        if self.request is not None:
            contained("what a call has reported could not be sent", (<object> self).send_rest)
        before = connection.output.written()
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

    cpdef drop(self):
        """Record the call, unless the connection is closed."""
        cdef Steps steps
        cdef Connection connection = self.connection
        cdef object dispatcher = connection.dispatcher
        if self.leave() and dispatcher is not None:
            self.fill(&steps)
            connection.last_outcome = self.outcome or "cancelled"
            try:
                if (<Plan> self.plan).recorder is not None:
                    steps.times.returned = ticks()
                    connection.record(self.plan, &steps, 0)
                dispatcher.requests.check_idle()
                dispatcher.requests.dropped()
            except KeyboardInterrupt:
                raise
            except BaseException as failure:
                self.failed(None, -1, failure)

    cdef int failed(self, object dispatcher, long long before, object error) except -1:
        """Ending the call has raised: log it, and tell the client, if nothing has been written since
        `before`."""
        from fastrpc import tracebacks

        tracebacks.report("a call could not be ended", error)
        if dispatcher is not None:
            if self.connection.output.written() == before:
                self.connection.output.put_error(slice_of(self.id), slice_of(UNANSWERABLE))
            self.connection.wrote()
            tracebacks.call("a call could not be ended", dispatcher.requests.check_idle)
        return 0


cdef class PendingCall(ConnectionCall):
    """A call that waits: its coroutine is suspended."""

    def __call__(self, CallTask task):
        """The coroutine has ended."""
        cdef Connection connection = self.connection
        cdef object error = task.call_error()
        connection.calls.count -= 1
        if connection.generation is not None and connection.generation != forks.generation:
            forks.leave(error)
        self.end(task.value if error is None else None, error)


cdef int begin(
    Connection connection, Plan plan, Steps* steps, CallContext context, object awaitable, PyObject** value
) except -1:
    """Take the first step of a call's coroutine; `value` gets a reference to what it returns or raises."""
    cdef CallTask task = begun(awaitable, connection.loop)
    cdef int outcome
    if connection.generation is not None and connection.generation != forks.generation:
        forks.leave(task.value if task.failed else None)
    if task.state == PENDING:
        wait(connection, plan, steps, task, context)
        return CALL_WAITS
    result = task.call_error() if task.failed else task.value
    outcome = CALL_RAISED if task.failed else CALL_ENDED
    forget(task)
    Py_INCREF(result)
    value[0] = <PyObject*> result
    return outcome


cdef int wait(
    Connection connection, Plan plan, Steps* steps, CallTask task, CallContext context
) except -1:
    """Have a call wait for its task."""
    cdef PendingCall call = PendingCall.__new__(PendingCall)
    call.enter(connection, plan, steps)
    call.task = task
    if context is not None:
        context.keep()
        context.call = call
        call.context = context
        if context.link is not None:  # it has been read before
            context._call_for(context.link.request)
    if plan.tool.timeout_seconds is not None:
        call.limit(connection.loop, connection.seconds_since(steps.times.began))
    task.on_done = call
    return 0


serving.begin = begin
serving.running_loop = _get_running_loop
