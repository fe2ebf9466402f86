"""uvicorn's connection class, with the limits that it lacks.

A broken or too large request is answered with one JSON-RPC error, after the responses to earlier requests,
and the connection is closed; a slow connection is closed (`limits`). An Upgrade is ignored, as RFC 9110 (7.8)
allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fastrpc.errors import InvalidRequest
from fastrpc.transports.http import connections, refusals
from fastrpc.transports.http.guard import Refused, origin_form
from fastrpc.transports.http.hot_path import response
from fastrpc.transports.http.limits import Deadline, unread_bytes
from fastrpc.transports.http.request import error_line

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Transport
    from collections.abc import Callable
    from typing import Any

    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from fastrpc.transports.http.monitor import ConnectionMonitor

MOST_UNREAD = 32 * 1024 * 1024
"""Bytes that are read and dropped after the last response: a client that reads only after it has sent
everything would get a connection reset instead of the response."""

CLOSING_SECONDS = 2.0
"""How long that may take, in seconds."""

TOO_MANY = "Too many connections"

HEAD_START = b"HTTP/1.1 "
LARGEST_JOINED = 64 * 1024
"""Bytes of a body that are copied to be written with the head."""

NEW, IDLE, HEAD, BODY, CALL, ENDING = range(6)
"""The states of a connection: nothing received; between requests; in a head; in a body; waiting for the
`PendingResponse` of the fast path; closing."""


class ResponseTransport:
    """The transport for uvicorn's responses. The head is written together with the part of the body that
    comes in the same turn of the event loop: a client is woken once, not twice. `close` first lets the client
    read the response; `hang_up` does that."""

    __slots__ = ("_head", "_loop", "_write", "hang_up", "is_closing")

    def __init__(self, transport: Transport, loop: AbstractEventLoop, hang_up: Callable[[], None]) -> None:
        self._write = transport.write
        self._loop = loop
        self._head = b""
        self.is_closing = transport.is_closing
        self.hang_up = hang_up

    def write(self, data: bytes) -> None:
        if self._head:
            head, self._head = self._head, b""
            if len(data) > LARGEST_JOINED:
                self._write(head)
            else:
                data = head + data
        elif data.startswith(HEAD_START):
            self._head = data
            self._loop.call_soon(self.flush)
            return
        self._write(data)

    def flush(self) -> None:
        """Write a head whose body is still to come, or which has none."""
        if self._head:
            head, self._head = self._head, b""
            if not self.is_closing():
                self._write(head)

    def close(self) -> None:
        self.flush()
        self.hang_up()


class BoundedConnection(HttpToolsProtocol):
    """One connection. `monitor` is set on a subclass, by the server."""

    monitor: ConnectionMonitor

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__(*values, **options)
        self._phase = NEW
        self._first = True  # whether the current request is the first
        self.since = self.monitor.now  # when the state began
        self._count = 0  # bytes received of the current head or body
        self._head_size = 0  # as the parser counts
        self._left = 0  # bytes of a body that the parser does not read
        self._running: RequestResponseCycle | None = None  # of the application, or the last one
        self._refusal: Refused | None = None
        self._final_refusal: Refused | None = None  # the error to send after the pending responses
        self._hung_up = False
        self._body_deadline: Deadline | None = None  # of the body at hand, once it takes time
        self._read_deadline: Deadline | None = None  # for the client to read what we have written

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._response_transport: Any = ResponseTransport(transport, self.loop, self._hang_up)
        self.address = connections.address_of(self.client)
        self.since = self.monitor.now
        if not self.monitor.connections.add(self):
            self._refuse(503, TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        self.monitor.connections.remove(self)
        self._response_transport.hang_up = self.transport.close  # break the reference cycle
        self._forget_running()
        super().connection_lost(exc)

    @property
    def _waits(self) -> bool:
        """Whether a response is pending."""
        if self._phase == CALL:
            return True
        return self._running is not None and not self._running.response_complete

    @property
    def has_sent_request(self) -> bool:
        """Whether a whole request has come by now, or no more is read."""
        return self._phase != NEW and not (self._first and self._phase in (HEAD, BODY))

    @property
    def _receives_body(self) -> bool:
        """Whether a part of a body is missing."""
        return self._phase == BODY

    @property
    def eviction_class(self) -> int | None:
        """How readily it is closed for a new connection (`connections`); None while a request is served."""
        if self.transport.is_closing():
            return None
        if self._read_deadline is not None:
            return connections.UNREAD
        if self._waits or self._receives_body:
            return None
        if self._phase == HEAD:
            return connections.BEGUN
        return connections.IDLE if self._phase <= IDLE else None

    def data_received(self, data: bytes) -> None:
        """Pass data to uvicorn's parser."""
        if self._phase == ENDING:  # a client may have to send everything before it reads the last response
            self._count += len(data)
            if self._count > MOST_UNREAD:
                self.transport.abort()
            return
        in_head = self._phase == HEAD
        try:
            self._parse(data)
            if in_head and self._phase == HEAD:
                self._count += len(data)
                if self._count > self.monitor.limits.head_bytes:
                    self._give_up(431, f"The head is longer than {self.monitor.limits.head_bytes} bytes")
        except (HttpParserError, Refused):
            self._end(self._refusal or Refused(400, "Broken HTTP"))

    def _parse(self, data: bytes) -> None:
        while data:
            if self._left > 0:
                part, data = data[: self._left], data[self._left :]
                self._left -= len(part)
                self.on_body(part)
                if self._left == 0:
                    self.on_message_complete()
                continue
            try:
                self.parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                # Go on after an Upgrade header, where the parser stops; the HTTP client of Java sends one.
                data = data[upgrade.args[0] :]
                given = dict(self.headers)
                if b"transfer-encoding" in given:
                    self._give_up(400, "Upgrade: not with a body in chunks")
                self._left = int(given.get(b"content-length", b"0"))
                if self._left > 0:
                    self._phase = BODY
                    self.cycle.more_body = True
            else:
                return

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._first = self._phase == NEW
        self._enter(HEAD)
        self._head_size = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._head_size += len(url)
        limit = self.monitor.limits.url_bytes
        if len(self.url) > limit:
            self._give_up(414, f"The address is longer than {limit} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        limits = self.monitor.limits
        if len(self.headers) > limits.headers:
            self._give_up(431, f"There are more than {limits.headers} headers")
        self._head_size += len(name) + len(value) + 4
        if self._head_size > limits.head_bytes:
            self._give_up(431, f"The head is longer than {limits.head_bytes} bytes")

    def on_headers_complete(self) -> None:
        if not self.url.startswith(b"/"):
            try:  # an absolute-form target becomes a path, as ASGI requires; the guard then checks its host
                method = self.parser.get_method().decode("ascii")
                self.url = origin_form(method, self.url, self.headers)
            except Refused as refused:
                self._give_up(refused.status, refused.message)
        super().on_headers_complete()
        self.cycle.transport = self._response_transport
        self._enter(BODY)
        self._body_deadline = None
        if len(self.pipeline) > self.monitor.limits.waiting:
            self._give_up(429, "Too many requests on one connection")

    def on_body(self, body: bytes) -> None:
        self._count += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._enter(IDLE)

    def _enter(self, phase: int) -> None:
        self._phase = phase
        self.since = self.monitor.now
        self._count = 0

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """As in uvicorn's class, without a timer for each request."""
        self._response_transport.flush()
        self.server_state.total_requests += 1
        self.since = self.monitor.now
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self._hung_up:
            return
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._final_refusal is not None:
            self._refuse(self._final_refusal.status, self._final_refusal.message)

    def _give_up(self, status: int, message: str) -> None:
        self._refusal = Refused(status, message)
        raise self._refusal

    def _end(self, refusal: Refused) -> None:
        """Stop reading, and send the error after the responses to earlier requests."""
        in_body = self._phase == BODY
        self._enter(ENDING)
        if in_body and self.pipeline:
            self.pipeline.popleft()  # the request that the error is for
            self._final_refusal = refusal
        elif in_body and (not self._waits or self.cycle.response_started):
            self.transport.close()  # that request has its response
        elif self._waits and not in_body:
            self._final_refusal = refusal
        else:
            self._refuse(refusal.status, refusal.message)

    def _refuse(self, status: int, message: str) -> None:
        """Respond without the application, and close."""
        self._write_refusal(status, message)
        self._phase = BODY
        self._hang_up()
        self.flow.resume_reading()

    def _write_refusal(self, status: int, message: str) -> None:
        refusals.note(status, message, client=self.client)
        self._forget_running()
        body = error_line(InvalidRequest(message))
        self.transport.write(response(status, body, self.server_state.default_headers, close=True))

    def evict(self) -> None:
        """Close at once, in favour of a new connection. A partly received request is refused."""
        running = self._running
        begun = self._phase == HEAD or self._receives_body
        if self._read_deadline is not None:
            self.transport.abort()
            return
        if begun and not (running is not None and self._waits and running.response_started):
            self._write_refusal(503, TOO_MANY)
        self._phase = ENDING
        self.transport.close()

    def _forget_running(self) -> None:
        """Mark the running request as disconnected: uvicorn does so for the last request only."""
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
            self.pipeline.clear()

    def _hang_up(self) -> None:
        """Half-close after the last response, and read for a moment: a reset could destroy it unread."""
        if self._phase != BODY:
            self.transport.close()
            return
        self._enter(ENDING)
        self._hung_up = True
        self.monitor.connections.linger(self)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._read_deadline = None

    def check_limits(self, now: float) -> None:
        """Close the connection if its current state has lasted too long."""
        limits = self.monitor.limits
        early = self.monitor.every  # the next check would be too late
        age = now - self.since + early
        if self._read_deadline is not None:
            if self._read_deadline.ends(now, -unread_bytes(self.transport), early):
                self.transport.abort()
        elif self.transport.is_closing():
            self._expect_reading()
        elif self._hung_up:
            if age >= CLOSING_SECONDS:
                self.transport.close()
        elif self.flow.read_paused:
            self.since = now  # this side has paused reading
            self._body_deadline = None
        elif self._receives_body:
            if self._body_deadline is None:
                self._body_deadline = Deadline(limits.body_seconds, limits.least_rate, self.since)
            if self._body_deadline.ends(now, self._count, early):
                self._end(Refused(408, "The body comes too slowly"))
        elif self._waits:
            self._check_wait(now)
        elif self._phase == IDLE:
            if age >= limits.idle_seconds:
                self.transport.close()
        elif age >= limits.head_seconds:
            if self._phase == HEAD:
                self._end(Refused(408, "The head comes too slowly"))
            else:
                self.transport.close()

    def _check_wait(self, now: float) -> None:
        """A response is pending: the connection is not idle."""
        if self._phase != HEAD:
            self.since = now

    def _expect_reading(self) -> None:
        """Set a deadline for the client to read what has been written."""
        limits = self.monitor.limits
        waiting = -unread_bytes(self.transport)
        self._read_deadline = Deadline(limits.read_seconds, limits.least_rate, self.monitor.now, waiting)
