"""The recorder: one fixed record of each call, written where its answer leaves, read by others later.

A record says who called what, when each stage ended, how many bytes went out, and the outcome as the client
saw it. Records lie in a ring of fixed size: writing one costs about 50 ns and never waits. One that does not
fit is counted (`dropped`). `drain` gives them to whoever observes calls, off the path of calls; who that is,
and when, is left to `fastrpc.telemetry`.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.ref cimport Py_DECREF, Py_INCREF

from time import time

cdef extern from "clock.h":
    int64_t c_clock "fastrpc_clock"() noexcept nogil
    int64_t c_ticks "fastrpc_ticks"() noexcept nogil

OUTCOMES = (
    "ok",
    "tool_error",
    "timeout",
    "cancelled",
    "refused",
    "invalid",
    "unknown",
    "overloaded",
    "encoding_error",
    "input_required",
    "protocol_error",
)
cdef tuple KINDS = ("tool", "resource", "prompt", "completion")
cdef dict CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}
KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}


def ticks():
    """Return the time in ticks, as records have it."""
    return c_ticks()


cdef class CallRecord:
    """One call that has been answered, or whose client wants no answer any more (see recorder.pyi).

    `kind` is tool, resource, prompt or completion; `name` the tool's, the prompt's, or the URI; `id` the
    JSON text of the request's id; `principal` the authenticated principal; `outcome` one of `OUTCOMES`;
    `started_at` seconds since 1970. The stages are in microseconds: `bind_us`, `guard_us`, `run_us`,
    `encode_us`, together `total_us`. `size` is that of the answer, in bytes.
    """

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

    def renamed(self, str name not None):
        """Return a copy with another name: the one that a mounted server has for what was called."""
        cdef CallRecord found = CallRecord.__new__(CallRecord)
        found.kind = self.kind
        found.name = name
        found.id = self.id
        found.principal = self.principal
        found.outcome = self.outcome
        found.started_at = self.started_at
        found.bind_us = self.bind_us
        found.guard_us = self.guard_us
        found.run_us = self.run_us
        found.encode_us = self.encode_us
        found.total_us = self.total_us
        found.size = self.size
        return found

    def __repr__(self):
        return f"<CallRecord {self.kind} {self.name!r} {self.outcome} {self.total_us:.1f} us>"


cdef class Recorder:
    def __init__(self, Py_ssize_t capacity=8192, on_first=None):
        """Keep `capacity` records; call `on_first` when there is one to drain after there was none."""
        self.ring = <Record*> PyMem_Calloc(capacity, sizeof(Record))
        if self.ring == NULL:
            raise MemoryError
        self.capacity = capacity
        self.on_first = on_first
        self.first_clock = c_clock()
        self.first_ticks = c_ticks()
        self.first_time = time()

    def __dealloc__(self):
        cdef Py_ssize_t at
        if self.ring != NULL:
            for at in range(self.count):
                release(&self.ring[(self.first + at) % self.capacity])
            PyMem_Free(self.ring)

    cdef Record* next_record(self) except? NULL:
        """Return the record to fill; NULL if the ring is full. filled() says that it is."""
        if self.count == self.capacity:
            self.dropped += 1
            return NULL
        return &self.ring[(self.first + self.count) % self.capacity]

    cdef int filled(
        self, Record* record, object outcome, object name, object id, object principal
    ) except -1:
        """Count a record in that has been filled but for these."""
        record.outcome = CODES[outcome]
        Py_INCREF(name)
        Py_INCREF(id)
        Py_INCREF(principal)
        record.name = <PyObject*> name
        record.id = <PyObject*> id
        record.principal = <PyObject*> principal
        self.count += 1
        if self.count == 1 and self.on_first is not None:
            self.on_first()
        return 0

    def write(
        self,
        str kind,
        str name,
        bytes id,
        str principal,
        str outcome,
        int64_t began,
        int64_t bound,
        int64_t allowed,
        int64_t returned,
        int64_t size,
    ):
        """Record a call that Python has answered just now; see `Record` in recorder.pxd."""
        cdef Record* record = self.next_record()
        if record == NULL:
            return
        record.kind = KIND_CODES[kind]
        record.began = began
        record.bound = bound
        record.allowed = allowed
        record.returned = returned
        record.written = c_ticks()
        record.size = size
        self.filled(record, outcome, name, id, principal)

    def drain(self, Py_ssize_t limit=1024):
        """Take at most so many records out of the ring, the oldest first."""
        cdef list taken = []
        cdef Record record
        cdef double rate = <double> (c_ticks() - self.first_ticks) / (c_clock() - self.first_clock + 1)
        while self.count > 0 and len(taken) < limit:
            record = self.ring[self.first]
            self.first = (self.first + 1) % self.capacity
            self.count -= 1
            taken.append(described(self, &record, rate * 1000))
            release(&record)
        return taken


cdef CallRecord described(Recorder recorder, Record* record, double rate):
    """Return a record as an object; `rate` is ticks a microsecond."""
    cdef CallRecord found = CallRecord.__new__(CallRecord)
    cdef int64_t at = record.began
    found.kind = KINDS[record.kind]
    found.name = <str> record.name
    found.id = <bytes> record.id
    found.principal = <str> record.principal
    found.outcome = OUTCOMES[record.outcome]
    found.started_at = recorder.first_time + (record.began - recorder.first_ticks) / rate / 1e6
    found.bind_us = stage(record.bound, &at, rate)
    found.guard_us = stage(record.allowed, &at, rate)
    found.run_us = stage(record.returned, &at, rate)
    found.encode_us = stage(record.written, &at, rate)
    found.total_us = (record.written - record.began) / rate
    found.size = record.size
    return found


cdef double stage(int64_t ended, int64_t* at, double rate) noexcept:
    """Return how long a stage took that ended then; 0 for one that there was not."""
    cdef double took
    if ended == 0:
        return 0
    took = (ended - at[0]) / rate
    at[0] = ended
    return took


cdef void release(Record* record) noexcept:
    Py_DECREF(<object> record.name)
    Py_DECREF(<object> record.id)
    Py_DECREF(<object> record.principal)
