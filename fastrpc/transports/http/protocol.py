"""The connection class that uvicorn is given: the straight way in front, and the limits that uvicorn lacks.

A likely request that has come whole is answered at once (`hot_path`). All others go on to uvicorn's own class and
the ASGI application as if this one were not there. What is broken or too large is answered once, as JSON-RPC, and
the connection ends; what is slow is closed (`limits`). An Upgrade is ignored, as RFC 9110 (7.8) allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fastrpc.errors import InvalidRequest
from fastrpc.transports.http.hot_path import response
from fastrpc.transports.http.request import error_line

if TYPE_CHECKING:
    from asyncio import Transport
    from typing import Any

    from fastrpc.transports.http.hot_path import HotPath
    from fastrpc.transports.http.limits import Watch

MOST_HELD = 64 * 1024
"""A longer body that has not come whole goes the long way, piece by piece."""

MOST_UNREAD = 1024 * 1024
"""What still comes of a body whose request has been answered already, before we hang up."""

CLOSING_SECONDS = 1.0

NEW, IDLE, HEAD, BODY, ENDING = range(5)
"""Where a connection stands: nothing has come; between requests; in a head; in a body; it only ends."""


class TooMuch(Exception):
    """A request is over a limit. Raised through the parser."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Protocol(HttpToolsProtocol):
    """One connection. `watch` and `hot` are set on a subclass, by whoever serves."""

    watch: Watch
    hot: HotPath | None = None

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__(*values, **options)
        self._phase = NEW
        self._since = self.watch.now  # when it came to this
        self._count = 0  # bytes that have come of the head or body at hand
        self._head_size = 0  # by what the parser has made of it
        self._held: list[bytes] = []  # of a likely request, until its body is there
        self._missing = 0
        self._left = 0  # of a body that the parser leaves to us
        self._refusal: TooMuch | None = None
        self._hung_up = False
        self._unread: tuple[float, int] | None = None  # since when, and how much then

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        watch = self.watch
        self._since = watch.now
        if len(watch.connections) >= watch.limits.connections:
            self._refuse(503, "Too many connections")
        watch.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.watch.connections.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._phase <= IDLE and self.hot is not None:
            data = self._answer(self.hot, data)
        if data:
            self._feed(data)

    # --- the straight way -------------------------------------------------------------------------------

    def _answer(self, hot: HotPath, data: bytes) -> bytes:
        """Answer likely requests; return what goes the long way."""
        if self._missing > 0:
            self._missing -= len(data)
            self._count += len(data)
            self._held.append(data)
            if self._missing > 0:
                return b""
            data = self._take_held()
        begin = 0
        while begin < len(data):
            if (self.cycle is not None and not self.cycle.response_complete) or self.flow.write_paused:
                break  # it is not this request's turn, or nobody reads
            end = data.find(b"\r\n\r\n", begin)
            head = hot.head(data[begin:end]) if end > 0 else None
            if head is None:
                break
            after = end + 4 + head.length
            if after > len(data):
                if head.length > MOST_HELD:
                    break
                self._hold(data[begin:], after - len(data))
                return b""
            answer = hot.answer(head, data[end + 4 : after], self.server_state.default_headers)
            if answer is None:
                break
            self._phase = IDLE
            self._since = self.watch.now
            self.transport.write(answer)
            begin = after
        return data[begin:] if begin else data

    def _hold(self, data: bytes, missing: int) -> None:
        self._held.append(data)
        self._missing = missing
        self._count = len(data)
        self._since = self.watch.now

    def _take_held(self) -> bytes:
        data = b"".join(self._held)
        self._held.clear()
        self._missing = 0
        return data

    # --- the long way -----------------------------------------------------------------------------------

    def _feed(self, data: bytes) -> None:
        """Have uvicorn's parser read on."""
        if self._phase == ENDING:
            return
        in_head = self._phase == HEAD
        try:
            self._parse(data)
        except (HttpParserError, TooMuch):
            self._end(self._refusal or TooMuch(400, "Broken HTTP"))
            return
        if in_head and self._phase == HEAD:
            self._count += len(data)
            if self._count > self.watch.limits.head_bytes:
                self._end(TooMuch(431, f"The head is longer than {self.watch.limits.head_bytes} bytes"))

    def _parse(self, data: bytes) -> None:
        while data:
            if self._left > 0:
                data = self._read_left(data)
                continue
            try:
                self.parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                self._ignore_upgrade()
            else:
                return

    def _ignore_upgrade(self) -> None:
        """The parser takes an Upgrade for the end of HTTP, and does not read the body: Java's client sends one."""
        given = dict(self.headers)
        if b"transfer-encoding" in given:
            self._give_up(400, "Upgrade: not with a body in chunks")
        self._left = int(given.get(b"content-length", b"0"))
        if self._left > 0:
            self._phase = BODY
            self.cycle.more_body = True

    def _read_left(self, data: bytes) -> bytes:
        part = data[: self._left]
        self._left -= len(part)
        self.on_body(part)
        if self._left == 0:
            self.on_message_complete()
        return data[len(part) :]

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase = HEAD
        self._since = self.watch.now
        self._count = self._head_size = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._head_size += len(url)
        limit = self.watch.limits.url_bytes
        if len(self.url) > limit:
            self._give_up(414, f"The address is longer than {limit} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        limits = self.watch.limits
        if len(self.headers) > limits.headers:
            self._give_up(431, f"There are more than {limits.headers} headers")
        self._head_size += len(name) + len(value) + 4
        if self._head_size > limits.head_bytes:
            self._give_up(431, f"The head is longer than {limits.head_bytes} bytes")

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._phase = BODY
        self._since = self.watch.now
        self._count = 0
        if len(self.pipeline) > self.watch.limits.waiting:
            self._give_up(429, "Too many requests on one connection")

    def on_body(self, body: bytes) -> None:
        self._count += len(body)
        if self.cycle.response_complete and self._count > MOST_UNREAD:
            self._phase = ENDING
            self.transport.close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._phase = IDLE
        self._since = self.watch.now

    def on_response_complete(self) -> None:
        """As uvicorn's own, without a timer for each request."""
        self.server_state.total_requests += 1
        self._since = self.watch.now
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    # --- ends -------------------------------------------------------------------------------------------

    def _give_up(self, status: int, message: str) -> None:
        self._refusal = TooMuch(status, message)
        raise self._refusal

    def _end(self, refusal: TooMuch) -> None:
        """Nothing more can be read: say so, unless answers to earlier requests are still to come."""
        in_body = self._phase == BODY
        self._phase = ENDING
        self._since = self.watch.now
        waiting = self.cycle is not None and not self.cycle.response_complete
        if waiting and not in_body:
            self.cycle.keep_alive = False  # the last answer closes
        elif in_body and (self.pipeline or not waiting or self.cycle.response_started):
            self.transport.close()
        else:
            self._refuse(refusal.status, str(refusal))

    def _refuse(self, status: int, message: str) -> None:
        """Answer and end. What the client still sends is read for a moment, or it might not see the answer."""
        self._phase = ENDING
        self._hung_up = True
        self._since = self.watch.now
        body = error_line(InvalidRequest(message))
        self.transport.write(response(status, body, self.server_state.default_headers, close=True))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def shutdown(self) -> None:
        if self._missing > 0:  # a request has begun: it has its time
            self._feed(self._take_held())
        super().shutdown()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.watch.now, self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = None

    def look(self, now: float) -> None:
        """Close the connection if it takes too long, for whatever it is at."""
        limits = self.watch.limits
        early = self.watch.every  # by when the next look comes it would be too late
        age = now - self._since + early
        waiting = self.cycle is not None and not self.cycle.response_complete
        if self._unread is not None:
            self._look_at_reader(now, early)
        elif self.transport.is_closing():
            self._unread = now, self.transport.get_write_buffer_size()
        elif self._hung_up:
            if age >= CLOSING_SECONDS:
                self.transport.abort()
        elif self.flow.read_paused:
            self._since = now  # it is we who do not read
        elif self._phase == BODY or self._missing > 0:
            if age >= limits.body_seconds + self._count / limits.least_rate:
                self._end(TooMuch(408, "The body comes too slowly"))
        elif waiting:
            if self._phase != HEAD:
                self._since = now
        elif self._phase == IDLE:
            if age >= limits.idle_seconds:
                self.transport.close()
        elif age >= limits.head_seconds:
            if self._phase == HEAD:
                self._end(TooMuch(408, "The head comes too slowly"))
            else:
                self.transport.close()

    def _look_at_reader(self, now: float, early: float) -> None:
        """An answer waits: is it being read?"""
        since, size = self._unread or (now, 0)
        read = size - self.transport.get_write_buffer_size()
        limits = self.watch.limits
        if now - since + early >= limits.read_seconds + read / limits.least_rate:
            self.transport.abort()
