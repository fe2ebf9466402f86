"""The records of an access log: written into fixed memory where a request is answered, made into lines later.

A record costs about 0.1 µs and never waits; one that does not fit is counted (`dropped`). `take` makes the
lines of all records, without the GIL: eleven columns with a space between them, or JSON, an object a line.
Text that a client has chosen is written in printable ASCII; other characters and column separators
become ``\\uXXXX``, so no name can begin a new line. Secrets, files, threads, and which requests are
noted, are left to others (`fastrpc.telemetry.access_log`, `fastrpc.transports.http.access`).
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memchr, memcmp, memcpy, strlen
from libc.time cimport strftime, time_t, tm
from posix.unistd cimport write

from fastrpc._core.clock cimport clock, ticks
from fastrpc._core.connection cimport Connection
from fastrpc._core.message cimport Message
from fastrpc._core.slices cimport Slice, put_integer, slice_of, text_of

import os
from time import time

from fastrpc._core.recorder import OUTCOMES as _OUTCOMES

cdef extern from "printable.h":
    Py_ssize_t printable "fastrpc_printable"(
        const unsigned char* at, const unsigned char* end, char special
    ) noexcept nogil

cdef extern from "<time.h>" nogil:
    tm* gmtime_r(const time_t* seconds, tm* found)

cdef enum:
    LONGEST = 256        # bytes of a text; what is longer is cut
    LONGEST_ID = 64
    NUMBERS = 320        # room for what of a line is no text of a client
    FIRST_ROOM = 64 * 1024

cdef enum:               # the texts of a record, in this order
    HOST
    CALLER
    METHOD
    NAME
    ID
    TEXTS

cdef struct Record:      # its texts follow it
    int64_t began        # ticks
    int64_t ended
    int64_t bytes_in
    int64_t bytes_out
    int port             # -1: none
    int status           # 0: no answer went out
    int outcome          # its place in _OUTCOMES, -1: there was no call to have one
    uint16_t sizes[TEXTS]

cdef struct Lines:
    char* data
    Py_ssize_t size
    Py_ssize_t capacity
    bint failed          # there is no memory
    int64_t second       # of which `date` is the text
    char date[24]

cdef dict CODES = {outcome: code for code, outcome in enumerate(_OUTCOMES)}
cdef int PROTOCOL_ERROR = CODES["protocol_error"]
cdef int OK = CODES["ok"]
cdef Slice NAMES[11]         # of outcomes
cdef tuple NAME_TEXTS = tuple([outcome.encode() for outcome in _OUTCOMES])
for _position in range(len(_OUTCOMES)):
    NAMES[_position] = slice_of(NAME_TEXTS[_position])


def prepare(Connection connection):
    """Have `call_of` and `take_outcome` tell of the next message of a connection alone."""
    connection.last_outcome = None
    connection.message.method_name.data = NULL


def take_outcome(Connection connection):
    """Return the outcome of what compiled code has answered since `prepare`, or None: it was well, or the
    dispatcher's."""
    outcome, connection.last_outcome = connection.last_outcome, None
    return outcome


def call_of(Connection connection):
    """Return the method and, of a call of a tool, the tool's name, of the message that a connection has read
    since `prepare`; and the JSON text of its id. None for what there is not."""
    cdef Message message = connection.message
    if message.method_name.data == NULL:  # like the one before: it was not read
        if connection.last is None:
            return None, None, None
        return "tools/call", connection.last.name, message.call.id[: message.call.id_size]
    id = None if message.id.data == NULL else message.id.data[: message.id.size]
    return message.method, message.target_str() if message.is_call else None, id


cdef class AccessBuffer:
    """Two rooms of `capacity` bytes: one is filled while the other one is made into lines."""

    cdef char* filled
    cdef char* other
    cdef Lines lines     # the memory is kept: new pages would cost more than what is written there
    cdef Py_ssize_t capacity
    cdef Py_ssize_t used
    cdef readonly long long dropped
    cdef readonly long long unwritten
    cdef readonly bint is_cut
    cdef object on_first
    cdef int64_t first_clock
    cdef int64_t first_ticks

    def __init__(self, Py_ssize_t capacity=1024 * 1024, on_first=None):
        """Call `on_first` when there is a record after there was none."""
        self.filled = <char*> PyMem_RawMalloc(capacity)
        self.other = <char*> PyMem_RawMalloc(capacity)
        if self.filled == NULL or self.other == NULL:
            raise MemoryError
        self.capacity = capacity
        self.on_first = on_first
        self.first_clock = clock()
        self.first_ticks = ticks()

    def __dealloc__(self):
        PyMem_RawFree(self.filled)
        PyMem_RawFree(self.other)
        PyMem_RawFree(self.lines.data)

    def note(
        self,
        int64_t began,
        client,
        str caller,
        str method,
        str name,
        bytes id not None,
        int status,
        outcome,
        int64_t bytes_in,
        int64_t bytes_out,
    ):
        """Note a request that has just been answered; see access_buffer.pyi."""
        cdef Slice texts[TEXTS]
        cdef Record record
        texts[CALLER] = text_of(caller)
        texts[METHOD] = text_of(method)
        texts[NAME] = text_of(name)
        texts[ID] = slice_of(id)
        record.began = began
        record.status = status
        record.outcome = -1 if outcome is None else CODES[outcome]
        record.bytes_in = bytes_in
        record.bytes_out = bytes_out
        self.put(&record, texts, client)

    cdef int note_answer(
        self,
        Connection connection,
        int64_t began,
        object client,
        str caller,
        bytes method,
        bytes name,
        int64_t bytes_in,
        bytes answer,
    ) except -1:
        """Note a request that a connection has answered at once with the HTTP response `answer`. Without a
        `method` it is that of the message that the connection has read since `prepare`."""
        cdef Slice texts[TEXTS]
        cdef Record record
        cdef Slice body
        cdef bint is_error = False
        texts[CALLER] = text_of(caller)
        if method:
            texts[METHOD] = slice_of(method)
            texts[NAME] = slice_of(name)
        elif connection.message.method_name.data == NULL:
            texts[METHOD] = Slice("tools/call", 10)
            texts[NAME] = text_of(connection.last.name)
        else:
            texts[METHOD] = connection.message.method_name
            texts[NAME] = connection.message.target if connection.message.is_call else Slice("", 0)
        body = body_of(answer, len(answer))
        texts[ID] = id_of(body, &is_error)
        record.began = began
        record.status = status_of(answer, len(answer))
        record.bytes_in = bytes_in
        record.bytes_out = body.size
        outcome, connection.last_outcome = connection.last_outcome, None
        if outcome is not None:
            record.outcome = CODES[outcome]
        else:
            record.outcome = PROTOCOL_ERROR if is_error else OK
        return self.put(&record, texts, client)

    cdef int put(self, Record* record, Slice* texts, object client) except -1:
        """Copy a record and its texts to where they fit."""
        cdef Py_ssize_t size = sizeof(Record)
        cdef char* to
        cdef int at
        record.ended = ticks()
        record.port = -1
        texts[HOST] = Slice("", 0)
        if client:
            host, port = client[0], client[1]
            texts[HOST] = text_of(host)
            record.port = port
        if texts[ID].size > LONGEST_ID:
            texts[ID].size = 0
        for at in range(TEXTS):
            if texts[at].size > LONGEST:
                texts[at].size = cut(texts[at].data)
            record.sizes[at] = <uint16_t> texts[at].size
            size += texts[at].size
        if self.used + size + 8 > self.capacity:
            self.dropped += 1
            return 0
        to = self.filled + self.used
        memcpy(to, record, sizeof(Record))
        to += sizeof(Record)
        for at in range(TEXTS):
            memcpy(to, texts[at].data, texts[at].size)
            to += texts[at].size
        self.used += size
        if self.used == size and self.on_first is not None:
            self.on_first()
        return 0

    def take(self, bint as_json):
        """Return the lines of all records in the buffer, the oldest first. By one thread at a time."""
        self.make_lines(as_json, -1)
        return PyBytes_FromStringAndSize(self.lines.data, self.lines.size) if self.lines.size else b""

    def write_to(self, int descriptor, bint as_json):
        """Write these lines to a file, without the GIL in between; see access_buffer.pyi."""
        cdef int problem = self.make_lines(as_json, descriptor)
        if problem:
            raise OSError(problem, os.strerror(problem))

    cdef int make_lines(self, bint as_json, int descriptor) except -1:
        """Make the lines of all records, and write them if there is a `descriptor`. Return what was wrong."""
        cdef char* records = self.filled
        cdef Py_ssize_t used = self.used
        cdef Py_ssize_t written = 0
        cdef int problem = 0
        cdef Lines* lines = &self.lines
        cdef double rate = <double> (ticks() - self.first_ticks) / (clock() - self.first_clock + 1)
        cdef int64_t now_us = <int64_t> (time() * 1e6)
        cdef int64_t now = ticks()
        self.filled, self.other, self.used = self.other, records, 0
        lines.size = 0
        lines.failed = False
        lines.second = -1
        with nogil:
            put_all(lines, records, used, as_json, now, now_us, rate * 1000)
            if descriptor >= 0 and not lines.failed:
                problem = write_all(descriptor, lines, &written)
                self.unwritten = newlines_in(lines.data + written, lines.size - written)
                self.is_cut = written > 0 and lines.data[written - 1] != 10
        if lines.failed:
            raise MemoryError
        return problem


cdef class NotedAnswers:
    """Calls what answers requests the straight way, and notes what it has answered.

    `answer` is that function. Behind it `served` is the connection that has answered, None for `connection`,
    or anything else, which `log_unshared` gets with the rest.
    """

    cdef AccessBuffer buffer
    cdef Connection connection
    cdef object function
    cdef object log_unshared
    cdef public object served

    def __init__(self, AccessBuffer buffer, function, Connection connection, log_unshared):
        self.buffer = buffer
        self.function = function
        self.connection = connection
        self.log_unshared = log_unshared

    def answer(self, head, bytes body, headers, client=None):
        cdef int64_t began = ticks()
        answer = self.function(head, body, headers, client)
        served, self.served = self.served, None
        if answer is None:
            return None
        if served is None:
            served = self.connection
        elif type(served) is not Connection:
            self.log_unshared(served, began, head, body, client, answer)
            return answer
        caller, method, name = <tuple> head.call
        self.buffer.note_answer(served, began, client, caller, method, name, len(body), answer)
        return answer


# --- the members of an answer ----------------------------------------------------------------------

cdef int status_of(const char* answer, Py_ssize_t size) noexcept:
    """Return the status of an answer that begins with ``HTTP/1.1 NNN``."""
    return (answer[9] - c"0") * 100 + (answer[10] - c"0") * 10 + answer[11] - c"0" if size > 12 else 0


cdef Slice body_of(const char* answer, Py_ssize_t size) noexcept:
    """Return what follows the head of an answer."""
    cdef const char* at = answer
    cdef const char* end = answer + size
    while at < end:
        at = <const char*> memchr(at, c"\r", end - at)
        if at == NULL or end - at < 4:
            break
        if memcmp(at, <const char*> "\r\n\r\n", 4) == 0:
            return Slice(at + 4, end - at - 4)
        at += 2
    return Slice(end, 0)


cdef Slice id_of(Slice body, bint* is_error) noexcept:
    """Return the id that an answer of JSON-RPC begins with, as fastrpc writes it; say if it is an error."""
    cdef const char* prefix = '{"jsonrpc":"2.0","id":'
    cdef const char* begin = body.data + 22
    cdef const char* at = begin
    cdef const char* end = body.data + body.size
    if body.size < 22 or memcmp(body.data, prefix, 22) != 0:
        return Slice(end, 0)
    if at[0] == c'"':
        at += 1
        while at < end and at[0] != c'"':
            at += 1 + (at[0] == c"\\")
        at += 1
    else:
        while at < end and at[0] != c",":
            at += 1
    if at >= end:
        return Slice(begin, 0)
    is_error[0] = end - at > 9 and memcmp(at, <const char*> ',"error":', 9) == 0
    return Slice(begin, at - begin)


cdef Py_ssize_t cut(const char* data) noexcept:
    """Return where a text of UTF-8 that is too long is cut: between two characters."""
    cdef Py_ssize_t size = LONGEST
    while size > 0 and (<unsigned char> data[size] & 0xC0) == 0x80:
        size -= 1
    return size


# --- lines -----------------------------------------------------------------------------------------

cdef void put_all(
    Lines* lines, const char* at, Py_ssize_t used, bint as_json, int64_t now, int64_t now_us, double rate
) noexcept nogil:
    """Write a line for each record; `rate` is ticks a microsecond, `now` the ticks at `now_us`."""
    cdef const char* end = at + used
    cdef Record record
    cdef Slice texts[TEXTS]
    cdef Py_ssize_t size
    cdef int each
    while at < end:
        memcpy(&record, at, sizeof(Record))
        at += sizeof(Record)
        size = 0
        for each in range(TEXTS):
            texts[each].data = at
            texts[each].size = record.sizes[each]
            at += record.sizes[each]
            size += record.sizes[each]
        if not has_room(lines, 6 * size + NUMBERS):
            return
        put_line(lines, &record, texts, as_json, now_us - <int64_t> ((now - record.began) / rate), rate)


cdef int write_all(int descriptor, Lines* lines, Py_ssize_t* written) noexcept nogil:
    """Write all lines; return the errno of what was wrong."""
    cdef Py_ssize_t count
    while written[0] < lines.size:
        count = write(descriptor, lines.data + written[0], lines.size - written[0])
        if count >= 0:
            written[0] += count
        elif errno != EINTR:
            return errno
    return 0


cdef Py_ssize_t newlines_in(const char* at, Py_ssize_t size) noexcept nogil:
    cdef const char* end = at + size
    cdef Py_ssize_t count = 0
    while at < end:
        at = <const char*> memchr(at, c"\n", end - at)
        if at == NULL:
            break
        at += 1
        count += 1
    return count


cdef bint has_room(Lines* lines, Py_ssize_t size) noexcept nogil:
    cdef char* data
    if lines.size + size <= lines.capacity:
        return True
    lines.capacity = 2 * lines.capacity + size + FIRST_ROOM
    data = <char*> PyMem_RawRealloc(lines.data, lines.capacity)
    if data == NULL:
        lines.failed = True
        return False
    lines.data = data
    return True


cdef void put_line(
    Lines* lines, Record* record, Slice* texts, bint as_json, int64_t began_us, double rate
) noexcept nogil:
    """Time, peer, caller, method, name, status, outcome, milliseconds, bytes in and out, id."""
    cdef Slice outcome = NAMES[record.outcome] if record.outcome >= 0 else Slice("", 0)
    if as_json:
        put_name(lines, '{"time":"')
    put_time(lines, began_us)
    put_name(lines, b'","peer":' if as_json else b" ")
    put_peer(lines, record.port, texts[HOST], as_json)
    put_text(lines, ',"caller":', texts[CALLER], as_json)
    put_text(lines, ',"method":', texts[METHOD], as_json)
    put_text(lines, ',"name":', texts[NAME], as_json)
    begin_field(lines, ',"status":', as_json)
    if record.status:
        put_number(lines, record.status)
    else:
        put_none(lines, as_json)
    put_text(lines, ',"outcome":', outcome, as_json)
    begin_field(lines, ',"duration_ms":', as_json)
    put_milliseconds(lines, (record.ended - record.began) / rate)
    begin_field(lines, ',"bytes_in":', as_json)
    put_number(lines, record.bytes_in)
    begin_field(lines, ',"bytes_out":', as_json)
    put_number(lines, record.bytes_out)
    begin_field(lines, ',"id":', as_json)
    if texts[ID].size:
        put_escaped(lines, texts[ID], 0 if as_json else c" ")  # JSON already
    else:
        put_none(lines, as_json)
    put_name(lines, b"}\n" if as_json else b"\n")


cdef void put_text(Lines* lines, const char* name, Slice text, bint as_json) noexcept nogil:
    """Write a text: in JSON as the member `name`, otherwise as a column, with its spaces escaped."""
    begin_field(lines, name, as_json)
    if not text.size:
        put_none(lines, as_json)
    elif as_json:
        put(lines, '"', 1)
        put_escaped(lines, text, c'"')
        put(lines, '"', 1)
    else:
        put_escaped(lines, text, c" ")


cdef void begin_field(Lines* lines, const char* name, bint as_json) noexcept nogil:
    if as_json:
        put_name(lines, name)
    else:
        put(lines, " ", 1)


cdef void put_none(Lines* lines, bint as_json) noexcept nogil:
    put_name(lines, b"null" if as_json else b"-")


cdef inline void put(Lines* lines, const char* data, Py_ssize_t size) noexcept nogil:
    memcpy(lines.data + lines.size, data, size)
    lines.size += size


cdef void put_name(Lines* lines, const char* name) noexcept nogil:
    put(lines, name, strlen(name))


cdef void put_digits(Lines* lines, int64_t value, int count) noexcept nogil:
    """Write a number with so many digits."""
    cdef int at
    for at in range(count):
        lines.data[lines.size + count - 1 - at] = <char> (c"0" + value % 10)
        value //= 10
    lines.size += count


cdef void put_number(Lines* lines, int64_t value) noexcept nogil:
    lines.size = put_integer(lines.data + lines.size, value) - lines.data


cdef void put_milliseconds(Lines* lines, double us) noexcept nogil:
    cdef int64_t whole = <int64_t> (us + 0.5) if us > 0 else 0
    put_number(lines, whole // 1000)
    put(lines, ".", 1)
    put_digits(lines, whole % 1000, 3)


cdef void put_time(Lines* lines, int64_t us) noexcept nogil:
    """Write a time as RFC 3339 has it, in UTC, with milliseconds."""
    cdef time_t second = us // 1_000_000
    cdef tm found
    if second != lines.second:
        lines.second = second
        gmtime_r(&second, &found)
        strftime(lines.date, sizeof(lines.date), "%Y-%m-%dT%H:%M:%S.", &found)
    put(lines, lines.date, 20)
    put_digits(lines, us // 1000 % 1000, 3)
    put(lines, "Z", 1)


cdef void put_peer(Lines* lines, int port, Slice host, bint as_json) noexcept nogil:
    """Write an address and its port; an address of IPv6 in brackets."""
    cdef bint bracketed = host.size and memchr(host.data, c":", host.size) != NULL
    if not host.size:
        put_none(lines, as_json)
        return
    if as_json:
        put(lines, '"', 1)
    if bracketed:
        put(lines, "[", 1)
    put_escaped(lines, host, c" ")
    if bracketed:
        put(lines, "]", 1)
    if port >= 0:
        put(lines, ":", 1)
        put_number(lines, port)
    if as_json:
        put(lines, '"', 1)


cdef void put_escaped(Lines* lines, Slice text, char special) noexcept nogil:
    """Write a text of UTF-8 in printable ASCII; what is not is written as UTF-16 in hexadecimal digits, as
    JSON does. So are `special` and the backslash; without a `special` neither."""
    cdef const unsigned char* at = <const unsigned char*> text.data
    cdef const unsigned char* end = at + text.size
    cdef unsigned int code
    cdef Py_ssize_t plain
    while at < end:
        plain = printable(at, end, special)
        put(lines, <const char*> at, plain)
        at += plain
        if at == end:
            return
        code = at[0]
        at += 1
        if 0xC2 <= code < 0xF5:
            code = rest_of(code, &at, end)
        if code > 0xFFFF:
            put_unit(lines, 0xD800 + ((code - 0x10000) >> 10))
            put_unit(lines, 0xDC00 + ((code - 0x10000) & 0x3FF))
        else:
            put_unit(lines, code)


cdef unsigned int rest_of(
    unsigned int first, const unsigned char** place, const unsigned char* end
) noexcept nogil:
    """Return the character that begins with the byte before `place`; the byte, if it is cut short."""
    cdef const unsigned char* at = place[0]
    cdef int count = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
    cdef unsigned int code = first & (0x3F >> count)
    cdef int each
    if end - at < count:
        return first
    for each in range(count):
        if (at[each] & 0xC0) != 0x80:
            return first
        code = code << 6 | (at[each] & 0x3F)
    place[0] = at + count
    return code


cdef void put_unit(Lines* lines, unsigned int unit) noexcept nogil:
    cdef const char* digits = "0123456789abcdef"
    cdef int shift = 12
    put(lines, "\\u", 2)
    while shift >= 0:
        lines.data[lines.size] = digits[(unit >> shift) & 15]
        lines.size += 1
        shift -= 4
