"""Rate limits: at most so many requests of a key in any stretch of time as long as the window.

A `RateTable` keeps the state of all limits in one block of memory. It is made before a server forks its
workers, which share it without a lock; to take from a limit costs some 50 ns. What is limited, and what
happens to a call that comes too soon, is left to `fastrpc.guard`.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint32_t, uint64_t

from fastrpc._core.clock cimport clock

from hashlib import blake2b
from mmap import mmap

cdef extern from "sliding_window.h":
    enum:
        SLICES "FASTRPC_SLICES"
    ctypedef struct Window "fastrpc_window":
        pass
    Window* window_of "fastrpc_window_of"(Window*, size_t, uint64_t, int64_t) noexcept nogil
    int64_t window_take "fastrpc_window_take"(Window*, int64_t, int64_t, uint32_t) noexcept nogil
    void window_give_back "fastrpc_window_give_back"(Window*, int64_t, int64_t) noexcept nogil
    bint lease_take "fastrpc_lease_take"(Window*, int64_t) noexcept nogil
    void lease_add "fastrpc_lease_add"(Window*, int64_t, uint32_t, int64_t) noexcept nogil
    void lease_give_back "fastrpc_lease_give_back"(Window*, int64_t) noexcept nogil
    uint32_t lease_end "fastrpc_lease_end"(Window*) noexcept nogil

LEASE = -1


cdef class RateTable:
    """The state of many limits. Processes that are forked later share it."""

    def __init__(self, size_t cells=16_384):
        """Have room for so many limits that are in use at a time, a power of two. Raises ValueError."""
        if cells < 64 or cells & (cells - 1):
            raise ValueError(f"cells: expected a power of two from 64 on, got {cells}")
        PyObject_GetBuffer(mmap(-1, cells * sizeof(Window)), &self.view, PyBUF_WRITABLE)
        self.count = cells

    def __dealloc__(self):
        if self.view.buf != NULL:
            PyBuffer_Release(&self.view)

    def limit(self, str key, int64_t window_ns, int64_t count):
        """Return the limit of a key: at most `count` requests in any `window_ns`. Raises ValueError."""
        cdef RateLimit found = RateLimit.__new__(RateLimit)
        self.define(found, key, window_ns, count)
        return found

    def leased(self, str key, share):
        """Return the leased limit of a key; `share` is for the code that leases."""
        cdef LeasedLimit found = LeasedLimit.__new__(LeasedLimit)
        self.define(found, key, 1_000_000_000, 1)
        found.share = share
        return found

    cdef int define(self, RateLimit found, str key, int64_t window_ns, int64_t count) except -1:
        if window_ns < 1000 or not 1 <= count < 1 << 31:
            raise ValueError(f"rate: {count} in {window_ns} ns: out of range")
        found.table = self
        found.key = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little") or 1
        found.slice = window_ns // SLICES
        found.count = <uint32_t> count
        return 0


cdef class RateLimit:
    """The limit of one key."""

    cpdef int64_t take(self):
        """Take one request: return 0, or the nanoseconds until one is allowed; nothing is taken then.

        A table that is full of limits in use allows nothing for a key that it has no room for.
        """
        cdef int64_t now = clock()
        cdef Window* window = window_of(<Window*> self.table.view.buf, self.table.count, self.key, now)
        if window == NULL:
            return self.slice
        return window_take(window, now, self.slice, self.count)

    cpdef int give_back(self) except -1:
        """Give back what was taken last, for a request that is not made after all."""
        cdef int64_t now = clock()
        cdef Window* window = window_of(<Window*> self.table.view.buf, self.table.count, self.key, now)
        if window != NULL:
            window_give_back(window, now, self.slice)
        return 0


cdef class LeasedLimit(RateLimit):
    """The limit of one key that servers share: this one has what it has leased."""

    cdef readonly object share

    cdef Window* window(self, int64_t now) noexcept:
        return window_of(<Window*> self.table.view.buf, self.table.count, self.key, now)

    cpdef int64_t take(self):
        """Take one request: return 0, or `LEASE` if nothing is left of the lease."""
        cdef int64_t now = clock()
        cdef Window* window = self.window(now)
        return 0 if window != NULL and lease_take(window, now) else -1

    cpdef int give_back(self) except -1:
        cdef int64_t now = clock()
        cdef Window* window = self.window(now)
        if window != NULL:
            lease_give_back(window, now)
        return 0

    def add(self, uint32_t count, int64_t began, int64_t lasts_ns):
        """Add a lease of so many requests, which lasts from `began`; return False if the table is full."""
        cdef int64_t now = clock()
        cdef Window* window = self.window(now)
        if window == NULL:
            return False
        lease_add(window, now, count, began + lasts_ns)
        return True

    def end(self):
        """End the lease; return how many requests were left of it."""
        cdef Window* window = self.window(clock())
        return 0 if window == NULL else lease_end(window)


def now_ns():
    """Return the time by which leases last."""
    return clock()
