# Rate limits in memory that processes share.

from cpython.buffer cimport Py_buffer
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef class RateLimit

cdef class RateTable:
    cdef Py_buffer view
    cdef size_t count

    cdef int define(self, RateLimit found, str key, int64_t window_ns, int64_t count) except -1

# The limit of one key.
cdef class RateLimit:
    cdef RateTable table
    cdef uint64_t key
    cdef int64_t slice
    cdef uint32_t count

    cpdef int64_t take(self)
    cpdef int give_back(self) except -1
