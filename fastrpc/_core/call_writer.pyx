"""Encodes the ``tools/call`` requests of a client into its output buffer.

The text between the id and the arguments is cached for each name, for up to a thousand names of ordinary
length. No I/O.
"""

from fastrpc._core.encoder cimport append, put_json
from fastrpc._core.slices cimport put_integer

from fastrpc._core.encoder import quoted
from fastrpc.json_encoding import to_json

cdef enum:
    MOST_HEADS = 1024
    LONGEST_KEPT = 1024          # bytes of one of them
    DIGITS = 20


cdef class CallWriter:
    def __cinit__(self, OutputBuffer output not None):
        self.output = output
        self.heads = {}
        self.set_envelope(None)

    def set_envelope(self, meta):
        """Set the ``_meta``, a dict or None, of every call from here on (MCP 2026-07-28)."""
        cdef bytes encoded = b"{}" if meta is None else to_json(meta)
        self.call_end = b"}}\n" if meta is None else b',"_meta":' + encoded + b"}}\n"
        members = encoded[1 : len(encoded) - 1] + (b"," if meta else b"")
        self.token_head = b',"_meta":{' + members + b'"progressToken":'

    cdef int put_call(self, int64_t id, str name, object arguments, bint with_token) except -1:
        """Write a call, with its id as progress token if it is to have one; where that raises, nothing has
        been written."""
        cdef OutputBuffer output = self.output
        cdef Py_ssize_t held = output.waiting()
        cdef bytes encoded
        try:
            self.put_head(id, name)
            if arguments is None:
                append(output, b"{}")
            elif not put_json(output, arguments):
                encoded = to_json(arguments)
                output.put(<char*> encoded, len(encoded))
        except BaseException:
            output.end = output.start + held
            raise
        if not with_token:
            return output.put(<char*> self.call_end, len(self.call_end))
        output.put(<char*> self.token_head, len(self.token_head))
        self.put_number(id)
        return append(output, b"}}}\n")

    cdef int put_forwarded(
        self, int64_t id, str name, const char* arguments, Py_ssize_t size, bytes end
    ) except -1:
        """Write a call whose arguments are JSON text without its braces; `end` follows them."""
        self.put_head(id, name)
        append(self.output, b"{")
        self.output.put(arguments, size)
        append(self.output, b"}")
        return self.output.put(<char*> end, len(end))

    cdef int put_head(self, int64_t id, str name) except -1:
        """Write the part of a call before the arguments."""
        cdef bytes head = self.heads.get(name)
        if head is None:
            head = b',"method":"tools/call","params":{"name":' + quoted(name) + b',"arguments":'
            if len(self.heads) == MOST_HEADS:
                self.heads.clear()
            if len(head) <= LONGEST_KEPT:
                self.heads[name] = head
        append(self.output, b'{"jsonrpc":"2.0","id":')
        self.put_number(id)
        return self.output.put(<char*> head, len(head))

    cdef int put_number(self, int64_t number) except -1:
        self.output.end = put_integer(self.output.reserve(DIGITS), number) - self.output.buffer
        return 0
