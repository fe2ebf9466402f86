"""Forwards tool calls to an upstream server as bytes, without making Python objects of arguments or result.

The arguments, and what of ``_meta`` is not the connection's own, are copied from the client's line into the
upstream request. A result of one text, in an answer like an earlier one, is copied into the answer; any other
result is parsed and encoded again. The answer has the id and the version of the client's request. What
the upstream server sends besides the result (a request, a log message) needs a Context: `promote()` turns the
forwarded call into an ordinary one. A guarded call is forwarded if the guard's `Gate` allows it by caller and
tool alone; the dispatcher asks the guard about any other one. Costs about 1 µs a call besides the four system
calls; a ``_meta`` like that of the last call costs a comparison more, any other ``_meta`` one pass over it.
`fastrpc.proxy` connects and lists tools.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.string cimport memchr, memcmp

from fastrpc._core.answer cimport Answer, ToolResult
from fastrpc._core.call_result cimport AnswerTail, CallResult
from fastrpc._core.client_request cimport AnswerSink, PendingRequest
from fastrpc._core.client_stream cimport MOST_UNSENT, ClientStream
from fastrpc._core.clock cimport ticks
from fastrpc._core.connection cimport FORM_ERROR, FORMS, Connection, Steps
from fastrpc._core.contained cimport contained
from fastrpc._core.encoder cimport FORM_TEXT
from fastrpc._core.message cimport Message
from fastrpc._core.pending cimport ConnectionCall
from fastrpc._core.plan cimport CallForwarder, Plan
from fastrpc._core.recorder cimport LONGEST_ID
from fastrpc._core.slices cimport Slice

from fastrpc import forks

cdef extern from "carried_meta.h":
    Py_ssize_t carried_meta "fastrpc_carried_meta"(const char* text, char* to) noexcept

cdef enum:
    FORM_RAW = -1

cdef bytes BARE_END = b"}}\n"


cdef class ForwardedCall(ConnectionCall):
    """A call whose answer comes from the upstream server."""

    cdef UpstreamRoute route
    cdef PendingRequest sent     # to the upstream server
    cdef bytes line              # the client's request

    cpdef bint leave(self) except -1:
        if not ConnectionCall.leave(self):
            return False
        self.connection.calls.count -= 1
        self.connection.forwarded -= 1
        self.sent = None  # which refers to this call: a reference cycle
        return True

    def cancel(self, said=None):
        """The client has cancelled, or is gone: cancel the upstream request and answer nothing. `said`: the
        client's reason, and what else goes on."""
        cdef PendingRequest request = self.sent
        self.drop()
        self.stop_upstream(request, {"reason": "the client has cancelled the call", **(said or {})})

    cpdef break_off(self, error):
        cdef PendingRequest request = self.sent
        self.end(None, error)
        self.stop_upstream(request, {"reason": str(error)})

    cdef int stop_upstream(self, PendingRequest request, dict said) except -1:
        """Cancel the upstream request, unless it has been answered."""
        cdef ClientStream stream = self.route.stream
        if stream is not None and request is not None and stream.forget(request):
            stream.cancel(request.id, self.route.carried_of(said))
        return 0


cdef class UpstreamRoute(AnswerSink):
    """Where calls of one upstream server are sent: `stream`, None while it is not connected. `version` is
    that of its session: results are forwarded as they are to clients that speak it, too.

    `result_of` makes the value that a tool returns from a result, a dict; `error_of` the exception that a
    tool raises from a ClientError; `carried_of` returns what of a notification's params goes on.
    """

    cdef public ClientStream stream
    cdef public str version
    cdef object result_of
    cdef object error_of
    cdef object carried_of
    cdef Connection unsent       # has answers that have not been sent
    cdef bytes meta              # the _meta of the last call that had one
    cdef bytes meta_end          # what the upstream request ends with for it; None: it is left to a parser

    def __init__(self, result_of, error_of, carried_of):
        self.result_of = result_of
        self.error_of = error_of
        self.carried_of = carried_of
        self.meta = b""

    cdef bytes end_for(self, Message message):
        """Return what follows the arguments in the upstream request: its ``_meta`` is the client's, without
        what belongs to the client's connection. None: a parser has to read it."""
        cdef Slice meta = message.meta_text()
        if meta.data == NULL:
            return self.stream.calls.call_end
        if meta.size != len(self.meta) or memcmp(meta.data, <char*> self.meta, meta.size) != 0:
            self.meta = meta.data[: meta.size]
            self.meta_end = self.carried(self.meta)
        return self.meta_end

    cdef bytes carried(self, bytes meta):
        cdef bytes room = PyBytes_FromStringAndSize(NULL, len(meta))
        cdef Py_ssize_t size = carried_meta(<char*> meta, PyBytes_AS_STRING(room))
        if size < 0:
            return None
        return BARE_END if size == 0 else b',"_meta":{' + room[:size] + b"}" + BARE_END

    cdef int take_text(self, PendingRequest request, Answer* answer, AnswerTail tail) except -1:
        cdef int form = FORM_ERROR if tail.is_error else FORM_TEXT
        return self.answer(request.context, form, Slice(answer.text.text, answer.text.size), tail.is_error)

    cdef int answer(self, ForwardedCall call, int form, Slice text, bint is_error) except -1:
        """Answer with a text that is escaped already, or (FORM_RAW) with a whole result."""
        cdef Connection connection = call.connection
        cdef object dispatcher = connection.dispatcher
        cdef long long before = connection.output.written()
        if call.leave() and dispatcher is not None:
            try:
                self.put(call, form, text, is_error)
                self.written(connection)
                dispatcher.requests.check_idle()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                call.failed(dispatcher, before, error)
        return 0

    cdef int put(self, ForwardedCall call, int form, Slice text, bint is_error) except -1:
        """Write the answer, and record the call."""
        cdef Connection connection = call.connection
        cdef long long before = connection.output.written()
        cdef Steps steps
        call.fill(&steps)
        if form == FORM_RAW:
            connection.output.put_answer(steps.id, text)
        else:
            connection.output.put_json_text(steps.id, text, connection.tails[FORMS * call.stateless + form])
        connection.last_outcome = "tool_error" if is_error else "ok"
        if (<Plan> call.plan).recorder is not None:
            steps.times.returned = ticks()
            connection.record(call.plan, &steps, connection.output.written() - before)
        return 0

    cdef int written(self, Connection connection) except -1:
        """Have an answer sent, once for all answers to a connection that come together."""
        if self.unsent is not connection:
            self.lines_end()
            self.unsent = connection
        return 0

    cdef int lines_end(self) except -1:
        cdef Connection connection = self.unsent
        self.unsent = None
        if connection is not None and not connection.pumping:
            if connection.send is None:
                connection.wrote()
            else:
                contained("an answer could not be sent", connection.send)
        return 0

    cdef bint take_raw(self, PendingRequest request, ToolResult* result) except -1:
        cdef ForwardedCall call = request.context
        cdef Connection connection = call.connection
        if call.stateless or connection.dispatcher is None:
            return False
        if connection.dispatcher.session.version != self.version:
            return False
        if memchr(result.text, c"\r", result.size) != NULL:
            return False  # white space in JSON, but the end of a line in a stream of events
        self.answer(call, FORM_RAW, Slice(result.text, result.size), result.is_error)
        return True

    cdef int take(self, PendingRequest request, object value, object error) except -1:
        cdef ForwardedCall call = request.context
        cdef object result = None
        try:
            if error is None:
                result = self.result_of(value.raw if type(value) is CallResult else value)
            else:
                error = self.error_of(error)
        except KeyboardInterrupt:
            raise
        except BaseException as wrong:
            error = wrong
        call.end(result, error)
        return 0

    def promote(self, PendingRequest request):
        """Go on with a forwarded call as an ordinary one, which has a Context. Its function is called with
        the upstream request in the place of the arguments; its guard has allowed it already."""
        cdef ForwardedCall call = request.context
        message = Message()
        message.read(call.line)
        request.sink = request.context = None
        request.is_call = False  # its result is wanted as a dict
        call.leave()
        call.connection.delegate.call_bound(
            message, call.plan, [request], call.stateless, call.times.began, is_allowed=True
        )


cdef class ToolForwarder(CallForwarder):
    """Forwards calls of one tool, which the upstream server knows as `name`."""

    cdef UpstreamRoute route
    cdef str name

    def __init__(self, UpstreamRoute route, str name):
        self.route = route
        self.name = name

    cdef bint forward(self, object served, Plan plan, bint stateless) except -1:
        cdef Connection connection = served
        cdef ClientStream stream = self.route.stream
        cdef Message message = connection.message
        cdef ForwardedCall call
        cdef Slice arguments
        cdef Steps steps
        cdef bytes end
        if stream is None or stream.loop is not connection.loop or stream.output.waiting() > MOST_UNSENT:
            return False
        if connection.generation is not None and connection.generation != forks.generation:
            return False
        end = self.route.end_for(message)
        if end is None or (message.has_more and not message.parsed_fast):
            return False
        if plan.recorder is not None and message.id.size > LONGEST_ID:
            return False
        arguments = message.arguments_text()
        if memchr(arguments.data, c"\n", arguments.size) != NULL:
            return False  # of a body over HTTP: white space in JSON, but the end of a line here
        steps.times.began = steps.times.bound = steps.times.allowed = ticks()
        if plan.gate is not None:  # the last condition: a call that it allows is counted
            if not plan.gate.allows(connection.principal, plan.target, None, NULL):
                return False
            steps.times.allowed = ticks()
        call = ForwardedCall.__new__(ForwardedCall)
        call.route = self.route
        call.line = message.line.data[: message.line.size]
        steps.id = message.id
        steps.stateless = stateless
        steps.frame = NULL
        steps.line = NULL
        if plan.recorder is not None and plan.recorder.keeps_content:
            steps.line = <PyObject*> call.line
        call.enter(connection, plan, &steps)
        connection.forwarded += 1
        try:
            call.sent = stream.forward(self.name, arguments.data, arguments.size, end, self.route, call)
        except Exception as error:  # it is in flight already
            call.end(None, error)
        return True

    cdef bint poll(self) except -1:
        cdef ClientStream stream = self.route.stream
        return stream is not None and stream.read_now()
