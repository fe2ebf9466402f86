# Calls that the connection has begun, and answers later.

from fastrpc._core.connection cimport Connection, Steps
from fastrpc._core.context cimport InFlightCall
from fastrpc._core.plan cimport FramedPlan, Plan
from fastrpc._core.recorder cimport Stages

cdef class ConnectionCall(InFlightCall):
    cdef Connection connection
    cdef readonly bytes id               # its JSON text
    cdef object key                      # by which it is looked up
    cdef FramedPlan frame                # of a resource or a prompt
    cdef bytes recorded_line             # of the request, if its recorder keeps content
    cdef bytes roomy_id                  # with ID_ROOM readable bytes
    cdef bint stateless
    cdef public str outcome              # of one that is cancelled, if its client sees more than that
    cdef Stages times

    cdef int enter(self, Connection connection, Plan plan, Steps* steps) except -1
    cdef void fill(self, Steps* steps) noexcept
    cdef int failed(self, object dispatcher, long long before, object error) except -1
