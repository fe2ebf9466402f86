# One fixed record of each call, in a ring that is drained off the path of calls.

from libc.stdint cimport int64_t, uint8_t

from cpython.object cimport PyObject

cdef enum Kind:
    TOOL
    RESOURCE
    PROMPT
    COMPLETION

cdef struct Record:
    PyObject* name             # str: of the tool, the resource's URI, of the prompt; these three are owned
    PyObject* id               # bytes: its JSON text
    PyObject* principal        # str
    int64_t began              # in ticks: the message had been read,
    int64_t bound              # its arguments were bound,
    int64_t allowed            # the guard had allowed it,
    int64_t returned           # the function had returned,
    int64_t written            # its answer was in the output buffer. 0: it did not come so far
    int64_t size               # bytes of the answer
    uint8_t kind
    uint8_t outcome            # its place in OUTCOMES

cdef class Recorder:
    cdef Record* ring
    cdef Py_ssize_t capacity
    cdef Py_ssize_t first      # the oldest record
    cdef Py_ssize_t count
    cdef readonly long long dropped
    cdef object on_first       # called when the ring is no longer empty
    cdef int64_t first_clock
    cdef int64_t first_ticks
    cdef double first_time

    cdef Record* next_record(self) except? NULL
    cdef int filled(
        self, Record* record, object outcome, object name, object id, object principal
    ) except -1
