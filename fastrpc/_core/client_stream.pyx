"""The client side of a connection: encodes requests, matches responses to them, passes on other messages.

Requests have consecutive integer ids. A response that differs from an earlier one only in its id and text is
read without a parser (answer_parser.h); simdjson reads every other line. The future of a request is resolved
where its response is read, without a task. Requests made in the same turn of the loop are written together.

There are two ways to wait, and one reader for both: `wait()` polls the descriptors and needs no event loop;
an event loop calls `readable()`. Without descriptors, messages are passed to `receive_message()`, and `carry`
is called with each message to be taken. The server's own requests, its notifications and its invalid
messages go to `on_request`, `on_notification` and `on_unreadable`. What a callback raises is logged, and the
next line is handled: the server's request is refused, a request of ours fails. `INTERRUPTIONS` alone are
raised again after that; CancelledError would cancel a task that has nothing to do with it. Handshake,
versions and handlers are left to `fastrpc.client`, the process to `fastrpc.processes`.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t
from libc.string cimport memcmp
from posix.unistd cimport read, write

from fastrpc._core.answer cimport Answer, ToolResult
from fastrpc._core.call_result cimport AnswerTail, CallResult, tail_of, text_result
from fastrpc._core.call_writer cimport CallWriter
from fastrpc._core.client_request cimport EXCERPT, INTERRUPTIONS, AnswerSink, PendingRequest, Resumptions
from fastrpc._core.client_request cimport refusal, report, sent_id, text_of, unreadable
from fastrpc._core.clock cimport clock
from fastrpc._core.encoder cimport OutputBuffer
from fastrpc._core.framer cimport LINE, NOTHING, Framer
from fastrpc._core.message cimport BATCH, NOTIFICATION, REQUEST, RESPONSE, Message, read_answer, str_of
from fastrpc._core.polling cimport LOOK_AGAIN_NANOSECONDS, POLLIN, POLLOUT, SHARED_NANOSECONDS
from fastrpc._core.polling cimport SIGNAL_MILLISECONDS, poll, pollfd, sched_yield

from fastrpc.errors import ClientError, InvalidAnswer, RemoteError
from fastrpc.json_encoding import message_json, to_json, unsendable
from fastrpc.protocol.damaged_page import readable_page

cdef enum:
    READ_SIZE = 64 * 1024
    READS_A_TURN = 16            # then other callbacks of the loop run
    FLUSH_ABOVE = 256 * 1024     # bytes buffered before they are written within a turn
    BARE_TAIL = 32               # bytes: with a longer one comes more than isError

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes; longer lines are discarded."""
OVER_LIMIT = b"(a line over the limit)"
"""What `on_unreadable` gets in place of such a line."""


cdef class ClientStream:
    def __cinit__(self, Py_ssize_t max_line=LONGEST_LINE):
        self.framer = Framer(max_line)
        self.message = Message()
        self.output = OutputBuffer()
        self.pending = {}
        self.resumptions = Resumptions()
        self.tails = []
        self.calls = CallWriter(self.output)
        self.remark = ""
        self.input = self.sink = self.extra_input = -1

    # --- for the transport ---------------------------------------------------------------------

    def open(self, int input, int output, int extra_input=-1):
        """Read from the descriptor `input` and write to `output`, both non-blocking.

        `extra_input`: a descriptor that the event loop reads; `wait()` returns when it is readable.
        """
        self.input = input
        self.sink = output
        self.extra_input = extra_input

    def attach(self, loop):
        """Use this event loop for writing, for time limits and, with descriptors, for reading."""
        self.loop = loop
        self.resolved = loop.create_future()
        self.resolved.set_result(None)
        if self.input >= 0:
            loop.add_reader(self.input, self.readable)
        if self.sink >= 0:
            loop.add_reader(self.sink, self.sink_closed)  # of a pipe's end for writing it reports that alone

    def detach(self):
        """Stop using the descriptors and the event loop."""
        if self.input >= 0 and self.loop is not None and not self.loop.is_closed():
            self.loop.remove_reader(self.input)
        self.detach_sink()
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.input = self.extra_input = -1

    def detach_sink(self):
        """Stop writing, before the descriptor is closed."""
        if self.sink >= 0 and self.loop is not None and not self.loop.is_closed():
            self.loop.remove_reader(self.sink)
            if self.writing:
                self.loop.remove_writer(self.sink)
        self.sink = -1
        self.writing = False

    def take(self):
        """Return the lines that have not been sent, each with its newline."""
        return self.output.take()

    @property
    def backlog(self):
        """The bytes that have been sent so far, and those that wait."""
        return self.output.taken_bytes, self.output.waiting()

    @property
    def next_id(self):
        """The id of the next request."""
        return self.last_id + 1

    def set_envelope(self, meta):
        """Set the ``_meta``, a dict or None, of every request made by `call` (MCP 2026-07-28)."""
        self.calls.set_envelope(meta)

    # --- requests -----------------------------------------------------------------------------------

    def call(self, str name, arguments, double timeout_seconds=0, bint with_token=False):
        """Send a ``tools/call`` and return its PendingRequest. `with_token`: it asks for progress.

        Its result is a CallResult, or a dict if the ``resultType`` is not ``complete``.
        """
        cdef PendingRequest request = PendingRequest.__new__(PendingRequest)
        self.start_call(request, name, arguments, timeout_seconds, with_token)
        return request

    cdef int start_call(
        self, PendingRequest request, str name, object arguments, double timeout_seconds, bint with_token
    ) except -1:
        """Send a ``tools/call``."""
        self.register(request, "tools/call", True, timeout_seconds)
        try:
            self.calls.put_call(request.id, name, arguments, with_token or self.sends_tokens)
        except BaseException as error:
            del self.pending[request.id]
            raise unsendable({"name": name, "arguments": arguments}, error) from None
        return self.pass_to_peer(
            request, None if self.carry is None else {"name": name, "arguments": arguments}
        )

    def request(
        self, str method, dict params, future=None, double timeout_seconds=0, context=None, bint is_call=False
    ):
        """Send a request and return its PendingRequest. Its result is a dict."""
        cdef PendingRequest request = self.begin(method, is_call, future, context, timeout_seconds)
        try:
            line = message_json({"jsonrpc": "2.0", "id": request.id, "method": method, "params": params})
        except BaseException:
            del self.pending[request.id]
            raise
        self.put_line(line, request, params)
        return request

    def send(self, bytes line):
        """Send a notification or a response, without its newline. Raises ClientError if too much waits."""
        self.check_congestion("a message")
        self.put_line(line, None, None)

    cdef int put_line(self, bytes line, PendingRequest request, dict params) except -1:
        self.output.put(<char*> line, len(line))
        self.output.put(b"\n", 1)
        return self.pass_to_peer(request, params)

    cdef int pass_to_peer(self, PendingRequest request, object params) except -1:
        """Have what is encoded sent, or taken by `carry`; a request for which that fails is not pending."""
        if self.carry is None:
            return self.wrote()
        try:
            self.carry(request, params)
        except BaseException:
            if request is not None:
                self.pending.pop(request.id, None)
            raise
        return 0

    def follow(self, PendingRequest request, future):
        """Resolve `future` with the result, for a caller that starts to wait in the event loop."""
        request.future = future
        if request.error is not None:
            future.set_exception(request.error)
        elif request.done:
            future.set_result(request.value)
        elif request.limit:
            self.arm(request)

    def forget(self, PendingRequest request):
        """Stop waiting for a response. Return False if the request has already ended."""
        if self.pending.pop(request.id, None) is None:
            return False
        request.done = True
        return True

    def fail(self, PendingRequest request, error):
        """Fail a request with an error."""
        if self.forget(request):
            request.fail(error)

    def fail_all(self, make_error):
        """Fail all pending requests, each with the error that `make_error` returns for it."""
        interruption = None
        requests = list(self.pending.values())
        self.pending.clear()
        for request in requests:
            try:
                error = make_error(request)
            except BaseException as failure:
                error = failure
                interruption = failure if isinstance(failure, INTERRUPTIONS) else interruption
            (<PendingRequest> request).fail(error)
        if interruption is not None:
            raise interruption

    cdef PendingRequest begin(self, str method, bint is_call, object future, object context, double seconds):
        cdef PendingRequest request = PendingRequest.__new__(PendingRequest)
        request.future = future
        request.context = context
        self.register(request, method, is_call, seconds)
        return request

    cdef int register(self, PendingRequest request, str method, bint is_call, double seconds) except -1:
        self.check_congestion(method)
        self.last_id += 1
        request.id = self.last_id
        request.method = method
        request.is_call = is_call
        self.pending[request.id] = request
        if seconds > 0:
            request.begin_limits(seconds, self.max_seconds)
            if self.timer is None or request.deadline < self.timer_at:
                if request.waits_in_loop():
                    self.arm(request)
        return 0

    cdef int check_congestion(self, str what) except -1:
        if self.output.waiting() > MOST_UNSENT:
            waiting = self.output.waiting()
            raise ClientError(f"{what}: the server does not read its input: {waiting:,} bytes are buffered")
        return 0

    cdef PendingRequest forward(
        self, str name, const char* arguments, Py_ssize_t size, bytes end, AnswerSink sink, object call
    ):
        """Send a ``tools/call`` whose arguments are JSON text without its braces; `end` follows them, `sink`
        takes the result. `call` becomes the request's context."""
        cdef PendingRequest request = self.begin("tools/call", True, None, call, 0)
        request.sink = sink
        self.forwards = True
        self.calls.put_forwarded(request.id, name, arguments, size, end)
        self.pass_to_peer(request, None)
        return request

    # --- writing ------------------------------------------------------------------------------------

    cdef int wrote(self) except -1:
        """Send the encoded request: at once if no other is in flight, else at the end of this turn."""
        if self.sink < 0 or self.loop is None or self.writing:
            pass
        elif len(self.pending) <= 1 or self.output.waiting() > FLUSH_ABOVE:
            self.write_out()
        elif not self.flush_is_due:
            self.flush_is_due = True
            self.loop.call_soon(self.flush)
        return 0

    def flush(self):
        """Write the buffered messages."""
        self.flush_is_due = False
        if not self.writing:
            self.write_out()

    def writable(self):
        """Continue to write after the output was full."""
        self.loop.remove_writer(self.sink)
        self.writing = False
        self.write_out()

    cdef int write_out(self) except -1:
        """Write until all is written, the output is full or it is closed, which `sink_closed` reports."""
        cdef Py_ssize_t count
        while self.output.waiting() > 0 and self.sink >= 0:
            count = write(self.sink, self.output.buffer + self.output.start, self.output.waiting())
            if count >= 0:
                self.output.taken(count)
            elif errno == EAGAIN:
                if self.loop is not None and not self.writing:
                    self.writing = True
                    self.loop.add_writer(self.sink, self.writable)
                    if self.on_full is not None:
                        self.pass_on(self.on_full, ())
                return 0
            elif errno != EINTR:
                self.output.taken(self.output.waiting())
        return 0

    def sink_closed(self):
        """Nobody can read the output any more. Called by the event loop."""
        self.loop.remove_reader(self.sink)
        self.pass_on(self.on_end, ("its input",))

    # --- waiting --------------------------------------------------------------------------------------

    def wait(self, PendingRequest request):
        """Wait for a response without the event loop. Return False if the loop has to run first."""
        cdef pollfd watched[3]
        cdef char* room
        cdef Py_ssize_t available, count
        cdef int64_t now, before = 0, look_until = 0
        cdef int timeout_ms
        self.write_out()
        if self.is_behind:
            self.handle_lines()
        while not request.done:
            if self.needs_loop or self.at_end or self.input < 0:
                return False
            room = self.framer.room(READ_SIZE, &available)
            count = read(self.input, room, available)
            if count > 0:
                self.framer.filled(count)
                self.handle_lines()
                if request.done:
                    return True
                look_until = 0
                PyErr_CheckSignals()  # what comes instead may never end
                if request.deadline and clock() >= request.deadline:
                    self.expire()
                continue
            if count == 0 or (errno != EAGAIN and errno != EINTR):
                return False
            now = clock()
            if look_until == 0:
                look_until = before = now
                look_until += LOOK_AGAIN_NANOSECONDS
            if now < look_until and now - before <= SHARED_NANOSECONDS:
                before = now
                with nogil:
                    sched_yield()
                continue
            if request.deadline and now >= request.deadline:
                self.expire()
                continue
            timeout_ms = SIGNAL_MILLISECONDS
            if request.deadline:
                timeout_ms = <int> min((request.deadline - now) // 1_000_000 + 1, SIGNAL_MILLISECONDS)
            watched[0].fd = self.input
            watched[1].fd = self.extra_input
            watched[0].events = watched[1].events = POLLIN
            watched[2].fd = self.sink
            watched[2].events = POLLOUT if self.output.waiting() else 0
            with nogil:
                poll(watched, 3, timeout_ms)
            PyErr_CheckSignals()
            if self.extra_input >= 0 and watched[1].revents or watched[2].revents & ~POLLOUT:
                return False
            self.write_out()
        return True

    def readable(self):
        """Read the available input. Called by the event loop, where no task is running."""
        self.resumptions.are_collected = True
        try:
            self.read_input()
            self.resumptions.resume_all()
        finally:
            self.resumptions.leave_rest()

    cdef int read_input(self) except -1:
        cdef char* room
        cdef Py_ssize_t available, count
        cdef int reads = 0
        if self.is_behind:
            self.handle_lines()
        while reads < READS_A_TURN and self.input >= 0:
            room = self.framer.room(READ_SIZE, &available)
            count = read(self.input, room, available)
            if count > 0:
                reads += 1
                self.framer.filled(count)
                self.handle_lines()
                if count < available:
                    return 0
            elif count == 0 or (errno != EAGAIN and errno != EINTR):
                return self.input_ended()
            elif errno == EAGAIN:
                return 0
        return 0

    cdef bint read_now(self) except -1:
        """Read once what has come, without waiting; False: nothing has."""
        cdef char* room
        cdef Py_ssize_t available, count
        if self.flush_is_due:
            self.write_out()
        if self.input < 0 or self.at_end:
            return False
        room = self.framer.room(READ_SIZE, &available)
        count = read(self.input, room, available)
        if count <= 0:
            return False  # at the end, too: the loop finds out
        self.framer.filled(count)
        self.handle_lines()
        return True

    def read_rest(self):
        """Read the remaining input of a server that has exited."""
        if not self.at_end:
            self.read_input()

    cdef int input_ended(self) except -1:
        if self.at_end:
            return 0
        self.at_end = True
        if self.loop is not None:
            self.loop.remove_reader(self.input)
        try:
            for line in self.framer.finish():
                self.pass_on(self.on_unreadable, (b"(cut off) " + line[:EXCERPT],))
        finally:
            self.pass_on(self.on_end, ("its output",))

    cdef int arm(self, PendingRequest request) except -1:
        """Set the timer to the deadline of this request."""
        if self.loop is None:
            return 0
        if self.timer is not None:
            self.timer.cancel()
        self.timer_at = request.deadline
        self.timer = self.loop.call_later(max(0, self.timer_at - clock()) * 1e-9 + 0.001, self.expire)
        return 0

    def expire(self):
        """Fail the requests whose time limit has passed."""
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
            if self.are_limits_held and request.deadline <= now:
                request.restart_limits()
            if request.deadline <= now:
                del self.pending[request.id]
                remark = f"; it has not read {self.output.waiting():,} bytes" if self.writing else self.remark
                request.fail(request.timed_out(remark))
                self.pass_on(self.cancel, (request.id, {"reason": "the time limit has passed"}))
            elif earliest is None or request.deadline < earliest.deadline:
                earliest = request
        if earliest is not None:
            self.arm(earliest)

    def hold_limits(self, bint held):
        """Let no request's time run out while `held`. Afterwards each has its whole time limit again."""
        cdef PendingRequest request
        self.are_limits_held = held
        for each in self.pending.values():
            request = each
            if request.limit:
                request.restart_limits()

    def cancel(self, id, dict said):
        """Send ``notifications/cancelled`` for a request, unless the server does not read its input. `said`:
        the other members of its params."""
        if self.output.waiting() > MOST_UNSENT:
            return
        params = {**said, "requestId": id}
        self.send(to_json({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))

    # --- reading --------------------------------------------------------------------------------------

    def receive_message(self, bytes text):
        """Handle one message, which may contain newlines where JSON allows them."""
        try:
            self.handle(self.message.keep(text), len(text))
        except INTERRUPTIONS:
            raise
        except BaseException as error:
            report(error)
        finally:
            self.lines_end()

    cdef int handle_lines(self) except -1:
        """Handle all lines that are complete. What one of them raises concerns no other."""
        self.is_behind = False
        while True:
            try:
                return self.handle_each()
            except INTERRUPTIONS:
                self.is_behind = True
                if self.loop is not None and not self.loop.is_closed():
                    self.loop.call_soon(self.readable)
                raise
            except BaseException as error:
                report(error)

    cdef int pass_on(self, object callback, tuple values) except -1:
        """Call a callback of the client. Log what it raises, and raise INTERRUPTIONS again."""
        try:
            callback(*values)
        except INTERRUPTIONS:
            raise
        except BaseException as error:
            report(error)

    cdef int pass_request(self, dict message) except -1:
        """Hand over a request of the server, which waits for its response."""
        try:
            self.on_request(message)
        except INTERRUPTIONS:
            self.pass_on(self.send, (refusal(message),))
            raise
        except BaseException as error:
            report(error)
            self.send(refusal(message))

    cdef int handle_each(self) except -1:
        cdef char* line
        cdef Py_ssize_t size
        cdef int found
        while True:
            found = self.framer.next_line(&line, &size)
            if found == NOTHING:
                return self.lines_end()
            if found == LINE:
                self.handle(line, size)
            else:
                self.pass_on(self.on_unreadable, (OVER_LIMIT,))

    cdef int lines_end(self) except -1:
        cdef AnswerSink sink = self.sink_in_use
        self.sink_in_use = None
        return 0 if sink is None else sink.lines_end()

    cdef int handle(self, const char* line, Py_ssize_t size) except -1:
        cdef Answer answer
        if read_answer(line, size, &answer):
            if self.match_tail(&answer):
                return 0
            return self.read_whole(line, size, &answer)
        return self.read_whole(line, size, NULL)

    cdef bint match_tail(self, Answer* answer) except -1:
        """Complete a call if the response has a known tail."""
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
        if request.sink is not None and not tail.is_bare:
            return False
        del self.pending[answer.id]
        if request.sink is not None:
            request.done = True
            self.sink_in_use = request.sink
            request.sink.take_text(request, answer, tail)
            return True
        request.finish(text_result(str_of(&answer.text), tail))
        return True

    cdef int read_whole(self, const char* line, Py_ssize_t size, Answer* likely) except -1:
        """Parse the line with simdjson, and handle the message."""
        cdef Message message = self.message
        cdef int kind
        message.read_line(line, size)
        kind = message.kind_code
        if kind == RESPONSE:
            if self.forwards and self.take_raw(likely):
                return 0
            return self.take_answer(message.value, likely)
        if kind == NOTIFICATION:
            return self.take_notification(message.value)
        if kind == REQUEST:
            self.pass_request(message.value)
        elif kind == BATCH:
            self.take_batch()
        else:
            self.take_unreadable()
        return 0

    cdef int take_unreadable(self) except -1:
        """Handle a line that is no message. If it answers a request of this client, that fails at once."""
        cdef Message message = self.message
        cdef PendingRequest request = None
        cdef bint is_cut = message.code == -32700 and not message.has_outcome  # its method may be cut off
        if message.id.data != NULL and not message.has_method and not is_cut:
            request = self.pending.pop(sent_id(message.id.data[: message.id.size].decode().strip('"')), None)
        if request is None:
            return self.pass_on(self.on_unreadable, (text_of(message),))
        page = readable_page(request.method, message.line.data[: message.line.size])
        if page is not None:
            return request.finish(page)
        return request.fail(unreadable(request, message))

    cdef bint take_raw(self, Answer* likely) except -1:
        """Hand over the result of a forwarded call as bytes of the line; False: it is no such answer, or
        one whose tail is to be learned."""
        cdef ToolResult result
        cdef PendingRequest request
        if likely != NULL and likely.tail_size <= BARE_TAIL:
            return False
        if not self.message.tool_result(&result):
            return False
        request = self.pending.get(result.id)
        if request is None or request.sink is None or not request.sink.take_raw(request, &result):
            return False
        del self.pending[result.id]
        request.done = True
        self.sink_in_use = request.sink
        return True

    cdef int take_batch(self) except -1:
        """Handle each message of an array (MCP 2025-03-26: JSON-RPC batches)."""
        interruption = None
        for element in self.message.elements():
            try:
                self.receive_message(element)
            except INTERRUPTIONS as error:
                interruption = error
        if interruption is not None:
            raise interruption

    cdef int take_answer(self, dict message, Answer* likely) except -1:
        cdef PendingRequest request
        id = sent_id(message.get("id"))
        request = self.pending.pop(id, None)
        if request is None:
            if id is None or id < 1 or id > self.last_id:
                self.pass_on(self.on_unreadable, (text_of(self.message),))
            return 0  # the request was cancelled, or this is a second response
        try:
            return self.settle(request, message, likely)
        except BaseException as wrong:  # no longer pending, and not ended
            request.fail(wrong)
            if isinstance(wrong, INTERRUPTIONS):
                raise

    cdef int settle(self, PendingRequest request, dict message, Answer* likely) except -1:
        """End a request by the response to it."""
        result = message.get("result")
        error = message.get("error")
        if result is not None and error is not None:
            return request.fail(InvalidAnswer(f"{request.method}: the answer has a result and an error"))
        if type(result) is dict:
            if not request.is_call or result.get("resultType", "complete") != "complete":
                return request.finish(result)
            try:
                made = CallResult(result)
            except InvalidAnswer as wrong:
                if request.sink is not None:  # the client validates it
                    return request.finish(result)
                return request.fail(InvalidAnswer(f"{request.method}: invalid result: {wrong}"))
            if likely != NULL:
                self.learn(likely, result)
            return request.finish(made)
        if type(error) is dict:
            return request.fail(RemoteError(error))
        found = error if "error" in message else result
        return request.fail(InvalidAnswer(f"{request.method}: result: expected an object, got {found!r:.80}"))

    cdef int learn(self, Answer* likely, dict result) except -1:
        """Store the tail of this line, whose bytes are still in the buffer."""
        cdef AnswerTail tail = tail_of(likely.tail, likely.tail_size, result)
        if tail is None:
            return 0
        self.tails[self.next_tail : self.next_tail + 1] = [tail]  # the oldest gives way
        self.next_tail = (self.next_tail + 1) % TAILS
        return 0

    cdef int take_notification(self, dict message) except -1:
        cdef PendingRequest request
        if message["method"] == "notifications/progress":
            params = message.get("params")
            token = params.get("progressToken") if type(params) is dict else None
            request = self.pending.get(sent_id(token))
            if request is not None and request.limit:  # MCP, lifecycle: timeouts
                request.restart_limit()
        return self.pass_on(self.on_notification, (message,))
