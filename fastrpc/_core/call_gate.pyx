"""The likely decision of a guard: of a tool that its caller may call, as far as rates and budgets go.

`CallGate` is a guard (`Server.guard`) in compiled code: two look-ups, and a count for each rate, by the names
of the caller and the tool alone. A call that it allows needs no `CallInfo` and no Context, so a connection
that callers share can answer it. Who may call what is `open`ed by the guard in Python, `otherwise`, which
decides about all other calls, and about those that come too soon. Costs 0.1 µs a call, and what a budget
takes; what a decision follows from is left to `fastrpc.guard`.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject

from fastrpc._core.call_info cimport CallInfo
from fastrpc._core.plan cimport Gate
from fastrpc._core.rate_limiter cimport RateLimit


cdef class OpenTool:
    """A tool that a caller may call."""

    cdef tuple limits            # that count its calls
    cdef object reserve          # counts one against its budgets, or returns False; None: it has none


cdef class CallGate(Gate):
    """Allows calls that are open; `otherwise` decides about the others."""

    cdef object otherwise
    cdef dict callers            # principal -> tool -> OpenTool

    def __init__(self, otherwise):
        self.otherwise = otherwise
        self.callers = {}

    def open(self, str principal, str tool, tuple limits, reserve=None):
        """Allow the calls of a tool by a principal, as long as each limit has room, and then ``reserve()``
        is true."""
        cdef OpenTool found = OpenTool.__new__(OpenTool)
        for limit in limits:
            if not isinstance(limit, RateLimit):
                raise TypeError(f"limits: expected a RateLimit, got {limit!r:.60}")
        found.limits = limits
        found.reserve = reserve
        self.callers.setdefault(principal, {})[tool] = found

    def close(self):
        """Ask `otherwise` about every call."""
        self.callers = {}

    def close_to(self, str principal):
        """Do so for one caller."""
        self.callers.pop(principal, None)

    def __call__(self, CallInfo call not None):
        """Return None for a call that is allowed, else what `otherwise` does."""
        if call.kind == "tool" and self.allows(call.principal, call.name):
            return None
        return self.otherwise(call)

    cdef bint allows(self, str principal, str tool) except -1:
        cdef OpenTool opened         # held: while a budget is asked, another thread may close the gate
        cdef PyObject* found = PyDict_GetItem(self.callers, principal)
        if found != NULL:
            found = PyDict_GetItem(<object> found, tool)
        if found == NULL:
            return False
        opened = <OpenTool> found
        return has_room(opened)


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
