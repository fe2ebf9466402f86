# One call as a guard and hooks see it.

from cpython.object cimport PyObject
from cpython.ref cimport Py_REFCNT

from fastrpc._core.plan cimport Plan

cdef class CallInfo:
    cdef readonly str kind
    cdef public str name
    cdef readonly str principal
    cdef readonly object context
    cdef Plan plan
    cdef dict given            # the arguments by name, once a function has read them
    cdef PyObject** vector     # the bound values, among them the Context, while the connection holds them
    cdef list values           # the bound values, without the Context, otherwise
    cdef object decision       # `decided`
    cdef public object confirm  # called just before the function runs, where a person has approved the call
    cdef object decided_line   # a DecidedLine of it, once the connection has asked for one

    cdef int keep(self) except -1
    cdef bint take_line(self, PyObject* line) except -1
    cdef list vector_values(self)
    cpdef object invoke(self)
    cpdef object current_values(self)
    cdef object value_at(self, Py_ssize_t at)
    cdef bint are_bound(self) except -1

cdef CallInfo info_of_call(Plan plan, str principal, object context, PyObject** vector)

cdef inline bint put_back(Plan plan, CallInfo info) except -1:
    """Store a CallInfo for reuse by the next call; False if other code holds a reference."""
    if info.values is None and Py_REFCNT(info) == 1:
        info.context = info.given = None
        info.vector = NULL
        plan.spare_info = info
        return True
    info.keep()
    return False
