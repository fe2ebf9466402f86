# Encodes the tools/call requests of a client.

from libc.stdint cimport int64_t

from fastrpc._core.encoder cimport OutputBuffer

cdef class CallWriter:
    cdef OutputBuffer output
    cdef dict heads              # by the tool's name: the bytes between the id and the arguments of a call
    cdef bytes call_end          # the bytes after the arguments
    cdef bytes token_head        # those before a progress token, where there is one

    cdef int put_call(self, int64_t id, str name, object arguments, bint with_token) except -1
    cdef int put_forwarded(
        self, int64_t id, str name, const char* arguments, Py_ssize_t size, bytes end
    ) except -1
    cdef int put_head(self, int64_t id, str name) except -1
    cdef int put_number(self, int64_t number) except -1
