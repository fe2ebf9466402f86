# distutils: language = c++
"""Reads one line: is it JSON, is it a JSON-RPC message, and where do its parts lie.

The likely line is read by the strict pass alone (`fast_parser.h`), which knows it to be right or hands it
over. simdjson reads every other line whole and decides what is broken. Integers beyond 64 bits are its one
limit: a line with some is copied with marks around them and read again (`numbers.h`). What is wrong with a
broken line, and at which byte, is looked for on request (`fault.h`), its id always
(`broken_envelope.h`). For a line of 120 bytes the pass costs about 50 ns, simdjson 150; no Python object is
made before a caller needs it. No I/O, no clock, no logging; what a message means is the dispatcher's part.

Rules kept here: JSON-RPC 2.0 section 4 (request object) as MCP narrows it: ids are strings or
integers, params an object. Duplicated envelope members are refused, because two readers could
disagree on which one counts; inside arguments the last one wins. Nesting ends at 128 levels, an
empty array or object is one. A message has at most a million arrays and objects: they are the dearest that
a byte can ask for, in time and memory. Ids keep their exact text.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.string cimport memcmp, memcpy, memset, strlen

cimport fastrpc._core.simdjson as simdjson
from fastrpc._core.answer cimport Answer, ToolResult
from fastrpc._core.call cimport CallArgument
from fastrpc._core.call_template cimport CallTemplate, learn_template, try_template
from fastrpc._core.document cimport LONGEST_META, BrokenEnvelope, Inside
from fastrpc._core.document cimport delete_document, new_document, read_broken_envelope
from fastrpc._core.fast_parser cimport parse_fast
from fastrpc._core.slices cimport Slice
from fastrpc._core.values cimport has_object, large_to_python, make_ascii, make_str, make_text, member_of

cdef extern from "answer_parser.h":
    bint c_read_answer "fastrpc_read_answer"(const char* line, Py_ssize_t size, Answer* answer) noexcept

cdef extern from "tool_result.h":
    bint read_tool_result "fastrpc::read_tool_result"(
        const simdjson.Parser& parser, const simdjson.Element& root, const char* line, ToolResult* found
    ) noexcept

cdef extern from "fault.h":
    const char* find_fault "fastrpc::find_fault"(const char* line, Py_ssize_t size, Py_ssize_t* at) noexcept

cdef enum:
    MAX_DEPTH = 128
    MAX_CONTAINERS = 1_000_000
    FIRST_CAPACITY = 64 * 1024
    KEEP_CAPACITY = 4 * 1024 * 1024
    SPARE = 64
    # Members of the envelope and of params, as bits: a bit seen twice is a duplicate.
    SEEN_JSONRPC = 1
    SEEN_ID = 2
    SEEN_METHOD = 4
    SEEN_PARAMS = 8
    SEEN_RESULT = 16
    SEEN_ERROR = 32
    NULL_ID = 64                 # the id is null, as it may be in an answer
    SEEN_NAME = 1
    SEEN_ARGUMENTS = 2
    SEEN_META = 4

cdef bytes TASKS = b"io.modelcontextprotocol/tasks"
cdef tuple KIND_NAMES = ("request", "notification", "response", "batch", "ignored", "invalid", "broken")


cdef inline Inside* inside(Message message) noexcept:
    return <Inside*> message.document


cdef inline bint same(Slice text, const char* word) noexcept:
    return text.size == <Py_ssize_t> strlen(word) and memcmp(text.data, word, strlen(word)) == 0


cdef str str_of(const CallArgument* argument):
    """Make a str of an argument that the strict pass has read: it knows what is in it."""
    if argument.beyond_ascii | argument.escaped:
        return make_text(argument.text, argument.size, argument.beyond_ascii, argument.escaped)
    return make_ascii(argument.text, argument.size)


cdef bint read_answer(const char* line, Py_ssize_t size, Answer* answer) noexcept:
    return c_read_answer(line, size, answer)


cdef class Message:
    def __cinit__(self):
        self.document = <Document*> new_document()
        inside(self).known_meta_size = 0
        inside(self).pattern.values = inside(self).pattern.misses = inside(self).pattern.pause = 0
        self.capacity = -1  # simdjson gets its buffers with the first line that it reads

    def __dealloc__(self):
        PyMem_Free(self.copy)
        if self.document != NULL:
            delete_document(inside(self))

    # --- reading ----------------------------------------------------------------------------------

    cdef int read_line(self, const char* line, Py_ssize_t size) except -1:
        """Read `line`, which 64 readable bytes follow, first a control character; fill the fields."""
        cdef Inside* found = inside(self)
        self.line.data = line
        self.line.size = size
        if parse_fast(line, size, found.known_meta, found.known_meta_size, &found.fast):
            self.call = &found.fast
            self.call.wire = found.known_meta_wire if self.call.has_meta else SESSION_WIRE
            self.take_fast()
            return 0
        return self.read_whole()

    cdef Py_ssize_t read_known(self, const char* line, const char* limit) noexcept:
        """Read the line that begins here, if it is like the learned one and ends before `limit`.

        Return its size, or 0 if it is not; what it says is in `call` alone, until take_fast().
        """
        cdef CallTemplate* pattern = &inside(self).pattern
        cdef Py_ssize_t size = try_template(line, limit, pattern)
        if size > 0:
            self.line.data = line
            self.line.size = size
            self.call = &pattern.call
        return size

    cdef bint learn(self) noexcept:
        """Learn this line, which the strict pass has read; False while learning does not pay."""
        return learn_template(self.line.data, self.line.size, self.call, &inside(self).pattern)

    cdef void take_fast(self) noexcept:
        """Fill the fields with what `call` says."""
        self.parsed_fast = True
        self.kind_code = REQUEST
        self.code = 0
        self.id.data = self.call.id
        self.id.size = self.call.id_size
        self.method_name.data = self.call.method
        self.method_name.size = self.call.method_size
        self.is_call = self.call.method[0] == c"t"
        self.is_prompt = self.call.method[0] == c"p"
        self.is_read = self.call.method[0] == c"r"
        self.is_list = self.is_ping = self.wants_progress = self.resumes = False
        self.target.data = self.call.name
        self.target.size = self.call.name_size
        self.has_arguments = self.call.has_arguments
        self.wire = self.call.wire

    cdef int read_whole(self) except -1:
        """Let simdjson read the line."""
        cdef const char* line = self.line.data
        cdef Py_ssize_t size = self.line.size
        cdef int error
        self.parsed_fast = False
        self.id.data = NULL
        self.method_name.data = NULL
        self.is_call = self.is_list = self.is_ping = self.is_read = self.is_prompt = False
        self.wants_progress = self.resumes = self.declares_tasks = False
        self.has_params = self.has_arguments = self.has_meta = self.has_more = False
        self.has_method = self.has_outcome = False
        self.wire = SESSION_WIRE
        self.code = 0
        if self.marked is not None:
            self.marked = None
        if size > self.capacity or self.capacity > KEEP_CAPACITY:
            self.fit(size)
        error = simdjson.parse(inside(self).parser, line, size, inside(self).root)
        if error != simdjson.SIMDJSON_SUCCESS or line[0] == <char> 0xEF:
            self.read_refused(error)
            return self.read_broken() if self.kind_code == BROKEN else 0
        return self.classify()

    cdef int fit(self, Py_ssize_t size) except -1:
        """Grow for a long line, in doublings; give the memory back once the lines are short again."""
        cdef Py_ssize_t capacity = FIRST_CAPACITY
        while capacity < size:
            capacity *= 2
        if capacity != self.capacity:
            if simdjson.allocate(inside(self).parser, capacity, MAX_DEPTH) != simdjson.SIMDJSON_SUCCESS:
                raise MemoryError
            self.capacity = capacity
        return 0

    cdef int classify(self) except -1:
        """An object may be a message, an array is a batch, unless it is empty; any other value is neither."""
        cdef char outermost = simdjson.kind_of(inside(self).root)
        if outermost == c"{":
            self.read_envelope()
        elif outermost != c"[":
            return self.refuse("expected a JSON object")
        elif simdjson.size_of(inside(self).root) == 0:
            return self.refuse("a batch must not be empty")
        else:
            self.kind_code = BATCH
        if self.line.size > 2 * MAX_CONTAINERS:
            self.count_containers()
        return 0

    cdef int count_containers(self) except -1:
        """Refuse a message that would become too many Python objects. What wants no answer is ignored."""
        if simdjson.nesting_of(inside(self).parser, self.line.data).containers <= MAX_CONTAINERS:
            return 0
        self.is_call = self.is_list = self.is_read = self.is_prompt = False
        if self.kind_code == NOTIFICATION or self.kind_code == RESPONSE:
            self.kind_code = IGNORED
        elif self.kind_code == REQUEST or self.kind_code == BATCH:
            self.refuse("more than 1,000,000 arrays and objects in a message")
        return 0

    cdef bint is_answer(self) noexcept:
        """Whether what is INVALID or BROKEN has the form of an answer."""
        return self.has_outcome and not self.has_method

    cdef int refuse(self, const char* complaint, int code=-32600) except -1:
        self.kind_code = INVALID
        self.code = code
        self.complaint = complaint
        return 0

    cdef int read_envelope(self) except -1:
        cdef simdjson.Members member
        cdef simdjson.Element version, id_value, method
        cdef Slice key
        cdef unsigned int seen = 0
        cdef unsigned int bit
        cdef unsigned int repeated = 0
        cdef Py_ssize_t position = 0, id_position = 0
        self.params_position = 0
        member.begin(inside(self).root)
        while member.next():
            bit = 0
            key = Slice(member.key, member.key_size)
            if same(key, "id"):
                bit = SEEN_ID
                id_value = member.value
                id_position = position
            elif same(key, "method"):
                bit = SEEN_METHOD
                method = member.value
            elif same(key, "params"):
                bit = SEEN_PARAMS
                inside(self).params = member.value
                self.params_position = position
            elif same(key, "result"):
                bit = SEEN_RESULT
            elif same(key, "jsonrpc"):
                bit = SEEN_JSONRPC
                version = member.value
            elif same(key, "error"):
                bit = SEEN_ERROR
            repeated |= seen & bit
            seen |= bit
            position += 1
        if seen & SEEN_ID and not repeated & SEEN_ID:
            if simdjson.kind_of(id_value) in (c'"', c"l", c"u", c"#", c"#" if seen & SEEN_METHOD else c"d"):
                take_id(self, id_position)
        if seen & SEEN_METHOD and simdjson.kind_of(method) == c'"':
            simdjson.text_of(method, &self.method_name)
        if seen & SEEN_ID and simdjson.kind_of(id_value) == c"n":
            seen |= NULL_ID
        return self.classify_envelope(seen, repeated, seen & SEEN_JSONRPC and is_two(version))

    cdef int classify_envelope(self, unsigned int seen, unsigned int repeated, bint versioned) except -1:
        """Say what kind of message has these members, and read the params of a request."""
        self.has_method = (seen & SEEN_METHOD) != 0
        self.has_outcome = (seen & (SEEN_RESULT | SEEN_ERROR)) != 0
        if self.method_name.data != NULL and not seen & SEEN_ID:
            if repeated or not versioned or seen & (SEEN_RESULT | SEEN_ERROR):
                self.kind_code = IGNORED
                return 0
            self.kind_code = NOTIFICATION
        elif repeated:
            return self.refuse("a member of the envelope occurs twice")
        elif not versioned:
            return self.refuse('jsonrpc: expected "2.0"')
        elif seen & SEEN_ID and self.id.data == NULL and not is_answer(seen):
            return self.refuse("id: expected a string or an integer")
        elif seen & SEEN_METHOD:
            if self.method_name.data == NULL:
                return self.refuse("method: expected a string")
            if seen & (SEEN_RESULT | SEEN_ERROR):
                return self.refuse("a message has a method or a result, not both")
            self.kind_code = REQUEST
        elif seen & (SEEN_RESULT | SEEN_ERROR):
            self.kind_code = RESPONSE
            return 0
        else:
            return self.refuse("method: missing")
        return self.read_params(seen & SEEN_PARAMS)

    cdef int read_params(self, bint present) except -1:
        """Find name, arguments and _meta in the params."""
        cdef simdjson.Members member
        cdef simdjson.Element name, uri
        cdef Slice key
        cdef unsigned int seen = 0
        cdef unsigned int bit
        cdef unsigned int repeated = 0
        cdef bint has_uri = False
        cdef Py_ssize_t position = 0
        self.has_params = present
        self.is_list = same(self.method_name, "tools/list")
        self.is_ping = same(self.method_name, "ping")
        if not present:
            return 0
        if simdjson.kind_of(inside(self).params) != c"{":
            return self.refuse_params("params: expected an object", -32602)
        member.begin(inside(self).params)
        while member.next():
            bit = 0
            key = Slice(member.key, member.key_size)
            if same(key, "name"):
                bit = SEEN_NAME
                name = member.value
            elif same(key, "uri"):
                has_uri = True
                uri = member.value
            elif same(key, "cursor"):
                self.is_list = False
            elif same(key, "arguments"):
                bit = SEEN_ARGUMENTS
                inside(self).arguments = member.value
                self.arguments_position = position
            elif same(key, "_meta"):
                bit = SEEN_META
                inside(self).meta = member.value
                self.meta_position = position
            elif same(key, "requestState") or same(key, "inputResponses"):
                self.resumes = True
            else:
                self.declares_tasks |= same(key, "task")
                self.has_more = True
            repeated |= seen & bit
            seen |= bit
            position += 1
        if repeated:
            return self.refuse_params("name, arguments or _meta stands in params twice", -32600)
        if seen & SEEN_META:
            self.has_meta = True
            self.read_meta()
            if self.wire != OTHER and not self.wants_progress and self.marked is None:
                self.remember_meta()
        if seen & SEEN_NAME and simdjson.kind_of(name) == c'"':
            self.has_arguments = (seen & SEEN_ARGUMENTS) != 0
            if not self.has_arguments or simdjson.kind_of(inside(self).arguments) == c"{":
                self.is_call = same(self.method_name, "tools/call")
                self.is_prompt = same(self.method_name, "prompts/get")
                simdjson.text_of(name, &self.target)
        elif has_uri and simdjson.kind_of(uri) == c'"':
            self.is_read = same(self.method_name, "resources/read")
            simdjson.text_of(uri, &self.target)
        return 0

    cdef int refuse_params(self, const char* complaint, int code) except -1:
        """Params that no request may have. A notification with such is ignored like any bad one."""
        if self.kind_code == NOTIFICATION:
            self.kind_code = IGNORED
            return 0
        return self.refuse(complaint, code)

    cdef int read_meta(self) except -1:
        """Does _meta ask for progress, and is it the envelope that 2026-07-28 puts on each request?"""
        cdef simdjson.Members member
        cdef bint version = False
        cdef bint known = False
        cdef bint capabilities = False
        cdef bint other = False
        cdef Slice text, key
        cdef simdjson.Element extensions
        cdef char type
        if simdjson.kind_of(inside(self).meta) != c"{":
            self.wire = OTHER
            return 0
        member.begin(inside(self).meta)
        while member.next():
            type = simdjson.kind_of(member.value)
            key = Slice(member.key, member.key_size)
            if same(key, "progressToken"):
                self.wants_progress = True
            elif same(key, "io.modelcontextprotocol/protocolVersion"):
                version = True
                known = False
                if type == c'"':
                    simdjson.text_of(member.value, &text)
                    known = same(text, "2026-07-28")
            elif same(key, "io.modelcontextprotocol/clientCapabilities"):
                capabilities = type == c"{"
                if capabilities and has_object(member.value, b"extensions", &extensions):
                    self.declares_tasks |= has_object(extensions, TASKS, &extensions)
            elif same(key, "io.modelcontextprotocol/clientInfo"):
                other |= type != c"{"
            elif same(key, "io.modelcontextprotocol/logLevel"):
                other = True
        if version:
            self.wire = STATELESS_WIRE if known and capabilities and not other else OTHER
        return 0

    cdef int remember_meta(self) except -1:
        """Keep the text of a _meta that asks for nothing: the next one is most likely the same."""
        cdef Slice text = self.meta_text()
        if text.size <= LONGEST_META:
            memcpy(inside(self).known_meta, text.data, text.size)
            inside(self).known_meta_size = text.size
            inside(self).known_meta_wire = self.wire
            inside(self).known_meta_declares_tasks = self.declares_tasks and self.wire == STATELESS_WIRE
        return 0

    cdef bint may_get_task(self) noexcept:
        """Whether params ask for a task (MCP 2025-11-25), or the client declares the extension."""
        if self.parsed_fast:
            return self.call.has_meta and inside(self).known_meta_declares_tasks
        return self.declares_tasks

    # --- the rare ways ----------------------------------------------------------------------------

    cdef int read_refused(self, int error) except -1:
        """simdjson refused the line: for good, or for its depth or a number, which are looked at again."""
        self.code = -32700
        self.kind_code = BROKEN
        if error == simdjson.SIMDJSON_MEMALLOC:
            raise MemoryError
        if self.line.data[0] == <char> 0xEF:
            return 0
        if error == simdjson.SIMDJSON_DEPTH_ERROR:
            return self.read_deep()
        if error == simdjson.SIMDJSON_NUMBER_ERROR or error == simdjson.SIMDJSON_BIGINT_ERROR:
            return self.read_numbers()
        return 0

    cdef int read_deep(self) except -1:
        """Exactly 128 levels are allowed, which simdjson's limit cannot say: it counts no empty ones."""
        cdef int error
        if simdjson.nesting_of(inside(self).parser, self.line.data).depth > MAX_DEPTH:
            return 0
        if simdjson.allocate(inside(self).parser, self.capacity, MAX_DEPTH + 1) != simdjson.SIMDJSON_SUCCESS:
            raise MemoryError
        error = simdjson.parse(inside(self).parser, self.line.data, self.line.size, inside(self).root)
        self.capacity = -1  # the next line's fit() puts the limit back
        if error == simdjson.SIMDJSON_NUMBER_ERROR or error == simdjson.SIMDJSON_BIGINT_ERROR:
            return self.read_numbers()
        if error != simdjson.SIMDJSON_SUCCESS:
            return 0
        self.code = 0
        return self.classify()

    cdef int read_numbers(self) except -1:
        """Read a copy of the line in which integers beyond 64 bits are marked; without any, it is broken.

        Where they are inside of other values only the dispatcher makes something of them: no call plan does.
        """
        cdef int error
        cdef const char* line = self.line.data
        cdef Py_ssize_t size = self.line.size
        cdef Py_ssize_t marks = simdjson.marks_of(inside(self).parser, line, size)
        if marks == 0 or simdjson.nesting_of(inside(self).parser, line).depth > MAX_DEPTH:
            return 0
        marked = PyBytes_FromStringAndSize(NULL, size + marks + SPARE)
        self.capacity = -1
        error = simdjson.parse_marked(
            inside(self).parser, line, size, PyBytes_AS_STRING(marked), size + marks, MAX_DEPTH + 1,
            inside(self).root,
        )
        if error == simdjson.SIMDJSON_MEMALLOC:
            raise MemoryError
        if error != simdjson.SIMDJSON_SUCCESS:
            return 0
        self.marked = marked
        self.line.data = PyBytes_AS_STRING(marked)
        self.line.size = size + marks
        self.code = 0
        self.classify()
        self.is_call = self.is_list = self.is_read = self.is_prompt = False
        return 0

    cdef int read_broken(self) noexcept:
        """Find the id of a line that is no JSON, and what form the message has."""
        cdef BrokenEnvelope found
        read_broken_envelope(self.line.data, self.line.size, &found)
        self.id.data = found.id
        self.id.size = found.id_size
        self.has_method = found.has_method
        self.has_outcome = found.has_outcome
        return 0

    cdef str target_str(self):
        return make_str(self.target.data, self.target.size)

    # --- what a call plan asks for ------------------------------------------------------------------

    cdef void begin_arguments(self) noexcept:
        if self.parsed_fast:
            self.next_fast = 0
        else:
            inside(self).argument.begin(inside(self).arguments)

    cdef bint next_argument(self, Argument* argument) noexcept:
        cdef CallArgument* found
        if self.parsed_fast:
            if self.next_fast == self.call.count:
                return False
            found = &self.call.arguments[self.next_fast]
            self.next_fast += 1
            argument.key = found.key
            argument.key_size = found.key_size
            argument.type = found.type
            return True
        if not inside(self).argument.next():
            return False
        argument.key = inside(self).argument.key
        argument.key_size = inside(self).argument.key_size
        argument.type = simdjson.kind_of(inside(self).argument.value)
        return True

    cdef str argument_str(self):
        cdef Slice text
        if self.parsed_fast:
            return str_of(&self.call.arguments[self.next_fast - 1])
        simdjson.text_of(inside(self).argument.value, &text)
        return make_str(text.data, text.size)

    cdef object argument_value(self):
        cdef CallArgument* found
        if self.parsed_fast:
            found = &self.call.arguments[self.next_fast - 1]
            if found.type == c'"':
                return str_of(found)
            if found.type == c"l":
                return found.integer
            return None if found.type == c"n" else found.integer != 0
        return large_to_python(inside(self).argument.value, self.line.size)

    cdef dict arguments(self):
        """Make a dict of the arguments of a call."""
        cdef Argument argument
        cdef dict found
        if not self.has_arguments:
            return {}
        if not self.parsed_fast:
            return large_to_python(inside(self).arguments, self.line.size)
        found = {}
        self.begin_arguments()
        while self.next_argument(&argument):
            found[make_str(argument.key, argument.key_size)] = self.argument_value()
        return found

    cdef Slice arguments_text(self) noexcept:
        """Return the arguments of a call, the bytes in the line, without the braces around them."""
        cdef Slice found = Slice(self.line.data, 0)
        if self.parsed_fast:
            if self.call.count > 0:
                found.data = self.call.arguments[0].key - 1
                found.size = self.call.arguments[self.call.count - 1].to - found.data
        elif self.has_arguments:
            simdjson.member_text(
                inside(self).parser, self.line.data, self.params_position, self.arguments_position, &found
            )
            found.data += 1
            found.size -= 2
        return found

    cdef Slice meta_text(self) except *:
        """Return the ``_meta`` of a call, from its line or from an earlier line with the same one."""
        cdef Slice found = Slice(NULL, 0)
        if self.parsed_fast and self.call.has_meta:
            if self.call == &inside(self).fast:
                return Slice(inside(self).known_meta, inside(self).known_meta_size)
            self.read_whole()  # a template does not know which one it had
        if not self.parsed_fast and self.has_meta:
            simdjson.member_text(
                inside(self).parser, self.line.data, self.params_position, self.meta_position, &found
            )
        return found

    cdef bint tool_result(self, ToolResult* found) noexcept:
        """Find the result of an answer to a tools/call; False: there is none that may go on as it is."""
        return self.marked is None and read_tool_result(
            inside(self).parser, inside(self).root, self.line.data, found
        )

    # --- for Python -----------------------------------------------------------------------------------

    def read(self, bytes line):
        """Read a line that lies elsewhere, from a copy of it that this message keeps."""
        self.read_line(self.keep(line), len(line))

    cdef const char* keep(self, bytes line) except NULL:
        """Copy a line to where a newline and spare bytes follow it."""
        cdef char* copy = <char*> PyMem_Realloc(self.copy, len(line) + 1 + SPARE)
        if copy == NULL:
            raise MemoryError
        self.copy = copy
        memcpy(copy, <char*> line, len(line))
        memset(copy + len(line), 10, 1 + SPARE)
        return copy

    @property
    def kind(self):
        return KIND_NAMES[self.kind_code]

    @property
    def id(self):
        if self.id.data == NULL or (self.code != 0 and self.is_answer()):
            return None
        return self.id.data[: self.id.size]

    @property
    def answered_id(self):
        is_bad = self.code != 0 and self.is_answer() and self.id.data != NULL
        return self.id.data[: self.id.size] if is_bad else None

    @property
    def method(self):
        if self.method_name.data == NULL:
            return None
        return make_str(self.method_name.data, self.method_name.size)

    @property
    def params(self):
        if self.parsed_fast:
            self.read_whole()
        return large_to_python(inside(self).params, self.line.size) if self.has_params else None

    @property
    def meta(self):
        if self.parsed_fast:
            self.read_whole()
        return large_to_python(inside(self).meta, self.line.size) if self.has_meta else None

    @property
    def envelope(self):
        cdef bytes key = b"io.modelcontextprotocol/protocolVersion"
        if self.parsed_fast:
            self.read_whole()
        return member_of(inside(self).meta, key, self.line.size) if self.has_meta else None

    def param(self, str name):
        if self.parsed_fast:
            self.read_whole()
        if not self.has_params:
            return None
        return member_of(inside(self).params, name.encode(), self.line.size)

    @property
    def value(self):
        if self.parsed_fast:
            self.read_whole()
        return large_to_python(inside(self).root, self.line.size)

    @property
    def error_code(self):
        return self.code

    @property
    def error(self):
        cdef Py_ssize_t at
        cdef const char* fault
        if self.kind_code == INVALID:
            return self.complaint.decode("ascii")
        if self.kind_code != BROKEN:
            return None
        fault = find_fault(self.line.data, self.line.size, &at)
        return "not valid JSON" if fault == NULL else f"{fault.decode('ascii')} at byte {at}"

    @property
    def batch_size(self):
        return simdjson.size_of(inside(self).root) if self.kind_code == BATCH else 0

    def elements(self):
        """Return the exact text of each element of a batch."""
        cdef simdjson.Places places
        cdef Slice text
        cdef list texts = []
        places.begin(inside(self).parser, self.line.data)
        while places.next(&text):
            texts.append(text.data[: text.size])
        if self.marked is None:
            return texts
        import re

        return [re.sub(rb'"\xff([-0-9]+)"', rb"\1", each) for each in texts]


cdef void take_id(Message message, Py_ssize_t position) noexcept:
    """Keep the exact text of the member at `position`, which is the id."""
    cdef simdjson.Places places
    places.begin(inside(message).parser, message.line.data)
    while places.next(&message.id) and position > 0:
        position -= 1
    if message.marked is not None and message.id.data[1] == <char> 0xFF:
        message.id.data += 2
        message.id.size -= 3


cdef bint is_answer(unsigned int seen) noexcept:
    """Is this an answer to a line that its sender could not read, whose id is null?"""
    return seen & NULL_ID and not seen & SEEN_METHOD and seen & (SEEN_RESULT | SEEN_ERROR)


cdef bint is_two(simdjson.Element version) noexcept:
    cdef Slice text
    if simdjson.kind_of(version) != c'"':
        return False
    simdjson.text_of(version, &text)
    return same(text, "2.0")
