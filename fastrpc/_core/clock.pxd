# Time, as clock.h reads it: nanoseconds, and ticks of the processor's counter.

from libc.stdint cimport int64_t

cdef extern from "clock.h" nogil:
    int64_t clock "fastrpc_clock"() noexcept
    int64_t ticks "fastrpc_ticks"() noexcept
