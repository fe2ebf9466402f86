"""The recorder: one fixed record of each call, written where its answer leaves, read by others later.

A record says who called what, when each stage ended, how many bytes went out, and the outcome as the client
saw it. Records lie in a ring of fixed size: writing one costs about 50 ns and never waits, unless `on_full`
is set. One that does not fit is counted (`dropped`). `take` returns them to the observers of calls, off the
path of calls; `fastrpc.telemetry` decides who observes, and when. Objects are made only on request.

A guard may attach its decision to a call, such as the rule: the line of the request is then a
`DecidedLine`, which carries the decision to the record. Other calls cost nothing more.

Long ids are cut, since clients choose them: by `Recorder.write`, to which connections leave such calls. With
`keeps_content` a record has the request and the answer too: two copies of bytes. Beyond `MOST_CONTENT`
bytes in the ring, further content is hashed at once instead, on the path of its call.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.string cimport memchr

from fastrpc._core.clock cimport clock
from fastrpc._core.clock cimport ticks as c_ticks
from fastrpc._core.contained cimport contained
from fastrpc._core.encoder cimport OutputBuffer
from fastrpc._core.message cimport Message
from fastrpc._core.slices cimport Slice

from time import time

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
cdef bytes TRACE = b'"traceparent"'
cdef frozenset HEXADECIMAL = frozenset("0123456789abcdef")

cdef enum:                       # what is around the id in an answer: {"jsonrpc":"2.0","id": and
    OPEN_SIZE = 22
    RESULT_SIZE = 10             # ,"result":
    ERROR_SIZE = 9               # ,"error":

cdef tuple KINDS = ("tool", "resource", "prompt", "completion")
cdef dict CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}
KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}


def ticks():
    """Return the time in ticks, as records have it."""
    return c_ticks()


class DecidedLine(bytes):
    """The line of a request, and what a guard has decided about its call: `decided`."""

    def __new__(cls, bytes line not None, decided):
        found = bytes.__new__(cls, line)
        found.decided = decided
        return found


cdef class CallRecord:
    """One call that has been answered, or whose client wants no answer any more (see recorder.pyi).

    `kind` is tool, resource, prompt or completion; `name` the tool's, the prompt's, or the URI; `id` the
    JSON text of the request's id; `principal` the authenticated principal; `outcome` one of `OUTCOMES`;
    `started_at` seconds since 1970. The stages are in microseconds: `bind_us`, `guard_us`, `run_us`,
    `encode_us`, together `total_us`. `size` is that of the answer, in bytes. `arguments` and `answer` are
    bytes, or a salt and the SHA-256 of both; `arguments` of a resource are its URI. `decided` is what a
    guard has decided about the call (`CallInfo.decided`), with what the connection states of it, or None.
    """

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
        found.arguments = self.arguments
        found.answer = self.answer
        found.trace = self.trace
        found.decided = self.decided
        return found

    def __repr__(self):
        return f"<CallRecord {self.kind} {self.name!r} {self.outcome} {self.total_us:.1f} us>"


cdef class RecordBatch:
    """Records that have left the ring, the oldest first."""

    def __cinit__(self, Recorder recorder not None, Py_ssize_t most):
        self.recorder = recorder
        self.records = <Record*> PyMem_Malloc(max(1, most) * sizeof(Record))
        if self.records == NULL:
            raise MemoryError
        self.rate = recorder.rate()

    def __dealloc__(self):
        cdef Py_ssize_t at
        for at in range(self.count):
            release(&self.records[at])
        PyMem_Free(self.records)

    def __len__(self):
        return self.count

    def calls(self):
        """Return the records as objects, which are made once."""
        cdef Py_ssize_t at
        if self.described is None:
            self.described = [self.call(at) for at in range(self.count)]
        return self.described

    cdef CallRecord call(self, Py_ssize_t at):
        """Return a record as an object."""
        return described(self.recorder, &self.records[at], self.rate)

    cdef bint find_arguments(self, Py_ssize_t at, Slice* found) except -1:
        """Find the arguments in the line of a request; False for one that is not likely, or has a trace."""
        cdef PyObject* request = self.records[at].request
        cdef Message reader = self.recorder.reader
        if request == NULL or type(<object> request) is not bytes:
            return False
        if not find_arguments(reader, <bytes> request, found):
            return False
        has_meta = reader.call.has_meta if reader.parsed_fast else reader.has_meta
        return not has_meta or TRACE not in <bytes> request


cdef class Recorder:
    def __init__(self, Py_ssize_t capacity=8192, on_first=None):
        """Keep `capacity` records; call `on_first` when there is one to drain after there was none."""
        self.ring = <Record*> PyMem_Calloc(capacity, sizeof(Record))
        if self.ring == NULL:
            raise MemoryError
        self.capacity = capacity
        self.on_first = on_first
        self.on_full = None
        self.first_clock = clock()
        self.first_ticks = c_ticks()
        self.first_time = time()
        self.reader = Message()

    def __dealloc__(self):
        cdef Py_ssize_t at
        if self.ring != NULL:
            for at in range(self.count):
                release(&self.ring[(self.first + at) % self.capacity])
            PyMem_Free(self.ring)

    cdef int put(self, Record* given, object outcome, bytes request, bytes answer) except -1:
        """Record a call that has been answered just now; one that does not fit is counted. `given` has its
        kind, size and stages, and refers to its name, id and principal, which the caller owns."""
        cdef Record* record
        if self.count == self.capacity:
            if self.on_full is not None:
                contained("a recorder could not be drained", self.on_full)
            if self.count == self.capacity:
                self.dropped += 1
                return 0
        record = &self.ring[(self.first + self.count) % self.capacity]
        given.outcome = CODES[outcome]
        record[0] = given[0]
        record.written = c_ticks()
        Py_INCREF(<object> record.name)
        Py_INCREF(<object> record.id)
        Py_INCREF(<object> record.principal)
        record.request = record.answer = NULL
        if request is not None or answer is not None:
            self.keep(record, request, answer)
        self.count += 1
        if self.count == 1 and self.on_first is not None:
            contained("a recorder could not be drained", self.on_first)
        return 0

    def write(
        self,
        str kind,
        str name,
        bytes id not None,
        str principal,
        str outcome,
        int64_t began,
        int64_t bound,
        int64_t allowed,
        int64_t returned,
        int64_t size,
        object request=None,
        bytes answer=None,
    ):
        """put() for Python. What is too long of the id is cut."""
        cdef Record record
        id = id[:LONGEST_ID]
        if request is not None and not isinstance(request, bytes):
            raise TypeError(f"request: expected bytes, got {type(request).__name__}")
        record.kind = KIND_CODES[kind]
        record.times = Stages(began, bound, allowed, returned)
        record.size = size
        record.name, record.id, record.principal = <PyObject*> name, <PyObject*> id, <PyObject*> principal
        self.put(&record, outcome, <bytes> request, answer)

    cdef int keep(self, Record* record, bytes request, bytes answer) except -1:
        """Keep the content of a record; None: there is none."""
        cdef Py_ssize_t size = len(request or b"") + len(answer or b"")
        cdef object kept_request = request
        cdef object kept_answer = answer
        if self.content_size + size > MOST_CONTENT:
            if request is not None:
                reader = Message()
                line = bytes(request)
                kept_request = hashed(arguments_in(reader, line)), trace_in(reader, line), decided_of(request)
            if answer is not None:
                kept_answer = hashed(answer)
        else:
            self.content_size += size
        if kept_request is not None:
            Py_INCREF(kept_request)
            record.request = <PyObject*> kept_request
        if kept_answer is not None:
            Py_INCREF(kept_answer)
            record.answer = <PyObject*> kept_answer
        return 0

    cdef double rate(self):
        """Return how many ticks a microsecond has."""
        return 1000 * <double> (c_ticks() - self.first_ticks) / (clock() - self.first_clock + 1)

    def take(self, Py_ssize_t limit=1024):
        """Take at most so many records out of the ring, the oldest first."""
        cdef Py_ssize_t wanted = min(self.count, limit)
        cdef RecordBatch taken = RecordBatch(self, wanted)
        cdef Record* record
        while taken.count < wanted:
            record = &taken.records[taken.count]
            record[0] = self.ring[self.first]
            self.first += 1
            if self.first == self.capacity:
                self.first = 0
            self.count -= 1
            taken.count += 1
            self.content_size -= size_of(record.request) + size_of(record.answer)
        return taken

    def drain(self, Py_ssize_t limit=1024):
        """Take at most so many records out of the ring, as objects, the oldest first."""
        return self.take(limit).calls()


def hashed(bytes content not None):
    """Return a salt of 16 random bytes and the SHA-256 of the salt and the content."""
    from hashlib import sha256
    from os import urandom

    salt = urandom(16)
    digest = sha256(salt)
    digest.update(content)
    return salt, digest.digest()


cdef bytes arguments_in(Message reader, bytes request):
    """Return the arguments in the line of a request, unchanged; b"" if there are none."""
    cdef Slice found
    if find_arguments(reader, request, &found):
        return found.data[: found.size]
    if reader.is_read:
        uri = reader.param("uri")
        return uri.encode("utf-8", "surrogatepass") if type(uri) is str else b""
    found = reader.arguments_text()
    return b"{%b}" % without_marks(reader, found.data[: found.size]) if reader.has_arguments else b""


cdef bint find_arguments(Message reader, bytes request, Slice* found) except -1:
    """Read the line of a request, and find the bytes of its arguments in it, with their braces. False
    for resources, and where integers beyond 64 bits had the line written anew."""
    cdef const char* line = reader.keep(request)
    cdef const char* start
    cdef const char* end
    reader.read_line(line, PyBytes_GET_SIZE(request))
    if reader.is_read or reader.marked is not None:
        return False
    found.data, found.size = PyBytes_AS_STRING(request), 0
    if not reader.has_arguments:
        return True
    if reader.parsed_fast and reader.call.count == 0:
        reader.read_whole()
    if reader.parsed_fast:
        start = reader.call.arguments[0].key - 2  # before the quote
        while start[0] != c"{":
            start -= 1
        end = reader.call.arguments[reader.call.count - 1].to
        while end[0] != c"}":
            end += 1
        end += 1
    else:
        found[0] = reader.arguments_text()
        start, end = found.data - 1, found.data + found.size + 1
    found.data = PyBytes_AS_STRING(request) + (start - line)
    found.size = end - start
    return True


cdef str trace_in(Message reader, bytes request):
    """Return the trace id in the line of a request that arguments_in() has read, or ""."""
    if TRACE not in request:
        return ""
    parent = (reader.meta or {}).get("traceparent")
    parts = parent.split("-") if type(parent) is str else ()
    if len(parts) < 4 or len(parts[1]) != 32 or not set(parts[1]) <= HEXADECIMAL:
        return ""
    return parts[1]


cdef bytes line_of(Message message):
    """Return the line that a message has read, as it came."""
    return without_marks(message, message.line.data[: message.line.size])


def line_read_by(Message message not None):
    return line_of(message)


cdef bytes without_marks(Message message, bytes text):
    """Return a part of a message's line without the marks of its integers beyond 64 bits, if it has some."""
    if message.marked is None:
        return text
    import re

    return re.sub(rb'"\xff([-0-9]+)"', rb"\1", text)


cdef object decided_of(object line):
    """Return what a guard has decided about the call that a line asks for, or None."""
    return line.decided if type(line) is DecidedLine else None


cdef bytes answer_in(OutputBuffer output, Py_ssize_t size, Py_ssize_t id_size):
    """Return the result or the error in the answer that was written last, to a request whose id has
    `id_size` bytes, among `size` bytes that lie there still."""
    cdef const char* end = output.buffer + output.end - 2  # without the brace and the newline
    cdef const char* at
    cdef const char* newline
    if size <= 0 or size > output.waiting():
        return None
    at = end + 2 - size
    while True:  # a notification may precede the answer
        newline = <const char*> memchr(at, c"\n", end - at)
        if newline == NULL:
            break
        at = newline + 1
    at += OPEN_SIZE + id_size
    at += RESULT_SIZE if at[2] == c"r" else ERROR_SIZE
    return at[: end - at]


cdef CallRecord described(Recorder recorder, Record* record, double rate):
    """Return a record as an object; `rate` is ticks a microsecond."""
    cdef CallRecord found = CallRecord.__new__(CallRecord)
    cdef int64_t at = record.times.began
    found.kind = KINDS[record.kind]
    found.name = <str> record.name
    found.id = <bytes> record.id
    found.principal = <str> record.principal
    found.outcome = OUTCOMES[record.outcome]
    found.started_at = recorder.first_time + (record.times.began - recorder.first_ticks) / rate / 1e6
    found.bind_us = stage(record.times.bound, &at, rate)
    found.guard_us = stage(record.times.allowed, &at, rate)
    found.run_us = stage(record.times.returned, &at, rate)
    found.encode_us = stage(record.written, &at, rate)
    found.total_us = (record.written - record.times.began) / rate
    found.size = record.size
    found.trace = ""
    request = None if record.request == NULL else <object> record.request
    if isinstance(request, bytes):
        line = bytes(request)  # itself, unless it is a DecidedLine
        found.arguments = arguments_in(recorder.reader, line)
        found.trace = trace_in(recorder.reader, line)
        found.decided = decided_of(request)
    elif request is not None:
        found.arguments, found.trace, found.decided = request
    found.answer = None if record.answer == NULL else <object> record.answer
    return found


cdef double stage(int64_t ended, int64_t* at, double rate) noexcept nogil:
    """Return how long a stage took that ended then; 0 for one that there was not."""
    cdef double took
    if ended == 0:
        return 0
    took = (ended - at[0]) / rate
    at[0] = ended
    return took


cdef Py_ssize_t size_of(PyObject* content) noexcept:
    """Return how many bytes of the ring's content that is."""
    return PyBytes_GET_SIZE(<bytes> content) if content != NULL and isinstance(<object> content, bytes) else 0


cdef void release(Record* record) noexcept:
    Py_DECREF(<object> record.name)
    Py_DECREF(<object> record.id)
    Py_DECREF(<object> record.principal)
    Py_XDECREF(record.request)
    Py_XDECREF(record.answer)
