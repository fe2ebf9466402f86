# The output buffer of a connection: answers go in, a transport takes the bytes out.

from libc.string cimport strlen

from fastrpc._core.slices cimport Slice

cdef enum:
    ID_ROOM = 16    # so many bytes of an id given to put_text() can be read, however short it is

# What a plain value's result holds: its JSON as a text, and beside it as structured content the value (if
# it is a dict), or {"result": value}.
cdef enum:
    FORM_TEXT
    FORM_OBJECT
    FORM_WRAPPED

cdef class OutputBuffer:
    cdef char* buffer
    cdef Py_ssize_t capacity
    cdef Py_ssize_t start        # first byte that the transport has not taken
    cdef readonly Py_ssize_t end
    cdef long long taken_bytes   # by the transport, ever
    cdef int too_large           # how often in a row the buffer has been

    cdef inline Py_ssize_t waiting(self) noexcept:
        """Return how many bytes wait to be taken, from `buffer + start` on."""
        return self.end - self.start

    cdef inline long long written(self) noexcept:
        """Return how many bytes have ever been written."""
        return self.taken_bytes + self.end - self.start

    cdef void taken(self, Py_ssize_t count) noexcept
    cdef void give_back(self) noexcept
    cdef char* reserve(self, Py_ssize_t size) except NULL
    cdef int put(self, const char* data, Py_ssize_t size) except -1
    cdef int put_answer(self, Slice id, Slice result) except -1
    cdef int put_error(self, Slice id, Slice error) except -1
    cdef int put_text(self, Slice id, str text, Slice tail) except -1
    cdef int put_json_text(self, Slice id, Slice text, Slice tail) except -1
    cdef int put_wide(self, Slice id, str text, Slice tail) except -1
    cdef char* put_pieces(self, char* to, const char* data, Py_ssize_t size, Py_ssize_t behind) except NULL
    cdef bint put_value_result(self, Slice id, object value, int form, Slice tail, bint is_made) except -1
    cdef bint put_framed(self, Slice id, bytes head, str text, bytes tail) except -1
    cdef int grow(self, Py_ssize_t size) except -1

cdef inline int append(OutputBuffer output, const char* text) except -1:
    """The size is known when this is compiled."""
    return output.put(text, strlen(text))

cdef bint put_json(OutputBuffer output, object value) except -1

cdef int put_quoted(OutputBuffer output, str text) except -1
