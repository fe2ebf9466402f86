"""Call plans: how a tool's arguments are bound and its function called, decided once at start-up.

A tool whose parameters are plain (str, int, float, bool, object, array, any JSON) and positional is
bound straight from the parser into a vector on the stack and called by vectorcall: no dict, no tuple, no
method look-up.
For arguments that do not fit at once (a string for an integer, a missing argument, a type that the author
defines) call() returns MISFIT. The connection then binds them again, leniently and with error messages
(`fastrpc.schema.Signature.binder`).

A plan also stores the measurements that move a synchronous tool to the loop's thread
(run="auto"): 16 calls in a row within 200 µs prove it, one inline call over 1 ms sends it back.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF
from libc.string cimport memcmp, memcpy

from fastrpc._core.call cimport Call, CallArgument
from fastrpc._core.clock cimport clock
from fastrpc._core.encoder cimport FORM_TEXT
from fastrpc._core.message cimport Argument, str_of

from fastrpc._core.recorder import KIND_CODES as _KIND_CODES
from fastrpc.errors import ArgumentError, FastrpcError, ToolError

cdef extern from "raised.h":
    object only_argument "fastrpc_only_argument"(object error)
    int place_of "fastrpc_place_of"(object error, PyObject** code)

cdef extern from "Python.h":
    PyObject* PyObject_Vectorcall(PyObject* function, PyObject** arguments, size_t count, PyObject* names)
    vectorcallfunc PyVectorcall_Function(object function)
    bint PyFunction_Check(object function)
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    PyObject* PyUnicode_New(Py_ssize_t size, Py_UCS4 maxchar)
    void* PyUnicode_DATA(PyObject* text)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size)
    PyObject* PyErr_Occurred()
    void PyErr_Clear()

cdef enum:
    PROOF = 16                   # calls in a row
    QUICK_NANOSECONDS = 200_000
    SLOW_NANOSECONDS = 1_000_000

cdef dict KINDS = {
    "str": c'"', "int": c"l", "float": c"d", "bool": c"t", "object": c"{", "array": c"[", "json": c"*",
    "checked": c"?",  # what no value has: its converter looks at each
}

PARAMETER_LIMIT = MOST_PARAMETERS
LIMITS_OF_AUTO = PROOF, QUICK_NANOSECONDS, SLOW_NANOSECONDS
REQUIRED = object()              # marks a parameter without a default
MISFIT = object()


# bind_message() as a function whose exceptions its caller leaves where they are.
ctypedef int (*Quiet)(Plan plan, Message message, PyObject** values) noexcept
ctypedef PyObject* (*QuietValue)(Plan plan, Py_ssize_t at, const CallArgument* argument) noexcept


cdef class CallForwarder:
    """Sends the calls of one tool to another server, as bytes; see `fastrpc._core.forwarding`."""

    cdef bint forward(self, object connection, Plan plan, bint stateless) except -1:
        """Forward the call that the connection's message is; False: it cannot be forwarded as it is."""
        raise NotImplementedError

    cdef bint poll(self) except -1:
        """Take the answers that have come, without waiting; False: there are none."""
        raise NotImplementedError


cdef class Gate:
    """A guard that may allow a call before anything is made for it; see `fastrpc._core.call_gate`."""

    cdef bint allows(self, str principal, str tool, Plan plan, PyObject** values) except -1:
        """Allow a call whose bound values are in a vector, and count it; False, without any effect: the guard
        has to be asked. Without a plan the values are not known."""
        raise NotImplementedError


cdef class Plan:
    def __init__(
        self,
        tool,
        str name,
        function,
        parameters,
        *,
        bint inline,
        bint adaptive,
        bint stepped=False,
        Py_ssize_t context_at=-1,
        type context_kind=None,
        int form=FORM_TEXT,
        exact=None,
        check=None,
        tuple plain=None,
        to_text=None,
        load_content=None,
        tuple loads=None,
        tuple keywords=(),
        bint is_async=False,
        bint binds_whole=False,
        str kind="tool",
        str target=None,
        encoder=None,
        bint noted=False,
        guard=None,
        around=None,
        recheck=None,
        recorder=None,
        CallForwarder forwarder=None,
        str refusal_prefix=None,
        str failure_prefix=None,
        bint hides_failures=False,
        bint conditional=False,
        bint makes_tasks=False,
    ):
        """Plan calls of `function`, registered as `tool`. plan.pxd describes the other attributes.

        `parameters` are (name, kind, default or REQUIRED, nullable) in positional order, or None where the
        compiled binder cannot serve the tool at all; `loads` what makes the values of the checked ones,
        `ValueType.load` or None for each; `keywords` the names of the last ones, where they are passed by
        name. A `context_kind` is handed over as the positional argument number `context_at`; `parameters`
        do not name it.

        `form` is that of its plain values (`encoder`), -1 if they need more than writing. `check` must not
        raise. `plain` is a function that makes a plain value of a result that keeps the output schema, and
        the form of that; of any other it makes none, or raises. `to_text` returns None, or raises, for a
        result that it makes no text of. `load_content` imports `fastrpc._core.content_blocks`; in a form that
        is not that of texts it writes lists of blocks alone.

        ``guard(call)`` is called with a `CallInfo` once the arguments are bound; if it is a `Gate` that
        allows the call by itself, it is not called. ``around(call)``, also with a `CallInfo`, calls the
        function instead of the connection. ``recheck(call)`` raises if ``around`` has changed the call into
        one that the guard has not allowed.
        The prefixes and `hides_failures` are those of `fastrpc.tool_style.ToolStyle`.
        """
        cdef Py_ssize_t at
        cdef bytes key
        self.tool = tool
        self.name = name
        self.kind = kind
        self.kind_code = _KIND_CODES[kind]
        self.target = name if target is None else target
        self.encoder = encoder
        self.noted = noted
        self.texts_only = kind == "prompt"
        self.name_text = name.encode()
        self.function = function
        # A Python function's own entry, without the checks on the way to it.
        self.enter = PyVectorcall_Function(function) if PyFunction_Check(function) else PyObject_Vectorcall
        self.key_texts = []
        self.defaults = ()
        self.count = -1
        if parameters is not None:
            self.count = len(parameters)
            if self.count > MOST_PARAMETERS:
                raise ValueError("more parameters than a call vector holds")
            for at in range(self.count):
                key = parameters[at][0].encode()
                self.key_texts.append(key)
                self.keys[at] = key
                self.key_sizes[at] = len(key)
                self.kinds[at] = KINDS[parameters[at][1]]
                self.nullable[at] = parameters[at][3]
            self.defaults = tuple([parameter[2] for parameter in parameters])
            self.names = tuple([parameter[0] for parameter in parameters])
            self.loads = (None,) * self.count if loads is None else loads
        self.positional = self.count - len(keywords)
        self.keywords = keywords
        self.keyword_names = <PyObject*> keywords if keywords else NULL
        if context_at >= 0 and context_kind is None:
            raise ValueError("a function that takes a Context needs its class")
        self.inline = inline
        self.adaptive = adaptive
        self.stepped = stepped
        self.context_at = context_at
        self.context_kind = context_kind
        self.form = -1 if noted else form
        self.exact = exact
        self.check = check
        self.load_content = None if noted else load_content
        self.to_text = None if noted else to_text
        if plain is not None and not noted:
            self.plain, self.plain_form = plain
        self.is_async = is_async
        self.binds_whole = binds_whole
        self.guard = guard
        self.around = around
        self.recheck = recheck
        self.recorder = recorder
        self.forwarder = forwarder
        self.refusal_prefix = refusal_prefix
        self.failure_prefix = failure_prefix
        self.hides_failures = hides_failures
        self.conditional = conditional
        self.makes_tasks = makes_tasks
        if kind == "tool" and isinstance(guard, Gate):
            self.gate = guard
        self.is_direct = (
            self.count >= 0
            and not binds_whole
            and context_at < 0
            and around is None
            and (guard is None or self.gate is not None)
        )
        # What only its converter can read is not bound twice.
        self.is_bare = self.is_direct and guard is None and recorder is None and not (
            conditional or makes_tasks or self.has_unreadable()
        )
        self.straight = self.is_bare and inline

    cdef bint has_unreadable(self) except -1:
        """Is there a parameter whose values the compiled binder cannot tell?"""
        cdef Py_ssize_t at
        for at in range(self.count):
            if self.kinds[at] == c"?" and self.loads[at] is None:
                return True
        return False

    @property
    def is_bindable(self):
        """Whether compiled code can bind its arguments."""
        return self.count >= 0

    @property
    def needs_context(self):
        """Whether its calls have a Context: for the function, the guard or the hooks."""
        return self.context_kind is not None

    cdef PyObject* call(self, Message message) noexcept:
        """Bind the message's arguments and call.

        Returns a new reference to the result, or to MISFIT before any call; NULL with the exception set
        where something raised: what to do with it is nothing for the likely path to be ready for.
        """
        cdef PyObject* vector[MOST_PARAMETERS + 1]
        cdef PyObject** values = vector + 1
        cdef PyObject* result
        cdef Py_ssize_t at
        cdef int fits
        for at in range(self.count):
            values[at] = NULL
        fits = (<Quiet> <void*> bind_message)(self, message, values)
        if fits > 0:
            result = entered(self, values, self.positional)
        elif fits == 0:
            result = <PyObject*> MISFIT
            Py_XINCREF(result)
        else:
            result = NULL
        for at in range(self.count):
            Py_XDECREF(values[at])
        return result

    cdef int bind(self, Message message, const uint8_t* order, PyObject** values) noexcept:
        """Bind a call's arguments in front of a step that is not the function itself: `values` has room for
        as many, and one more, the Context, whose place is left empty.

        `order` is that of the known line, or NULL. Returns 1; 0 where something does not fit plainly; -1
        with the exception set. release() gives the values back, whatever came.
        """
        cdef Py_ssize_t at
        cdef int fits
        for at in range(self.count + 1):
            values[at] = NULL
        if self.binds_whole:
            return 0
        if order != NULL:
            fits = bind_known(self, message.call, order, values)
        else:
            fits = (<Quiet> <void*> bind_message)(self, message, values)
        if self.context_at >= 0:
            for at in range(self.count, self.context_at, -1):
                values[at] = values[at - 1]
            values[self.context_at] = NULL
        return fits

    cdef PyObject* invoke(self, PyObject** values) noexcept:
        """Call the function with what bind() has bound, and what was put beside it; as call() does."""
        return entered(self, values, self.positional + (self.context_at >= 0))

    cdef void release(self, PyObject** values) noexcept:
        """Give back what bind() has bound."""
        cdef Py_ssize_t at
        for at in range(self.count + 1):
            if at != self.context_at:
                Py_XDECREF(values[at])

    cdef list list_of(self, PyObject** values):
        """Return what bind() has bound, as bind_leniently() does."""
        cdef Py_ssize_t at
        cdef list bound = []
        for at in range(self.count + (self.context_at >= 0)):
            if at != self.context_at:
                bound.append(<object> values[at])
        return bound

    cdef object bind_leniently(self, dict arguments):
        """Return the values of all parameters, a list; or a str that says what does not fit."""
        if self.binder is None:
            self.binder = self.tool.signature.binder
        return self.binder(arguments)

    cdef void fill(self, PyObject** values, list bound) noexcept:
        """Put values that were bound elsewhere where bind() puts them, in the place of what it has bound."""
        cdef Py_ssize_t at
        self.release(values)
        for at in range(self.count):
            Py_INCREF(bound[at])
            values[at + (0 <= self.context_at <= at)] = <PyObject*> bound[at]

    cdef bint order_of(self, const Call* call, uint8_t* order) noexcept:
        """Find the parameter of each argument of such a call, then those that get their defaults.

        False where that is not all there is to binding them.
        """
        cdef bint[MOST_PARAMETERS] given
        cdef Argument argument
        cdef Py_ssize_t at
        cdef Py_ssize_t index
        cdef Py_ssize_t filled = call.count
        for at in range(self.count):
            given[at] = False
        for at in range(call.count):
            argument.key = call.arguments[at].key
            argument.key_size = call.arguments[at].key_size
            index = self.index_of(&argument, at)
            if index < 0 or given[index]:
                return False
            given[index] = True
            order[at] = <uint8_t> index
        for at in range(self.count):
            if not given[at]:
                if <PyObject*> self.defaults[at] == <PyObject*> REQUIRED:
                    return False
                order[filled] = <uint8_t> at
                filled += 1
        return True

    cdef PyObject* call_known(self, const Call* call, const uint8_t* order) noexcept:
        """Do what call() does; `order` is the result of order_of() for the arguments of this call."""
        cdef PyObject* vector[MOST_PARAMETERS + 1]
        cdef PyObject** values = vector + 1
        cdef PyObject* value
        cdef PyObject* result
        cdef Py_ssize_t made = 0
        cdef Py_ssize_t at
        while made < call.count:
            value = new_value(self, order[made], &call.arguments[made])
            if value == NULL:
                break
            values[order[made]] = value
            made += 1
        if made == call.count:
            for at in range(made, self.count):
                values[order[at]] = <PyObject*> self.defaults[order[at]]
            result = entered(self, values, self.positional)
        elif PyErr_Occurred() == NULL:
            result = <PyObject*> MISFIT
            Py_XINCREF(result)
        else:
            result = NULL
        while made > 0:
            made -= 1
            Py_XDECREF(values[order[made]])
        return result

    cdef Py_ssize_t index_of(self, Argument* argument, Py_ssize_t expected) noexcept:
        """Which parameter is this? Most clients send them in order; -1 if it is none."""
        cdef Py_ssize_t at
        if expected < self.count and self.is_key(argument, expected):
            return expected
        for at in range(self.count):
            if self.is_key(argument, at):
                return at
        return -1

    cdef bint is_key(self, Argument* argument, Py_ssize_t at) noexcept:
        cdef Py_ssize_t size = argument.key_size
        return size == self.key_sizes[at] and memcmp(argument.key, self.keys[at], size) == 0

    cpdef void record_duration(self, int64_t nanoseconds) noexcept:
        """Record how long a call took, where it ran.

        Enough quick calls in a row on a worker prove a tool; one slow call inline costs it its place.
        """
        if not self.adaptive:
            return
        if self.inline:
            if nanoseconds > SLOW_NANOSECONDS:
                self.inline = self.straight = False
                self.quick = 0
            return
        self.quick = self.quick + 1 if nanoseconds <= QUICK_NANOSECONDS else 0
        self.inline = self.quick >= PROOF
        self.straight = self.is_bare and self.inline

    # --- what the function raises -------------------------------------------------------------------------

    cdef str failure_text(self, object error):
        """Return the text of the result that tells of an error; None: the dispatcher makes the result."""
        cdef type kind = type(error)
        cdef object text
        if self.noted:
            return None
        if kind is ToolError or kind is ArgumentError:
            text = only_argument(error)
            if not is_writable_text(text):
                return None
            return text if self.refusal_prefix is None else self.refusal_prefix + text
        if not isinstance(error, Exception) or isinstance(error, FastrpcError):
            return None
        name = kind.__name__
        text = str(error)
        if not (is_ascii_text(name) and is_writable_text(text)):
            return None
        if failures is None:
            prepare_for_failures()
        self.count_failure(error)
        if not none_in(text):
            text = masked(text)
        if self.failure_prefix is None and not self.hides_failures:
            return f"{name}: {text}" if text else name
        return self.tool.style.failure_text(self.name, error, text)

    cdef int count_failure(self, object error) except -1:
        """Have an unexpected exception logged; one like the last of the tool is only counted, here."""
        cdef PyObject* code
        cdef int instruction = place_of(error, &code)
        if (
            code != NULL
            and code == <PyObject*> self.failed_code
            and instruction == self.failed_at
            and type(error) is self.failed_type
            and clock() * 1e-9 < <double> self.failed_place.due  # macOS: ahead of time.monotonic()
        ):
            self.failed_place.count += 1
            return 0
        self.failed_place = failures.report(self.tool, error)
        if code == NULL or is_own((<object> code).co_filename):  # the place is another frame's
            self.failed_code = None
        else:
            self.failed_code = <object> code
        self.failed_at = instruction
        self.failed_type = type(error)
        return 0


cdef object made_of(object result, object make):
    """Return what `plain` or `to_text` makes of a result; None: the encoder has to see what is wrong."""
    try:
        return make(result)
    except BaseException:
        return None


cdef bint is_writable_text(object text) noexcept:
    """Is this a str that has UTF-8? Half a surrogate pair has none."""
    if type(text) is not str:
        return False
    if PyUnicode_IS_COMPACT_ASCII(text) or PyUnicode_AsUTF8AndSize(text, NULL) != NULL:
        return True
    PyErr_Clear()
    return False


cdef class FramedPlan:
    def __init__(self, Plan plan, bytes head, bytes tail, bint stateless):
        self.plan = plan
        self.head = head
        self.tail = tail
        self.stateless = stateless


cdef object failures = None      # `fastrpc.tracebacks`, once something has failed: `redaction` costs some ms
cdef object is_own = None
cdef object masked = None
cdef object none_in = None


cdef int prepare_for_failures() except -1:
    global failures, is_own, masked, none_in
    from fastrpc import diagnostics, redaction, tracebacks

    is_own = diagnostics.is_own
    masked, none_in = redaction.masked, redaction.secrets.none_in
    failures = tracebacks
    return 0


cdef inline PyObject* entered(Plan plan, PyObject** values, size_t positional) noexcept:
    """Call the function with so many values by position, and the others by name."""
    positional |= PY_VECTORCALL_ARGUMENTS_OFFSET
    return plan.enter(<PyObject*> plan.function, values, positional, plan.keyword_names)


cdef inline PyObject* new_value(Plan plan, Py_ssize_t at, const CallArgument* argument) noexcept:
    """A reference to the argument's value for a parameter; NULL where it does not fit plainly, or raises."""
    cdef PyObject* text
    if argument.type == c'"' == plan.kinds[at] and not argument.beyond_ascii | argument.escaped:
        text = PyUnicode_New(argument.size, 127)
        if text != NULL:
            memcpy(PyUnicode_DATA(text), argument.text, argument.size)
        return text
    return (<QuietValue> <void*> other_value)(plan, at, argument)


cdef PyObject* other_value(Plan plan, Py_ssize_t at, const CallArgument* argument) except? NULL:
    cdef char kind = plan.kinds[at]
    cdef object value
    if argument.type == c"n":
        if plan.nullable[at]:
            value = plan.defaults[at]
        elif kind == c"*":
            value = None
        else:
            return NULL
    elif argument.type == kind or kind == c"*":
        if argument.type == c'"':
            value = str_of(argument)
        elif argument.type == c"l":
            value = argument.integer
        else:
            value = argument.integer != 0
    elif kind == c"d" and argument.type == c"l":
        value = <double> argument.integer
    elif kind == c"?" and plan.loads[at] is not None:
        if argument.type == c'"':
            value = str_of(argument)
        else:
            value = argument.integer if argument.type == c"l" else argument.integer != 0
        value = plan.loads[at](value)
        if value is NotImplemented:
            return NULL
    else:
        return NULL
    Py_INCREF(value)
    return <PyObject*> value


cdef int bind_known(Plan plan, const Call* call, const uint8_t* order, PyObject** values) noexcept:
    """Do what bind_message() does; `order` is the result of order_of() for the arguments of this call."""
    cdef PyObject* value
    cdef Py_ssize_t at
    for at in range(call.count):
        value = new_value(plan, order[at], &call.arguments[at])
        if value == NULL:
            return 0 if PyErr_Occurred() == NULL else -1
        values[order[at]] = value
    for at in range(call.count, plan.count):
        value = <PyObject*> plan.defaults[order[at]]
        Py_XINCREF(value)
        values[order[at]] = value
    return 1


cdef int bind_message(Plan plan, Message message, PyObject** values) except -1:
    """Fill the vector; return 1, or 0 if something does not fit plainly."""
    cdef Argument argument
    cdef Py_ssize_t at
    cdef Py_ssize_t expected = 0
    cdef object value
    if message.has_arguments:
        message.begin_arguments()
        while message.next_argument(&argument):
            at = plan.index_of(&argument, expected)
            if at < 0:
                if plan.texts_only and argument.type != c'"':
                    return 0
                continue
            expected = at + 1
            if argument.type == c"n" and plan.nullable[at]:
                value = plan.defaults[at]
            elif argument.type == plan.kinds[at]:
                value = message.argument_str() if argument.type == c'"' else message.argument_value()
            elif plan.kinds[at] == c"*" or (plan.kinds[at] == c"l" and argument.type == c"u"):
                value = message.argument_value()
            elif plan.kinds[at] == c"d" and (argument.type == c"l" or argument.type == c"u"):
                value = float(message.argument_value())
            elif plan.kinds[at] == c"?" and plan.loads[at] is not None and argument.type != c"n":
                value = message.argument_str() if argument.type == c'"' else message.argument_value()
                value = plan.loads[at](value)
                if value is NotImplemented:
                    return 0
            else:
                return 0
            Py_INCREF(value)
            Py_XDECREF(values[at])
            values[at] = <PyObject*> value
    for at in range(plan.count):
        if values[at] == NULL:
            value = plan.defaults[at]
            if value is REQUIRED:
                return 0
            Py_INCREF(value)
            values[at] = <PyObject*> value
    return 1
