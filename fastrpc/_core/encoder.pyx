"""Writes answers: one reused buffer a connection, taken out whole once per read event.

The likely answer, a tool's `str`, is escaped straight into the buffer, 16 bytes at a step. A plain value
(dict, list, number …) is written as JSON and, beside it, as the text that holds this JSON: 3 µs for 3 KB.
All else arrives here as ready JSON bytes and gets its envelope. Strings are UTF-8 on the wire; a lone
surrogate cannot be, and raises UnicodeEncodeError before a byte of the answer is written. No I/O, no
clock, no logging. Which results there are, and what orjson makes of them: `fastrpc.engine.results`.
"""

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove

from fastrpc._core.slices cimport Slice, put_bytes, put_literal, put_slice, slice_of

cdef extern from "string_encode.h":
    char* escape_all "fastrpc_escape_all"(char* to, const unsigned char* source, Py_ssize_t size) noexcept
    char* escape_wide "fastrpc_escape_wide"(
        char* to, int width, const char* data, Py_ssize_t at, Py_ssize_t size
    ) noexcept

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    int PyUnicode_KIND(object text)

cdef extern from "json_writer.h":
    ctypedef struct Pens "struct fastrpc_pens":
        char* raw
        Py_ssize_t ahead
    ctypedef struct Page "struct fastrpc_page":
        char* limit
        Pens pens
        void* raw_owner
        void* text_owner
        int (*make_room)(Page* page, Py_ssize_t size) except -1
    int DEEPEST "FASTRPC_DEEPEST"
    Py_ssize_t SPARE "FASTRPC_SPARE"
    bint put_plain "fastrpc_put_value"(Page* page, object value) except? False

cdef enum:
    FIRST_CAPACITY = 64 * 1024
    KEEP_CAPACITY = 4 * 1024 * 1024
    PATIENCE = 64                # times that a buffer beyond that may be sent with less in it
    ESCAPE_GROWTH = 6            # \u00XX for one byte
    PIECE = 16 * 1024            # of a longer text; room is made for one piece at its worst

cdef enum:
    OPEN_SIZE = 22               # {"jsonrpc":"2.0","id":
    TEXT_SIZE = 45               # ,"result":{"content":[{"type":"text","text":"
    CONTENT_END_SIZE = 3         # "}] closes the text, and begins every tail
    AROUND_STRUCTURE = 40        # at most: ,"structuredContent":{"result": and what closes them

TEXT_FORM, OBJECT_FORM, WRAPPED_FORM = FORM_TEXT, FORM_OBJECT, FORM_WRAPPED


cdef class OutputBuffer:
    def __dealloc__(self):
        free(self.buffer)

    # --- the transport's side -----------------------------------------------------------------------

    @property
    def unsent(self):
        return self.waiting()

    @property
    def total(self):
        return self.written()

    cdef void taken(self, Py_ssize_t count) noexcept:
        """Say that the transport has taken `count` bytes."""
        self.start += count
        self.taken_bytes += count
        if self.start < self.end:
            return
        if self.capacity > KEEP_CAPACITY:
            self.give_back()
        self.start = self.end = 0

    cdef void give_back(self) noexcept:
        """Shrink a large buffer that has been too large for a while: where one long answer went, more go."""
        cdef char* smaller
        self.too_large = 0 if self.end > KEEP_CAPACITY else self.too_large + 1
        if self.too_large == PATIENCE:
            self.too_large = 0
            smaller = <char*> realloc(self.buffer, FIRST_CAPACITY)
            if smaller != NULL:
                self.buffer = smaller
                self.capacity = FIRST_CAPACITY

    def take(self):
        """Return all waiting bytes and forget them."""
        if self.buffer == NULL:
            return b""
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
            capacity = max(self.capacity * 2, held + size, FIRST_CAPACITY)
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

    cdef int put_answer(self, Slice id, Slice result) except -1:
        """Answer the request `id`, given as JSON text, with a `result` that is JSON text."""
        cdef char* to = self.reserve(2 * OPEN_SIZE + id.size + result.size)
        to = put_slice(put_literal(to, b'{"jsonrpc":"2.0","id":'), id)
        to = put_slice(put_literal(to, b',"result":'), result)
        self.end = put_literal(to, b"}\n") - self.buffer
        return 0

    cdef int put_text(self, Slice id, str text, Slice tail) except -1:
        """Answer with a result of one text block; `tail` is all that follows the text, newline and all."""
        cdef const char* data
        cdef Py_ssize_t size
        cdef Py_ssize_t piece
        cdef char* to
        if not PyUnicode_IS_COMPACT_ASCII(text):
            return self.put_wide(id, text, tail)
        data = <const char*> PyUnicode_DATA(text)
        size = PyUnicode_GET_LENGTH(text)
        # Room for one piece at its worst, and for the rest of the text as it most likely is.
        piece = size if size <= PIECE else PIECE
        to = open_text(self, id, piece * ESCAPE_GROWTH + size - piece + 16 + tail.size)
        to = escape_all(to, <const unsigned char*> data, piece)
        if piece < size:
            to = self.put_pieces(to, data + piece, size - piece, tail.size)
        self.end = put_slice(to, tail) - self.buffer
        return 0

    cdef int put_json_text(self, Slice id, Slice text, Slice tail) except -1:
        """put_text() for a text that is escaped already, without its quotes."""
        cdef char* to = open_text(self, id, text.size + tail.size)
        self.end = put_slice(put_slice(to, text), tail) - self.buffer
        return 0

    cdef int put_wide(self, Slice id, str text, Slice tail) except -1:
        """put_text() for a str that is not ASCII, piece by piece."""
        cdef Py_ssize_t held = self.end - self.start
        cdef const char* data = <const char*> PyUnicode_DATA(text)
        cdef Py_ssize_t size = PyUnicode_GET_LENGTH(text)
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t piece
        cdef char* to = open_text(self, id, 0)
        try:
            while at < size:
                piece = size - at if size - at <= PIECE else PIECE
                self.end = to - self.buffer
                to = self.reserve(piece * ESCAPE_GROWTH + size - at - piece + 16 + tail.size)
                to = escape_wide(to, PyUnicode_KIND(text), data, at, piece)
                if to == NULL:
                    PyUnicode_AsUTF8AndSize(text, NULL)  # raises, and says where
                    return -1
                at += piece
        except BaseException:
            self.end = self.start + held
            raise
        self.end = put_slice(to, tail) - self.buffer
        return 0

    cdef char* put_pieces(self, char* to, const char* data, Py_ssize_t size, Py_ssize_t behind) except NULL:
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

    cdef bint put_value_result(self, Slice id, object value, int form, Slice tail, bint is_made) except -1:
        """Answer with a plain value: its JSON as a text and, by the form, as structured content.

        `tail` begins with the end of the text block, `"}]`. Returns False, with nothing written, for a
        value that is not plain or goes another way: None, a text that is none, or beside an object's schema.
        `is_made`: the text is the JSON of a str, too.
        """
        cdef Py_ssize_t held = self.end - self.start
        if type(value) is str and not is_made:
            return form != FORM_OBJECT and put_text_value(self, id, value, form, tail)
        self.end = open_text(self, id, 0) - self.buffer
        return finish_value(self, held, value, form, tail)

    cdef int put_error(self, Slice id, Slice error) except -1:
        """Answer the request `id` with an error object (JSON-RPC 2.0, section 5.1), given as JSON text."""
        cdef char* to = self.reserve(2 * OPEN_SIZE + id.size + error.size)
        to = put_slice(put_literal(to, b'{"jsonrpc":"2.0","id":'), id)
        to = put_slice(put_literal(to, b',"error":'), error)
        self.end = put_literal(to, b"}\n") - self.buffer
        return 0

    cdef bint put_framed(self, Slice id, bytes head, str text, bytes tail) except -1:
        """Answer with one text between a head, which follows the id, and a tail, newline and all.

        Returns False, with nothing written, for a text that is none: it holds half a surrogate pair.
        """
        cdef Py_ssize_t held = self.end - self.start
        append(self, b'{"jsonrpc":"2.0","id":')
        self.put(id.data, id.size)
        self.put(<char*> head, len(head))
        try:
            put_quoted(self, text)
        except UnicodeEncodeError:
            self.end = self.start + held
            return False
        except BaseException:
            self.end = self.start + held
            raise
        self.put(<char*> tail, len(tail))
        return True

    # --- for Python -------------------------------------------------------------------------------------

    def error(self, bytes id not None, bytes error not None):
        """Answer the request whose id has this JSON text with an error object that is JSON text."""
        self.put_error(slice_of(id), slice_of(error))

    def answer(self, bytes id not None, bytes result not None):
        """Answer the request whose id has this JSON text with this JSON text."""
        self.put_answer(slice_of(id), slice_of(result))

    def text(self, bytes id not None, str text, bytes tail not None):
        """Answer with one text block, followed by `tail`."""
        cdef bytes roomy = id.ljust(ID_ROOM)
        self.put_text(Slice(<char*> roomy, len(id)), text, slice_of(tail))

    def value(self, bytes id not None, value, int form, bytes tail not None):
        """Answer with a plain value; False if it is none, and nothing is written."""
        cdef bytes roomy = id.ljust(ID_ROOM)
        return self.put_value_result(Slice(<char*> roomy, len(id)), value, form, slice_of(tail), False)

    def line(self, bytes message):
        """Write a whole message; its newline is added here."""
        self.put(<char*> message, len(message))
        self.put(b"\n", 1)


cdef inline char* open_text(OutputBuffer output, Slice id, Py_ssize_t room) except NULL:
    """Begin an answer of one text; return where the text goes, with so much room."""
    cdef char* to = output.reserve(OPEN_SIZE + id.size + ID_ROOM + TEXT_SIZE + room)
    to = put_literal(to, b'{"jsonrpc":"2.0","id":')
    if id.size <= ID_ROOM:
        memcpy(to, id.data, ID_ROOM)
    else:
        memcpy(to, id.data, id.size)
    return put_literal(to + id.size, b',"result":{"content":[{"type":"text","text":"')


def quoted(text):
    """Return a str, or an instance of a subclass, as a JSON string in UTF-8."""
    cdef OutputBuffer output = OutputBuffer.__new__(OutputBuffer)
    put_quoted(output, exact(text))
    return output.take()


def dumps(value):
    """Return a JSON value (dict, list, tuple, str, int, float, bool, None, or a subclass) in UTF-8."""
    encoded = plain_json(value)
    if encoded is None:
        encoded = plain_json(exact_value(value, 0))
        if encoded is None:
            raise TypeError(f"no plain JSON value: {value!r:.80}")
    return encoded


def plain_json(value):
    """Return the JSON of a value in UTF-8, or None if it is not plain all through."""
    cdef OutputBuffer output = OutputBuffer.__new__(OutputBuffer)
    return output.take() if put_json(output, value) else None


def result_of(value, int form, bytes tail not None):
    """Return the result that Output.value() writes, alone, or None. `tail` has no envelope to close."""
    cdef OutputBuffer output = OutputBuffer.__new__(OutputBuffer)
    append(output, b'{"content":[{"type":"text","text":"')
    if type(value) is str or not finish_value(output, 0, value, form, slice_of(tail)):
        return None
    return output.take()


def is_plain(value):
    """Say whether a value is made of JSON's own types alone: every key a text, every number finite."""
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
        for name, member in (<dict> value).items():
            if type(name) is not str or not holds_plain(member, depth + 1):
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


cdef int put_quoted(OutputBuffer output, str text) except -1:
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


cdef exact_value(value, int depth):
    """Return a JSON value made of the exact types, for one that is made of their subclasses too."""
    if isinstance(value, str):
        text = exact(value)
        text.encode()  # half a surrogate pair raises, and says where
        return text
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        return int.__pos__(value)
    if isinstance(value, float):
        return float.__pos__(value)
    if depth < DEEPEST:
        if isinstance(value, dict):
            members = value.items()
            return {exact_value(name, DEEPEST): exact_value(member, depth + 1) for name, member in members}
        if isinstance(value, (list, tuple)):
            return [exact_value(member, depth + 1) for member in value]
    raise TypeError(f"no plain JSON value: {value!r:.80}")


cdef bint put_text_value(OutputBuffer output, Slice id, str text, int form, Slice tail) except -1:
    """Answer with a text and, in the wrapped form, with `{"result": text}` as structured content."""
    cdef Py_ssize_t held = output.end - output.start
    cdef Py_ssize_t begin = held + OPEN_SIZE + id.size + TEXT_SIZE
    cdef Py_ssize_t size
    cdef char* to
    try:
        if form != FORM_WRAPPED:
            output.put_text(id, text, tail)
            return True
        output.put_text(id, text, Slice(b"", 0))
    except UnicodeEncodeError:
        return False
    size = output.end - output.start - begin
    try:
        to = output.reserve(AROUND_STRUCTURE + size + tail.size)
    except BaseException:
        output.end = output.start + held
        raise
    to = put_literal(to, b'"}],"structuredContent":{"result":"')
    to = put_literal(put_bytes(to, output.buffer + output.start + begin, size), b'"}')
    output.end = put_slice(to, after_content(tail)) - output.buffer
    return True


cdef inline Slice after_content(Slice tail) noexcept:
    """What follows the content in a tail, which begins with the end of that."""
    return Slice(tail.data + CONTENT_END_SIZE, tail.size - CONTENT_END_SIZE)


# --- plain values ---------------------------------------------------------------------------------------

cdef OutputBuffer SCRATCH = OutputBuffer.__new__(OutputBuffer)


cdef void drop_scratch() noexcept:
    """Forget what was written for a moment."""
    SCRATCH.taken(SCRATCH.end - SCRATCH.start)


cdef bint finish_value(OutputBuffer output, Py_ssize_t held, object value, int form, Slice tail) except -1:
    """Write the rest of an answer whose text has been begun, or take all of it back and return False."""
    cdef bint written = False
    try:
        if value is not None and write_plain(SCRATCH, output, value):
            put_structure(output, form, type(value) is dict, tail)
            written = True
    finally:
        if not written:
            output.end = output.start + held
        drop_scratch()
    return written


cdef int put_structure(OutputBuffer output, int form, bint is_dict, Slice tail) except -1:
    """Write all that follows the text."""
    cdef char* to = output.reserve(AROUND_STRUCTURE + SCRATCH.end + tail.size)
    if form == FORM_WRAPPED or (form == FORM_OBJECT and is_dict):
        to = put_literal(to, b'"}],"structuredContent":')
        if form == FORM_WRAPPED:
            to = put_literal(to, b'{"result":')
        to = put_bytes(to, SCRATCH.buffer, SCRATCH.end)
        if form == FORM_WRAPPED:
            to = put_literal(to, b"}")
        tail = after_content(tail)
    output.end = put_slice(to, tail) - output.buffer
    return 0


cdef bint write_plain(OutputBuffer raw, OutputBuffer text, object value) except? False:
    """Append the value to both outputs, to the second as part of a string. False: not plain."""
    cdef Page page
    page.raw_owner = <void*> raw
    page.text_owner = <void*> text
    page.make_room = make_room
    raw.reserve(1)  # an output has no buffer before it is written to
    text.reserve(1)
    hold(&page)
    if not put_plain(&page, value):
        return False
    raw.end = page.pens.raw - raw.buffer
    text.end = page.pens.raw + page.pens.ahead - text.buffer
    return True


cdef bint put_json(OutputBuffer output, object value) except -1:
    """Append a plain value to the output; False, with nothing written, for any other value."""
    try:  # The escaped copy is written and dropped: that costs less than a second writer.
        return write_plain(output, SCRATCH, value)
    finally:
        drop_scratch()


cdef void hold(Page* page) noexcept:
    """Take the pens to where the outputs end, and say how far they may go."""
    cdef OutputBuffer raw = <OutputBuffer> page.raw_owner
    cdef OutputBuffer text = <OutputBuffer> page.text_owner
    page.pens.raw = raw.buffer + raw.end
    page.pens.ahead = (text.buffer + text.end) - page.pens.raw
    page.limit = page.pens.raw + min(raw.capacity - raw.end, (text.capacity - text.end) // 2) - SPARE


cdef int make_room(Page* page, Py_ssize_t size) except -1:
    cdef OutputBuffer raw = <OutputBuffer> page.raw_owner
    cdef OutputBuffer text = <OutputBuffer> page.text_owner
    raw.end = page.pens.raw - raw.buffer
    text.end = page.pens.raw + page.pens.ahead - text.buffer
    raw.reserve(size + SPARE)
    text.reserve(2 * (size + SPARE))
    hold(page)
    return 0
