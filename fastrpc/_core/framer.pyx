"""Cuts a byte stream into lines, in place, for a parser that needs spare bytes after its input.

Only a newline ends a frame (MCP, stdio transport); a carriage return before it is JSON white space;
lines of nothing but white space are skipped. The framer remembers how far it has searched, so a slow
drip of bytes costs linear time. A line beyond `max_line` bytes is reported once and the rest of it
is skipped in constant memory. It does no I/O: a transport reads into `room()` and says `filled()`.
"""

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcpy, memmove

cdef extern from "poison.h":
    void poison "FASTRPC_POISON"(char* start, Py_ssize_t size) noexcept
    void unpoison "FASTRPC_UNPOISON"(char* start, Py_ssize_t size) noexcept

cdef enum:
    SPARE = 64                   # simdjson reads up to this many bytes after a document
    FIRST_CAPACITY = 64 * 1024
    KEEP_CAPACITY = 4 * 1024 * 1024
    PATIENCE = 64                # times that a buffer beyond that may be filled with less


cdef class Framer:
    def __cinit__(self, Py_ssize_t max_line=16 * 1024 * 1024):
        if max_line < 1:
            raise ValueError("max_line: expected at least 1 byte")
        self.max_line = max_line
        self.capacity = FIRST_CAPACITY
        self.buffer = <char*> malloc(FIRST_CAPACITY + SPARE)
        if self.buffer == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.buffer)

    cdef char* room(self, Py_ssize_t wanted, Py_ssize_t* available) except NULL:
        """Return where to read the next bytes, at least `wanted` of them. Lines handed out end here."""
        unpoison(self.buffer, self.capacity + SPARE)
        if self.start == self.end:
            if self.capacity > KEEP_CAPACITY:
                self.give_back(wanted)
            self.start = self.end = self.searched = 0
        if self.capacity - self.end < wanted:
            self.make_room(wanted)
        available[0] = self.capacity - self.end
        return self.buffer + self.end

    cdef int give_back(self, Py_ssize_t wanted) except -1:
        """Shrink a large buffer that has been too large for a while: where one long line came, more come."""
        self.too_large = 0 if self.end > KEEP_CAPACITY else self.too_large + 1
        if self.too_large == PATIENCE:
            self.too_large = 0
            self.resize(FIRST_CAPACITY if wanted < FIRST_CAPACITY else wanted)
        return 0

    cdef int make_room(self, Py_ssize_t wanted) except -1:
        cdef Py_ssize_t held = self.end - self.start
        if self.start > 0:
            memmove(self.buffer, self.buffer + self.start, held)
            self.searched -= self.start
            self.start = 0
            self.end = held
            self.buffer[held] = c"\n"  # as after filled(): this read may return nothing
        if self.capacity - held < wanted:
            # Doubling keeps a long line linear; no line grows beyond the limit.
            self.resize(max(held + wanted, min(self.capacity * 2, self.max_line + wanted)))
        return 0

    cdef int resize(self, Py_ssize_t capacity) except -1:
        cdef char* buffer = <char*> realloc(self.buffer, capacity + SPARE)
        if buffer == NULL:
            raise MemoryError
        self.buffer = buffer
        self.capacity = capacity
        return 0

    cdef void filled(self, Py_ssize_t count) noexcept:
        """Say that `count` bytes were read into what room() returned."""
        self.end += count
        self.buffer[self.end] = c"\n"  # read_known() does not know where the line ends, and stops here
        poison(self.buffer + self.end + SPARE, self.capacity - self.end)

    cdef int next_line(self, char** line, Py_ssize_t* size) noexcept:
        """Hand out the next complete line, without its newline."""
        cdef char* newline
        cdef Py_ssize_t length
        while True:
            newline = <char*> memchr(self.buffer + self.searched, 10, self.end - self.searched)
            if newline == NULL:
                return self.unfinished()
            line[0] = self.buffer + self.start
            length = newline - line[0]
            self.start = self.searched = newline + 1 - self.buffer
            if self.skipping:
                self.skipping = False
                continue
            if length > self.max_line:
                return TOO_LONG
            if length == 0 or (line[0][0] != c"{" and is_blank(line[0], length)):
                continue
            size[0] = length
            return LINE

    cdef int unfinished(self) noexcept:
        """No newline is in sight: wait for more, or give up on a line that passed the limit."""
        cdef bint was_skipping = self.skipping
        self.searched = self.end
        if was_skipping or self.end - self.start > self.max_line:
            self.start = self.end = self.searched = 0
            self.skipping = True
            return NOTHING if was_skipping else TOO_LONG
        return NOTHING

    cdef int last_line(self, char** line, Py_ssize_t* size) noexcept:
        """At the end of the input, hand out a last line that has no newline."""
        line[0] = self.buffer + self.start
        size[0] = self.end - self.start
        self.buffer[self.end] = c"\n"  # the end that every other line has; there is spare room for it
        self.start = self.searched = self.end
        if self.skipping or is_blank(line[0], size[0]):
            return NOTHING
        return LINE

    def feed(self, bytes chunk):
        """Take `chunk` and return the lines it completes; None marks one over the limit."""
        cdef Py_ssize_t available
        cdef Py_ssize_t count = len(chunk)
        cdef char* line
        cdef Py_ssize_t size
        cdef int found
        cdef list lines = []
        memcpy(self.room(count + 1, &available), <char*> chunk, count)
        self.filled(count)
        while True:
            found = self.next_line(&line, &size)
            if found == NOTHING:
                return lines
            lines.append(line[:size] if found == LINE else None)

    def finish(self):
        """Return what the end of the input makes of the bytes still held: one line or none."""
        cdef char* line
        cdef Py_ssize_t size
        return [line[:size]] if self.last_line(&line, &size) == LINE else []


cdef bint is_blank(const char* data, Py_ssize_t size) noexcept:
    cdef Py_ssize_t at
    for at in range(size):
        if data[at] != c" " and data[at] != c"\t" and data[at] != c"\r":
            return False
    return True
