"""Makes lines of the audit log in compiled code: records of calls, their ids, the links of a chain.

`CallLines` writes the fields of calls as JSON, with a salted hash of what was sent and answered; what is no
likely call is left to a function. `ChainLines` links lines by SHA-256, each to the one before, and keeps the
Merkle tree over them. Together 1 µs a call, nearly all of it SHA-256, of which the interpreter's lock is held
for a tenth. What need not wait for each other is hashed in pairs: the two of a call, and a line beside the
tree's nodes over the one before. The rules of a chain are in `fastrpc.guard.audit.chain`.
"""

from cpython.bytes cimport _PyBytes_Resize, PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from os import urandom

from fastrpc._core.python_api cimport owned
from fastrpc._core.recorder cimport Record, RecordBatch, stage
from fastrpc._core.slices cimport Slice, put_bytes, put_integer, put_literal, put_slice, slice_of, text_of

from fastrpc._core.recorder import KIND_CODES as _KIND_CODES
from fastrpc._core.recorder import OUTCOMES as _OUTCOMES

cdef extern from "sha256.h":
    ctypedef struct Way "fastrpc_sha256_way":
        pass
    ctypedef struct Text "fastrpc_sha256_text":
        pass
    Way way_of "fastrpc_sha256_way_of"(int) noexcept nogil
    void begin_text "fastrpc_sha256_begin"(
        Text*, const uint8_t*, size_t, const uint8_t*, size_t
    ) noexcept nogil
    void take_on "fastrpc_sha256_take_on"(Way, Text*, Text*) noexcept nogil
    void end_text "fastrpc_sha256_end"(Way, Text*, uint8_t*) noexcept nogil
    void sha256 "fastrpc_sha256"(
        Way, const uint8_t*, size_t, const uint8_t*, size_t, uint8_t*
    ) noexcept nogil
    void hex_of "fastrpc_hex_of"(const uint8_t*, size_t, char*) noexcept nogil

cdef extern from "Python.h":
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char* text, Py_ssize_t size) except NULL
    object PyUnicode_DecodeASCII(const char* text, Py_ssize_t size, const char* errors)

cdef enum:
    SALT = 16
    DIGEST = 32
    FIXED = 640          # bytes of a line but for its common fields: hashes, times, names
    MOST_DIGITS = 18     # of a request's id that is written as a number
    LEVELS = 64          # of a Merkle tree
    MOST_SPARE = 4       # buffers that are kept,
    LARGEST_SPARE = 1024 * 1024  # and the bytes of one
    AROUND = 140         # bytes of a line besides its fields, its id and its time
    LONGEST_HEAD = 48    # of an id,
    NUMBER = 8           # before its number

cdef Way way = way_of(0)
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
cdef bytes DIGITS = ALPHABET.encode()
cdef const char* digits = DIGITS
cdef tuple OUTCOMES = _OUTCOMES
cdef tuple KINDS = tuple(_KIND_CODES)
cdef int REFUSED = OUTCOMES.index("refused")

cdef struct Likely:            # a call, as its line needs it; all of it lies in its batch
    Record* record
    Slice common
    Slice id
    Slice arguments
    Slice answer


def sha256_of(bytes first not None, bytes second not None, *, bint is_plain=False):
    """Return the SHA-256 of two concatenated texts, the first of at most 64 bytes. `is_plain`: without
    the processor's own instructions."""
    cdef uint8_t digest[DIGEST]
    cdef Way chosen = way_of(True) if is_plain else way
    if len(first) > 64:
        raise ValueError(f"first: expected at most 64 bytes, got {len(first)}")
    sha256(chosen, first, PyBytes_GET_SIZE(first), second, PyBytes_GET_SIZE(second), digest)
    return PyBytes_FromStringAndSize(<char*> digest, DIGEST)


def identifier(str head not None, int64_t number):
    """Return an id: `head` and 8 characters that count, in base 32 (Crockford)."""
    cdef char text[LONGEST_HEAD + NUMBER]
    cdef Slice begin = head_of_id(head)
    put_number(put_slice(text, begin), number)
    return PyUnicode_DecodeASCII(text, begin.size + NUMBER, NULL)


cdef Slice head_of_id(str head) except *:
    cdef Slice found = text_of(head)
    if found.size > LONGEST_HEAD:
        raise ValueError(f"head: expected at most {LONGEST_HEAD} characters, got {found.size}")
    return found


cdef void put_number(char* to, int64_t number) noexcept nogil:
    """Write a number in base 32 (Crockford), in as many characters as each id has for it."""
    cdef int at
    for at in range(NUMBER):
        to[NUMBER - 1 - at] = digits[number >> 5 * at & 31]


cdef class CallFields:
    """The fields of calls, as JSON without the brace that opens them: one text after the other. `count` is
    how many are no lines yet (`ChainLines.calls`); `first` numbers the next of them."""

    cdef CallLines maker
    cdef char* data
    cdef Py_ssize_t room
    cdef uint32_t* sizes
    cdef Py_ssize_t at           # the next one
    cdef Py_ssize_t at_byte
    cdef Py_ssize_t end
    cdef public int64_t first

    def __dealloc__(self):
        if self.maker is not None:
            self.maker.take_back(self.data, self.room)
        PyMem_Free(self.sizes)

    @property
    def count(self):
        return self.end - self.at

    @property
    def memory(self):
        """The bytes that they take in memory."""
        return self.room + self.end * <Py_ssize_t> sizeof(uint32_t)

    def texts(self):
        """Return the fields of each call that is no line yet."""
        cdef list found = []
        cdef Py_ssize_t at
        cdef Py_ssize_t byte = self.at_byte
        for at in range(self.at, self.end):
            found.append(self.data[byte : byte + self.sizes[at]])
            byte += self.sizes[at]
        return found


cdef class CallLines:
    """Makes the fields of calls. `common` has those that calls have in common, as JSON without braces, by
    principal, kind, name and outcome; what is not among them, and all that is not likely, `otherwise`
    makes."""

    cdef readonly dict common
    cdef object otherwise
    cdef Likely* likely
    cdef Py_ssize_t room
    cdef char* spare[MOST_SPARE]  # buffers of fields that have become lines: new memory costs as much again
    cdef Py_ssize_t spare_room[MOST_SPARE]
    cdef int spares

    def __init__(self, otherwise):
        self.common = {}
        self.otherwise = otherwise

    def __dealloc__(self):
        PyMem_Free(self.likely)
        for at in range(self.spares):
            PyMem_Free(self.spare[at])

    cdef char* buffer_of(self, Py_ssize_t size, Py_ssize_t* room) except NULL:
        """Return a buffer of at least this size."""
        cdef char* found
        if self.spares > 0 and self.spare_room[self.spares - 1] >= size:
            self.spares -= 1
            room[0] = self.spare_room[self.spares]
            return self.spare[self.spares]
        found = <char*> PyMem_Malloc(size)
        if found == NULL:
            raise MemoryError
        room[0] = size
        return found

    cdef void take_back(self, char* data, Py_ssize_t room) noexcept:
        if self.spares == MOST_SPARE or room > LARGEST_SPARE:
            PyMem_Free(data)
            return
        self.spare[self.spares] = data
        self.spare_room[self.spares] = room
        self.spares += 1

    def fields(self, RecordBatch batch not None):
        """Return the fields of each call that the guard has not refused, in order: `CallFields` of those that
        are adjacent, and what `otherwise` returns."""
        cdef list found = []
        cdef Py_ssize_t count = 0
        cdef Py_ssize_t at
        cdef PyObject* common = NULL
        cdef Record* last = NULL
        cdef Record* record
        if batch.count > self.room:
            PyMem_Free(self.likely)
            self.likely, self.room = <Likely*> PyMem_Malloc(batch.count * sizeof(Likely)), batch.count
            if self.likely == NULL:
                self.room = 0
                raise MemoryError
        for at in range(batch.count):
            record = &batch.records[at]
            if record.outcome == REFUSED:
                continue
            if last == NULL or not are_alike(record, last):
                last = record
                principal, name = <object> record.principal, <object> record.name
                key = principal, KINDS[record.kind], name, OUTCOMES[record.outcome]
                common = PyDict_GetItem(self.common, key)
            if common != NULL and self.is_likely(batch, at, &self.likely[count]):
                self.likely[count].common = slice_of(<bytes> common)
                count += 1
                continue
            if count > 0:
                found.append(self.written(count, batch.rate))
                count, last = 0, NULL  # `otherwise` may add to what is common, and free what was there
            found.append(self.otherwise(batch.call(at)))
            last = NULL
        if count > 0:
            found.append(self.written(count, batch.rate))
        return found

    cdef bint is_likely(self, RecordBatch batch, Py_ssize_t at, Likely* call) except -1:
        """Find out what the line of a call needs; False for one that is not likely."""
        cdef Record* record = &batch.records[at]
        cdef Slice arguments
        if not is_number(<bytes> record.id) or not batch.find_arguments(at, &arguments):
            return False
        call.record = record
        call.arguments = arguments
        call.answer = Slice(NULL, 0)
        if record.size > 0:
            if record.answer == NULL or type(<object> record.answer) is not bytes:
                return False
            call.answer = slice_of(<bytes> record.answer)
        call.id = slice_of(<bytes> record.id)
        return True

    cdef CallFields written(self, Py_ssize_t count, double rate):
        """Write the fields of the calls that are in `likely`."""
        cdef CallFields found = CallFields()
        cdef bytes salts = urandom(2 * SALT * count)
        cdef const uint8_t* salt = <const uint8_t*> PyBytes_AS_STRING(salts)
        cdef Py_ssize_t size = count * FIXED
        cdef Py_ssize_t at
        cdef char* to
        cdef char* end
        for at in range(count):
            size += self.likely[at].common.size
        found.sizes = <uint32_t*> PyMem_Malloc(count * sizeof(uint32_t))
        if found.sizes == NULL:
            raise MemoryError
        found.data = to = self.buffer_of(size, &found.room)
        found.maker = self
        with nogil:  # calls go on meanwhile
            for at in range(count):
                end = put_call(to, &self.likely[at], salt, rate)
                found.sizes[at] = <uint32_t> (end - to)
                salt += 2 * SALT
                to = end
        found.end = count
        return found


cdef class MerkleTree:
    """The root over leaves that come one by one (RFC 6962, section 2.1): keeps one node for each bit of their
    number."""

    cdef uint8_t nodes[LEVELS][DIGEST]
    cdef int levels
    cdef readonly int64_t count
    cdef Text text       # of the leaf that is being added, or of a node above it
    cdef int64_t full    # a bit for each node that is to be joined with that

    def add(self, bytes data not None):
        """Add a leaf."""
        self.begin_leaf(data, PyBytes_GET_SIZE(data))
        self.end_leaf()

    cdef void begin_leaf(self, const uint8_t* data, Py_ssize_t size) noexcept nogil:
        cdef uint8_t zero = 0
        begin_text(&self.text, &zero, 1, data, size)
        self.full = self.count

    cdef void end_leaf(self) noexcept nogil:
        while self.rise():
            pass

    cdef bint rise(self) noexcept nogil:
        """End the text of the leaf or node, and begin that of the node above; False if the leaf is in the
        tree."""
        cdef uint8_t one = 1
        cdef uint8_t both[2 * DIGEST]
        end_text(way, &self.text, both + DIGEST)
        if self.full & 1:
            self.full >>= 1
            self.levels -= 1
            memcpy(both, self.nodes[self.levels], DIGEST)
            begin_text(&self.text, &one, 1, both, 2 * DIGEST)
            return True
        memcpy(self.nodes[self.levels], both + DIGEST, DIGEST)
        self.levels += 1
        self.count += 1
        return False

    def root(self):
        """Return the root; of no leaves, the hash of nothing."""
        cdef uint8_t node[DIGEST]
        cdef int level
        if self.levels == 0:
            return sha256_of(b"", b"")
        memcpy(node, self.nodes[self.levels - 1], DIGEST)
        for level in range(self.levels - 2, -1, -1):
            join(self.nodes[level], node, node)
        return PyBytes_FromStringAndSize(<char*> node, DIGEST)


cdef class ChainLines:
    """The lines of a chain: `sequence` is the number of the last one, `tree` has those since the last
    checkpoint."""

    cdef public int64_t sequence
    cdef readonly MerkleTree tree
    cdef char previous[2 * DIGEST]

    def __cinit__(self):
        memset(self.previous, c"0", 2 * DIGEST)
        self.tree = MerkleTree()

    def line(self, bytes fields not None):
        """Return the next line: of fields as JSON without the brace that opens them."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(fields)
        cdef bytes line = PyBytes_FromStringAndSize(NULL, size + AROUND)
        cdef char* begin = PyBytes_AS_STRING(line)
        cdef char* end = self.put_line(begin, Slice(NULL, 0), Slice(NULL, 0), slice_of(fields))
        self.link(begin, end - begin, False)
        self.tree.end_leaf()
        return line[: put_literal(end, b"\n") - begin]

    def calls(
        self,
        CallFields calls not None,
        str head not None,
        str time not None,
        Py_ssize_t most,
        Py_ssize_t most_bytes,
    ):
        """Return at most `most` calls as the next lines, and no more once `most_bytes` are there. Ids begin
        with `head`, and they are all of one time."""
        cdef Slice id_head = head_of_id(head)
        cdef Slice time_text = text_of(time)
        cdef Py_ssize_t count = min(most, calls.end - calls.at)
        cdef Py_ssize_t room = count * (id_head.size + NUMBER + time_text.size + AROUND)
        cdef Py_ssize_t at
        cdef PyObject* lines
        cdef Slice fields
        cdef char* begin
        cdef char* start
        cdef char* to
        cdef char id[LONGEST_HEAD + NUMBER]
        for at in range(calls.at, calls.at + count):
            room += calls.sizes[at]
        lines = new_bytes(NULL, room)
        begin = to = PyBytes_AS_STRING(<bytes> lines)
        memcpy(id, id_head.data, id_head.size)
        with nogil:  # calls go on meanwhile
            while count > 0 and to - begin < most_bytes:
                put_number(id + id_head.size, calls.first)
                fields = Slice(calls.data + calls.at_byte, calls.sizes[calls.at])
                start = to
                to = self.put_line(start, Slice(<char*> id, id_head.size + NUMBER), time_text, fields)
                self.link(start, to - start, start != begin)
                to = put_literal(to, b"\n")
                calls.at_byte += fields.size
                calls.at += 1
                calls.first += 1
                count -= 1
            if to != begin:
                self.tree.end_leaf()
        _PyBytes_Resize(&lines, to - begin)
        return owned(lines)

    def head(self):
        """Return the beginning of a line that `seal` ends."""
        return b'{"seq":%d,"prev":"%b"' % (self.sequence + 1, self.previous[: 2 * DIGEST])

    def seal(self, bytes line not None):
        """Have a line be the next one, after which a new tree begins; it ends without a newline."""
        cdef uint8_t digest[DIGEST]
        sha256(way, NULL, 0, line, PyBytes_GET_SIZE(line), digest)
        hex_of(digest, DIGEST, self.previous)
        self.sequence += 1
        self.tree = MerkleTree()

    cdef char* put_line(self, char* to, Slice id, Slice time, Slice fields) noexcept nogil:
        """Write the next line, without its newline; without an id it has no time either."""
        self.sequence += 1
        to = put_integer(put_literal(to, b'{"seq":'), self.sequence)
        to = put_bytes(put_literal(to, b',"prev":"'), self.previous, 2 * DIGEST)
        to = put_literal(to, b'",')
        if id.data != NULL:
            to = put_slice(put_literal(to, b'"id":"'), id)
            to = put_slice(put_literal(to, b'","time":"'), time)
            to = put_literal(to, b'",')
        return put_slice(to, fields)

    cdef void link(self, const char* line, Py_ssize_t size, bint has_leaf) noexcept nogil:
        """Hash a line for the next one, and begin its leaf. `has_leaf`: that of the line before is not in the
        tree yet; the two are hashed at the same time."""
        cdef uint8_t digest[DIGEST]
        cdef Text text
        begin_text(&text, NULL, 0, <const uint8_t*> line, size)
        while has_leaf:
            take_on(way, &text, &self.tree.text)
            has_leaf = self.tree.rise()
        end_text(way, &text, digest)
        hex_of(digest, DIGEST, self.previous)
        self.tree.begin_leaf(digest, DIGEST)


cdef void join(const uint8_t* left, const uint8_t* right, uint8_t* node) noexcept nogil:
    """Write the hash of two nodes, which may be the place of one of them."""
    cdef uint8_t both[1 + 2 * DIGEST]
    both[0] = 1
    memcpy(both + 1, left, DIGEST)
    memcpy(both + 1 + DIGEST, right, DIGEST)
    sha256(way, NULL, 0, both, sizeof(both), node)


cdef bint is_number(bytes id) noexcept:
    """Whether the JSON text of an id is one of a small whole number."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(id)
    cdef const char* text = PyBytes_AS_STRING(id)
    cdef Py_ssize_t at
    for at in range(size):
        if not c"0" <= text[at] <= c"9":
            return False
    return 0 < size <= MOST_DIGITS


cdef inline bint are_alike(const Record* one, const Record* other) noexcept nogil:
    """Whether the fields that calls have in common are the same, by where these texts lie."""
    return (
        one.name == other.name and one.principal == other.principal
        and one.kind == other.kind and one.outcome == other.outcome
    )


cdef char* put_call(char* to, const Likely* call, const uint8_t* salt, double rate) noexcept nogil:
    """Write the fields of a call."""
    cdef Record* record = call.record
    cdef int64_t at = record.times.began
    cdef Text arguments
    cdef Text answer
    begin_text(&arguments, salt, SALT, <const uint8_t*> call.arguments.data, call.arguments.size)
    to = put_slice(to, call.common)
    to = put_slice(put_literal(to, b',"request":'), call.id)
    to = put_literal(to, b',"arguments":')
    if record.size > 0:
        begin_text(&answer, salt + SALT, SALT, <const uint8_t*> call.answer.data, call.answer.size)
        take_on(way, &arguments, &answer)
        to = put_hash(to, salt, &arguments)
        to = put_hash(put_literal(to, b',"result":'), salt + SALT, &answer)
    else:
        to = put_hash(to, salt, &arguments)
    to = put_tenths(put_literal(to, b',"bind_us":'), stage(record.times.bound, &at, rate))
    to = put_tenths(put_literal(to, b',"guard_us":'), stage(record.times.allowed, &at, rate))
    to = put_tenths(put_literal(to, b',"run_us":'), stage(record.times.returned, &at, rate))
    to = put_tenths(put_literal(to, b',"encode_us":'), stage(record.written, &at, rate))
    to = put_tenths(put_literal(to, b',"total_us":'), (record.written - record.times.began) / rate)
    to = put_integer(put_literal(to, b',"bytes":'), record.size)
    return put_literal(to, b"}")


cdef char* put_hash(char* to, const uint8_t* salt, Text* content) noexcept nogil:
    """Write a salted hash, of what has begun with the salt."""
    cdef uint8_t digest[DIGEST]
    to = put_literal(to, b'{"salt":"')
    hex_of(salt, SALT, to)
    to = put_literal(to + 2 * SALT, b'","sha256":"')
    end_text(way, content, digest)
    hex_of(digest, DIGEST, to)
    return put_literal(to + 2 * DIGEST, b'"}')


cdef char* put_tenths(char* to, double number) noexcept nogil:
    """Write a number with one decimal, whatever the locale; 0 for one below."""
    cdef int64_t tenths = <int64_t> (number * 10 + 0.5) if 0 < number < 1e15 else 0
    to = put_integer(to, tenths // 10)
    to[0] = c"."
    to[1] = c"0" + <char> (tenths % 10)
    return to + 2
