"""Rate limits by the generic cell rate algorithm (GCRA, ITU-T I.371): a token bucket that is one number.

A `RateTable` keeps the state of all limits in one block of memory. It is made before a server forks its
workers, which share it without a lock; a limit costs some 50 ns to take from. What is limited, and what happens to
a call that comes too soon, is left to `fastrpc.guard`.
"""

from cpython.buffer cimport PyBUF_WRITABLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint64_t

from hashlib import blake2b
from mmap import mmap

cdef extern from "clock.h":
    int64_t c_clock "fastrpc_clock"() noexcept nogil

cdef extern from "gcra.h":
    ctypedef struct fastrpc_cell:
        uint64_t key
        int64_t arrival
    fastrpc_cell* cell_of "fastrpc_cell_of"(fastrpc_cell*, size_t, uint64_t, int64_t) noexcept nogil
    int64_t cell_take "fastrpc_cell_take"(fastrpc_cell*, int64_t, int64_t, int64_t) noexcept nogil
    void cell_give_back "fastrpc_cell_give_back"(fastrpc_cell*, int64_t) noexcept nogil


cdef class RateTable:
    """The state of many limits. Processes that are forked later share it."""

    cdef object memory
    cdef Py_buffer view
    cdef size_t count

    def __init__(self, size_t cells=65_536):
        """Have room for so many limits that are in use at a time, a power of two. Raises ValueError."""
        if cells < 64 or cells & (cells - 1):
            raise ValueError(f"cells: expected a power of two from 64 on, got {cells}")
        self.memory = mmap(-1, cells * sizeof(fastrpc_cell))
        PyObject_GetBuffer(self.memory, &self.view, PyBUF_WRITABLE)
        self.count = cells

    def __dealloc__(self):
        if self.view.buf != NULL:
            PyBuffer_Release(&self.view)

    def limit(self, str key, int64_t interval_ns, int64_t burst):
        """Return the limit of a key: one request each `interval_ns`, up to `burst` of them at once."""
        cdef RateLimit found = RateLimit.__new__(RateLimit)
        if interval_ns < 1 or burst < 1 or burst > (1 << 62) // interval_ns:
            raise ValueError(f"rate: {burst} at once, one each {interval_ns} ns: out of range")
        found.table = self
        found.key = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little") or 1
        found.interval = interval_ns
        found.tolerance = (burst - 1) * interval_ns
        return found


cdef class RateLimit:
    """The limit of one key."""

    cdef RateTable table
    cdef uint64_t key
    cdef int64_t interval
    cdef int64_t tolerance

    cpdef int64_t take(self):
        """Take one request: return 0, or the nanoseconds until one is allowed; nothing is taken then.

        A table that is full of limits in use allows nothing for a key that it has no room for.
        """
        cdef int64_t now = c_clock()
        cdef fastrpc_cell* cell = cell_of(<fastrpc_cell*> self.table.view.buf, self.table.count, self.key, now)
        if cell == NULL:
            return self.interval
        return cell_take(cell, now, self.interval, self.tolerance)

    cpdef int give_back(self) except -1:
        """Give back what was taken for a request that another limit has refused."""
        cdef fastrpc_cell* cell = cell_of(
            <fastrpc_cell*> self.table.view.buf, self.table.count, self.key, c_clock()
        )
        if cell != NULL:
            cell_give_back(cell, self.interval)
        return 0
