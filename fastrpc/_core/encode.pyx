"""Writes answers: one reused buffer a connection, taken out whole once per read event.

The likely answer, a tool's `str`, is escaped straight into the buffer, 16 bytes at a step; all else
arrives here as ready JSON bytes and gets its envelope. Strings are UTF-8 on the wire; a lone surrogate
cannot be, and raises UnicodeEncodeError before a byte of the answer is written. No I/O, no clock, no
logging. Which results there are, and what orjson makes of them, is `fastrpc.results`' affair.
"""

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove

cdef extern from "escape.h":
    char* escape_all "fastrpc_escape_all"(char* to, const unsigned char* source, Py_ssize_t size) noexcept
    char* escape_wide "fastrpc_escape_wide"(
        char* to, int width, const char* data, Py_ssize_t at, Py_ssize_t size
    ) noexcept

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    int PyUnicode_KIND(object text)

cdef enum:
    FIRST_CAPACITY = 64 * 1024
    KEEP_CAPACITY = 4 * 1024 * 1024
    ESCAPE_GROWTH = 6            # \u00XX for one byte
    PIECE = 16 * 1024            # of a longer text; room is made for one piece at its worst

cdef const char* OPEN = b'{"jsonrpc":"2.0","id":'
cdef const char* RESULT = b',"result":'
cdef const char* TEXT = b',"result":{"content":[{"type":"text","text":"'
cdef enum:
    OPEN_SIZE = 22
    RESULT_SIZE = 10
    TEXT_SIZE = 45


cdef class Output:
    def __cinit__(self):
        self.capacity = FIRST_CAPACITY
        self.buffer = <char*> malloc(FIRST_CAPACITY)
        if self.buffer == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.buffer)

    # --- the transport's side -----------------------------------------------------------------------

    cdef Py_ssize_t waiting(self) noexcept:
        """Return how many bytes wait to be taken, from `buffer + start` on."""
        return self.end - self.start

    cdef void taken(self, Py_ssize_t count) noexcept:
        """Say that the transport has taken `count` bytes."""
        cdef char* smaller
        self.start += count
        if self.start < self.end:
            return
        self.start = self.end = 0
        if self.capacity > KEEP_CAPACITY:
            smaller = <char*> realloc(self.buffer, FIRST_CAPACITY)
            if smaller != NULL:
                self.buffer = smaller
                self.capacity = FIRST_CAPACITY

    def take(self):
        """Return all waiting bytes and forget them."""
        cdef bytes data = self.buffer[self.start : self.end]
        self.taken(self.end - self.start)
        return data

    # --- writing --------------------------------------------------------------------------------------

    cdef char* reserve(self, Py_ssize_t size) except NULL:
        """Return where `size` more bytes may be written."""
        if self.capacity - self.end < size:
            self.grow(size)
        return self.buffer + self.end

    cdef int grow(self, Py_ssize_t size) except -1:
        cdef Py_ssize_t held = self.end - self.start
        cdef Py_ssize_t capacity
        cdef char* buffer
        if self.start > 0:
            memmove(self.buffer, self.buffer + self.start, held)
            self.start = 0
            self.end = held
        if self.capacity - held < size:
            capacity = max(self.capacity * 2, held + size)
            buffer = <char*> realloc(self.buffer, capacity)
            if buffer == NULL:
                raise MemoryError
            self.buffer = buffer
            self.capacity = capacity
        return 0

    cdef int put(self, const char* data, Py_ssize_t size) except -1:
        memcpy(self.reserve(size), data, size)
        self.end += size
        return 0

    cdef int put_answer(
        self, const char* id, Py_ssize_t id_size, const char* result, Py_ssize_t size
    ) except -1:
        """Answer the request `id`, given as JSON text, with a `result` that is JSON text."""
        cdef char* to = self.reserve(OPEN_SIZE + id_size + RESULT_SIZE + size + 2)
        memcpy(to, OPEN, OPEN_SIZE)
        to += OPEN_SIZE
        memcpy(to, id, id_size)
        to += id_size
        memcpy(to, RESULT, RESULT_SIZE)
        to += RESULT_SIZE
        memcpy(to, result, size)
        to += size
        to[0] = c"}"
        to[1] = c"\n"
        self.end = to + 2 - self.buffer
        return 0

    cdef int put_text(
        self, const char* id, Py_ssize_t id_size, str text, const char* tail, Py_ssize_t tail_size
    ) except -1:
        """Answer with a result of one text block; `tail` is all that follows the text, newline and all."""
        cdef const char* data
        cdef Py_ssize_t size
        cdef Py_ssize_t piece
        cdef char* to
        if not PyUnicode_IS_COMPACT_ASCII(text):
            return self.put_wide(id, id_size, text, tail, tail_size)
        data = <const char*> PyUnicode_DATA(text)
        size = PyUnicode_GET_LENGTH(text)
        # Room for one piece at its worst, and for the rest of the text as it most likely is.
        piece = size if size <= PIECE else PIECE
        to = open_text(self, id, id_size, piece * ESCAPE_GROWTH + size - piece + 16 + tail_size)
        to = escape_all(to, <const unsigned char*> data, piece)
        if piece < size:
            to = self.put_pieces(to, data + piece, size - piece, tail_size)
        memcpy(to, tail, tail_size)
        self.end = to + tail_size - self.buffer
        return 0

    cdef int put_wide(
        self, const char* id, Py_ssize_t id_size, str text, const char* tail, Py_ssize_t tail_size
    ) except -1:
        """put_text() for a str that is not ASCII, piece by piece."""
        cdef Py_ssize_t held = self.end - self.start
        cdef const char* data = <const char*> PyUnicode_DATA(text)
        cdef Py_ssize_t size = PyUnicode_GET_LENGTH(text)
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t piece
        cdef char* to = open_text(self, id, id_size, 0)
        try:
            while at < size:
                piece = size - at if size - at <= PIECE else PIECE
                self.end = to - self.buffer
                to = self.reserve(piece * ESCAPE_GROWTH + size - at - piece + 16 + tail_size)
                to = escape_wide(to, PyUnicode_KIND(text), data, at, piece)
                if to == NULL:
                    PyUnicode_AsUTF8AndSize(text, NULL)  # raises, and says where
                    return -1
                at += piece
        except BaseException:
            self.end = self.start + held
            raise
        memcpy(to, tail, tail_size)
        self.end = to + tail_size - self.buffer
        return 0

    cdef char* put_pieces(
        self, char* to, const char* data, Py_ssize_t size, Py_ssize_t behind
    ) except NULL:
        """Escape the rest of a long text, making room piece by piece; return where it ends."""
        cdef Py_ssize_t held = self.end - self.start  # without this answer, which is not whole yet
        cdef Py_ssize_t piece
        while size > 0:
            piece = size if size <= PIECE else PIECE
            self.end = to - self.buffer
            try:
                to = self.reserve(piece * ESCAPE_GROWTH + size - piece + 16 + behind)
            except MemoryError:
                self.end = self.start + held
                raise
            to = escape_all(to, <const unsigned char*> data, piece)
            data += piece
            size -= piece
        return to

    # --- for Python -------------------------------------------------------------------------------------

    def answer(self, bytes id, bytes result):
        """Answer the request whose id has this JSON text with this JSON text."""
        self.put_answer(<char*> id, len(id), <char*> result, len(result))

    def text(self, bytes id, str text, bytes tail):
        """Answer with one text block and, behind it, `tail`."""
        cdef bytes roomy = id.ljust(ID_ROOM)
        self.put_text(<char*> roomy, len(id), text, <char*> tail, len(tail))

    def line(self, bytes message):
        """Write a whole message; its newline is added here."""
        self.put(<char*> message, len(message))
        self.put(b"\n", 1)


cdef inline char* open_text(
    Output output, const char* id, Py_ssize_t id_size, Py_ssize_t room
) except NULL:
    """Begin an answer of one text; return where the text goes, with so much room."""
    cdef char* to = output.reserve(OPEN_SIZE + id_size + ID_ROOM + TEXT_SIZE + room)
    memcpy(to, OPEN, OPEN_SIZE)
    to += OPEN_SIZE
    if id_size <= ID_ROOM:
        memcpy(to, id, ID_ROOM)
    else:
        memcpy(to, id, id_size)
    to += id_size
    memcpy(to, TEXT, TEXT_SIZE)
    return to + TEXT_SIZE


def quoted(text):
    """Return a str, or an instance of a subclass, as a JSON string in UTF-8."""
    cdef Output output = Output.__new__(Output)
    put_quoted(output, exact(text))
    return output.take()


def dumps(value):
    """Return a plain value (dict, list, str, int, float, bool, None) as JSON, in UTF-8.

    For what is written at start-up, where importing orjson would cost more than the answer.
    """
    cdef Output output = Output.__new__(Output)
    put_value(output, value)
    return output.take()


def is_plain(value):
    """Say whether a value is made of JSON's own types alone, and every number in it is finite."""
    return holds_plain(value, 0)


cdef bint holds_plain(value, int depth) except -1:
    cdef type kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is float:
        return (<double> value) - (<double> value) == 0
    if depth == 1000:
        return False
    if kind is dict:
        for member in (<dict> value).values():
            if not holds_plain(member, depth + 1):
                return False
        return True
    if kind is list or kind is tuple:
        for member in value:
            if not holds_plain(member, depth + 1):
                return False
        return True
    return False


cdef str exact(text):
    """The text of a subclass of str, whatever its own methods say."""
    return text if type(text) is str else "".join((text,))


cdef int put_quoted(Output output, str text) except -1:
    cdef Py_ssize_t size
    cdef const char* data = PyUnicode_AsUTF8AndSize(text, &size)
    cdef Py_ssize_t piece = size if size <= PIECE else PIECE
    cdef char* to = output.reserve(piece * ESCAPE_GROWTH + size - piece + 18)
    to[0] = c'"'
    to = escape_all(to + 1, <const unsigned char*> data, piece)
    if piece < size:
        to = output.put_pieces(to, data + piece, size - piece, 1)
    to[0] = c'"'
    output.end = to + 1 - output.buffer
    return 0


cdef int put_value(Output output, value) except -1:
    cdef bint first = True
    cdef bytes text
    if isinstance(value, str):
        return put_quoted(output, exact(value))
    if value is None or value is True or value is False:
        text = b"null" if value is None else b"true" if value is True else b"false"
    elif isinstance(value, int) or (isinstance(value, float) and value - value == 0):
        text = (int if isinstance(value, int) else float).__repr__(value).encode()
    elif isinstance(value, dict):
        output.put(b"{", 1)
        for name, member in value.items():
            if not first:
                output.put(b",", 1)
            first = False
            put_quoted(output, exact(name))
            output.put(b":", 1)
            put_value(output, member)
        return output.put(b"}", 1)
    elif isinstance(value, (list, tuple)):
        output.put(b"[", 1)
        for member in value:
            if not first:
                output.put(b",", 1)
            first = False
            put_value(output, member)
        return output.put(b"]", 1)
    else:
        raise TypeError(f"no plain JSON value: {value!r:.80}")
    return output.put(text, len(text))
