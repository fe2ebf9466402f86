# A message as the later steps see it: where its parts lie in the line, and what kind of message it is.
# Pointers are valid until the next read() and as long as the line stays where it was read.

from libc.stdint cimport uint64_t

from fastrpc._core.answer cimport Answer, ToolResult
from fastrpc._core.call cimport Call, CallArgument
from fastrpc._core.slices cimport Slice

cdef enum Kind:
    REQUEST = 0
    NOTIFICATION = 1
    RESPONSE = 2       # an answer to a request of ours
    BATCH = 3
    IGNORED = 4        # has the form of a notification but is none: JSON-RPC forbids an answer
    INVALID = 5        # JSON, but no message; `code` says which error
    BROKEN = 6         # no JSON

cdef enum Era:
    SESSION_WIRE = 0   # params._meta names no protocol version
    STATELESS_WIRE = 1  # a whole 2026-07-28 envelope that asks for nothing but the answer
    OTHER = 2          # a _meta that the dispatcher has to judge

cdef struct Argument:
    const char* key
    Py_ssize_t key_size
    char type          # simdjson's: " for str, l and u for integers, d, t for booleans, n, { and [

cdef extern from *:
    """struct FastrpcDocument;"""
    ctypedef struct Document "struct FastrpcDocument":
        pass

cdef class Message:
    cdef Document* document      # simdjson's side; only message.pyx looks into it
    cdef int kind_code
    cdef int code                # JSON-RPC error code of an INVALID or BROKEN one
    cdef const char* complaint   # what an INVALID one lacks
    cdef bint has_method         # of an INVALID or BROKEN one, as `has_outcome`
    cdef bint has_outcome        # a result or an error
    cdef Slice line
    cdef Slice id                # exact JSON text; data is NULL where there is none
    cdef Slice method_name
    cdef bint is_call            # tools/call with a name and, if any, an object of arguments
    cdef bint is_list            # tools/list from its beginning
    cdef bint is_ping            # whatever its params are
    cdef bint is_read            # resources/read with a URI
    cdef bint is_prompt          # prompts/get with a name and, if any, an object of arguments
    cdef Slice target            # the name of the tool or the prompt, or the URI
    cdef bint has_arguments
    cdef Py_ssize_t arguments_position  # which member of params they are, where simdjson has read the line
    cdef bint resumes            # params have a requestState, or answers to what the server has asked
    cdef bint has_params
    cdef bint has_meta           # params has a _meta
    cdef bint has_more           # a call's params have a member that MCP does not name
    cdef Py_ssize_t meta_position  # which member of params the _meta is, where simdjson has read the line
    cdef int wire
    cdef bint wants_progress     # params._meta has a progressToken
    cdef bint declares_tasks     # see `may_get_task`, where simdjson has read the line
    cdef Py_ssize_t capacity
    cdef char* copy              # of a line given to keep()
    cdef bytes marked            # a copy of the line with its integers beyond 64 bits marked, if it has some

    cdef bint parsed_fast        # the strict pass has read it; simdjson has not
    cdef Call* call              # what the pass has found
    cdef int next_fast           # the argument that next_argument() hands out next, of the pass's
    cdef Py_ssize_t params_position  # which member of the message params is

    cdef int read_line(self, const char* line, Py_ssize_t size) except -1
    cdef void begin_arguments(self) noexcept
    cdef bint next_argument(self, Argument* argument) noexcept
    cdef str argument_str(self)
    cdef object argument_value(self)
    cdef dict arguments(self)
    cdef Slice arguments_text(self) noexcept
    cdef Slice meta_text(self) except *
    cdef bint may_get_task(self) noexcept
    cdef bint tool_result(self, ToolResult* found) noexcept

    cdef const char* keep(self, bytes line) except NULL
    cdef Py_ssize_t read_known(self, const char* line, const char* limit) noexcept
    cdef bint learn(self) noexcept
    cdef void take_fast(self) noexcept
    cdef str target_str(self)
    cdef int read_whole(self) except -1
    cdef int remember_meta(self) except -1
    cdef int fit(self, Py_ssize_t size) except -1
    cdef int classify(self) except -1
    cdef int count_containers(self) except -1
    cdef int refuse(self, const char* complaint, int code=*) except -1
    cdef int read_envelope(self) except -1
    cdef int classify_envelope(self, unsigned int seen, unsigned int repeated, bint versioned) except -1
    cdef int read_params(self, bint present) except -1
    cdef int refuse_params(self, const char* complaint, int code) except -1
    cdef int read_meta(self) except -1
    cdef int read_refused(self, int error) except -1
    cdef int read_broken(self) noexcept
    cdef bint is_answer(self) noexcept
    cdef int read_deep(self) except -1
    cdef int read_numbers(self) except -1

cdef bint read_answer(const char* line, Py_ssize_t size, Answer* answer) noexcept
cdef str str_of(const CallArgument* argument)
