"""A call that has not been answered, and the base class of its `fastrpc.Context`.

An `InFlightCall` ends once for its client: by its result, its failure, its time limit or its cancellation,
whichever comes first; what comes later is dropped. How it is answered is left to its subclasses: calls that
the connection has begun (`ConnectionCall` in `fastrpc._core.pending`), and those of the dispatcher
(`fastrpc.engine.call.Call`).

A Context holds the message's text at first, and nothing else: the connection fills in where the request lies;
one that was not looked at serves the next call. The first read of an attribute parses the text and creates
the request and the channel to the client; most calls read none. The methods by which a tool notifies or asks
the client are in `fastrpc.context`.
"""

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_REFCNT

cdef extern from "Python.h":
    ctypedef object (*newfunc)(PyTypeObject* kind, object arguments, PyObject* keywords)

from fastrpc.errors import CallTimeout

cdef tuple NOTHING = ()


cdef class InFlightCall:
    """A call; or, without a subclass, one that runs now and has read its Context. `state` is one of those in
    `fastrpc.engine.request`."""

    cpdef take(self, plan, CallContext context, request, str state):
        """Take the request that the call answers. No ``__init__``: a subclass would look it up each time."""
        self.plan = plan
        self.context = context
        self.request = request
        self.state = state
        request.call = self

    cpdef bint leave(self) except -1:
        """End the call for its client, and take it out of the queue that it waits in; False if it has ended
        before."""
        if self.state == "ended":
            return False
        if self.state == "waiting":
            self.request.dispatcher.runtime.admission.withdraw(self)
        self.state = "ended"
        if self.timer is not None:
            self.timer.cancel()
        if self.context is not None:
            self.context.call = None
        if self.request is not None:
            # Else a reference cycle would keep call and arguments until a garbage collection.
            self.request.call = self.request.channel = None
        return True

    def left(self):
        """The function has returned or raised, on the thread that answers now."""
        self.send_rest()
        self.leave()

    cpdef send_rest(self):
        """Send what other threads have posted, and a progress report that is held back, before the answer:
        the last one must arrive."""
        cdef object request = self.request
        cdef object outbound = request.dispatcher.outbound
        cdef object channel = request.channel
        if outbound.posted:
            outbound.run_posted()
        if channel is not None and self.state == "running":
            channel.flush()

    cpdef limit(self, loop, double passed):
        """Have the call end at its time limit; so many seconds have passed."""
        seconds = self.plan.tool.timeout_seconds
        if seconds is not None:
            self.timer = loop.call_later(max(seconds - passed, 0), self.expire)

    def expire(self):
        """The time limit has passed: answer now, and stop the work as far as it can be stopped."""
        seconds = self.plan.tool.timeout_seconds
        self.break_off(CallTimeout(f"{self.plan.name} did not end within {seconds:g} s and was stopped"))

    cpdef break_off(self, error):
        """Answer with an error now, and stop the work as far as it can be stopped."""
        self.end(None, error)
        self.stop()

    def cancel(self, said=None):
        """The client has cancelled, or is gone: stop the work and answer nothing. `said`: the
        params of the client's notification, such as its reason."""
        if self.request is not None:
            self.request.cancellation = said
        self.drop()
        self.stop()

    cpdef end(self, object result, object error):
        """Answer with a result, or with an error that is not None; unless the call has ended."""
        raise NotImplementedError

    cpdef drop(self):
        """End the call without an answer, unless it has ended."""
        raise NotImplementedError

    cpdef stop(self):
        """Stop the work: it sends nothing more to the client."""
        if self.context is not None:
            self.context.cancelled = True
            if self.context.link is None:
                self.context.ended = True  # for code that reads it later
        if self.task is not None:
            self.task.cancel()


cdef class CallContext:
    """One call. `cancelled`: the client has cancelled it or gone away; `ended`: its function has returned;
    `asks_no_progress`: the request has no progress token."""

    def fill(self, request_id, protocol_version, client_info, link):
        """Set the attributes, once; `link` is the channel to the client, or None."""
        if self.opener is None and self._client_info is not None:
            return
        self._request_id = request_id
        self._protocol_version = protocol_version
        self._client_info = client_info
        self.link = link
        self.opener = self.line = self.plan = None

    cdef int open(self) except -1:
        if self.opener is not None:
            self.keep()
            self.opener.open_call(self, self.line)
        return 0

    def _call_for(self, request):
        """Return the call that the request of this Context belongs to."""
        cdef InFlightCall call = self.call
        if call is None:
            call = InFlightCall.__new__(InFlightCall)
            call.take(self.plan, self, request, "running")
            return call
        call.request = request
        request.call = call
        return call

    cdef int keep(self) except -1:
        """Copy the request: the read buffer will be used for something else."""
        if self.text != NULL:
            self.line = self.text[: self.size]
            self.text = NULL
        return 0

    cdef bint is_untouched(self) noexcept:
        """Whether no code has used it or holds a reference: then it may serve another call."""
        return self.text != NULL and not self.cancelled and Py_REFCNT(self) == 1

    @property
    def request_id(self):
        """The JSON-RPC id of the request."""
        self.open()
        return self._request_id

    @property
    def protocol_version(self):
        """The version that the client speaks."""
        self.open()
        return self._protocol_version

    @property
    def client_info(self):
        """The clientInfo of the client: its name and version (MCP: Implementation)."""
        self.open()
        return self._client_info

    @property
    def _tool(self):
        """The tool that is called; None once the request has been looked at, and for one made by hand."""
        return None if self.plan is None else self.plan.tool

    @property
    def _is_recorded(self):
        """Whether a budget may count what the call spends: reading it parses nothing."""
        return self.plan is None or self.plan.recorder is not None

    @property
    def _channel(self):
        self.open()
        return self.link


cdef CallContext new_context(type kind):
    """Return an empty instance of `kind`, a class made of CallContext."""
    cdef PyTypeObject* made_by = <PyTypeObject*> kind
    return <CallContext> (<newfunc> made_by.tp_new)(made_by, NOTHING, NULL)
