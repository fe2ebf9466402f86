"""The likely decision of a guard: about a tool that its caller may always call, as far as rates go.

`CallGate` is a guard (`Server.guard`) in compiled code: two look-ups, and a count for each rate, by the names
of the caller and the tool alone. A call that it allows needs no `CallInfo` and no Context, so a connection
that callers share can answer it. Who may call what is `open`ed by the guard in Python, `otherwise`, which
decides about all other calls, and about those that come too soon. Costs 0.1 µs a call; what a decision
follows from is left to `fastrpc.guard`.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject

from fastrpc._core.call_info cimport CallInfo
from fastrpc._core.plan cimport Gate
from fastrpc._core.rate_limiter cimport RateLimit


cdef class CallGate(Gate):
    """Allows calls that are open; `otherwise` decides about the others."""

    cdef object otherwise
    cdef dict callers            # principal -> tool -> the limits that count its calls

    def __init__(self, otherwise):
        self.otherwise = otherwise
        self.callers = {}

    def open(self, str principal, str tool, tuple limits):
        """Allow the calls of a tool by a principal, as long as each limit has room."""
        for limit in limits:
            if not isinstance(limit, RateLimit):
                raise TypeError(f"limits: expected a RateLimit, got {limit!r:.60}")
        self.callers.setdefault(principal, {})[tool] = limits

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
        cdef PyObject* found = PyDict_GetItem(self.callers, principal)
        if found != NULL:
            found = PyDict_GetItem(<object> found, tool)
        return found != NULL and has_room(<tuple> found)


cdef bint has_room(tuple limits) except -1:
    """Take one from each limit; False, and nothing is taken, if one has none."""
    cdef Py_ssize_t at
    cdef Py_ssize_t other
    for at in range(len(limits)):
        if (<RateLimit> limits[at]).take():
            for other in range(at):
                (<RateLimit> limits[other]).give_back()
            return False
    return True
