"""The hot path: one line in, at most one answer out.

Compiled code parses, binds, calls and answers a `tools/call` of a tool that may run inline. If the tool
raises, it writes the error result too, unless the exception's text may need masking. A call whose plan has
more than its function (a Context, a coroutine, a guard, hooks, a recorder) goes through `serve`, step by
step: bind, guard, invoke, encode, record. A coroutine takes its first step here once the event loop runs;
one that waits becomes a `PendingCall`. The dispatcher, in Python, gets every other message, every result
that is no plain value, and every other failure. To decide whether a tool runs inline (run="auto"), the
connection reads the processor's counter once a call, and a clock only if that call was slow. It does no
I/O: a transport feeds lines and sends the output.
"""

from cpython.dict cimport PyDict_Contains, PyDict_GetItem
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.string cimport memchr, memcmp, memcpy

from fastrpc._core.call_info cimport CallInfo, info_of_call, put_back
from fastrpc._core.clock cimport clock, ticks
from fastrpc._core.collector cimport LARGE, PyGC_Disable, PyGC_Enable
from fastrpc._core.contained cimport contained
from fastrpc._core.context cimport CallContext, new_context
from fastrpc._core.encoder cimport FORM_TEXT, ID_ROOM
from fastrpc._core.message cimport SESSION_WIRE, STATELESS_WIRE, REQUEST
from fastrpc._core.plan cimport MISFIT, FramedPlan, is_ascii_text, is_writable_text, made_of
from fastrpc._core.recorder cimport LONGEST_ID, Record, answer_in, line_of
from fastrpc._core.slices cimport Slice, slice_of

from fastrpc import forks
from fastrpc._core.recorder import DecidedLine
from fastrpc.errors import ArgumentError

cdef dict FORKS = forks.__dict__  # a look-up here costs a fifth of `forks.generation`

cdef Begin begin = NULL
cdef object running_loop = None
cdef PutContent put_content = NULL


cdef class CallsInFlight:
    """How many calls a server works on that are not answered at once, and how many it may."""

    def __init__(self, Py_ssize_t limit):
        self.limit = limit


cdef class Connection:
    def __init__(self, tuple session_suffixes, tuple stateless_suffixes):
        """The suffixes follow the text of a result, by its form, with the newline at the end."""
        cdef Py_ssize_t at
        self.first_clock = clock()
        self.first_ticks = ticks()
        self.output = OutputBuffer()
        self.message = Message()
        self.principal = ""
        self.calls = CallsInFlight(0)
        self.plans = {}
        self.unknown, self.resources, self.prompts = {}, {}, {}
        self.in_flight = {}
        self.listening = {}
        self.suffix_texts = session_suffixes + stateless_suffixes
        for at in range(2 * FORMS):
            self.tails[at] = slice_of(self.suffix_texts[at])

    cdef int handle(self, const char* line, Py_ssize_t size) except -1:
        """Answer a line, which 64 readable bytes follow, or hand it to the dispatcher."""
        self.message.read_line(line, size)
        return self.handle_message()

    cdef int handle_message(self) except -1:
        cdef Message message = self.message
        cdef Plan plan
        cdef bytes ready
        cdef bint stateless = message.wire == STATELESS_WIRE
        if (
            message.kind_code == REQUEST
            and (stateless or (message.wire == SESSION_WIRE and self.open))
            and not ((self.in_flight or self.listening) and self.is_taken(message.id))
        ):
            if message.is_call:
                plan = self.plan_of()
                if plan is not None and (
                    plan.straight or (plan.count >= 0 and not message.resumes and self.may_serve(plan))
                ):
                    if message.parsed_fast:
                        self.learn(plan)
                    if plan.straight:
                        return self.call(plan, message.id, stateless, False)
                    return self.serve(plan, message.id, stateless, False, NULL)
                if plan is not None and plan.forwarder is not None and self.forward(plan, stateless):
                    return 0
                if plan is None and self.unknown and not self.shared:
                    error = self.unknown.get(message.target_str())
                    if error is not None:
                        return self.output.put_error(message.id, slice_of(error))
            elif message.is_list:
                ready = self.stateless_list if stateless else self.session_list
                if ready is not None:
                    return self.output.put_answer(message.id, slice_of(ready))
            elif message.is_read:
                return self.serve_framed(self.resources, stateless)
            elif message.is_prompt:
                return self.serve_framed(self.prompts, stateless)
            elif message.is_ping and not stateless and not self.counted:
                return self.output.put_answer(message.id, Slice("{}", 2))
        return self.dispatch()

    cdef int serve_framed(self, dict plans, bint stateless) except -1:
        """Serve resources/read or prompts/get by the plan that is kept for the URI or the name."""
        cdef Message message = self.message
        cdef FramedPlan framed
        cdef PyObject* found = PyDict_GetItem(plans, message.target_str()) if plans else NULL
        if found != NULL and <object> found is not None:
            framed = <FramedPlan> found
            if framed.stateless == stateless and not (message.resumes or self.shared) and (
                self.may_serve(framed.plan) and self.may_begin(framed.plan)
            ):
                return self.serve(framed.plan, message.id, stateless, False, <PyObject*> framed)
        return self.dispatch()

    cdef int dispatch(self) except -1:
        """Leave the message to the dispatcher."""
        # Of a large message many Python objects may be made, of which most are freed after it: the
        # collector of cycles would look at all of them before that.
        cdef bint collecting = self.message.line.size >= LARGE and PyGC_Disable()
        self.now = 0
        try:
            self.dispatcher.dispatch(self.message)
        finally:
            if collecting:
                PyGC_Enable()
        return 0

    cdef void learn(self, Plan plan) noexcept:
        """Be ready for more lines like this one, which calls a tool that runs inline."""
        self.known = self.message.learn() and plan.order_of(self.message.call, self.order)
        self.known_stateless = self.message.wire == STATELESS_WIRE

    cdef int answer_known(self) except -1:
        """Call the tool of the known line that the message has just read, and write its answer."""
        cdef Plan plan = self.last
        cdef Slice id = Slice(self.message.call.id, self.message.call.id_size)
        if plan.straight and not ((self.in_flight or self.listening) and self.is_taken(id)):
            return self.call(plan, id, self.known_stateless, True)
        return serve_known(self, plan, id)

    cdef Plan plan_of(self):
        """Return the plan of the tool that the message names, or None."""
        cdef Message message = self.message
        cdef PyObject* found
        if (
            self.last is not None
            and len(self.last.name_text) == message.target.size
            and memcmp(<char*> self.last.name_text, message.target.data, message.target.size) == 0
        ):
            return self.last
        found = PyDict_GetItem(self.plans, message.target_str())
        if found == NULL:
            return None
        self.last = <Plan> found
        self.known = False
        return self.last

    cdef bint is_taken(self, Slice id):
        """Is a request with this id still open? An id with escapes is left to the dispatcher."""
        cdef bytes key
        if memchr(id.data, c"\\", id.size) != NULL:
            return True
        key = id.data[: id.size]
        return PyDict_Contains(self.in_flight, key) or PyDict_Contains(self.listening, key)

    # --- a call, now ------------------------------------------------------------------------------------

    cdef int call(self, Plan plan, Slice id, bint stateless, bint known) except -1:
        """Call a tool and write its answer. `known` says that the arguments are in the known order."""
        cdef char kept[ID_ROOM]
        if id.size > ID_ROOM:
            return call_of_long_id(self, plan, id.data[: id.size], stateless, known)
        # The tool may make the read buffer move; the id lies in it.
        memcpy(kept, id.data, ID_ROOM)
        return call_kept(self, plan, Slice(<char*> kept, id.size), stateless, known)

    cdef int record_duration(self, Plan plan) except -1:
        """Record the duration of a call that has ended, if it may have been slow."""
        cdef int64_t ended = ticks()
        cdef int64_t took = ended - self.now
        self.now = ended
        if took > SUSPICIOUS_TICKS:
            plan.record_duration(self.nanoseconds_of(took))
        return 0

    cdef int end_call(self, Plan plan, Slice id, bint stateless, object result) except -1:
        """A result that is no ASCII text."""
        cdef str text
        if type(result) is str and plan.form == FORM_TEXT:
            try:
                return self.put_text(id, <str> result, FORM_TEXT, stateless)
            except UnicodeEncodeError:
                pass  # the dispatcher answers with the error
        elif plan.load_content is not None and put_blocks(self, plan, id, result, stateless):
            return 0
        elif (
            plan.plain is not None
            and type(result) is not str
            and self.put_value(id, made_of(result, plan.plain), plan.plain_form, stateless, True)
        ):
            return 0
        elif (
            plan.form >= 0
            and (plan.exact is None or type(result) is plan.exact)
            and (plan.check is None or plan.check(result))
            and self.put_value(id, result, plan.form, stateless, False)
        ):
            return 0
        elif plan.to_text is not None:
            text = made_of(result, plan.to_text)
            if text is not None:
                return self.put_text(id, text, FORM_TEXT, stateless)
        self.now = 0
        self.last_outcome = self.delegate.call_ended(id.data[: id.size], plan, result, stateless)
        return 0

    cdef int put_text(self, Slice id, str text, int form, bint stateless) except -1:
        """Answer with a text: the result, or that of an error, which is_writable_text()."""
        return self.output.put_text(id, text, self.tails[FORMS * stateless + form])

    cdef bint put_value(self, Slice id, object value, int form, bint stateless, bint is_made) except -1:
        """Answer with a plain value; False if it is none, or the dispatcher has to make a result of it.
        `is_made`: of a value of another type, and the text is its JSON even if it is a str."""
        if not stateless and not self.structured:
            form = FORM_TEXT
        return self.output.put_value_result(id, value, form, self.tails[FORMS * stateless + form], is_made)

    cdef int fail_call_with(self, Plan plan, Slice id, bint stateless, object error) except -1:
        cdef str text
        self.now = 0  # what it takes to say so is no other tool's time
        if self.generation is None or self.generation == <object> PyDict_GetItem(FORKS, "generation"):
            try:
                text = plan.failure_text(error)
            except BaseException:  # str(error) has raised
                text = None
            if text is not None:
                self.last_outcome = "invalid" if type(error) is ArgumentError else "tool_error"
                return self.put_text(id, text, FORM_ERROR, stateless)
        self.last_outcome = self.delegate.call_failed(id.data[: id.size], plan, error, stateless)
        return 0

    # --- a call with all its steps ------------------------------------------------------------------------

    cdef bint may_serve(self, Plan plan) except -1:
        """May the call be served here? On a connection that callers share, if it can end at once."""
        if self.shared and not (plan.is_direct and plan.inline):
            return False
        if plan.makes_tasks and self.message.may_get_task():
            return False
        return not plan.conditional or self.delegate.has_current_plans()

    cdef bint may_begin(self, Plan plan) except -1:
        """May the call be begun here, now? For a coroutine the loop has to run, and the server must not be
        overloaded."""
        return plan.inline or (plan.stepped and self.may_wait())

    cdef bint may_wait(self) except -1:
        """May one more call wait in the loop for what it needs?"""
        if self.loop is None or self.calls.count >= self.calls.limit:
            return False
        if begin == NULL:
            self.delegate.load_coroutines()
        return self.pumping or running_loop() is self.loop  # a pump is called by the loop alone

    cdef bint forward(self, Plan plan, bint stateless) except -1:
        """Have the message, a call, sent on to another server; False: it has to be served here."""
        cdef bint is_odd = self.message.resumes or self.message.wants_progress or self.shared
        if is_odd or not (self.may_wait() and self.may_serve(plan)):
            return False
        self.now = 0
        self.forwarder = plan.forwarder
        return self.forwarder.forward(self, plan, stateless)

    cdef int serve(self, Plan plan, Slice id, bint stateless, bint known, PyObject* frame) except -1:
        """Take a call through the steps of its plan: bind, guard, invoke, encode, record. One that may not
        begin here, of a thread for instance, is bound and handed over. On a connection that callers share,
        one that the gate does not allow is dispatched, before it has had any effect."""
        cdef char room[ID_ROOM]
        cdef PyObject* vector[MOST_PARAMETERS + 2]
        cdef PyObject* outer = self.context
        cdef bytes long_id
        cdef object line
        cdef Steps steps
        cdef int fits = 0
        cdef bint here = frame != NULL or self.may_begin(plan)
        steps.times.began = self.now if self.now else ticks()
        steps.values = vector + 1
        steps.refused = False
        steps.stateless = stateless
        steps.frame = frame
        steps.id = id
        if id.size > ID_ROOM:
            if id.size > LONGEST_ID and plan.recorder is not None:
                if known:
                    self.message.take_fast()
                return self.dispatch()
            long_id = id.data[: id.size]
            steps.id.data = long_id
        else:  # the function may make the read buffer move; the id lies in it
            memcpy(room, id.data, ID_ROOM)
            steps.id.data = room
        fits = plan.bind(self.message, self.order if known else NULL, steps.values)
        steps.times.bound = steps.times.allowed = 0
        steps.line = NULL
        if plan.recorder is not None:
            steps.times.bound = steps.times.allowed = ticks()
            if plan.recorder.keeps_content:
                line = line_of(self.message)
                if self.stated is not None:
                    line = DecidedLine(line, self.stated)
                steps.line = <PyObject*> line
        try:
            if fits > 0 and plan.is_direct and plan.inline and (
                plan.gate is None or plan.gate.allows(self.principal, plan.target, plan, steps.values)
            ):
                return self.run(plan, &steps)
            if self.shared and not plan.straight:
                if fits < 0:
                    take_raised()
                if known:
                    self.message.take_fast()
                return self.dispatch()
            if fits > 0 and here:
                return self.go(plan, &steps, self.context_for(plan, known), None)
            if fits < 0:
                return self.conclude(plan, &steps, None, None, take_raised())
            if frame != NULL:
                return self.dispatch()
            if known:
                self.message.take_fast()
            if fits > 0:
                return hand_over(self, plan, &steps, self.message, plan.list_of(steps.values))
            return self.serve_leniently(plan, &steps, here)
        finally:
            self.context = outer
            plan.release(steps.values)

    cdef int run(self, Plan plan, Steps* steps) except -1:
        """Call the function of a call that is allowed and needs no Context, and answer."""
        cdef PyObject* made
        cdef object result = None
        cdef object error = None
        if plan.gate is not None or plan.adaptive:
            steps.times.allowed = ticks()
        made = plan.invoke(steps.values)
        if made == NULL:
            error = take_raised()
        else:
            result = <object> made
            Py_DECREF(result)
        if plan.adaptive:
            self.now = steps.times.allowed
            self.record_duration(plan)
        return self.finish(plan, steps, None, result, error)

    cdef int serve_leniently(self, Plan plan, Steps* steps, bint here) except -1:
        """Bind the arguments again, each by its parameter's converter, and go on or refuse the call."""
        # Made first: a type's own code may run a loop that reads the next message.
        cdef CallContext context = self.context_for(plan, False) if here else None
        cdef bytes line = None if here else self.message.line.data[: self.message.line.size]
        cdef dict arguments = self.message.arguments()
        cdef object bound
        cdef object error = None
        try:
            bound = plan.bind_leniently(arguments)
        except BaseException as failure:
            bound = None
            error = self.delegate.binding_failed(failure)
        if plan.recorder is not None:
            steps.times.bound = steps.times.allowed = ticks()
        if type(bound) is str and plan.around is not None and plan.guard is None:
            bound = arguments  # hooks may mend them; a guard had to see how
        if type(bound) is str:
            error = bound if is_writable_text(bound) and not plan.noted else ArgumentError(bound)
        if error is not None:
            return self.finish(plan, steps, context, None, error)
        if not here:
            message = Message()
            message.read(line)
            return hand_over(self, plan, steps, message, bound)
        if type(bound) is dict:
            return self.go(
                plan, steps, context, CallInfo(plan, plan.name, self.principal, arguments, context)
            )
        plan.fill(steps.values, bound)
        return self.go(plan, steps, context, None)

    cdef CallContext context_for(self, Plan plan, bint known):
        """Return the context of the call that the message asks for; None if it needs none."""
        cdef CallContext context
        if plan.context_kind is None:
            return None
        context = plan.spare_context
        if context is None:
            context = new_context(plan.context_kind)
            context.plan = plan
        else:
            plan.spare_context = None
        context.opener = self.delegate
        context.text = self.message.line.data
        context.size = self.message.line.size
        context.asks_no_progress = known or not self.message.wants_progress
        context.ended = False
        self.context = <PyObject*> context
        return context

    cdef int go(self, Plan plan, Steps* steps, CallContext context, CallInfo info) except -1:
        """Ask the guard, call the function and answer. The arguments are bound, or `info` has those that do
        not fit."""
        cdef PyObject* made = NULL
        cdef object result = None
        cdef object error = None
        if context is not None and plan.context_at >= 0:
            steps.values[plan.context_at] = <PyObject*> context
        if info is None and (plan.guard is not None or plan.around is not None):
            info = info_of_call(plan, self.principal, context, steps.values)
        if info is not None and self.stated is not None:
            info.decision = self.stated
        if plan.guard is not None and not self.ask_guard(plan, steps, context, info):
            return 0
        if plan.around is None:
            made = plan.invoke(steps.values)
        else:
            made = PyObject_CallOneArg(plan.around, info)
        if made == NULL:
            error = take_raised()
        else:
            result = <object> made
            Py_DECREF(result)
        if info is not None and not put_back(plan, info) and info.take_line(steps.line):
            steps.line = <PyObject*> info.decided_line
        return self.conclude(plan, steps, context, result, error)

    cdef bint ask_guard(self, Plan plan, Steps* steps, CallContext context, CallInfo info) except -1:
        """Ask the guard about a call; False if it has refused the call, or decides later. A gate that allows
        the call is not asked: `serve` has run it by then."""
        cdef PyObject* made = PyObject_CallOneArg(plan.guard, info)
        cdef object decision
        steps.times.allowed = ticks()
        if made == NULL:
            steps.refused = True
            put_back(plan, info)
            self.conclude(plan, steps, context, None, take_raised())
            return False
        decision = <object> made
        Py_DECREF(decision)
        if decision is None:
            return True
        self.now = 0
        context.keep()
        info.keep()
        self.delegate.call_deferred(plan, info, decision, steps.times.began)
        return False

    cdef int conclude(
        self, Plan plan, Steps* steps, CallContext context, object result, object error
    ) except -1:
        """A step has raised, or the function has returned: answer, or begin the coroutine that it made."""
        cdef PyObject* value = NULL
        cdef int outcome
        if plan.stepped and error is None:
            outcome = begin(self, plan, steps, context, result, &value)
            if outcome == CALL_WAITS:
                self.now = 0
                return 0
            result = <object> value
            Py_DECREF(result)
            if outcome == CALL_RAISED:
                error = result
        if plan.adaptive:
            self.now = steps.times.allowed if steps.times.allowed else steps.times.began
            self.record_duration(plan)
        return self.finish(plan, steps, context, result, error)

    cdef int finish(
        self, Plan plan, Steps* steps, CallContext context, object result, object error
    ) except -1:
        """Write the answer and record the call. `error`: what was raised, or an ArgumentError's text."""
        cdef long long before = self.output.written()
        cdef object flush = None
        cdef bint used = False
        if plan.recorder is not None:
            steps.times.returned = ticks()
            if plan.recorder.keeps_content:  # the answer lies here until it is recorded
                flush, self.flush = self.flush, None
        if context is not None:
            context.ended = True
            used = context.link is not None
            if used and context.link.request.call is not None:
                context.link.request.call.left()
            elif context.is_untouched():
                context.opener = None  # which the plan outlives
                plan.spare_context = context
            else:
                context.keep()
        self.last_outcome = "ok"
        if error is None:
            if steps.frame == NULL:
                answer(self, plan, steps.id, steps.stateless, result)
            elif not put_framed(self.output, steps, result):
                self.last_outcome = self.delegate.call_ended(
                    steps.id.data[: steps.id.size], plan, result, steps.stateless
                )
        elif type(error) is str:
            self.last_outcome = "invalid"
            self.put_text(steps.id, <str> error, FORM_ERROR, steps.stateless)
        elif used or steps.frame != NULL:
            self.last_outcome = self.delegate.call_failed(
                steps.id.data[: steps.id.size], plan, error, steps.stateless, context if used else None
            )
        else:
            self.fail_call_with(plan, steps.id, steps.stateless, error)
        if steps.refused:
            self.last_outcome = "refused"
        if plan.recorder is not None:
            self.record(plan, steps, self.output.written() - before)
            if flush is not None:
                self.flush = flush
        return 0

    cdef int record(self, Plan plan, Steps* steps, Py_ssize_t size) except -1:
        cdef bytes sent = answer_in(self.output, size, steps.id.size) if plan.recorder.keeps_content else None
        cdef object line = <object> steps.line if steps.line else None  # or a DecidedLine
        cdef bytes id = steps.id.data[: steps.id.size]
        cdef Record record
        record.kind = plan.kind_code
        record.times = steps.times
        record.size = size
        record.name, record.id = <PyObject*> plan.target, <PyObject*> id
        record.principal = <PyObject*> self.principal
        return plan.recorder.put(&record, self.last_outcome, <bytes> line, sent)

    cdef int keep_context(self) except -1:
        """The read buffer is used again while a function runs: its Context needs a copy of its request."""
        if self.context != NULL:
            (<CallContext> self.context).keep()
        return 0

    cdef int64_t nanoseconds_of(self, int64_t count) noexcept:
        """Return how long so many ticks are, by what has gone by since the connection was made."""
        cdef double rate = <double> (ticks() - self.first_ticks) / (clock() - self.first_clock + 1)
        return <int64_t> (count / rate)

    # --- for Python -------------------------------------------------------------------------------------

    def answer_text(self, bytes id, str text, bint stateless):
        """Answer with one text block. Raises UnicodeEncodeError before anything is written."""
        self.output.text(id, text, self.suffix_texts[FORMS * stateless])
        self.wrote()

    cpdef double seconds_since(self, int64_t began):
        """Return how many seconds ago a tick was."""
        return self.nanoseconds_of(ticks() - began) / 1e9

    cpdef wrote(self):
        """Have an answer sent that was written outside of a pump."""
        if not self.pumping and self.flush is not None:
            contained("an answer could not be sent", self.flush)

    def take_plans(self, dict plans):
        """Take new plans, after the tools have changed, and forget lists of the old ones."""
        self.plans = plans
        self.unknown, self.resources, self.prompts = {}, {}, {}
        self.last = self.bound_plans = None
        self.known = False
        self.forget_lists()

    def forget_lists(self):
        """Have the dispatcher asked for the next list."""
        self.session_list = self.stateless_list = None

    def take_list(self, bytes result, bint stateless):
        """Keep the first page of the tools, to answer with it from now on."""
        if stateless:
            self.stateless_list = result
        else:
            self.session_list = result

    cdef const char* take(self, bytes line) except NULL:
        """Copy a line that came by another way than a stream to where it can be read."""
        self.keep_context()
        self.now = 0
        return self.message.keep(line)

    def receive(self, bytes line):
        """Handle one line that came by another way than a stream."""
        cdef const char* text = self.take(line)
        if line and self.is_known(text, len(line)):
            self.answer_known()
        else:
            self.handle(text, len(line))

    cdef bint is_known(self, const char* text, Py_ssize_t size) noexcept:
        """Is this line like the one that was learned? The message has read it then."""
        return self.known and self.message.read_known(text, text + size + 1) == size


cdef inline int answer(Connection self, Plan plan, Slice id, bint stateless, object result) except -1:
    """Write the answer that a result makes."""
    if plan.form == FORM_TEXT and is_ascii_text(result):
        return self.output.put_text(id, <str> result, self.tails[FORMS * stateless])
    return self.end_call(plan, id, stateless, result)


cdef bint put_blocks(Connection self, Plan plan, Slice id, object result, bint stateless) except -1:
    """Answer with content blocks; False if there are none, or the dispatcher has to write them."""
    if put_content == NULL:
        plan.load_content()
    return put_content(self, plan, id, result, stateless)


cdef bint put_framed(OutputBuffer output, Steps* steps, object result) except -1:
    """Answer with a text that a resource or a prompt has returned; False if that is not all there is."""
    cdef FramedPlan framed = <FramedPlan> steps.frame
    return type(result) is str and output.put_framed(steps.id, framed.head, <str> result, framed.tail)


cdef int hand_over(Connection self, Plan plan, Steps* steps, Message message, object bound) except -1:
    """Have the dispatcher make a call that may not begin here; its arguments are bound."""
    self.now = 0
    self.delegate.call_bound(message, plan, bound, steps.stateless, steps.times.began)
    return 0


cdef int serve_known(Connection self, Plan plan, Slice id) except -1:
    """answer_known() for a call that has more steps, or is not to be answered here."""
    if self.may_serve(plan) and not ((self.in_flight or self.listening) and self.is_taken(id)):
        return self.serve(plan, id, self.known_stateless, True, NULL)
    self.message.take_fast()
    return self.dispatch()


cdef int call_of_long_id(Connection self, Plan plan, bytes id, bint stateless, bint known) except -1:
    return call_kept(self, plan, slice_of(id), stateless, known)


cdef int call_raised(Connection self, Plan plan, Slice id, bint stateless) except -1:
    """The tool has raised; its exception is set."""
    cdef object error = take_raised()
    if plan.adaptive:
        self.record_duration(plan)
    return self.fail_call_with(plan, id, stateless, error)


cdef inline int call_kept(Connection self, Plan plan, Slice id, bint stateless, bint known) except -1:
    """Connection.call() for an id that stays where it is."""
    cdef PyObject* result
    cdef int done
    if plan.adaptive and self.now == 0:
        self.now = ticks()
    result = plan.call_known(self.message.call, self.order) if known else plan.call(self.message)
    if result == NULL:
        return call_raised(self, plan, id, stateless)
    if result == <PyObject*> MISFIT:
        Py_DECREF(<object> result)
        return self.serve(plan, id, stateless, known, NULL)
    if plan.adaptive:
        self.record_duration(plan)
    done = answer(self, plan, id, stateless, <object> result)
    Py_DECREF(<object> result)
    return done
