"""One HTTP request and its response, over ASGI: headers, body, complete responses and streams.

Of MCP only the form of an error is known here. If a client does not read its response for too long, the
request is aborted (`Stalled`), so that its memory is freed.
"""

from __future__ import annotations

import asyncio
import json
from math import inf
from time import monotonic

from fastrpc import diagnostics
from fastrpc._core.encoder import dumps
from fastrpc.errors import FAILURES, InternalError, Overloaded, ProtocolError
from fastrpc.quotas import Share
from fastrpc.time_limit import TimeLimit
from fastrpc.transports.http import refusals
from fastrpc.transports.http.guard import Refused, cors_headers, headers_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc._core.message import Message
    from fastrpc.quotas import Quota
    from fastrpc.transports.http.guard import AccessRules
    from fastrpc.transports.http.interfaces import Client, Mapped, Receive, Send

    Headers = list[tuple[bytes, bytes]]

PENDING_KEY = "fastrpc.pending"
"""The member of an ASGI scope with the `PendingResponse` of a request that the fast path began to serve."""

JSON = (b"content-type", b"application/json")
EVENTS: Headers = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
STALL_SECONDS = 30.0
STREAM_SECONDS = 1.0
"""How often the token of an open stream is checked where its source does not say how long it is valid."""
SMALL_BODY = 64 * 1024
"""Bytes of each body that do not count in the total: small requests are served whatever large ones take."""

ERROR_STATUS = {-32601: 404, -32603: 500}
"""The HTTP status of errors that refuse the whole request; others have 400."""

STATELESS_STATUS = {-32700: 400, -32600: 400, -32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
"""The HTTP status of errors in 2026-07-28; in earlier versions a response always has 200."""


DATA_END = b"}}}"
"""How an error with ``data`` ends, and few results: no other answer is looked at by `retry_after`."""
RETRY_AFTER, LONGEST_REFUSAL = b'"retry_after_seconds":', 1024

RETRY_SECONDS = 5
"""When to come again with a body for which there was no room."""


class Stalled(Exception):
    """The client has not read the response for too long."""


def root_and_path(scope: Mapped) -> tuple[str, str]:
    """Return where the application is mounted, and the path below that."""
    root, path = scope.get("root_path", "").rstrip("/"), scope["path"]
    return root, path[len(root) :] if root and path.startswith(f"{root}/") else path


class HttpRequest:
    """One HTTP request and its response."""

    def __init__(self, scope: Mapped, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.root, self.path = root_and_path(scope)
        self.query: bytes = scope.get("query_string", b"")
        self.headers = headers_of(scope)
        self.client: Client = scope.get("client")
        self.origin: str | None = None
        self.principal = ""
        self.admitted_until = 0.0
        """Until when its token need not be checked again (`time.monotonic`), once a stream is open."""
        self.entry: Any = None
        """The entry in the access log, if there is one (`access`)."""
        self.status = 0
        """Of the response; 0 before it begins."""
        self.bytes_out = 0
        """Of the response's body, so far."""
        self.is_whole = False
        """Whether the whole response has been sent."""
        self.error_body: Callable[[ProtocolError, bytes], bytes] = error_line
        """Makes the body of a refusal, of the error and the request's id."""
        self.gone = False
        """Whether the client has disconnected; known only after `watch`."""
        self.on_gone: Callable[[], object]
        self.share: Share | None = None
        """What its body takes of the total, until the request is served, and its call over."""
        self._receive = receive
        self._send = send
        self.is_unread = (
            self.headers.get(b"content-length", [b"0"]) != [b"0"] or b"transfer-encoding" in self.headers
        ) and scope.get("http_version", "1.1").startswith("1")
        self._watcher: asyncio.Task[None] | None = None

    async def serve(self, route: Callable[[HttpRequest], Awaitable[None]]) -> None:
        """Have a function respond. An exception becomes a JSON-RPC error, without a traceback."""
        try:
            await route(self)
        except Refused as refused:
            error = ProtocolError(refused.message)
            error.code = refused.code
            await self.refuse(refused.status, error, headers=refused.headers)
        except ProtocolError as error:
            await self.refuse(ERROR_STATUS.get(error.code, 400), error)
        except Stalled:
            diagnostics.write("info", f"{self.method} {self.path:.200}: the client reads no more")
        except FAILURES as error:
            diagnostics.write("error", f"{self.method} {self.path:.200} failed inside fastrpc", error)
            if not self.status:
                await self.refuse(500, InternalError("Internal error; see the server's log"))
        finally:
            self.share = None
            if self._watcher is not None:
                self._watcher.cancel()

    def header(self, name: bytes) -> str | None:
        """Return a header's value, None if it is missing. Raises Refused for a repeated header."""
        values = self.headers.get(name)
        if values is None:
            return None
        if len(values) > 1:
            raise Refused(400, f"{name.decode()}: the header occurs {len(values)} times")
        return values[0].decode("latin-1").strip(" \t")

    def accepts(self, *media_types: str) -> bool:
        """Whether the client accepts all these types; without an Accept header it accepts any."""
        values = self.headers.get(b"accept")
        if not values:
            return True
        ranges = {
            part.partition(";")[0].strip().lower()
            for value in values
            for part in value.decode("latin-1").split(",")
        }
        return "*/*" in ranges or all(
            wanted in ranges or wanted.partition("/")[0] + "/*" in ranges for wanted in media_types
        )

    def check_form(self) -> None:
        """Raise Refused (415) unless the headers declare an unencoded JSON body."""
        media_type = (self.header(b"content-type") or "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise Refused(415, "Content-Type: expected application/json")
        coding = self.header(b"content-encoding")
        if coding is not None and coding.lower() != "identity":
            raise Refused(415, f"Content-Encoding: {coding:.40} is not served")

    async def body(self, limit: int, total: Quota) -> bytes:
        """Return the body. Raises Refused: 413 for one over the limit, 400 for an incomplete one, 503 if it
        does not fit into what all bodies may have in `total`, at once if its length says so.
        """
        share = self.share = Share(total, SMALL_BODY)
        length = self.header(b"content-length")
        if length is not None and length.isdecimal():
            declared = int(length[:20])
            if declared > limit:
                raise _too_long(limit)
            if not share.covers(declared):
                raise _no_room(total)
        parts = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self.gone = True
                raise Refused(400, "the body was cut short")
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise _too_long(limit)
            if not share.resize(size):
                raise _no_room(total)
            parts.append(part)
            if not message.get("more_body", False):
                self.is_unread = False
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def note_message(self, message: Message, body: bytes) -> None:
        """Called with the parsed body; the access log overrides it."""

    async def is_still_admitted(self, guard: AccessRules, principal: str) -> bool:
        """Whether this request, whose stream of notifications has been open for a while, still comes from a
        principal. Asked before the stream sends anything; the token is checked once its last check is too
        old, at least `STREAM_SECONDS` later if its source says nothing of that."""
        if guard.authenticator is None or monotonic() < self.admitted_until:
            return True
        try:
            admission = await guard.authenticate(self.headers)
        except Refused:  # also where it cannot be checked: the client opens another stream
            return False
        now, until = monotonic(), inf if admission.until is None else admission.until
        self.admitted_until = until if until > now else now + STREAM_SECONDS
        return admission.principal == principal

    def watch(self, on_gone: Callable[[], object]) -> None:
        """Call `on_gone`, which may be replaced, when the client has gone. Called once, after `body`."""
        self.on_gone = on_gone
        self._watcher = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        self.on_gone()

    async def answer(
        self, status: int, body: bytes = b"", headers: Headers | None = None, *, is_logged: bool = True
    ) -> None:
        """Send a complete response; a body is JSON. `is_logged`: a status from 400 on is a refusal."""
        body = body.rstrip(b"\n")
        self.status, self.bytes_out = status, len(body)
        if status >= 400 and is_logged:
            refusals.note(status, body, method=self.method, path=self.path, client=self.client)
        head = [*(headers or []), *cors_headers(self.origin)]
        if body.endswith(DATA_END):
            head += retry_after(body)
        if status != 204:
            head.append((b"content-length", b"%d" % len(body)))
        if body:
            head.append(JSON)
        if self.is_unread:  # do not wait for the rest of the body
            head.append((b"connection", b"close"))
        await self._send({"type": "http.response.start", "status": status, "headers": head})
        await self._send({"type": "http.response.body", "body": body})
        self.is_whole = True

    async def refuse(
        self, status: int, error: ProtocolError, id: bytes = b"null", headers: Headers | None = None
    ) -> None:
        await self.answer(status, self.error_body(error, id), headers)

    async def begin(self) -> None:
        """Begin an event stream."""
        self.status = 200
        head = [*EVENTS, *cors_headers(self.origin)]
        await self._send({"type": "http.response.start", "status": 200, "headers": head})

    async def more(self, data: bytes, *, last: bool = False) -> None:
        """Send a part of a stream. Raises Stalled if the client does not read it."""
        with TimeLimit(STALL_SECONDS, Stalled):
            await self._send({"type": "http.response.body", "body": data, "more_body": not last})
        self.bytes_out += len(data)
        self.is_whole = last


def error_line(error: ProtocolError, id: bytes = b"null") -> bytes:
    """Return an error as a JSON-RPC response."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, dumps(body))


def stateless_status(answer: bytes, id: bytes) -> int:
    """Return the HTTP status of a response of 2026-07-28."""
    prefix = b'{"jsonrpc":"2.0","id":%b,"error":{"code":' % id
    if not answer.startswith(prefix):
        return 200
    return STATELESS_STATUS.get(int(answer[len(prefix) : len(prefix) + 12].partition(b",")[0]), 200)


def retry_after(answer: bytes) -> Headers:
    """Return the header of an answer that refuses a call by a rate, and says when to call again (RFC 9110,
    10.2.3); nothing for any other answer.

    The status of such an answer stays 200, as that of any other error of a call: clients read the JSON-RPC
    error of a 200, and some take a 429 for a failure of the connection.
    """
    if len(answer) > LONGEST_REFUSAL or RETRY_AFTER not in answer:
        return []
    message = json.loads(answer)
    error = message.get("error") if isinstance(message, dict) else None
    data = error.get("data") if isinstance(error, dict) else None
    seconds = data.get("retry_after_seconds") if isinstance(data, dict) else None
    return [(b"retry-after", b"%d" % seconds)] if isinstance(seconds, int) and seconds > 0 else []


def _too_long(limit: int) -> Refused:
    return Refused(413, f"the body is longer than {limit} bytes")


def _no_room(total: Quota) -> Refused:
    words = f"all bodies together may have {total.limit} bytes, and there is no room for this one now"
    return Refused(503, words, Overloaded.code, [(b"retry-after", b"%d" % RETRY_SECONDS)])
