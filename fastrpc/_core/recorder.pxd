# One fixed record of each call, in a ring that is drained off the path of calls.

from libc.stdint cimport int64_t, uint8_t

from cpython.object cimport PyObject

from fastrpc._core.encoder cimport OutputBuffer
from fastrpc._core.message cimport Message
from fastrpc._core.slices cimport Slice

cdef enum:
    MOST_CONTENT = 16 * 1024 * 1024   # bytes of requests and answers that lie in a ring
    LONGEST_ID = 256                  # bytes of an id in a record: clients choose it

cdef enum Kind:
    TOOL
    RESOURCE
    PROMPT
    COMPLETION

cdef struct Stages:            # of a call, in ticks, when they ended; 0: it did not come so far
    int64_t began              # the message had been read,
    int64_t bound              # its arguments were bound,
    int64_t allowed            # the guard had allowed it,
    int64_t returned           # the function had returned

cdef struct Record:
    PyObject* name             # str: of the tool, the resource's URI, of the prompt; these three are owned
    PyObject* id               # bytes: its JSON text
    PyObject* principal        # str
    PyObject* request          # what calls carried, owned; NULL unless the recorder keeps content: the line
    PyObject* answer           # (it may be a DecidedLine), the result or the error as JSON text; or tuples
    Stages times
    int64_t written            # when its answer was in the output buffer
    int64_t size               # bytes of the answer
    uint8_t kind
    uint8_t outcome            # its place in OUTCOMES

cdef class CallRecord:
    cdef readonly str kind
    cdef readonly str name
    cdef readonly bytes id
    cdef readonly str principal
    cdef readonly str outcome
    cdef readonly double started_at
    cdef readonly double bind_us
    cdef readonly double guard_us
    cdef readonly double run_us
    cdef readonly double encode_us
    cdef readonly double total_us
    cdef readonly long long size
    cdef readonly object arguments
    cdef readonly object answer
    cdef readonly str trace
    cdef readonly object decided

cdef class RecordBatch:
    cdef Record* records
    cdef readonly Py_ssize_t count
    cdef Recorder recorder     # whose clock they are of
    cdef double rate           # ticks a microsecond
    cdef list described        # as objects, made on request

    cdef CallRecord call(self, Py_ssize_t at)
    cdef bint find_arguments(self, Py_ssize_t at, Slice* found) except -1

cdef class Recorder:
    cdef Record* ring
    cdef Py_ssize_t capacity
    cdef Py_ssize_t first      # the oldest record
    cdef Py_ssize_t count
    cdef readonly long long dropped
    cdef public bint keeps_content  # of requests and answers
    cdef public object holder  # of answers: `fastrpc.engine.held_answers`; or None
    cdef readonly Py_ssize_t content_size  # bytes of it in the ring
    cdef Message reader        # of requests that are drained
    cdef object on_first       # called when the ring is no longer empty
    cdef public object on_full  # called when it is full: may drain it
    cdef int64_t first_clock
    cdef int64_t first_ticks
    cdef double first_time

    cdef int put(self, Record* given, object outcome, bytes request, bytes answer) except -1
    cdef int keep(self, Record* record, bytes request, bytes answer) except -1
    cdef double rate(self)

cdef bytes line_of(Message message)
cdef object decided_of(object line)
cdef bytes answer_in(OutputBuffer output, Py_ssize_t size, Py_ssize_t id_size)
cdef double stage(int64_t ended, int64_t* at, double rate) noexcept nogil
