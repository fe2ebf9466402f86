"""Serves MCP over HTTP as an ASGI application (MCP: Streamable HTTP of all versions, and the older HTTP+SSE).

The guard admits a request, its body is parsed once, and decides which wire it belongs to: a request with the
envelope of 2026-07-28 is stateless, any other belongs to a session, or to none if none is needed. The
response is one JSON body, or an event stream if messages precede it. HTTP errors have a JSON-RPC body, never
HTML. The server below (uvicorn or another one) reads sockets and bounds headers.
"""

from __future__ import annotations

import asyncio

from fastrpc._core.encoder import dumps
from fastrpc._core.message import Message
from fastrpc.errors import (
    BatchTooLarge,
    HeaderMismatch,
    InternalError,
    InvalidParams,
    InvalidRequest,
    ParseError,
    ProtocolError,
)
from fastrpc.protocol.versions import CAPABILITIES_KEY, STATELESS, VERSION_KEY
from fastrpc.quotas import Quota
from fastrpc.transports.base import drained
from fastrpc.transports.http.access_token import Presented
from fastrpc.transports.http.auth import WELL_KNOWN
from fastrpc.transports.http.exchange import ExchangePool
from fastrpc.transports.http.guard import AccessRules, Refused, preflight_headers
from fastrpc.transports.http.headers import NAMED, check_headers, check_parameters, parameter_headers
from fastrpc.transports.http.request import PENDING_KEY, HttpRequest, stateless_status
from fastrpc.transports.http.responses import ResponseSender
from fastrpc.transports.http.session_wire import SessionWire
from fastrpc.transports.http.sessions import Sessions
from fastrpc.transports.http.sse import SseEndpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc.transports.http.interfaces import AsksWorkers, Mapped, Receive, Send, SharesSessions
    from fastrpc.transports.http.session_wire import Rest
    from fastrpc.transports.interfaces import Connect, ServedDispatcher

MAX_BODY = 16 * 1024 * 1024
MAX_BODIES = 256 * 1024 * 1024
GRACE_SECONDS = 10.0
LOOK_SECONDS = 0.01
LONG_ELEMENT = 64 * 1024

SIGN_IN = ("/authorize", "/register", "/token")
"""Paths at which clients without metadata expect an authorization server (MCP 2025-03-26, authorization)."""


class HttpApp:
    """The ASGI application of one server.

    `connect` returns a new dispatcher, or another one of a session's, ``connect(main=dispatcher)``;
    `tool_schema` the input schema of a tool, for a principal, or None. `max_batch` bounds a batch. With
    `health`, `/healthz` and `/readyz` are served.
    """

    mcp_paths: tuple[str, ...] = ("/mcp", "/mcp/http")
    media_types: tuple[str, ...] = ("application/json", "text/event-stream")
    """What a client of Streamable HTTP must accept."""
    exposes_requests = False
    """Whether a handler can read its HTTP request (`current_request`)."""

    def __init__(
        self,
        connect: Connect,
        guard: AccessRules,
        *,
        tool_schema: Callable[..., dict[str, Any] | None] = lambda name, principal=None: None,
        max_batch: int = 100,
        max_body: int = MAX_BODY,
        max_bodies: int = MAX_BODIES,
        keep_alive_seconds: float = 15.0,
        session_idle_seconds: float = 1800.0,
        sessions_per_caller: int = 1000,
        max_sessions: int = 10_000,
        health: bool = True,
    ) -> None:
        if guard.authenticator is None:
            connect = _anonymous(connect)
        self.connect = connect
        self.exchanges = ExchangePool(connect)
        self.guard = guard
        self.tool_schema = tool_schema
        self.max_batch = max_batch
        self.max_body = max_body
        self.bodies = Quota(max(max_bodies, max_body))  # alone, the largest always fits
        self.keep_alive_seconds = keep_alive_seconds
        self.ending = False
        """Whether `/readyz` refuses: the server is about to end, though it may still take requests."""
        self.stopping = False
        self.at_end: list[Callable[[], object]] = []
        """Called when new requests are refused because the server shuts down."""
        self.make_request: Callable[..., HttpRequest] = HttpRequest
        """Makes a request of a scope, `receive` and `send`; the access log replaces it (`access`)."""
        self.sessions = Sessions(
            connect,
            idle_seconds=session_idle_seconds,
            per_caller=sessions_per_caller,
            in_all=max_sessions,
        )
        self.sessions.make_sharing = self._make_sharing
        self.workers: AsksWorkers | None = None
        """What asks the other workers of the server; None: there are none."""
        self.responses = ResponseSender(self.exchanges, guard, keep_alive_seconds)
        self.session_wire = SessionWire(self.exchanges, self.sessions, self.responses)
        sse = SseEndpoint(self, per_caller=sessions_per_caller, in_all=max_sessions)
        self.routes: dict[str, Callable[[HttpRequest], Awaitable[None]]] = {
            "/mcp": self._mcp,
            "/mcp/http": self._mcp,
            "/sse": lambda request: sse.open(request, "/messages"),
            "/messages": sse.post,
            "/mcp/sse": lambda request: sse.open(request, "/mcp/sse/message"),
            "/mcp/sse/message": sse.post,
        }
        self.open_routes: dict[str, Callable[[HttpRequest], Awaitable[None]]] = {
            WELL_KNOWN: self._resource_metadata,
            f"{WELL_KNOWN}/mcp": self._resource_metadata,
        }
        """Routes that need no token. The guard checks Host and Origin before every route."""
        if health:
            self.open_routes["/healthz"] = lambda request: request.answer(200, b'{"status":"ok"}')
            self.open_routes["/readyz"] = self._is_ready
        place = guard.authenticator.metadata_path if guard.authenticator is not None else None
        if place is not None:
            self.open_routes[place] = self._resource_metadata
        self._sse = sse
        self._message = Message()

    def _make_sharing(self) -> SharesSessions:
        from fastrpc.transports.http.session_sharing import SessionSharing

        return SessionSharing(self.sessions, asyncio.get_running_loop())

    async def __call__(self, scope: Mapped, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "http":
            pending = scope.get(PENDING_KEY)
            request = self.make_request(scope, receive, send)
            await request.serve(self._route if pending is None else pending.serve)
        elif kind == "lifespan":
            await self._live(receive, send)
        elif kind == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1002})

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.stop(0.0)
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def stop(self, grace_seconds: float | None = GRACE_SECONDS) -> None:
        """Shut down: refuse new requests, end the streams of listeners, wait for calls in flight (None:
        without a limit), and cancel the rest.

        To be called before the server waits for its connections to close: this closes them.
        """
        self.refuse_new()
        self.exchanges.closed = True
        running = self.exchanges.running
        while self.at_end:
            self.at_end.pop()()
        self.sessions.stop_listening()
        for exchange in list(running):
            exchange.dispatcher.changes.end_listening()
        await drained(self._wait_idle(), grace_seconds)
        for exchange in list(running):
            exchange.interrupt(InternalError("The server has ended"))
        self.sessions.end_all("The server has ended")
        self._sse.end_all()
        await asyncio.sleep(0)
        self.exchanges.close()
        if self.exchanges.runtime is not None:
            await self.exchanges.runtime.leave()

    def refuse_new(self) -> None:
        """Refuse new requests from now on."""
        self.ending = self.stopping = True

    async def _wait_idle(self) -> None:
        while self.exchanges.running or self._sse.busy or self._runs_tasks:
            await asyncio.sleep(LOOK_SECONDS)

    @property
    def _runs_tasks(self) -> bool:
        """Whether tasks run here, which are calls in flight, too: no request waits for them any more."""
        runtime = self.exchanges.runtime
        return runtime is not None and "tasks" in runtime.__dict__ and bool(runtime.tasks.is_busy)

    async def _route(self, request: HttpRequest) -> None:
        request.origin = self.guard.check_place(request.headers)
        if request.method == "OPTIONS" and request.origin is not None:
            await request.answer(204, b"", preflight_headers(request.headers))
            return
        serve = self.open_routes.get(request.path)
        if serve is not None:
            if request.method not in ("GET", "HEAD"):
                raise Refused(405, f"{request.method:.40}: not served here", headers=[(b"allow", b"GET")])
            await serve(request)
            return
        serve = self.routes.get(request.path)
        if serve is None:  # clients that look for authorization endpoints would misunderstand a 401
            raise self._nothing_at(request.path)
        admission = await self.guard.authenticate(request.headers)
        request.principal = admission.principal
        self.check_open()
        with Presented(admission.access_token):
            await serve(request)

    def _nothing_at(self, path: str) -> Refused:
        """Return the refusal of an unknown path; at authorization endpoints it says what token is needed."""
        message = f"There is nothing at {path:.200}"
        if path in SIGN_IN or "/.well-known/" in path:
            message += f": this server {self.guard.needs}"
        return Refused(404, message)

    def check_open(self) -> None:
        """Raise Refused if the server is shutting down."""
        if self.stopping:
            raise Refused(503, "The server is ending", headers=[(b"retry-after", b"5")])

    async def _is_ready(self, request: HttpRequest) -> None:
        if self.ending:
            await request.answer(503, b'{"status":"stopping"}', is_logged=False)
        else:
            await request.answer(200, b'{"status":"ok"}')

    async def _resource_metadata(self, request: HttpRequest) -> None:
        """Respond with the protected resource's metadata (RFC 9728)."""
        authenticator = self.guard.authenticator
        metadata = None if authenticator is None else authenticator.metadata
        if metadata is None:
            raise self._nothing_at(request.path)
        headers = [(b"cache-control", b"max-age=3600")]
        if request.origin is None:  # a page could not read a cached response, which has no CORS headers
            headers.append((b"vary", b"Origin"))
        await request.answer(200, dumps(metadata), headers)

    async def _mcp(self, request: HttpRequest) -> None:
        if request.method == "POST":
            await self._post(request)
        elif (request.header(b"mcp-protocol-version") or "") >= STATELESS:
            only = [(b"allow", b"POST")]
            raise Refused(405, f"{request.method:.40}: {STATELESS} has POST only", headers=only)
        elif request.method == "GET":
            await self.session_wire.get(request)
        elif request.method == "DELETE":
            await self.session_wire.delete(request)
        else:
            allow = (b"allow", b"GET, POST, DELETE")
            raise Refused(405, f"{request.method:.40}: not served here", headers=[allow])

    async def _post(self, request: HttpRequest) -> None:
        rest = await self._take_post(request)
        if rest is not None:  # a call waits: the body, and what has read it, are no longer kept
            await rest

    async def _take_post(self, request: HttpRequest) -> Rest:
        """Answer a POST, or return what sends the answer, to be awaited, where the call waits."""
        request.check_form()
        if not request.accepts(*self.media_types):
            raise Refused(406, f"Accept: expected {' and '.join(self.media_types)}")
        body = await request.body(self.max_body, self.bodies)
        self.check_open()
        message = self.read(body)
        request.note_message(message, body)
        kind, method, id = message.kind, message.method or "", message.id or b"null"
        if kind == "broken":
            raise ParseError(f"Parse error: {message.error}")
        if len(request.headers.get(b"mcp-protocol-version", ())) > 1:
            twice = HeaderMismatch("MCP-Protocol-Version: the header occurs twice")
            await request.refuse(400, twice, id)
            return None
        stateless_header = (request.header(b"mcp-protocol-version") or "") >= STATELESS
        if kind == "invalid":
            exchange = self.exchanges.take(request.principal)  # whose dispatcher makes the error
            answer = exchange.receive(body, request.entry)
            self.exchanges.put_back(exchange)
            await request.answer(400, answer or b"")
            return None
        if kind == "batch":
            await self._check_batch(message, stateless_header)
            self.check_open()
        elif kind == "response" and stateless_header:
            raise InvalidRequest(f"a response: {STATELESS} has no requests from the server to answer")
        elif kind in ("notification", "ignored") and (stateless_header or message.envelope is not None):
            runtime = self.exchanges.runtime
            if kind == "notification" and runtime is not None:  # else no request has come yet
                runtime.upstreams.take_notification(method, message.params or {})
            await request.answer(202)
            return None
        elif kind == "request" and (message.envelope is not None or method == "server/discover"):
            return await self._post_stateless(request, body, message)
        elif kind == "request" and stateless_header:
            error: ProtocolError = InvalidParams(f"_meta: {VERSION_KEY} is missing")
            if method == "initialize":
                error = HeaderMismatch(f"MCP-Protocol-Version: {STATELESS} has no initialize")
            await request.refuse(400, error, id)
            return None
        return await self.session_wire.post(request, body, kind, method)

    def read(self, body: bytes) -> Message:
        """Parse a message; the result is valid until the next call."""
        message = self._message
        message.read(body)
        if len(body) > MAX_BODY // 64:  # do not keep a large buffer
            self._message = Message()
        return message

    async def _check_batch(self, message: Message, stateless_header: bool) -> None:
        """Raise InvalidRequest for a batch that is too large, or of 2026-07-28, which has no batches."""
        if message.batch_size > self.max_batch:
            raise BatchTooLarge(message.batch_size, self.max_batch)
        element = Message()
        for text in message.elements():
            element.read(text)
            if stateless_header or element.envelope is not None:
                raise InvalidRequest(f"Invalid request: {STATELESS} has no batches")
            if len(text) > LONG_ELEMENT:
                await asyncio.sleep(0)  # others have their turn

    async def _post_stateless(self, request: HttpRequest, body: bytes, message: Message) -> Rest:
        id = message.id or b"null"
        try:
            self._check_headers(request, message)
        except ProtocolError as error:
            await request.refuse(400, error, id)
            return None
        exchange = self.exchanges.take(request.principal)
        answer = exchange.receive(body, request.entry)
        if answer is not None:
            self.exchanges.put_back(exchange)
            await request.answer(stateless_status(answer, id), answer)
            return None
        return self.responses.send(request, exchange, id=id)

    def _check_headers(self, request: HttpRequest, message: Message) -> None:
        """Compare the headers with the body, of which only the values that they name become Python objects.

        An incomplete envelope is left to the dispatcher. Raises HeaderMismatch.
        """
        version, method = message.envelope, message.method or ""
        if not isinstance(version, str) or not isinstance(message.meta.get(CAPABILITIES_KEY), dict):
            return
        name = message.param(NAMED[method]) if method in NAMED else None
        check_headers(request.headers, method, name, version)
        if method == "tools/call" and version == STATELESS:
            schema = self.tool_schema(name, request.principal) if isinstance(name, str) else None
            if schema is not None and parameter_headers(schema):
                arguments = message.param("arguments")
                check_parameters(request.headers, schema, arguments if isinstance(arguments, dict) else {})


def _anonymous(connect: Connect) -> Connect:
    """Return the same function for a server without authentication, whose callers have one principal."""

    def connect_anybody(main: Any = None) -> ServedDispatcher:
        dispatcher = connect(main)
        dispatcher.runtime.knows_callers = False
        return dispatcher

    return connect_anybody
