# The messages of one peer: a line in, its answer into the output buffer.

from libc.stdint cimport int64_t, uint8_t

from cpython.object cimport PyObject

from fastrpc._core.call_info cimport CallInfo
from fastrpc._core.context cimport CallContext
from fastrpc._core.encoder cimport OutputBuffer
from fastrpc._core.message cimport Message
from fastrpc._core.plan cimport MOST_PARAMETERS, CallForwarder, Plan
from fastrpc._core.recorder cimport Stages
from fastrpc._core.slices cimport Slice

# Which suffix of the connection follows a text: first those of SESSION_WIRE, then those of STATELESS_WIRE.
cdef extern from "raised.h":
    object take_raised "fastrpc_take_raised"()

cdef extern from "Python.h":
    PyObject* PyObject_CallOneArg(object function, object argument)

cdef enum:
    FORMS = 4                    # of a result, with
    FORM_ERROR = 3               # that is an error

# The state of a call after the first step of its coroutine.
cdef enum:
    CALL_ENDED
    CALL_RAISED
    CALL_WAITS

cdef class CallsInFlight:
    cdef public Py_ssize_t count
    cdef public Py_ssize_t limit

# A call that is being served, on the stack.
cdef struct Steps:
    PyObject** values          # bound, as Plan.invoke() takes them
    Slice id                   # with ID_ROOM readable bytes, outside of the read buffer
    bint stateless
    bint refused               # by the guard
    PyObject* frame            # a FramedPlan, borrowed; NULL: a tool's
    PyObject* line             # of the request, borrowed; NULL unless its recorder keeps content
    Stages times

cdef class Connection:
    cdef readonly OutputBuffer output
    cdef readonly Message message
    cdef public dict plans               # tool name -> Plan
    cdef readonly dict resources         # URI -> FramedPlan; None: it was read once
    cdef readonly dict prompts           # the same by name
    cdef readonly dict unknown           # name of an unknown tool -> the error that says so
    cdef Plan last                       # the plan that was called last
    cdef bint known                      # lines like the one that the message has learned call `last`
    cdef bint known_stateless            # and are of this wire
    cdef uint8_t[MOST_PARAMETERS] order  # and their arguments are these of its parameters
    cdef public bint open                # the handshake is done: calls without an envelope are served
    cdef public dict in_flight           # id text -> a Request of the dispatcher, or a ConnectionCall
    cdef readonly dict listening         # the same for subscriptions/listen requests
    cdef public object dispatcher        # takes the messages that are not answered here
    cdef public object delegate          # serves what calls need of Python
    cdef public object generation        # which process may serve it (`fastrpc.forks`); None: any
    cdef public bint counted             # a guard counts each request: only calls are answered here
    cdef public bint structured          # the version of the handshake knows structured content
    cdef tuple suffix_texts              # all that follows the text of a result, by wire and form
    cdef Slice tails[8]
    cdef bytes session_list              # the first page of tools/list, after the first request for it
    cdef bytes stateless_list
    cdef public object flush             # called after writing outside of a pump, or None
    cdef public object notify            # takes messages that answer nothing; None: they go among the answers
    cdef public object loop              # the event loop that serves the connection, or None
    cdef public bint shared              # by callers, one at a time: it answers at once or dispatches
    cdef public object bound_plans       # the CallerPlans that a shared one serves; None since take_plans()
    cdef public object call_in_loop      # calls a function on the event loop, as soon as there is one
    cdef public CallsInFlight calls      # of the server
    cdef public object send              # sends what was written, now; or None
    cdef CallForwarder forwarder         # that was used last
    cdef Py_ssize_t forwarded            # calls in flight that upstream servers answer
    cdef public str principal            # the authenticated principal, or ""
    cdef public dict stated              # what the record of each call states besides, with content; or None
    cdef PyObject* context               # the Context of the call that is being served, or NULL
    cdef str last_outcome                # of the call that was answered last (`recorder.OUTCOMES`)
    cdef bint pumping
    cdef int64_t now                     # the ticks when the last timed call ended; 0: count anew
    cdef int64_t first_clock             # clock and ticks when the connection was made
    cdef int64_t first_ticks

    cdef int handle(self, const char* line, Py_ssize_t size) except -1
    cdef int handle_message(self) except -1
    cdef int answer_known(self) except -1
    cdef int dispatch(self) except -1
    cdef void learn(self, Plan plan) noexcept
    cdef Plan plan_of(self)
    cdef bint is_taken(self, Slice id)
    cdef int call(self, Plan plan, Slice id, bint stateless, bint known) except -1
    cdef int record_duration(self, Plan plan) except -1
    cdef int put_text(self, Slice id, str text, int form, bint stateless) except -1
    cdef bint put_value(self, Slice id, object value, int form, bint stateless, bint is_made) except -1
    cdef int end_call(self, Plan plan, Slice id, bint stateless, object result) except -1
    cdef bint may_serve(self, Plan plan) except -1
    cdef bint may_begin(self, Plan plan) except -1
    cdef bint may_wait(self) except -1
    cdef bint forward(self, Plan plan, bint stateless) except -1
    cdef int serve(self, Plan plan, Slice id, bint stateless, bint known, PyObject* frame) except -1
    cdef int serve_framed(self, dict plans, bint stateless) except -1
    cdef CallContext context_for(self, Plan plan, bint known)
    cdef int run(self, Plan plan, Steps* steps) except -1
    cdef int serve_leniently(self, Plan plan, Steps* steps, bint here) except -1
    cdef int go(self, Plan plan, Steps* steps, CallContext context, CallInfo info) except -1
    cdef bint ask_guard(self, Plan plan, Steps* steps, CallContext context, CallInfo info) except -1
    cdef int conclude(
        self, Plan plan, Steps* steps, CallContext context, object result, object error
    ) except -1
    cdef int finish(
        self, Plan plan, Steps* steps, CallContext context, object result, object error
    ) except -1
    cdef int record(self, Plan plan, Steps* steps, Py_ssize_t size) except -1
    cdef int keep_context(self) except -1
    cdef const char* take(self, bytes line) except NULL
    cdef bint is_known(self, const char* text, Py_ssize_t size) noexcept
    cdef int fail_call_with(self, Plan plan, Slice id, bint stateless, object error) except -1
    cpdef double seconds_since(self, int64_t began)
    cpdef wrote(self)
    cdef int64_t nanoseconds_of(self, int64_t count) noexcept

cdef enum:
    SUSPICIOUS_TICKS = 100_000   # no processor counts a millisecond in fewer

ctypedef int (*Begin)(
    Connection connection, Plan plan, Steps* steps, CallContext context, object awaitable, PyObject** value
) except -1
ctypedef bint (*PutContent)(
    Connection connection, Plan plan, Slice id, object result, bint stateless
) except -1

# Set by modules that are imported when they are first needed: they need what no start-up imports.
cdef Begin begin                 # by `fastrpc._core.pending`, with the first coroutine
cdef object running_loop         # so is this: asyncio._get_running_loop
cdef PutContent put_content      # by `fastrpc._core.content_blocks`, with the first result that may be some
