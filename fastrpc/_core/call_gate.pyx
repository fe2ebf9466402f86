"""The likely decision of a guard: of a tool that its caller may call, as far as rates and budgets go.

`CallGate` is a guard (`Server.guard`) in compiled code: two look-ups, and a count for each rate, by the names
of the caller and the tool; and for each rule about arguments a `Screen`, which says whether it surely does
not hold: by a comparison in compiled code, or by evaluating it (`Evaluation`, half a microsecond). A call
that it allows needs no `CallInfo` and no Context, so a connection that callers share can answer it. Who may
call what is `open`ed by the guard in Python, `otherwise`, which decides about all other calls, and about
those that come too soon. Costs 0.1 µs a call, and what a budget takes; what a decision follows from is left
to `fastrpc.guard`.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport Py_EQ, Py_GE, Py_GT, Py_LE, Py_LT, Py_NE, PyObject, PyObject_RichCompareBool

from fastrpc._core.call_info cimport CallInfo
from fastrpc._core.plan cimport Gate, Plan
from fastrpc._core.rate_limiter cimport RateLimit

cdef enum:
    UNKNOWN = -1                 # whether a condition holds; otherwise 0 or 1
    LONGEST_TEXT = 1000          # characters: reading more counts as work of the rule (`fastrpc.guard.cel`)

cdef long long LARGEST_EXACT = 1LL << 53  # `fastrpc.guard.cel.values.LARGEST_EXACT`

cdef enum Kind:
    COMPARED, ONE_OF, BEGINS, ENDS, CONTAINS, ALL, ANY, NOT

cdef dict KINDS = {
    "in": ONE_OF, "startsWith": BEGINS, "endsWith": ENDS, "contains": CONTAINS, "&&": ALL, "||": ANY, "!": NOT
}
cdef dict ORDERS = {"==": Py_EQ, "!=": Py_NE, "<": Py_LT, "<=": Py_LE, ">": Py_GT, ">=": Py_GE}


cdef class Screen:
    """A condition about the bound values of a call, as far as it is certain: `kind` is an operator or a
    method of CEL. Of a value that is not exactly of the type that is expected it says nothing; then the rule
    itself is evaluated."""

    cdef Kind kind
    cdef int order               # of COMPARED
    cdef str name                # of the argument
    cdef object constant         # that it, or its size, is compared with
    cdef bint measured           # its size
    cdef tuple parts             # of a condition that consists of others; None: it says nothing
    cdef tuple names             # of the plan whose values were read last,
    cdef Py_ssize_t at           # and the place of the argument among these, or -1

    def __init__(
        self, str kind not None, str name=None, constant=None, tuple parts=(), *, bint measured=False
    ):
        self.kind = COMPARED if kind in ORDERS else KINDS[kind]
        self.order = ORDERS.get(kind, 0)
        self.name = name
        self.constant = constant
        self.measured = measured
        self.parts = parts
        for part in parts:
            if part is not None and not isinstance(part, Screen):
                raise TypeError(f"parts: expected a Screen, got {part!r:.60}")

    cdef int state(self, Plan plan, PyObject** values) except -2:
        """Does it hold?"""
        if self.kind == ALL or self.kind == ANY:
            return self.state_of_parts(plan, values, self.kind == ANY)
        if self.kind == NOT:
            found = self.state_of_parts(plan, values, True)
            return UNKNOWN if found == UNKNOWN else not found
        if self.names is not plan.names:
            self.names = plan.names
            self.at = plan.names.index(self.name) if self.name in plan.names else -1
        if self.at < 0 or values[self.at] == NULL:
            return UNKNOWN
        return self.state_of_value(<object> values[self.at])

    cdef int state_of_parts(self, Plan plan, PyObject** values, bint settling) except -2:
        cdef int found
        cdef int all_of_them = not settling
        for part in self.parts:
            found = UNKNOWN if part is None else (<Screen> part).state(plan, values)
            if found == settling:
                return settling
            if found == UNKNOWN:
                all_of_them = UNKNOWN
        return all_of_them

    cdef int state_of_value(self, object value) except -2:
        cdef type kind = type(value)
        if self.measured:
            if kind is not str and kind is not list and kind is not dict:
                return UNKNOWN
            return PyObject_RichCompareBool(len(value), self.constant, self.order)
        if kind is str and len(<str> value) > LONGEST_TEXT:
            return UNKNOWN
        if self.kind == COMPARED:
            if kind is type(self.constant) or (is_exact(value) and is_exact(self.constant)):
                return PyObject_RichCompareBool(value, self.constant, self.order)
            return UNKNOWN
        if self.kind == ONE_OF and (kind is str or is_exact(value)):
            return value in <frozenset> self.constant
        if kind is not str:
            return UNKNOWN
        if self.kind == BEGINS:
            return (<str> value).startswith(self.constant)
        if self.kind == ENDS:
            return (<str> value).endswith(self.constant)
        return self.constant in <str> value


cdef inline bint is_exact(object number) noexcept:
    """Is it a number that is the same as an int and as a double? Others are left to `fastrpc.guard.cel`."""
    cdef int overflow = 0
    cdef long long whole
    if type(number) is float:
        return -LARGEST_EXACT <= <double> number <= LARGEST_EXACT
    if type(number) is not int:
        return False
    whole = PyLong_AsLongLongAndOverflow(number, &overflow)
    return not overflow and -LARGEST_EXACT <= whole <= LARGEST_EXACT


cdef class Evaluation(Screen):
    """A condition that is evaluated where `quick`, its screen, says nothing: ``run(frame)`` returns whether
    it holds. `frame` is that of an evaluation, but for the variables in its first place; `variables` are all
    but the arguments, of which `members` are read, None: all. What raises is not certain."""

    cdef Screen quick
    cdef object run
    cdef list frame
    cdef dict variables
    cdef tuple members
    cdef tuple places            # of the arguments that are read, among those of the plan

    def __init__(
        self, Screen quick, run, list frame not None, dict variables not None, tuple members=None
    ):
        self.quick = quick
        self.run = run
        self.frame = frame
        self.variables = variables
        self.members = members

    cdef int state(self, Plan plan, PyObject** values) except -2:
        cdef int found = UNKNOWN if self.quick is None else self.quick.state(plan, values)
        return self.evaluated(plan, values) if found == UNKNOWN else found

    cdef int evaluated(self, Plan plan, PyObject** values) except -2:
        cdef dict arguments = {}
        cdef list frame = self.frame[:]
        cdef Py_ssize_t at
        if self.names is not plan.names:
            if not set(self.members or ()) <= set(plan.names):
                return UNKNOWN
            members = plan.names if self.members is None else self.members
            self.places, self.names = tuple(map(plan.names.index, members)), plan.names
        for at in self.places:
            if values[at] == NULL:
                return UNKNOWN
            arguments[self.names[at]] = <object> values[at]
        frame[0] = {**self.variables, "args": arguments}
        try:
            found = self.run(frame)
        except Exception:
            return UNKNOWN
        return found is True if type(found) is bool else UNKNOWN


cdef class OpenTool:
    """A tool that a caller may call."""

    cdef tuple limits            # that count its calls
    cdef object reserve          # counts one against its budgets, or returns False; None: it has none
    cdef tuple screens           # of the rules of which none may hold; None: there are none


cdef class CallGate(Gate):
    """Allows calls that are open; `otherwise` decides about the others."""

    cdef object otherwise
    cdef dict callers            # principal -> tool -> OpenTool

    def __init__(self, otherwise):
        self.otherwise = otherwise
        self.callers = {}

    def open(self, str principal, str tool, tuple limits, reserve=None, tuple screens=None):
        """Allow the calls of a tool by a principal of which all `screens` are surely false, as long as each
        limit has room, and then ``reserve()`` is true."""
        cdef OpenTool found = OpenTool.__new__(OpenTool)
        for limit in limits:
            if not isinstance(limit, RateLimit):
                raise TypeError(f"limits: expected a RateLimit, got {limit!r:.60}")
        for screen in screens or ():
            if not isinstance(screen, Screen):
                raise TypeError(f"screens: expected a Screen, got {screen!r:.60}")
        found.limits = limits
        found.reserve = reserve
        found.screens = screens
        self.callers.setdefault(principal, {})[tool] = found

    def close(self):
        """Ask `otherwise` about every call."""
        self.callers = {}

    def close_to(self, str principal):
        """Do so for one caller."""
        self.callers.pop(principal, None)

    def __call__(self, CallInfo call not None):
        """Return None for a call that is allowed, else what `otherwise` does."""
        if call.kind == "tool" and self.allows(call.principal, call.name, None, NULL):
            return None
        return self.otherwise(call)

    cdef bint allows(self, str principal, str tool, Plan plan, PyObject** values) except -1:
        cdef OpenTool opened         # held: while a budget is asked, another thread may close the gate
        cdef PyObject* found = PyDict_GetItem(self.callers, principal)
        if found != NULL:
            found = PyDict_GetItem(<object> found, tool)
        if found == NULL:
            return False
        opened = <OpenTool> found
        if opened.screens is not None and (plan is None or may_hold(opened.screens, plan, values)):
            return False
        return has_room(opened)


cdef bint may_hold(tuple screens, Plan plan, PyObject** values) except -1:
    """May one of these conditions hold?"""
    for screen in screens:
        if (<Screen> screen).state(plan, values) != 0:
            return True
    return False


cdef bint has_room(OpenTool tool) except -1:
    """Take one from each limit, and from the budgets; False, and nothing is taken, if one has none."""
    cdef tuple limits = tool.limits
    cdef Py_ssize_t at
    for at in range(len(limits)):
        if (<RateLimit> limits[at]).take():
            return give_back(limits, at)
    if tool.reserve is not None and not tool.reserve():
        return give_back(limits, len(limits))
    return True


cdef bint give_back(tuple limits, Py_ssize_t count) except -1:
    """Give back what was taken from so many limits; return False."""
    cdef Py_ssize_t at
    for at in range(count):
        (<RateLimit> limits[at]).give_back()
    return False
