"""One HTTP/1.1 connection of the client (RFC 9112): writes a request, parses its response by httptools.

One request at a time. A head with the same bytes as the previous one has the same meaning: then the body is
counted without the parser. A response *settles* when a JSON body is complete, or when the head of any other
response has arrived; its body follows. The sender of the request is called back, without a task. Unread data
is bounded: beyond that the socket is not read. A connection that is silent, closed, or sends unrequested data
is not used again. A response with a new head costs some ten calls from compiled code.
Credentials, redirects and the meaning of statuses are left to `wire`, decompression to `encodings`.

Why not a client of another library: measured over loopback, a request and its response take 3 times as long
with aiohttp and over 20 times with httpx; these import 157 and 83 more modules. Neither calls back without a
task, nor works in a thread without a running loop.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

WRITE_SECONDS = 60.0
"""Seconds in which the server must take something of a request that does not fit into the socket's buffer."""
LONGEST_HEAD = 128 * 1024
"""Bytes of a head, of a chunk's head, and of a trailer."""
MOST_UNREAD = 256 * 1024
"""Bytes of a body that are kept until they are read; beyond them the socket is not read."""
SHORT_SECONDS = 0.001
"""How long to wait for a response without the loop."""
READ_SIZE = 32 * 1024
MOST_NEW_HEADS = 16
"""Heads in a row that differ from the previous one; after so many none is kept."""
LARGEST_JOINED = 64 * 1024
"""Bytes of a body that is appended to its head; a larger one is written separately."""

JSON = "application/json"
SPECIAL = (b"content-encoding", b"set-cookie")

CLOSED = "closed by the server"
TLS_ALERT = b"\x15\x03"
"""How a TLS server's answer to a request in clear text begins (RFC 8446, 5.1)."""


class BrokenConnection(Exception):
    """A connection ended before its response did, or sent something other than HTTP. The text says why."""


@dataclass(eq=False, repr=False, slots=True)
class Response:
    """A response: its head, and its body as far as it has arrived and was not read.

    `headers`: names in lower case. `kind`: the media type, without parameters, in lower case. `on_settled` is
    called once; without it, `settled` waits. `at_head`: also a response with a JSON body settles at its head.
    `context` belongs to the sender of the request.
    """

    on_settled: Callable[[Response], object] | None = None
    context: Any = None
    at_head: bool = False
    status: int = 0
    reason: bytes = b""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    kind: str = ""
    has_special_headers: bool = False
    """Whether its body is encoded, or it sets cookies."""
    pieces: list[bytes] = field(default_factory=list)
    unread: int = 0
    is_settled: bool = False
    is_complete: bool = False
    error: Exception | None = None
    """Why the response will not be complete."""
    connection: HttpConnection | None = None
    _waiter: asyncio.Future[None] | None = None

    def header(self, name: bytes) -> str | None:
        """Return the value of a header, or None. Bytes that are not UTF-8 are kept as surrogates."""
        for each, value in self.headers:
            if each == name:
                return value.decode("utf-8", "surrogateescape")
        return None

    async def settled(self) -> None:
        """Wait for the head, or for all of a JSON body. Raises BrokenConnection and OSError."""
        while not self.is_settled:
            await self._arrival()
        if self.error is not None and not self.pieces:
            raise self.error

    def body(self) -> bytes:
        """Return what has arrived of the body and was not read."""
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)

    async def read(self) -> bytes:
        """Return what has arrived of the body; b"" at its end. Raises BrokenConnection and OSError."""
        while not self.pieces:
            if self.error is not None:
                raise self.error
            if self.is_complete:
                return b""
            await self._arrival()
        found = self.body()
        self.pieces.clear()
        self.unread = 0
        if self.connection is not None:
            self.connection.read_on()
        return found

    async def _arrival(self) -> None:
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        try:
            await waiter
        finally:
            self._waiter = None

    def cancel(self) -> None:
        """Abandon the response, and close its connection if the response is not complete."""
        self.on_settled = None
        if self.connection is not None:
            self.connection.abandon()

    def settle(self) -> None:
        """Call back the sender of the request, or wake the reader of the body."""
        self.is_settled = True
        on_settled, self.on_settled = self.on_settled, None
        if on_settled is not None:
            on_settled(self)
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _KnownHead(NamedTuple):
    """A head that has arrived in one piece, and the result of parsing it."""

    head: bytes
    length: int
    kind: str
    reason: bytes
    headers: tuple[tuple[bytes, bytes], ...]


def known_head(first: bytes, response: Response) -> _KnownHead | None:
    """Return the head at the beginning of a response's bytes, if it says the length of the body: every
    response with the same head then has a body of that length. Else return None."""
    head, blank, _ = first.partition(b"\r\n\r\n")
    length = response.header(b"content-length")
    if (
        blank
        and response.status == 200
        and length is not None
        and length.isdecimal()
        and 0 < int(length) < MOST_UNREAD
        and response.header(b"transfer-encoding") is None
        and not response.has_special_headers
        # Each line is a header: no interim response was before it, and none ends otherwise.
        and head.count(b"\r\n") == head.count(b"\n") == len(response.headers)
    ):
        headers = tuple(response.headers)
        return _KnownHead(head + blank, int(length), response.kind, response.reason, headers)
    return None


class HttpConnection(asyncio.Protocol):
    """A connection. `on_idle` is called when it can take the next request, `on_closed` when it is closed."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_idle: Callable[[HttpConnection], object],
        on_closed: Callable[[HttpConnection], object],
    ) -> None:
        self.idle_since = 0.0
        self.is_closed = False
        self.descriptor = -1
        """The socket's, after the connection is made."""
        self._is_plain = False
        self._loop = loop
        self._on_idle = on_idle
        self._on_closed = on_closed
        self._parser: Any = HttpResponseParser(self)
        self.transport: Any = None
        """The asyncio transport; None before the connection is made."""
        self._poll: select.poll | None = None
        self._response: Response | None = None
        self._early: bytes | None = b""
        """What arrived before the first request; None afterwards."""
        self._in_head = False
        self._is_interim = False
        self._until_end = False
        """Whether the end of the connection is that of the body."""
        self._keeps_alive = False
        self._is_over = False
        self._has_more = False
        """Whether data has arrived after the response."""
        self._head_bytes = 0
        self._unproductive = 0
        """Bytes since the last byte of a body."""
        self._is_paused = False
        self._silence: asyncio.TimerHandle | None = None
        self._silent_seconds = 0.0
        self._heard_at = 0.0
        self._stall: asyncio.TimerHandle | None = None
        self._unwritten = 0
        self._first: bytes | None = None
        self._known: _KnownHead | None = None
        self._new_heads = 0
        """Heads since the last one that was the known one."""
        self._missing = 0
        """Bytes of the body after a known head that have not arrived."""

    @property
    def is_idle(self) -> bool:
        """Whether no response is awaited."""
        return self._response is None

    @property
    def is_usable(self) -> bool:
        """Whether an idle connection can take a request.

        Polls the socket, too: the loop may not have run since the server has closed the connection. An idle
        connection that is readable is closed, or has sent unrequested data.
        """
        if self._response is not None or self.transport is None or self.transport.is_closing():
            return False
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self.descriptor, select.POLLIN)
        return not self._poll.poll(0)

    # --- the request ----------------------------------------------------------------------------------

    def send(
        self, head: bytes, body: bytes | None, response: Response, silent_seconds: float | None = None
    ) -> None:
        """Write a request; `response` is filled in as it arrives.

        `silent_seconds`: after so long without data the connection counts as broken.
        """
        self._response = response
        response.connection = self
        self._in_head = True
        self._is_over = self._has_more = self._until_end = self._is_interim = False
        self._head_bytes = self._unproductive = self._missing = 0
        if silent_seconds is not None:
            self._silent_seconds = silent_seconds
            self._heard_at = self._loop.time()
            self._silence = self._loop.call_later(silent_seconds, self._listen)
        if self._early is not None:
            self._begin(head, body)
        elif self._is_plain and len(body or b"") <= LARGEST_JOINED and asyncio._get_running_loop() is None:
            self._write_directly(head + (body or b""))
        else:
            self._write(head, body)

    def _write(self, head: bytes, body: bytes | None) -> None:
        """Write a request. Not by `writelines`: that of asyncio's own loop from Python 3.12 on neither pauses
        the protocol nor ever finishes with empty data."""
        if body and len(body) > LARGEST_JOINED:
            self.transport.write(head)
            self.transport.write(body)
        else:
            self.transport.write(head + body if body else head)

    def _begin(self, head: bytes, body: bytes | None) -> None:
        """Write the first request, and read what has arrived before it: some servers answer at once."""
        early, self._early = self._early, None
        if not self.is_closed:
            self._write(head, body)
        if early:
            self.data_received(early)
        if self.is_closed:
            self._end(None)

    # --- without a running loop -----------------------------------------------------------------------

    def _write_directly(self, data: bytes) -> None:
        """Write to the socket: the loop would do so only when it runs."""
        count = 0
        if not self.transport.is_closing() and not self.transport.get_write_buffer_size():
            try:
                count = os.write(self.descriptor, data)
            except OSError:
                pass  # the transport finds out why
        if count < len(data):
            self.transport.write(data[count:])

    def wait_shortly(self, response: Response, connections: Iterable[HttpConnection]) -> None:
        """Without a running loop: read the socket until a response has settled, `SHORT_SECONDS` have passed,
        or another of these connections has something for the loop."""
        watched = select.poll()
        for each in connections:
            if each is self or not each.is_idle:
                watched.register(each.descriptor, select.POLLIN)
        deadline = monotonic() + SHORT_SECONDS
        while self._is_plain and self._response is response and not response.is_settled:
            left = deadline - monotonic()
            if left <= 0 or watched.poll(left * 1000) != [(self.descriptor, select.POLLIN)]:
                return
            try:
                data = os.read(self.descriptor, READ_SIZE)
            except OSError:
                return
            if not data:
                return  # the loop notices the end, too
            self.data_received(data)

    # --- the end --------------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Close the connection: its response is no longer needed."""
        self.release()
        self.close()

    def close(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    def release(self) -> Response | None:
        """End the current request, and return its response. After a CONNECT, TLS gets the transport."""
        response, self._response = self._response, None
        self._first = None
        if response is not None:
            response.connection = None
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        return response

    def _fail(self, error: Exception) -> None:
        response = self.release()
        self.close()
        if response is not None:
            response.error = error
            response.settle()

    def _finish(self) -> None:
        response = self.release()
        assert response is not None
        response.is_complete = True
        self.read_on()
        transport = self.transport
        if self.is_closed:
            pass
        elif transport.get_write_buffer_size():
            transport.abort()  # the server has answered before it has read all
        elif not self._keeps_alive or self._has_more:
            transport.close()
        elif not transport.is_closing():
            self._on_idle(self)
        response.settle()

    def _listen(self) -> None:
        """End the connection if no data has arrived for too long."""
        left = self._heard_at + self._silent_seconds - self._loop.time()
        if left > 0:
            self._silence = self._loop.call_later(left, self._listen)
        elif self._response is not None:
            self._fail(BrokenConnection("no data for too long"))

    # --- called by asyncio -------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.descriptor = transport.get_extra_info("socket").fileno()
        self._is_plain = transport.get_extra_info("sslcontext") is None

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None:  # no request is in flight
            if self._early is None or len(self._early) > LONGEST_HEAD:
                self.close()
            else:
                self._early += data
            return
        if self._silence is not None:
            self._heard_at = self._loop.time()
        if self._missing:
            self._take_counted(response, data)
            return
        if self._first is None:
            self._first = data
            known = self._known
            if known is not None and data.startswith(known.head):
                self._take_known_head(response, known)
                self._take_counted(response, data[len(known.head) :])
                return
        self._unproductive += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self._is_over:
                self._fail(_broken(error, data))
                return
            self._has_more = True
        if self._is_over:
            if self._new_heads < MOST_NEW_HEADS:
                self._new_heads += 1
                if self._keeps_alive:
                    self._known = known_head(self._first, response) or self._known
            self._finish()
        elif self._unproductive > LONGEST_HEAD + len(data):
            self._fail(BrokenConnection(f"its head is longer than {LONGEST_HEAD} bytes"))
        elif not self._in_head:
            if response.unread > MOST_UNREAD and not self._is_paused:
                self._is_paused = True
                self.transport.pause_reading()
            if response.is_settled or response.at_head or response.kind != JSON or self._is_paused:
                response.settle()

    # --- heads that come again ------------------------------------------------------------------------

    def _take_known_head(self, response: Response, known: _KnownHead) -> None:
        self._new_heads = 0
        self._in_head = False
        self._keeps_alive = True
        self._missing = known.length
        response.status = 200
        response.reason = known.reason
        response.kind = known.kind
        response.headers = list(known.headers)

    def _take_counted(self, response: Response, data: bytes) -> None:
        """Take a part of a body after a known head; its end settles the response."""
        if len(data) > self._missing:
            self._has_more = True
            data = data[: self._missing]
        if data:
            self._missing -= len(data)
            response.pieces.append(data)
            response.unread += len(data)
        if not self._missing:
            self._is_over = True
            self._finish()
        elif response.is_settled or response.at_head or response.kind != JSON:
            response.settle()

    def read_on(self) -> None:
        """Read the socket again: the received data has been read."""
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closed = True
        self.resume_writing()
        self._on_closed(self)
        self._end(error)

    def _end(self, error: Exception | None) -> None:
        response = self.release()
        if response is None:
            return
        if error is None and self._until_end:
            response.is_complete = True
        else:
            response.error = error or BrokenConnection(CLOSED)
        response.settle()

    def pause_writing(self) -> None:
        self._unwritten = self.transport.get_write_buffer_size()
        self._stall = self._loop.call_later(WRITE_SECONDS, self._watch_writing)

    def resume_writing(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _watch_writing(self) -> None:
        """End the connection if the server has not taken anything."""
        if self.transport.get_write_buffer_size() < self._unwritten:
            self.pause_writing()
        else:
            self._fail(BrokenConnection(f"the server has not read for {WRITE_SECONDS:g} s"))

    # --- called by the parser ----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._has_more = self._is_over

    def on_status(self, reason: bytes) -> None:
        if self._response is not None and not self._is_over:
            self._response.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head and self._response is not None:
            self._head_bytes += len(name) + len(value)
            if self._head_bytes > LONGEST_HEAD:
                raise BrokenConnection(f"its head is longer than {LONGEST_HEAD} bytes")
            self._response.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        response = self._response
        if response is None or self._is_over:
            return
        status = self._parser.get_status_code()
        if status < 200:
            if status == 101:
                raise BrokenConnection("it switches to another protocol")
            response.headers.clear()
            response.reason = b""
            self._is_interim = True
            return
        self._in_head = False
        self._unproductive = 0
        response.status = status
        self._keeps_alive = self._parser.should_keep_alive()
        has_length = status in (204, 304)
        for name, value in response.headers:
            if name == b"content-type":
                kind = value.decode("latin-1")
                response.kind = kind.partition(";")[0].strip().lower()
            elif name == b"content-length":
                has_length = True
            elif name == b"transfer-encoding":
                if value.strip().lower() != b"chunked":
                    raise BrokenConnection(f"its transfer coding is unknown: {value[:40]!r}")
                has_length = True
            elif name in SPECIAL:
                response.has_special_headers = True
        self._until_end = not has_length

    def on_body(self, data: bytes) -> None:
        response = self._response
        if response is not None and not self._is_over:
            response.pieces.append(data)
            response.unread += len(data)
            self._unproductive = 0

    def on_message_complete(self) -> None:
        if self._is_interim:
            self._is_interim = False
        else:
            self._is_over = True


def _broken(error: Exception, data: bytes) -> Exception:
    """Return why a parser has stopped at this data: a callback's own exception, or what is not HTTP."""
    if isinstance(error, HttpParserCallbackError) and isinstance(error.__context__, BrokenConnection):
        return error.__context__
    if isinstance(error, HttpParserUpgrade):
        return BrokenConnection("it switches to another protocol")
    if data.startswith(TLS_ALERT):
        return BrokenConnection("it speaks TLS: is it an https URL?")
    return BrokenConnection(f"its response is not HTTP: {str(error)[:100]}")
