# One peer's conversation: a line in, its answer into the output buffer.

from libc.stdint cimport int64_t

from fastrpc._core.encode cimport Output
from fastrpc._core.message cimport Message
from fastrpc._core.plan cimport Plan

cdef class Connection:
    cdef readonly Output output
    cdef readonly Message message
    cdef public dict plans               # tool name -> Plan
    cdef Plan last                       # the plan that was called last: most calls are like the one before
    cdef int64_t shape                   # the shape whose plan is `last`: it names the same tool
    cdef public bint open                # the handshake is done: calls without an envelope are welcome
    cdef readonly dict in_flight         # id text -> whatever the dispatcher keeps of the request
    cdef public object dispatcher
    cdef bytes legacy_tail               # all that follows the text of a result, by era
    cdef bytes modern_tail
    cdef bytes legacy_list               # the first page of tools/list, once it has been asked for
    cdef bytes modern_list
    cdef public object flush             # called after writing outside of a pump, or None
    cdef public object call_in_loop      # calls a function on the event loop, as soon as there is one
    cdef bint pumping
    cdef int64_t now                     # the ticks when the last timed call ended; 0: count anew
    cdef int64_t first_clock             # clock and ticks when the connection was made
    cdef int64_t first_ticks

    cdef int handle(self, const char* line, Py_ssize_t size) except -1
    cdef int handle_message(self) except -1
    cdef int too_long(self) except -1
    cdef int call(self, Plan plan) except -1
    cdef int list(self, bytes ready) except -1
    cdef Plan plan_of(self)
    cdef bint is_in_flight(self)
    cdef int64_t nanoseconds_of(self, int64_t count) noexcept
    cdef int fail_call(self, bytes id, Plan plan, bint modern) except -1
    cdef int end_call(self, bytes id, Plan plan, object result, bint modern) except -1

cdef int64_t clock() noexcept
