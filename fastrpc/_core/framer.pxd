# What a transport asks of a framer: room to read into, then the lines that have become complete.

cdef enum Found:
    NOTHING = 0    # no complete line yet: read more
    LINE = 1       # a line, valid until the next call of room()
    TOO_LONG = 2   # a line passed the limit; said once, the rest of it is skipped

cdef class Framer:
    cdef char* buffer            # `capacity` bytes and 64 spare ones, so that simdjson parses in place
    cdef Py_ssize_t capacity
    cdef Py_ssize_t start        # first byte that no line has taken yet
    cdef Py_ssize_t end          # one after the last byte read
    cdef Py_ssize_t searched     # no newline lies before this
    cdef int too_large           # how often in a row the buffer has been
    cdef readonly Py_ssize_t max_line
    cdef bint skipping           # inside a line that passed the limit

    cdef char* room(self, Py_ssize_t wanted, Py_ssize_t* available) except NULL
    cdef void filled(self, Py_ssize_t count) noexcept
    cdef int next_line(self, char** line, Py_ssize_t* size) noexcept
    cdef int last_line(self, char** line, Py_ssize_t* size) noexcept
    cdef int give_back(self, Py_ssize_t wanted) except -1
    cdef int make_room(self, Py_ssize_t wanted) except -1
    cdef int resize(self, Py_ssize_t capacity) except -1
    cdef int unfinished(self) noexcept
