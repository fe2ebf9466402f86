"""Writes answers: one reused buffer a connection, taken out whole once per read event.

The likely answer, a tool's `str`, is escaped straight into the buffer, 16 bytes at a step; all else
arrives here as ready JSON bytes and gets its envelope. Strings are UTF-8 on the wire; a lone surrogate
cannot be, and raises UnicodeEncodeError before a byte of the answer is written. No I/O, no clock, no
logging. Which results there are, and what orjson makes of them, is `fastrpc.results`' affair.
"""

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #ifdef __SSE2__
    #include <emmintrin.h>
    #endif

    /* What stands behind the backslash for each byte that JSON escapes; 'u' needs four digits more. */
    static const char fastrpc_escape[256] = {
        ['"'] = '"', ['\\\\'] = '\\\\',
        ['\\b'] = 'b', ['\\f'] = 'f', ['\\n'] = 'n', ['\\r'] = 'r', ['\\t'] = 't',
        [0] = 'u', [1] = 'u', [2] = 'u', [3] = 'u', [4] = 'u', [5] = 'u', [6] = 'u', [7] = 'u', [11] = 'u',
        [14] = 'u', [15] = 'u', [16] = 'u', [17] = 'u', [18] = 'u', [19] = 'u', [20] = 'u', [21] = 'u',
        [22] = 'u', [23] = 'u', [24] = 'u', [25] = 'u', [26] = 'u', [27] = 'u', [28] = 'u', [29] = 'u',
        [30] = 'u', [31] = 'u',
    };

    static inline char *fastrpc_escape_some(char *to, const unsigned char *from, Py_ssize_t size) {
        static const char digits[] = "0123456789abcdef";
        for (Py_ssize_t at = 0; at < size; ++at) {
            unsigned char byte = from[at];
            char mark = fastrpc_escape[byte];
            if (mark == 0) { *to++ = (char)byte; continue; }
            *to++ = '\\\\';
            *to++ = mark;
            if (mark == 'u') {
                *to++ = '0'; *to++ = '0'; *to++ = digits[byte >> 4]; *to++ = digits[byte & 15];
            }
        }
        return to;
    }

    static inline int fastrpc_plain_8(uint64_t bytes) {
        const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
        uint64_t quotes = bytes ^ (ones * '"'), slashes = bytes ^ (ones * '\\\\');
        uint64_t odd = (quotes - ones) & ~quotes;
        odd |= (slashes - ones) & ~slashes;
        odd |= (bytes - ones * 32) & ~bytes;
        return (odd & tops) == 0;
    }

    /* The last bytes, fewer than 16: eight at a time, the second eight overlapping the first. A str has no
       spare bytes behind it; `more` says that eight bytes before `from` may be read. */
    static inline char *fastrpc_escape_end(char *to, const unsigned char *from, Py_ssize_t size, int more) {
        uint64_t bytes;
        if (size >= 8) {
            memcpy(&bytes, from, 8);
            if (!fastrpc_plain_8(bytes)) { return fastrpc_escape_some(to, from, size); }
            memcpy(to, &bytes, 8);
            to += 8; from += 8; size -= 8;
            more = 1;
        }
        if (size == 0) { return to; }
        if (more) {
            memcpy(&bytes, from + size - 8, 8);
            if (fastrpc_plain_8(bytes)) {
                memcpy(to + size - 8, &bytes, 8);
                return to + size;
            }
        }
        return fastrpc_escape_some(to, from, size);
    }

    static inline int fastrpc_plain_16(const unsigned char *from) {
    #ifdef __SSE2__
        __m128i block = _mm_loadu_si128((const __m128i *)from);
        __m128i odd = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(31)), block);
        odd = _mm_or_si128(odd, _mm_cmpeq_epi8(block, _mm_set1_epi8('"')));
        odd = _mm_or_si128(odd, _mm_cmpeq_epi8(block, _mm_set1_epi8('\\\\')));
        return _mm_movemask_epi8(odd) == 0;
    #else
        uint64_t halves[2];
        memcpy(halves, from, 16);
        return fastrpc_plain_8(halves[0]) & fastrpc_plain_8(halves[1]);
    #endif
    }

    /* Copies UTF-8 with JSON's escapes. `to` has room for six times `size`, and 16 more. */
    static inline char *fastrpc_escape_all(char *to, const unsigned char *from, Py_ssize_t size) {
        Py_ssize_t at = 0;
        for (; at + 16 <= size; at += 16) {
            if (fastrpc_plain_16(from + at)) {
                memcpy(to, from + at, 16);
                to += 16;
            } else {
                to = fastrpc_escape_some(to, from + at, 16);
            }
        }
        return fastrpc_escape_end(to, from + at, size - at, at > 0);
    }

    static inline char *fastrpc_escape_character(char *to, uint32_t code) {
        if (code < 0x80) {
            unsigned char byte = (unsigned char)code;
            return fastrpc_escape_some(to, &byte, 1);
        }
        if (code < 0x800) {
            *to++ = (char)(0xC0 | code >> 6);
        } else if (code < 0x10000) {
            if (code >= 0xD800 && code < 0xE000) { return NULL; }
            *to++ = (char)(0xE0 | code >> 12);
            *to++ = (char)(0x80 | (code >> 6 & 63));
        } else {
            *to++ = (char)(0xF0 | code >> 18);
            *to++ = (char)(0x80 | (code >> 12 & 63));
            *to++ = (char)(0x80 | (code >> 6 & 63));
        }
        *to++ = (char)(0x80 | (code & 63));
        return to;
    }

    /* The same for a str of wider characters, UTF-8 being made on the way: CPython's own encoder takes five
       times as long for the widest, and leaves a copy behind. NULL at half of a surrogate pair. */
    #define FASTRPC_ESCAPE_WIDE(NAME, TYPE)                                                           \\
        static char *NAME(char *to, const TYPE *from, Py_ssize_t size) {                                 \\
            Py_ssize_t at = 0;                                                                           \\
            while (at < size) {                                                                          \\
                if (at + 16 <= size) {                                                                   \\
                    unsigned char narrow[16];                                                            \\
                    TYPE all = 0;                                                                        \\
                    for (int i = 0; i < 16; ++i) { all |= from[at + i]; }                                \\
                    if (all < 0x80) {                                                                    \\
                        for (int i = 0; i < 16; ++i) { narrow[i] = (unsigned char)from[at + i]; }        \\
                        if (fastrpc_plain_16(narrow)) {                                                  \\
                            memcpy(to, narrow, 16);                                                      \\
                            to += 16;                                                                    \\
                        } else {                                                                         \\
                            to = fastrpc_escape_some(to, narrow, 16);                                    \\
                        }                                                                                \\
                        at += 16;                                                                        \\
                        continue;                                                                        \\
                    }                                                                                    \\
                }                                                                                        \\
                Py_ssize_t end = at + 16 < size ? at + 16 : size;                                        \\
                for (; at < end; ++at) {                                                                 \\
                    to = fastrpc_escape_character(to, from[at]);                                         \\
                    if (to == NULL) { return NULL; }                                                     \\
                }                                                                                        \\
            }                                                                                            \\
            return to;                                                                                   \\
        }
    FASTRPC_ESCAPE_WIDE(fastrpc_escape_1, uint8_t)
    FASTRPC_ESCAPE_WIDE(fastrpc_escape_2, uint16_t)
    FASTRPC_ESCAPE_WIDE(fastrpc_escape_4, uint32_t)

    static inline char *fastrpc_escape_wide(
        char *to, int width, const char *data, Py_ssize_t at, Py_ssize_t size
    ) {
        if (width == 1) { return fastrpc_escape_1(to, (const uint8_t *)data + at, size); }
        if (width == 2) { return fastrpc_escape_2(to, (const uint16_t *)data + at, size); }
        return fastrpc_escape_4(to, (const uint32_t *)data + at, size);
    }
    """
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
