"""Makes lines of the audit log in compiled code: records of calls, their ids, the links of a chain.

`CallLines` writes the fields of calls as JSON, with a salted hash of what was sent and answered; what is no
likely call is left to a function. `ChainLines` links lines by SHA-256, each to the one before, and keeps the
Merkle tree over them. Together 2 µs a call. The rules of a chain stand in `fastrpc.guard.audit.chain`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from os import urandom

from fastrpc._core.recorder cimport CallRecord

cdef extern from "sha256.h":
    ctypedef void (*Way "fastrpc_sha256_of_blocks *")(uint32_t*, const uint8_t*, size_t) noexcept nogil
    Way way_of "fastrpc_sha256_way"(int) noexcept nogil
    void sha256 "fastrpc_sha256"(
        Way, const uint8_t*, size_t, const uint8_t*, size_t, uint8_t*
    ) noexcept nogil
    void hex_of "fastrpc_hex_of"(const uint8_t*, size_t, char*) noexcept nogil

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    object PyUnicode_DecodeASCII(const char* text, Py_ssize_t size, const char* errors)

cdef enum:
    SALT = 16
    DIGEST = 32
    FIXED = 640          # bytes of a line but for its common fields: hashes, times, names
    MOST_DIGITS = 18     # of a request's id that is written as a number
    LEVELS = 64          # of a Merkle tree
    MOST_AT_ONCE = 32768  # bytes that are hashed while the interpreter waits

cdef Way way = way_of(0)
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
cdef bytes DIGITS = ALPHABET.encode()


def sha256_of(bytes first not None, bytes second not None, *, bint is_plain=False):
    """Return the SHA-256 of two texts behind each other, the first of at most 64 bytes. `is_plain`: without
    the processor's own instructions."""
    cdef uint8_t digest[DIGEST]
    if len(first) > 64:
        raise ValueError(f"first: expected at most 64 bytes, got {len(first)}")
    sha256(way_of(is_plain), first, PyBytes_GET_SIZE(first), second, PyBytes_GET_SIZE(second), digest)
    return PyBytes_FromStringAndSize(<char*> digest, DIGEST)


def identifiers(str head not None, int64_t first, Py_ssize_t count):
    """Return ids: `head` and 8 characters that count from `first`, in base 32 (Crockford)."""
    cdef char text[64]
    cdef Py_ssize_t size
    cdef const char* begin = PyUnicode_AsUTF8AndSize(head, &size)
    cdef const char* digits = PyBytes_AS_STRING(DIGITS)
    cdef int64_t number
    cdef Py_ssize_t at
    cdef list found = []
    if size > 48:
        raise ValueError(f"head: expected at most 48 characters, got {size}")
    memcpy(text, begin, size)
    for number in range(first, first + count):
        for at in range(8):
            text[size + 7 - at] = digits[number >> 5 * at & 31]
        found.append(PyUnicode_DecodeASCII(text, size + 8, NULL))
    return found


cdef class CallLines:
    """The fields of calls. `common` has those that calls have in common, as JSON without braces, by
    principal, kind, name and outcome; what is not among them, and all that is not likely, `otherwise`
    makes."""

    cdef readonly dict common
    cdef object otherwise
    cdef char* buffer
    cdef Py_ssize_t room

    def __init__(self, otherwise):
        self.common = {}
        self.otherwise = otherwise

    def __dealloc__(self):
        PyMem_Free(self.buffer)

    def lines(self, list records not None):
        """Return the fields of each call: as JSON without the brace that opens them, or what `otherwise`
        returns."""
        cdef CallRecord call
        cdef object line
        cdef bytes salts = urandom(2 * SALT * len(records))
        cdef const uint8_t* salt = <const uint8_t*> PyBytes_AS_STRING(salts)
        cdef list found = []
        for call in records:
            line = self.line(call, salt)
            found.append(self.otherwise(call) if line is None else line)
            salt += 2 * SALT
        return found

    cdef bytes line(self, CallRecord call, const uint8_t* salt):
        """Return the fields of a call, None for one that is not likely."""
        cdef PyObject* common
        cdef char* to
        cdef Py_ssize_t size
        cdef bint has_answer = call.size > 0
        if call.trace or call.decided is not None or not is_number(call.id):
            return None
        if type(call.arguments) is not bytes:
            return None
        if has_answer and type(call.answer) is not bytes:
            return None
        common = PyDict_GetItem(self.common, (call.principal, call.kind, call.name, call.outcome))
        if common == NULL:
            return None
        size = PyBytes_GET_SIZE(<bytes> common)
        if size + FIXED > self.room:
            to = <char*> PyMem_Realloc(self.buffer, size + FIXED)
            if to == NULL:
                raise MemoryError
            self.buffer, self.room = to, size + FIXED
        to = self.buffer
        to = put(to, PyBytes_AS_STRING(<bytes> common), size)
        to = put_text(to, b',"request":')
        to = put(to, PyBytes_AS_STRING(call.id), PyBytes_GET_SIZE(call.id))
        to = put_hash(put_text(to, b',"arguments":'), salt, <bytes> call.arguments)
        if has_answer:
            to = put_hash(put_text(to, b',"result":'), salt + SALT, <bytes> call.answer)
        to = put_tenths(put_text(to, b',"bind_us":'), call.bind_us)
        to = put_tenths(put_text(to, b',"guard_us":'), call.guard_us)
        to = put_tenths(put_text(to, b',"run_us":'), call.run_us)
        to = put_tenths(put_text(to, b',"encode_us":'), call.encode_us)
        to = put_tenths(put_text(to, b',"total_us":'), call.total_us)
        to = put_integer(put_text(to, b',"bytes":'), call.size)
        to = put_text(to, b"}")
        return PyBytes_FromStringAndSize(self.buffer, to - self.buffer)


cdef class MerkleTree:
    """The root over leaves that come one by one (RFC 6962, section 2.1): keeps one node for each bit of their
    number."""

    cdef uint8_t nodes[LEVELS][DIGEST]
    cdef int levels
    cdef readonly int64_t count

    def add(self, bytes data not None):
        """Add a leaf."""
        cdef uint8_t leaf[DIGEST]
        cdef uint8_t zero = 0
        sha256(way, &zero, 1, data, PyBytes_GET_SIZE(data), leaf)
        self.add_leaf(leaf)

    cdef void add_leaf(self, uint8_t* node) noexcept:
        cdef int64_t full = self.count
        while full & 1:
            self.levels -= 1
            join(self.nodes[self.levels], node, node)
            full >>= 1
        memcpy(self.nodes[self.levels], node, DIGEST)
        self.levels += 1
        self.count += 1

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
        return self.linked(NULL, 0, NULL, 0, fields)

    def record(self, str identifier not None, str time not None, bytes fields not None):
        """Return a record as the next line: of its id, its time, and further fields."""
        cdef Py_ssize_t id_size
        cdef Py_ssize_t time_size
        cdef const char* id_text = PyUnicode_AsUTF8AndSize(identifier, &id_size)
        cdef const char* time_text = PyUnicode_AsUTF8AndSize(time, &time_size)
        return self.linked(id_text, id_size, time_text, time_size, fields)

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

    cdef bytes linked(
        self, const char* id, Py_ssize_t id_size, const char* time, Py_ssize_t time_size, bytes fields
    ):
        cdef Py_ssize_t size = PyBytes_GET_SIZE(fields)
        cdef bytes line = PyBytes_FromStringAndSize(NULL, size + id_size + time_size + 140)
        cdef char* begin = PyBytes_AS_STRING(line)
        cdef char* to = begin
        cdef uint8_t digest[DIGEST]
        cdef uint8_t leaf[DIGEST]
        cdef uint8_t zero = 0
        self.sequence += 1
        to = put_integer(put_text(to, b'{"seq":'), self.sequence)
        to = put(put_text(to, b',"prev":"'), self.previous, 2 * DIGEST)
        to = put_text(to, b'",')
        if id != NULL:
            to = put(put_text(to, b'"id":"'), id, id_size)
            to = put(put_text(to, b'","time":"'), time, time_size)
            to = put_text(to, b'",')
        to = put(to, PyBytes_AS_STRING(fields), size)
        sha256(way, NULL, 0, <const uint8_t*> begin, to - begin, digest)
        hex_of(digest, DIGEST, self.previous)
        sha256(way, &zero, 1, digest, DIGEST, leaf)
        self.tree.add_leaf(leaf)
        to = put_text(to, b"\n")
        return line[: to - begin]


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


cdef inline char* put(char* to, const char* text, Py_ssize_t size) noexcept nogil:
    memcpy(to, text, size)
    return to + size


cdef inline char* put_text(char* to, bytes text) noexcept:
    return put(to, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))


cdef char* put_hash(char* to, const uint8_t* salt, bytes content) noexcept:
    """Write a salted hash."""
    cdef uint8_t digest[DIGEST]
    cdef const uint8_t* data = <const uint8_t*> PyBytes_AS_STRING(content)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(content)
    to = put_text(to, b'{"salt":"')
    hex_of(salt, SALT, to)
    to = put_text(to + 2 * SALT, b'","sha256":"')
    if size > MOST_AT_ONCE:  # calls go on meanwhile
        with nogil:
            sha256(way, salt, SALT, data, size, digest)
    else:
        sha256(way, salt, SALT, data, size, digest)
    hex_of(digest, DIGEST, to)
    return put_text(to + 2 * DIGEST, b'"}')


cdef char* put_integer(char* to, int64_t number) noexcept nogil:
    """Write a number, 0 for one below."""
    cdef char text[20]
    cdef int at = 20
    if number < 0:
        number = 0
    while True:
        at -= 1
        text[at] = c"0" + <char> (number % 10)
        number //= 10
        if number == 0:
            break
    return put(to, text + at, 20 - at)


cdef char* put_tenths(char* to, double number) noexcept nogil:
    """Write a number with one decimal, whatever the locale; 0 for one below."""
    cdef int64_t tenths = <int64_t> (number * 10 + 0.5) if 0 < number < 1e15 else 0
    to = put_integer(to, tenths // 10)
    to[0] = c"."
    to[1] = c"0" + <char> (tenths % 10)
    return to + 2
