"""A client's side of a connection: encodes requests, matches answers to them, hands over all else.

Requests have integer ids of this connection. The text of a likely answer is taken from between bytes that
earlier answers had, too (answer_parser.h); simdjson reads every other line. The future of a request is
resolved where its answer is read, without a task. Requests that are made together are written together.

Two ways to wait and one reader for both: `wait()` polls the descriptors and needs no event loop; a loop calls
`readable()`. Without descriptors, lines come in by `receive()`, and `carry` is called with each one to be
taken. What else a server sends goes to `on_request`, `on_notification` and `on_unreadable`, which must not
raise. Handshake, versions and handlers are left to `fastrpc.client`, the process to `fastrpc.processes`.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython cimport freelist
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t
from libc.string cimport memcmp
from posix.unistd cimport read, write

from fastrpc._core.answer cimport Answer
from fastrpc._core.call_result cimport AnswerTail, CallResult, tail_of, text_result
from fastrpc._core.encoder cimport Output, put_json
from fastrpc._core.framer cimport LINE, NOTHING, Framer
from fastrpc._core.message cimport BATCH, NOTIFICATION, REQUEST, RESPONSE, Message, read_answer, str_of

from fastrpc._core.encoder import quoted
from fastrpc.errors import ClientError, InvalidAnswer, RemoteError, RequestTimeout
from fastrpc.json_encoding import to_json

cdef extern from "clock.h":
    int64_t clock "fastrpc_clock"() noexcept nogil

cdef extern from "sched.h" nogil:
    int sched_yield()

cdef extern from "poll.h" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* descriptors, unsigned long count, int timeout)
    short POLLIN, POLLOUT

cdef enum:
    READ_SIZE = 64 * 1024
    READS_A_TURN = 16            # then the loop has its turn
    FLUSH_ABOVE = 256 * 1024     # requests held back before a write in the middle of a turn
    LOOK_AGAIN_NANOSECONDS = 30_000
    MOST_UNSENT = 64 * 1024 * 1024
    MOST_HEADS = 1024
    LONGEST_EXCERPT = 200
    DIGITS = 20

cdef const char* OPEN = b'{"jsonrpc":"2.0","id":'
cdef enum:
    OPEN_SIZE = 22

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes; of a longer line nothing is kept."""


@freelist(256)
cdef class PendingRequest:
    """A request that has been sent. `done`: it has its result or its error."""

    cdef int finish(self, object value) except -1:
        self.done = True
        self.value = value
        if self.future is not None and not self.future.done():
            self.future.set_result(value)
        return 0

    cdef int fail(self, object error) except -1:
        self.done = True
        self.error = error
        if self.future is not None and not self.future.done():
            self.future.set_exception(error)
        return 0

    def result(self):
        """Return the result. Raises the error."""
        if self.error is not None:
            raise self.error
        return self.value

    def follow(self, ClientStream connection, future):
        """Have `future` resolved too, in a loop that begins to wait only now."""
        self.future = future
        if self.error is not None:
            future.set_exception(self.error)
        elif self.done:
            future.set_result(self.value)
        elif self.limit:
            connection.arm(self)


cdef bytes text_of(Message message):
    """Return the beginning of a message's line."""
    return message.line.data[: min(message.line.size, LONGEST_EXCERPT)]


cdef class ClientStream:
    def __cinit__(self, Py_ssize_t max_line=LONGEST_LINE):
        self.framer = Framer(max_line)
        self.message = Message()
        self.output = Output()
        self.pending = {}
        self.heads = {}
        self.tails = []
        self.call_end = b"}}\n"
        self.remark = ""
        self.input = self.sink = self.also = -1

    # --- the transport's side ---------------------------------------------------------------------

    def open(self, int input, int output, int also=-1):
        """Read from the descriptor `input` and write to `output`, both non-blocking.

        `also`: a descriptor that a loop reads; `wait()` returns when it has something.
        """
        self.input = input
        self.sink = output
        self.also = also

    def attach(self, loop):
        """Use this event loop: for writing, for time limits and, with descriptors, for reading."""
        self.loop = loop
        if self.input >= 0:
            loop.add_reader(self.input, self.readable)

    def detach(self):
        """Leave the descriptors and the loop alone from now on."""
        if self.loop is not None and not self.loop.is_closed():
            if self.input >= 0:
                self.loop.remove_reader(self.input)
            if self.writing:
                self.loop.remove_writer(self.sink)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.input = self.sink = self.also = -1
        self.writing = False

    def take(self):
        """Return the lines that wait to be sent, each with its newline."""
        return self.output.take()

    @property
    def unsent(self):
        """How many bytes wait to be sent."""
        return self.output.waiting()

    @property
    def next_id(self):
        """The id that the next request will have."""
        return self.last_id + 1

    def set_envelope(self, meta):
        """Put this ``_meta``, a dict or None, on every call that is made by `call` (MCP 2026-07-28)."""
        self.call_end = b"}}\n" if meta is None else b',"_meta":' + to_json(meta) + b"}}\n"

    # --- requests -----------------------------------------------------------------------------------

    def call(self, str name, arguments, future=None, double timeout_seconds=0):
        """Send a ``tools/call``; return its PendingRequest, whose result is a CallResult.

        A result with another ``resultType`` than ``complete`` is a dict.
        """
        cdef Py_ssize_t held = self.output.waiting()
        cdef PendingRequest request = self.begin("tools/call", True, future, None, timeout_seconds)
        try:
            self.put_head(name)
            self.put_arguments(arguments)
        except BaseException:
            self.output.end = self.output.start + held
            del self.pending[request.id]
            raise
        if self.carry is None:
            self.wrote()
        else:
            self.carry(request, {"name": name, "arguments": arguments})
        return request

    def request(
        self, str method, dict params, future=None, double timeout_seconds=0, context=None, bint is_call=False
    ):
        """Send any request; return its PendingRequest, whose result is a dict."""
        cdef PendingRequest request = self.begin(method, is_call, future, context, timeout_seconds)
        try:
            line = to_json({"jsonrpc": "2.0", "id": request.id, "method": method, "params": params})
        except BaseException:
            del self.pending[request.id]
            raise
        self.put_line(line, request, params)
        return request

    def send(self, bytes line):
        """Send a notification or an answer; its newline is added here."""
        self.put_line(line, None, None)

    cdef int put_line(self, bytes line, PendingRequest request, dict params) except -1:
        self.output.put(<char*> line, len(line))
        self.output.put(b"\n", 1)
        if self.carry is None:
            self.wrote()
        else:
            self.carry(request, params)
        return 0

    def forget(self, PendingRequest request):
        """Stop waiting for an answer. Return False if it is there already."""
        if self.pending.pop(request.id, None) is None:
            return False
        request.done = True
        return True

    def fail(self, PendingRequest request, error):
        """End a request with an error."""
        if self.forget(request):
            request.fail(error)

    def fail_all(self, make_error):
        """End all requests, each with an error that `make_error` makes."""
        requests = list(self.pending.values())
        self.pending.clear()
        for request in requests:
            (<PendingRequest> request).fail(make_error(request))

    cdef PendingRequest begin(self, str method, bint is_call, object future, object context, double seconds):
        cdef PendingRequest request
        if self.output.waiting() > MOST_UNSENT:
            waiting = self.output.waiting()
            raise ClientError(f"{method}: the server does not read: {waiting:,} bytes wait for it")
        request = PendingRequest.__new__(PendingRequest)
        self.last_id += 1
        request.id = self.last_id
        request.method = method
        request.is_call = is_call
        request.future = future
        request.context = context
        self.pending[request.id] = request
        if seconds > 0:
            request.limit = <int64_t> (seconds * 1e9)
            request.deadline = clock() + request.limit
            if future is not None and (self.timer is None or request.deadline < self.timer_at):
                self.arm(request)
        return request

    cdef int put_head(self, str name) except -1:
        """Write what stands before the arguments."""
        cdef char digits[DIGITS]
        cdef int at = DIGITS
        cdef int64_t rest = self.last_id
        cdef bytes head = self.heads.get(name)
        if head is None:
            if len(self.heads) == MOST_HEADS:
                self.heads.clear()
            head = b',"method":"tools/call","params":{"name":' + quoted(name) + b',"arguments":'
            self.heads[name] = head
        while rest or at == DIGITS:
            at -= 1
            digits[at] = <char> (c"0" + rest % 10)
            rest //= 10
        self.output.put(OPEN, OPEN_SIZE)
        self.output.put(digits + at, DIGITS - at)
        return self.output.put(<char*> head, len(head))

    cdef int put_arguments(self, object arguments) except -1:
        cdef bytes encoded
        if arguments is None:
            self.output.put(b"{}", 2)
        elif not put_json(self.output, arguments):
            encoded = to_json(arguments)
            self.output.put(<char*> encoded, len(encoded))
        return self.output.put(<char*> self.call_end, len(self.call_end))

    # --- writing ------------------------------------------------------------------------------------

    cdef int wrote(self) except -1:
        """Send what was written: at once if nothing else is in flight, else with what comes this turn."""
        if self.sink < 0 or self.loop is None or self.writing:
            pass
        elif len(self.pending) <= 1 or self.output.waiting() > FLUSH_ABOVE:
            self.write_out()
        elif not self.flush_is_due:
            self.flush_is_due = True
            self.loop.call_soon(self.flush)
        return 0

    def flush(self):
        """Write what waits."""
        self.flush_is_due = False
        if not self.writing:
            self.write_out()

    def writable(self):
        """Write on: the output was full."""
        self.loop.remove_writer(self.sink)
        self.writing = False
        self.write_out()

    cdef int write_out(self) except -1:
        """Write until all is written or the output is full.

        What nobody reads is dropped: that the server has ended is seen where its answers are read.
        """
        cdef Py_ssize_t count
        while self.output.waiting() > 0 and self.sink >= 0:
            count = write(self.sink, self.output.buffer + self.output.start, self.output.waiting())
            if count >= 0:
                self.output.taken(count)
            elif errno == EAGAIN:
                if self.loop is not None and not self.writing:
                    self.writing = True
                    self.loop.add_writer(self.sink, self.writable)
                return 0
            elif errno != EINTR:
                self.output.taken(self.output.waiting())
        return 0

    # --- waiting --------------------------------------------------------------------------------------

    def wait(self, PendingRequest request):
        """Wait for an answer without a loop. Return False if that needs the loop, which has to wait on."""
        cdef pollfd watched[3]
        cdef char* room
        cdef Py_ssize_t available, count
        cdef int64_t now
        cdef int64_t look_until = 0
        cdef int timeout_ms
        self.write_out()
        while not request.done:
            if self.needs_loop or self.at_end or self.input < 0:
                return False
            room = self.framer.room(READ_SIZE, &available)
            count = read(self.input, room, available)
            if count > 0:
                self.framer.filled(count)
                self.handle_lines()
                look_until = 0
                continue
            if count == 0 or (errno != EAGAIN and errno != EINTR):
                return False
            now = clock()
            if look_until == 0:
                look_until = now + LOOK_AGAIN_NANOSECONDS
            if now < look_until:
                with nogil:
                    sched_yield()
                continue
            if request.deadline and now >= request.deadline:
                self.expire()
                continue
            timeout_ms = -1
            if request.deadline:
                timeout_ms = <int> min((request.deadline - now) // 1_000_000 + 1, 3_600_000)
            watched[0].fd = self.input
            watched[0].events = POLLIN
            watched[1].fd = self.also
            watched[1].events = POLLIN
            watched[2].fd = self.sink if self.output.waiting() else -1
            watched[2].events = POLLOUT
            with nogil:
                poll(watched, 3, timeout_ms)
            PyErr_CheckSignals()
            if self.also >= 0 and watched[1].revents:
                return False
            self.write_out()
        return True

    def readable(self):
        """Read what has come, in a loop."""
        cdef char* room
        cdef Py_ssize_t available, count
        cdef int reads = 0
        while reads < READS_A_TURN and self.input >= 0:
            room = self.framer.room(READ_SIZE, &available)
            count = read(self.input, room, available)
            if count > 0:
                reads += 1
                self.framer.filled(count)
                self.handle_lines()
                if count < available:
                    return
            elif count == 0 or (errno != EAGAIN and errno != EINTR):
                self.input_ended()
                return
            elif errno == EAGAIN:
                return

    def read_rest(self):
        """Read what a server that has ended has left."""
        if not self.at_end:
            self.readable()

    cdef int input_ended(self) except -1:
        if self.at_end:
            return 0
        self.at_end = True
        if self.loop is not None:
            self.loop.remove_reader(self.input)
        for line in self.framer.finish():
            self.on_unreadable(b"(cut off) " + line[:LONGEST_EXCERPT])
        self.on_end()
        return 0

    cdef int arm(self, PendingRequest request) except -1:
        """Have the loop look for requests whose time is up, when this one's is."""
        if self.loop is None:
            return 0
        if self.timer is not None:
            self.timer.cancel()
        self.timer_at = request.deadline
        self.timer = self.loop.call_later(max(0, self.timer_at - clock()) * 1e-9 + 0.001, self.expire)
        return 0

    def expire(self):
        """Fail the requests whose time is up."""
        cdef int64_t now = clock()
        cdef PendingRequest request
        cdef PendingRequest earliest = None
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        for each in list(self.pending.values()):
            request = each
            if request.deadline == 0:
                continue
            if request.deadline <= now:
                del self.pending[request.id]
                self.cancel(request.id, "the time limit has passed")
                request.fail(
                    RequestTimeout(
                        f"{request.method}: no answer within {request.limit * 1e-9:g} s{self.remark}"
                    )
                )
            elif earliest is None or request.deadline < earliest.deadline:
                earliest = request
        if earliest is not None:
            self.arm(earliest)

    def cancel(self, id, str reason):
        """Tell the server that nobody waits for an answer any more."""
        params = {"requestId": id, "reason": reason}
        self.send(to_json({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))

    # --- reading --------------------------------------------------------------------------------------

    def receive(self, bytes data):
        """Take bytes that have come: lines, or parts of them."""
        for line in self.framer.feed(data):
            if line is None:
                self.on_unreadable(b"(a line over the limit)")
            else:
                self.receive_message(line)

    def receive_message(self, bytes text):
        """Take one message. It may hold newlines, where JSON allows them."""
        self.handle(self.message.keep(text), len(text))

    cdef int handle_lines(self) except -1:
        cdef char* line
        cdef Py_ssize_t size
        cdef int found
        while True:
            found = self.framer.next_line(&line, &size)
            if found == NOTHING:
                return 0
            if found == LINE:
                self.handle(line, size)
            else:
                self.on_unreadable(b"(a line over the limit)")

    cdef int handle(self, const char* line, Py_ssize_t size) except -1:
        cdef Answer answer
        if read_answer(line, size, &answer):
            if self.take_likely(&answer):
                return 0
            return self.read_whole(line, size, &answer)
        return self.read_whole(line, size, NULL)

    cdef bint take_likely(self, Answer* answer) except -1:
        """Take an answer whose tail an earlier one had."""
        cdef AnswerTail tail
        cdef PendingRequest request
        for tail in self.tails:
            if len(tail.line) == answer.tail_size:
                if memcmp(<char*> tail.line, answer.tail, answer.tail_size) == 0:
                    break
        else:
            return False
        request = self.pending.get(answer.id)
        if request is None or not request.is_call:
            return False
        del self.pending[answer.id]
        request.finish(text_result(str_of(&answer.text), tail))
        return True

    cdef int read_whole(self, const char* line, Py_ssize_t size, Answer* likely) except -1:
        """Have simdjson read the line, and do with it what its kind wants."""
        cdef Message message = self.message
        cdef int kind
        message.read_line(line, size)
        kind = message.kind_code
        if kind == RESPONSE:
            return self.take_answer(message.value, likely)
        if kind == NOTIFICATION:
            return self.take_notification(message.value)
        if kind == REQUEST:
            self.on_request(message.value)
        elif kind == BATCH:
            self.take_batch()
        else:
            self.on_unreadable(text_of(message))
        return 0

    cdef int take_batch(self) except -1:
        """Take each message of an array (MCP 2025-03-26: JSON-RPC batches)."""
        for element in self.message.elements():
            self.receive_message(element)
        return 0

    cdef int take_answer(self, dict message, Answer* likely) except -1:
        cdef PendingRequest request
        id = message.get("id")
        request = self.pending.pop(id, None) if type(id) is int else None
        if request is None:
            if type(id) is not int or id < 1 or id > self.last_id:
                self.on_unreadable(text_of(self.message))
            return 0  # cancelled meanwhile, or answered twice
        result = message.get("result")
        error = message.get("error")
        if type(result) is dict:
            if not request.is_call or result.get("resultType", "complete") != "complete":
                return request.finish(result)
            try:
                made = CallResult(result)
            except InvalidAnswer as wrong:
                return request.fail(InvalidAnswer(f"{request.method}: the result is none: {wrong}"))
            if likely != NULL:
                self.learn(likely, result)
            return request.finish(made)
        if type(error) is dict:
            return request.fail(RemoteError(error))
        found = error if "error" in message else result
        return request.fail(InvalidAnswer(f"{request.method}: result: expected an object, got {found!r:.80}"))

    cdef int learn(self, Answer* likely, dict result) except -1:
        """Remember what stands behind the text of this line; its bytes are still where they were read."""
        cdef AnswerTail tail = tail_of(likely.tail, likely.tail_size, result)
        if tail is None:
            return 0
        if len(self.tails) < TAILS:
            self.tails.append(tail)
        else:
            self.tails[self.next_tail] = tail
        self.next_tail = (self.next_tail + 1) % TAILS
        return 0

    cdef int take_notification(self, dict message) except -1:
        cdef PendingRequest request
        if message["method"] == "notifications/progress":
            params = message.get("params")
            token = params.get("progressToken") if type(params) is dict else None
            request = self.pending.get(token) if type(token) is int else None
            if request is not None and request.limit:
                request.deadline = clock() + request.limit  # it is alive (MCP, lifecycle: timeouts)
        self.on_notification(message)
        return 0
