"""The likely decision of a guard: about a tool that its caller may always call, as far as rates go.

`CallGate.decide` is a guard (`Server.guard`) in compiled code: two look-ups, and a count for each rate. Who
may call what is `open`ed by the guard in Python, `otherwise`, which decides about all other calls, and about
those that come too soon. Costs 0.1 µs a call; what a decision follows from is left to `fastrpc.guard`.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject

from fastrpc._core.call_info cimport CallInfo


cdef class CallGate:
    """Allows calls that are open; `otherwise` decides about the others."""

    cdef object otherwise
    cdef dict callers            # principal -> tool -> the limits that count its calls

    def __init__(self, otherwise):
        self.otherwise = otherwise
        self.callers = {}

    def open(self, str principal, str tool, tuple limits):
        """Allow the calls of a tool by a principal, as long as each limit has room."""
        self.callers.setdefault(principal, {})[tool] = limits

    def close(self):
        """Ask `otherwise` about every call."""
        self.callers = {}

    def close_to(self, str principal):
        """Do so for one caller."""
        self.callers.pop(principal, None)

    def decide(self, CallInfo call not None):
        """Return None for a call that is allowed, else what `otherwise` does."""
        cdef PyObject* found = NULL
        if call.kind == "tool":
            found = PyDict_GetItem(self.callers, call.principal)
            if found != NULL:
                found = PyDict_GetItem(<object> found, call.name)
        if found == NULL or not has_room(<tuple> found):
            return self.otherwise(call)
        return None


cdef bint has_room(tuple limits) except -1:
    """Take one from each limit; False, and nothing is taken, if one has none."""
    cdef Py_ssize_t at
    cdef Py_ssize_t other
    for at in range(len(limits)):
        if limits[at].take():
            for other in range(at):
                limits[other].give_back()
            return False
    return True
