"""HTTP/1.1 for the engine: one connection, its requests one after the other, its limits in time and memory.

A head is judged before a byte of its body is read (`access`). A refused request is answered with an envelope,
and its connection is closed. A client that closes its connection has gone: its request is cancelled, unless
it changes something, which goes on to its end. Costs some 30 us a request. httptools does the parsing; what
is asked and answered is left to `wire`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

import httptools

from . import wire
from .access import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .access import Headers
    from .server import EngineServer

PATH = "/rpc"
PUBLIC = ("/", "/healthz")
MOST_BODY = 32 * 1024 * 1024
MOST_CHUNKED = 2 * MOST_BODY  # of a body with what its chunks, or trailers, add to it
TOO_LARGE = f"the body is longer than {MOST_BODY} bytes"
MOST_HEAD = 64 * 1024
MOST_HELD = 64 * 1024  # that came while a request is served; then the client is not read
MOST_UNSENT = 64 * 1024  # then no further request is served until the client has read

FIRST_SECONDS = 10.0  # for a whole head, from the connection or from its first byte on
BODY_SECONDS = 60.0
IDLE_SECONDS = 75.0
READ_SECONDS = 60.0  # for a client to read an answer
LINGER_SECONDS = 2.0  # after the last answer: a reset could destroy it before the client has read it

NEW, IDLE, HEAD, BODY = range(4)
"""What of a request has come: nothing yet at all; nothing of the next; a part of its head; its head."""
SECONDS = {NEW: FIRST_SECONDS, IDLE: IDLE_SECONDS, HEAD: FIRST_SECONDS, BODY: BODY_SECONDS}

STATUSES = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    421: "Misdirected Request",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


def response(status: int, body: bytes, headers: bytes = b"", *, is_last: bool = False) -> bytes:
    """A response with a JSON body. `headers` are complete lines."""
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
    head = (
        f"HTTP/1.1 {status} {STATUSES[status]}\r\ndate: {date}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    ).encode()
    return b"%s%s%s\r\n%s" % (head, headers, b"connection: close\r\n" if is_last else b"", body)


class Received:
    """A request that has come whole, or was refused: `answer` is there already, or `body` is to be served."""

    __slots__ = ("answer", "body", "is_last")

    def __init__(self, body: bytes, answer: bytes | None, is_last: bool) -> None:
        self.body = body
        self.answer = answer
        self.is_last = is_last


class Connection(asyncio.Protocol):
    """One connection to a server."""

    def __init__(self, server: EngineServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._phase = NEW
        self._size = 0  # bytes of the head or body at hand, but for the piece that it began in
        self._url = b""
        self._headers: Headers = {}
        self._body = bytearray()
        self._is_public = False
        self._received: deque[Received] = deque()
        self._held = bytearray()
        self._serving: asyncio.Task[None] | None = None
        self._goes_on = False  # whether the request that is served goes on without its client
        self._is_over = False  # no further request is read
        self._timer: asyncio.TimerHandle | None = None
        self._sent = asyncio.Event()
        self._sent.set()

    # --- bytes ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        transport.set_write_buffer_limits(high=MOST_UNSENT, low=0)
        self._server.connections.add(self)
        self._arm()
        if self._server.is_full:
            self._refuse(503, "too many connections")
            self._serve_soon()

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        self._is_over = True
        self._received.clear()
        self._held.clear()
        self._sent.set()
        self._disarm()
        if self._serving is not None and not self._goes_on:
            self._serving.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            self._skip(len(data))
        elif self._serving is not None:
            self._held += data
            if len(self._held) > MOST_HELD:
                self._transport.pause_reading()
        else:
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(400, "this is no HTTP/1.1 request")
        if self._phase == HEAD and self._size > MOST_HEAD:
            self._refuse(431, f"the head is longer than {MOST_HEAD} bytes")
        if self._phase == BODY and self._size > MOST_CHUNKED:
            self._refuse(413, TOO_LARGE)
        self._serve_soon()

    def _skip(self, size: int) -> None:
        """Drop what follows a last answer: a client may read that only after it has sent everything."""
        self._size += size
        if self._size > MOST_CHUNKED:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._sent.clear()

    def resume_writing(self) -> None:
        self._sent.set()

    # --- a request, as the parser reads it --------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = {}
        self._body = bytearray()
        self._enter(HEAD)

    def on_url(self, part: bytes) -> None:
        self._url += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.setdefault(name.lower(), []).append(value)

    def on_headers_complete(self) -> None:
        if self._is_over:
            return
        self._enter(BODY)
        try:
            self._check_head()
        except Refused as refused:
            self._refuse(refused.status, refused.message, refused.headers)
            return
        if [each.lower() for each in self._headers.get(b"expect", ())] == [b"100-continue"]:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _check_head(self) -> None:
        """Raise Refused for a request that is not served."""
        local_address: str = self._transport.get_extra_info("sockname")[0]
        self._server.access.check_place(self._headers, local_address)
        path, method = self._url.partition(b"?")[0].decode("latin-1"), self._parser.get_method()
        self._is_public = path in PUBLIC
        if not self._is_public and path != PATH:
            raise Refused(404, f"nothing is here: POST to {PATH}")
        served = b"GET" if self._is_public else b"POST"
        if method != served:
            raise Refused(405, f"expected {served.decode()}", b"allow: %s\r\n" % served)
        if not self._is_public:
            self._server.access.check_token(self._headers)
        if self._parser.should_upgrade():
            raise Refused(400, "Upgrade: this engine speaks HTTP/1.1 alone")
        size = self._headers.get(b"content-length", [b"0"])[0]
        if self._is_public and (size != b"0" or b"transfer-encoding" in self._headers):
            raise Refused(400, "expected no body")
        if size.isdigit() and int(size) > MOST_BODY:
            raise Refused(413, TOO_LARGE)

    def on_body(self, part: bytes) -> None:
        if self._is_over:
            return
        self._body += part
        if len(self._body) > MOST_BODY:
            self._refuse(413, TOO_LARGE)

    def on_message_complete(self) -> None:
        if self._is_over:
            return
        answer = None
        is_last = not self._parser.should_keep_alive() or self._parser.get_http_version() != "1.1"
        if self._is_public:
            body = wire.encoded({"ok": True, "data": wire.identity()})
            answer = response(200, body, is_last=is_last)
        self._received.append(Received(bytes(self._body), answer, is_last))
        self._body = bytearray()
        self._is_over = is_last
        self._enter(IDLE)

    def _refuse(self, status: int, message: str, headers: bytes = b"") -> None:
        """Answer the request at hand, behind those before it, and read no further one."""
        if not self._is_over:
            self._is_over = True
            answer = response(status, wire.refusal(message), headers, is_last=True)
            self._received.append(Received(b"", answer, True))

    # --- answers --------------------------------------------------------------------------------------

    def _serve_soon(self) -> None:
        if self._serving is None and self._received:
            self._disarm()
            self._serving = self._loop.create_task(self._serve())
            self._server.watch(self._serving)

    async def _serve(self) -> None:
        """Answer all that has come, in its order."""
        try:
            while self._received:
                await self._answer(self._received.popleft())
                if self._held and not self._is_over and not self._received:
                    data = bytes(self._held)
                    self._held.clear()
                    self._transport.resume_reading()
                    self._feed(data)
        finally:
            self._serving = None
        if not self._transport.is_closing():
            self._arm()

    async def _answer(self, received: Received) -> None:
        is_last = received.is_last or self._server.is_ending
        answer = received.answer
        if answer is None:
            asked = wire.read(received.body)
            received.body = b""  # which may be large, and the request take its time
            if isinstance(asked, wire.Request):
                self._goes_on = asked.goes_on
                body = await self._server.wire.answer(asked)
                self._goes_on = False
            else:
                body = asked
            is_last = is_last or self._server.is_ending
            answer = response(200, body, is_last=is_last)
        if self._transport.is_closing():
            return
        self._transport.write(answer)
        if not self._sent.is_set():
            self._arm(READ_SECONDS)
            await self._sent.wait()
            self._disarm()
        if is_last:
            self._hang_up()

    def _hang_up(self) -> None:
        """Close after the last answer, and read for a moment."""
        self._is_over = True
        self._received.clear()
        self._size = 0
        if self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()

    def end(self) -> None:
        """The server ends: close now, or after the answer to what is served."""
        if self._serving is None:
            self._transport.close()

    # --- time -----------------------------------------------------------------------------------------

    def _enter(self, phase: int) -> None:
        self._phase = phase
        self._size = 0
        if self._serving is None:
            self._arm()

    def _arm(self, seconds: float | None = None) -> None:
        self._disarm()
        if seconds is None:
            seconds = LINGER_SECONDS if self._is_over else SECONDS[self._phase]
        self._timer = self._loop.call_later(seconds, self._expire)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if self._phase in (HEAD, BODY) and not self._is_over and self._serving is None:
            pass
            self._serve_soon()
        elif self._transport.get_write_buffer_size():
            self._transport.abort()  # it would wait for a client that does not read
        else:
            self._transport.close()
