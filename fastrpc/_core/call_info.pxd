# One call as a guard and hooks see it.

from cpython.object cimport PyObject

from fastrpc._core.plan cimport Plan

cdef class CallInfo:
    cdef readonly str kind
    cdef public str name
    cdef readonly str principal
    cdef readonly object context
    cdef Plan plan
    cdef dict given            # the arguments by name, once somebody has looked at them
    cdef PyObject** vector     # the bound values, among them the Context, while the connection holds them
    cdef list values           # the bound values, without the Context, otherwise

    cdef int keep(self) except -1
    cdef list vector_values(self)
    cpdef object invoke(self)
    cpdef object current_values(self)
    cdef object value_at(self, Py_ssize_t at)
    cdef bint are_bound(self) except -1

cdef CallInfo info_of_call(Plan plan, str principal, object context, PyObject** vector)
