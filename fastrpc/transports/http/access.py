"""Records each request over HTTP for the access log, on both paths: once, when it is over.

With an access log each class here replaces the one that it extends (`Access.attach`, and `HttpServer`);
without one this is not imported. On the fast path it costs some 0.2 µs a request. Lines, files and the thread
that writes are in `fastrpc.telemetry.access_log`.

A record has the method and the name of the message, or the HTTP method and path if no message was read.
Secrets in names are masked; the part of a URI after ``?`` or ``#``, which may hold tokens, is omitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from fastrpc._core.access_buffer import NotedAnswers, call_of, prepare, take_outcome
from fastrpc._core.recorder import ticks
from fastrpc.errors import InvalidRequest
from fastrpc.redaction import masked
from fastrpc.transports.http.exchange import DROPPED, ENDS, STOPPED, Exchange
from fastrpc.transports.http.hot_path import HotPath
from fastrpc.transports.http.pending_response import PendingResponse
from fastrpc.transports.http.protocol import Protocol
from fastrpc.transports.http.request import HttpRequest, error_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc._core.access_buffer import AccessBuffer
    from fastrpc._core.message import Message
    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.interfaces import Client, Mapped, Receive, Send
    from fastrpc.transports.http.remembered import Head, Headers
    from fastrpc.transports.http.sessions import HttpSession
    from fastrpc.transports.http.shared import SharedConnection
    from fastrpc.transports.interfaces import ServedDispatcher

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The member of the params with the name of what a method calls."""
NO_MESSAGE = b'{"jsonrpc":"2.0","id":null,"error":{"code":'
RESPONSE, ERROR = b'{"jsonrpc":"2.0","id":', b',"error":{"code":'
NOTED_KEY = "fastrpc.noted"
"""In the scope of a request that its connection has refused, and recorded, by itself."""
LONGEST_NAME = 256


@dataclass(slots=True, eq=False)
class AccessEntry:
    """The record of a request, while it is being collected."""

    began: int
    client: Client = None
    principal: str = ""
    method: str = ""
    name: str = ""
    id: bytes = b""
    is_message: bool = False
    """Whether an MCP message has been read."""
    status: int = 0
    outcome: str | None = None
    bytes_in: int = 0
    bytes_out: int = 0


class Access:
    """Records the requests of one application in `buffer`."""

    def __init__(self, buffer: AccessBuffer) -> None:
        self.buffer = buffer
        self.answers: Any = None
        """The `NotedAnswers` of the fast path. Its `served`, the `AccessEntry` of an exchange or the
        connection that sessions share, is set after each call: a tool may run the loop, and with it other
        requests."""

    def attach(self, app: HttpApp) -> None:
        """Record all requests to an application from now on."""
        app.make_request = partial(NotedRequest, self)
        app.exchanges.make = app.sessions.make_exchange = partial(NotedExchange, self)

    def note(self, entry: AccessEntry) -> None:
        self.buffer.note(
            entry.began,
            entry.client,
            encodable(entry.principal),
            encodable(entry.method),
            encodable(entry.name),
            entry.id,
            entry.status,
            entry.outcome,
            entry.bytes_in,
            entry.bytes_out,
        )


class NotedHotPath(HotPath):
    """Records the requests that the fast path answers."""

    def __init__(self, app: HttpApp, loop: AbstractEventLoop, access: Access) -> None:
        super().__init__(app, loop)
        self._access = access
        noted = NotedAnswers(access.buffer, super().answer, self._shared.connection, self._log_unshared)
        access.answers = noted
        self.answer = noted.answer  # type: ignore[method-assign,assignment]
        self.make_pending = partial(NotedPendingResponse, access)

    def _log_unshared(
        self,
        entry: AccessEntry,
        began: int,
        head: Head,
        body: bytes,
        client: Client,
        answer: bytes | PendingResponse,
    ) -> None:
        """Record a request on a connection that was not shared, now or when its response is sent."""
        entry.began = began
        entry.client = client
        entry.principal = head.principal
        entry.bytes_in = len(body)
        if isinstance(answer, NotedPendingResponse):
            answer.entry = entry
            return
        assert isinstance(answer, bytes)
        entry.status = int(answer[9:12])
        entry.bytes_out = len(answer) - answer.find(b"\r\n\r\n") - 4
        if entry.outcome is None:  # fastrpc itself has failed
            entry.outcome = "protocol_error"
        self._access.note(entry)

    def _shared_in(self, session: HttpSession) -> SharedConnection:
        shared = super()._shared_in(session)
        if not shared.busy:
            prepare(shared.connection)
        return shared

    def _note_use(self, session: HttpSession, shared: SharedConnection) -> None:
        super()._note_use(session, shared)
        self._access.answers.served = shared.connection

    def _internal_error(
        self, error: BaseException, body: bytes, headers: Headers, shared: SharedConnection | None = None
    ) -> bytes:
        if shared is not None:
            self._access.answers.served = shared.connection
        return super()._internal_error(error, body, headers, shared)


class NotedPendingResponse(PendingResponse):
    """Records a request that the fast path has begun, when it is over."""

    __slots__ = ("_access", "entry")

    def __init__(self, access: Access, *values: Any) -> None:
        super().__init__(*values)
        self._access = access
        self.entry: Any = None

    def answer(self) -> tuple[int, bytes] | None:
        found = PendingResponse.answer(self)
        if found is not None:
            self.entry.status = found[0]
            self.entry.bytes_out = len(found[1].rstrip(b"\n"))
            self._access.note(self.entry)
        return found

    def client_gone(self) -> None:
        PendingResponse.client_gone(self)
        self.entry.outcome = "cancelled"
        self._access.note(self.entry)

    async def serve(self, request: HttpRequest) -> None:
        assert isinstance(request, NotedRequest)
        request.entry = self.entry
        await PendingResponse.serve(self, request)


class NotedExchange(Exchange):
    """Determines the outcome of its request."""

    def __init__(self, access: Access, dispatcher: ServedDispatcher, loop: AbstractEventLoop) -> None:
        super().__init__(dispatcher, loop)
        self._access = access
        self._entry: AccessEntry | None = None

    def receive(self, body: bytes, entry: Any = None) -> bytes | None:
        self._entry = entry
        self._prepare()
        return super().receive(body, entry)

    def receive_expected(self, body: bytes, method: bytes, name: bytes) -> bytes | None:
        entry = self._entry = AccessEntry(0)
        self._prepare()
        try:
            answer = super().receive_expected(body, method, name)
            if answer != b"":
                self._take_call(entry)
        finally:
            self._access.answers.served = entry
        return answer

    def _prepare(self) -> None:
        self.dispatcher.responses.last_outcome = None
        prepare(self.connection)

    def _take_call(self, entry: AccessEntry) -> None:
        """Store the method, id and name of the message in its entry."""
        method, name, id = call_of(self.connection)
        entry.is_message = True
        entry.method = method or ""
        entry.id = shown_id(id)
        if name is None and method in NAMED:
            name = self.connection.message.param(NAMED[method])
        if isinstance(name, str):
            entry.name = name if name in self.connection.plans else shown(name)

    def _received(self, body: bytes) -> bytes | None:
        answer = super()._received(body)
        if answer is not None:
            self._ended(answer)
        return answer

    def put(self, kind: str, line: bytes) -> None:
        if kind in ENDS:
            self._ended(line, kind)
        super().put(kind, line)

    def _ended(self, line: bytes, kind: str = "") -> None:
        entry, self._entry = self._entry, None
        if entry is None:
            return
        outcome = take_outcome(self.connection)
        if outcome is None or outcome == "ok":
            outcome = self.dispatcher.responses.last_outcome or outcome
        if kind == STOPPED:
            outcome = "protocol_error"
        elif kind == DROPPED:
            outcome = "cancelled"
        elif outcome is None and line:
            outcome = self._outcome_in(line)
        entry.outcome = outcome

    def _outcome_in(self, line: bytes) -> str:
        """Return the outcome by the response itself: success, or a protocol error."""
        if line.startswith(b"["):  # a batch; the dispatcher sets other outcomes
            return "protocol_error" if NO_MESSAGE in line else "ok"
        error = line.find(ERROR, 0, 512)
        if error < 0 or not line.startswith(RESPONSE):
            return "ok"
        error_text = line[error + len(b',"error":') :].rstrip(b"\n")
        known = any(error_text == text + b"}" for text in self.connection.unknown.values())
        return "unknown" if known else "protocol_error"


class NotedRequest(HttpRequest):
    """A request that records itself when it is over."""

    entry: AccessEntry

    def __init__(self, access: Access, scope: Mapped, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        self._access = access
        self.entry = AccessEntry(ticks())

    async def serve(self, route: Callable[[HttpRequest], Awaitable[None]]) -> None:
        try:
            await super().serve(route)
        finally:
            if NOTED_KEY not in self.scope:
                self._note()

    def _note(self) -> None:
        entry = self.entry
        entry.client, entry.status, entry.bytes_out = self.client, self.status, self.bytes_out
        entry.principal = entry.principal or self.principal
        if not entry.method:
            entry.method, entry.name = self.method[:40], shown(self.path)
        if self.gone and entry.is_message and not self.is_whole:
            entry.outcome = "cancelled"
        elif entry.outcome is None and entry.status >= 400:
            entry.outcome = "protocol_error" if entry.is_message else "refused"
        self._access.note(entry)

    def note_message(self, message: Message, body: bytes) -> None:
        entry = self.entry
        entry.is_message = True
        entry.bytes_in = len(body)
        if message.kind == "batch":
            entry.method = "batch"
        elif message.kind in ("request", "notification"):
            entry.method = shown(message.method or "")
            entry.id = shown_id(message.id)
            if message.method in NAMED:
                name = message.param(NAMED[message.method])
                entry.name = shown(name) if isinstance(name, str) else ""
        elif message.kind == "response":
            entry.method = "response"


class NotedProtocol(Protocol):
    """Records the requests that a connection refuses by itself. `access` is set on a subclass."""

    access: Access

    def _write_refusal(self, status: int, message: str) -> None:
        running = self._running
        entry = AccessEntry(ticks())
        entry.client = self.client
        entry.status = status
        entry.outcome = "refused"
        entry.bytes_out = len(error_line(InvalidRequest(message)))
        if running is not None and not running.response_complete:
            scope: Mapped = running.scope  # type: ignore[assignment]  # a dict, as all of ASGI are
            entry.method, entry.name = scope["method"][:40], shown(scope["path"])
            scope[NOTED_KEY] = True
        self.access.note(entry)
        super()._write_refusal(status, message)


def shown(name: str) -> str:
    """Return a name from a request, without the part after ``?`` or ``#``, and with secrets masked."""
    for separator in "?#":
        name, found, _ = name.partition(separator)
        if found:
            name += separator + "…"
            break
    return masked(name[: 4 * LONGEST_NAME])[:LONGEST_NAME]


def shown_id(id: bytes | None) -> bytes:
    """Return the JSON text of an id, b"" if it contains a secret."""
    if id is None:
        return b""
    if not id.startswith(b'"'):
        return id
    text = id.decode("utf-8", "replace")
    return id if masked(text) == text else b""


def encodable(text: str) -> str:
    """Return a text that UTF-8 can encode: lone surrogates are replaced."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
