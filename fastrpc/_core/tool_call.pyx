"""A tool call of `AsyncClient`: `call_tool`, and the awaitable that it returns.

A `ToolCall` is a coroutine (`collections.abc.Coroutine`) that sends its request when it is first awaited. It
is also what the awaiting task waits for: it has the part of `asyncio.Future` that a task uses. So a call
costs one object, and no coroutine frame, future or handle of the event loop. A task that waits goes on in the
turn of the loop that has read the response.

A complete result is returned from here, which is the likely end. Any other is left to the coroutine
`AsyncClient._finish_call`.
"""

from asyncio import CancelledError

from cpython.dict cimport PyDict_Contains
from cpython.object cimport PyObject
from cython cimport binding, final

from fastrpc._core.call_result cimport CallResult
from fastrpc._core.client_request cimport PendingRequest
from fastrpc._core.client_stream cimport ClientStream
from fastrpc._core.python_api cimport (
    PYGEN_ERROR,
    PYGEN_NEXT,
    PyContext_Enter,
    PyContext_Exit,
    PyIter_Send,
    PySendResult,
    owned,
    reraise,
)

cdef extern from "Python.h":
    int PyErr_WarnFormat(object category, Py_ssize_t stack_level, const char* text, ...) noexcept
    void PyErr_WriteUnraisable(PyObject* where)

cdef extern from *:
    """
    /* The slot am_send, which Cython cannot define: `await` takes a result from it without StopIteration. */
    typedef PyObject* (*fastrpc_step)(PyObject* self, PyObject* value, int* has_ended);
    static fastrpc_step fastrpc_step_of_call;

    static PySendResult fastrpc_send(PyObject* self, PyObject* value, PyObject** result) {
        int has_ended = 0;
        *result = fastrpc_step_of_call(self, value, &has_ended);
        if (*result == NULL) { return PYGEN_ERROR; }
        return has_ended ? PYGEN_RETURN : PYGEN_NEXT;
    }

    static void fastrpc_set_send(PyObject* type, fastrpc_step step) {
        fastrpc_step_of_call = step;
        ((PyTypeObject*)type)->tp_as_async->am_send = fastrpc_send;
    }
    """
    ctypedef object (*Step "fastrpc_step")(object self, object value, int* has_ended)
    void set_send "fastrpc_set_send"(object type, Step step)


cdef enum CallState:
    CREATED
    SENT            # the request; a task waits for the response
    FINISHING       # the coroutine `rest` runs
    ENDED


@binding(False)                  # calls of plain methods are faster
cdef class ToolCaller:
    """The base class of `AsyncClient`: `call_tool`, and what a call needs of its client."""

    cdef public ClientStream _stream
    cdef public object _loop
    cdef public object _output_schemas   # a dict by the names of tools
    cdef public double _timeout_seconds
    cdef public bint _is_open

    def call_tool(
        self, str name, arguments=None, *, as_type=None, timeout_seconds=None, on_progress=None, meta=None,
        task=False, ttl_ms=None
    ):
        """Call a tool. Cancelling this cancels the call.

        A tool that fails returns a result with `is_error`. `as_type`: return the result's value as this type
        (a dataclass, a msgspec Struct, a pydantic model, ``list[int]`` …); raises ToolCallFailed for a tool
        that fails, InvalidAnswer for a value of another type. `meta`: members of the request's ``_meta``.
        `task`: return a `fastrpc.client.RemoteTask` as soon as there is one; `ttl_ms`: how long the server is
        asked to keep it, in milliseconds, which 2025-11-25 alone can ask for. Raises ClientError,
        TasksUnsupported among them.
        """
        cdef ToolCall call
        if task or ttl_ms is not None:
            return self._call_as_task(
                name, arguments, task, ttl_ms, as_type, timeout_seconds, on_progress, meta
            )
        if on_progress is not None or meta is not None:
            return self._complete_call(name, arguments, as_type, None, timeout_seconds, on_progress, meta)
        call = ToolCall.__new__(ToolCall)
        call.client = self
        call.name = name
        call.arguments = arguments
        call.as_type = as_type
        call.timeout_seconds = timeout_seconds
        return call


@final
@binding(False)
cdef class ToolCall(PendingRequest):
    """A call that may be awaited once."""

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

    def __dealloc__(self):
        if self.state == CREATED and PyErr_WarnFormat(
            RuntimeWarning, 1, b"coroutine 'Client.call_tool' was never awaited"
        ):
            PyErr_WriteUnraisable(NULL)

    # --- as a coroutine -------------------------------------------------------------------------------

    @property
    def __qualname__(self):
        """What the representation of a task says of its coroutine."""
        return "Client.call_tool"

    def __await__(self):
        return self

    def __next__(self):
        return self.send(None)

    def send(self, value):
        """Send the request, or go on after the response."""
        cdef int has_ended = False
        result = self.step(value, &has_ended)
        if has_ended:
            raise StopIteration(result)
        return result

    def throw(self, error, value=None, traceback=None):
        """Raise an exception where the call waits. A request without a response is cancelled."""
        if self.state == FINISHING:
            return self.rest.throw(error if value is None else value)
        self.withdraw()
        if value is not None:
            error = value
        elif isinstance(error, type):
            error = error()
        raise error if traceback is None else error.with_traceback(traceback)

    def close(self):
        """End the call. A request without a response is cancelled."""
        if self.state == FINISHING:
            self.state = ENDED
            self.rest.close()
        else:
            self.withdraw()

    cdef object step(self, object value, int* has_ended):
        """Return the result and set `has_ended`, or return what the task has to wait for."""
        cdef PyObject* given = NULL
        cdef PySendResult outcome
        if self.state == CREATED:
            self.state = SENT
            if self.client._is_open:
                self.begin()
                if not self.done:
                    self.blocking = True
                    return self
        if self.state == SENT:
            if type(self.value) is CallResult:
                self.state = ENDED
                has_ended[0] = True
                return self.likely_result()
            if not self.done and self.id != 0:
                raise RuntimeError("coroutine is being awaited already")
            self.state = FINISHING
            self.rest = self.client._finish_call(self)
        if self.state == ENDED:
            raise RuntimeError("cannot reuse already awaited coroutine")
        outcome = PyIter_Send(self.rest, value, &given)
        if outcome == PYGEN_NEXT:
            return owned(given)
        self.state = ENDED
        self.rest = None
        if outcome == PYGEN_ERROR:
            reraise()
        has_ended[0] = True
        return owned(given)

    cdef int begin(self) except -1:
        cdef ToolCaller client = self.client
        cdef object limit = self.timeout_seconds
        self.stream = client._stream
        if limit is None:
            self.stream.start_call(self, self.name, self.arguments, client._timeout_seconds, False)
        else:  # the limit of this call, which progress restarts
            self.stream.start_call(self, self.name, self.arguments, limit, limit > 0)
        return 0

    cdef object likely_result(self):
        cdef ToolCaller client = self.client
        if self.as_type is None and not PyDict_Contains(client._output_schemas, self.name):
            return self.value
        return client._value_of(self.name, self.value, self.as_type)

    cdef int withdraw(self) except -1:
        cdef CallState state = self.state
        self.state = ENDED
        if state == SENT and self.id != 0 and not self.done and not self.client._loop.is_closed():
            self.client._session.withdraw(self)
        return 0

    # --- as a future ----------------------------------------------------------------------------------

    @property
    def _asyncio_future_blocking(self):
        """None but while the task waits: `asyncio.isfuture` takes it for a coroutine before."""
        return self.blocking if self.state == SENT else None

    @_asyncio_future_blocking.setter
    def _asyncio_future_blocking(self, bint value):
        self.blocking = value

    @property
    def _loop(self):
        return self.client._loop

    def add_done_callback(self, callback, *, context=None):
        self.callback = callback
        self.callback_context = context

    def cancel(self, msg=None):
        """Raise CancelledError in the task that waits. Return False if the response has been read."""
        if self.done or self.cancellation is not None:
            return False
        self.cancellation = CancelledError() if msg is None else CancelledError(msg)
        self.resume_soon()
        return True

    def result(self):
        """Raise CancelledError if the task was cancelled. The result is returned by `send`."""
        if self.cancellation is not None:
            raise self.cancellation

    # --- when the response has been read ----------------------------------------------------------------

    cdef int finish(self, object value) except -1:
        self.value = value
        return self.wake()

    cdef int fail(self, object error) except -1:
        self.error = error
        return self.wake()

    cdef int wake(self) except -1:
        self.done = True
        if self.callback is None or self.cancellation is not None:
            return 0
        return self.stream.resumptions.add(self)

    cdef bint waits_in_loop(self) noexcept:
        return True

    cdef int resume(self) except -1:
        cdef object context = self.callback_context
        PyContext_Enter(context)
        try:
            self._resume()
        finally:
            PyContext_Exit(context)
        return 0

    cdef int resume_soon(self) except -1:
        self.client._loop.call_soon(self._resume, context=self.callback_context)
        return 0

    cpdef _resume(self):
        """Call the task's callback with a future that is done. The task takes only an exception from it;
        asyncio reads an asyncio.Future faster than this object."""
        cdef object callback = self.callback
        self.callback = None
        if callback is not None:
            callback(self.stream.resolved if self.cancellation is None else self)


cdef object step_of(object call, object value, int* has_ended):
    return (<ToolCall> call).step(value, has_ended)


set_send(ToolCall, step_of)
