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
from fastrpc.protocol.versions import BATCHES, CAPABILITIES_KEY, SESSION_VERSIONS, STATELESS, VERSION_KEY
from fastrpc.quotas import Quota
from fastrpc.transports.base import drained
from fastrpc.transports.http.access_token import Presented
from fastrpc.transports.http.auth import WELL_KNOWN
from fastrpc.transports.http.exchange import ANSWER, ENDS, MESSAGE, PAUSED, SILENT, STOPPED, Exchange
from fastrpc.transports.http.guard import AccessRules, Refused, preflight_headers
from fastrpc.transports.http.headers import (
    NAMED,
    check_headers,
    check_parameters,
    parameter_headers,
)
from fastrpc.transports.http.request import PENDING_KEY, HttpRequest, stateless_status
from fastrpc.transports.http.sessions import HttpSession, Sessions
from fastrpc.transports.http.sse import SseEndpoint
from fastrpc.transports.http.streams import KEEP_ALIVE, event_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

    from fastrpc.quotas import Share
    from fastrpc.transports.http.interfaces import Mapped, Receive, Send
    from fastrpc.transports.http.streams import Reader
    from fastrpc.transports.interfaces import Connect, ServedRuntime

    Rest = Coroutine[Any, Any, None] | None  # what sends the answer of a call that waits, if it does

MAX_BODY = 16 * 1024 * 1024
MAX_BODIES = 256 * 1024 * 1024
KEEP_ALIVE_SECONDS = 15.0
GRACE_SECONDS = 10.0
LOOK_SECONDS = 0.01
LONG_ELEMENT = 64 * 1024
IDLE_EXCHANGES = 256

ASSUMED = "2025-03-26"
"""The version of a client that names none and has no session (MCP 2025-06-18, MCP-Protocol-Version)."""

SIGN_IN = ("/authorize", "/register", "/token")
"""Paths at which clients without metadata expect an authorization server (MCP 2025-03-26, authorization)."""

NEED_A_SESSION = ("logging/setLevel", "resources/subscribe", "resources/unsubscribe")


class HttpApp:
    """The ASGI application of one server.

    `connect` returns a new dispatcher, or another one of a session's, ``connect(main=dispatcher)``;
    `tool_schema` the input schema of a tool, for a principal, or None. `max_batch` bounds a batch.
    """

    mcp_paths: tuple[str, ...] = ("/mcp", "/mcp/http")
    media_types: tuple[str, ...] = ("application/json", "text/event-stream")
    """What a client of Streamable HTTP must accept."""
    json_only = False
    """Whether messages before a response are dropped, so that it is always one JSON body."""
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
        keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
        session_idle_seconds: float = 1800.0,
        sessions_per_caller: int = 1000,
        max_sessions: int = 10_000,
    ) -> None:
        self.connect = connect
        self.guard = guard
        self.tool_schema = tool_schema
        self.max_batch = max_batch
        self.max_body = max_body
        self.bodies = Quota(max(max_bodies, max_body))  # alone, the largest always fits
        self.keep_alive_seconds = self.stream_seconds = keep_alive_seconds
        self.stopping = False
        self.at_end: list[Callable[[], object]] = []
        """Called when new requests are refused because the server shuts down."""
        self.make_request: Callable[..., HttpRequest] = HttpRequest
        """Makes a request of a scope, `receive` and `send`; the access log replaces it (`access`)."""
        self.make_exchange: Callable[..., Exchange] = Exchange
        self.running: set[Exchange] = set()
        """Exchanges whose request is in flight."""
        self.sessions = Sessions(
            connect,
            idle_seconds=session_idle_seconds,
            per_caller=sessions_per_caller,
            in_all=max_sessions,
        )
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
            "/healthz": self._is_alive,
            "/readyz": self._is_ready,
            WELL_KNOWN: self._resource_metadata,
            f"{WELL_KNOWN}/mcp": self._resource_metadata,
        }
        """Routes that need no token. The guard checks Host and Origin before every route."""
        place = guard.authenticator.metadata_path if guard.authenticator is not None else None
        if place is not None:
            self.open_routes[place] = self._resource_metadata
        self._sse = sse
        self._idle: dict[str | None, list[Exchange]] = {None: []}  # by the version without a session
        self._message = Message()
        self._runtime: ServedRuntime | None = None

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

    # --- life ---------------------------------------------------------------------------------------------

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
        self.stopping = True
        while self.at_end:
            self.at_end.pop()()
        self.sessions.stop_listening()
        for exchange in list(self.running):
            exchange.dispatcher.changes.end_listening()
        await drained(self._wait_idle(), grace_seconds)
        for exchange in list(self.running):
            exchange.interrupt(InternalError("The server has ended"))
        self.sessions.end_all("The server has ended")
        self._sse.end_all()
        await asyncio.sleep(0)
        for idle in self._idle.values():
            while idle:
                idle.pop().close()
        if self._runtime is not None:
            await self._runtime.leave()

    async def _wait_idle(self) -> None:
        while self.running or self._sse.busy:
            await asyncio.sleep(LOOK_SECONDS)

    def new_exchange(self) -> Exchange:
        """Return an exchange with a main connection of its own."""
        dispatcher = self.connect()
        self._runtime = dispatcher.runtime
        return self.make_exchange(dispatcher, asyncio.get_running_loop())

    # --- routes -------------------------------------------------------------------------------------------

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
        if admission.access_token is None:
            await serve(request)
        else:
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

    async def _is_alive(self, request: HttpRequest) -> None:
        await request.answer(200, b'{"status":"ok"}')

    async def _is_ready(self, request: HttpRequest) -> None:
        if self.stopping:
            await request.answer(503, b'{"status":"stopping"}')
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
            await self._get(request)
        elif request.method == "DELETE":
            await self._delete(request)
        else:
            allow = (b"allow", b"GET, POST, DELETE")
            raise Refused(405, f"{request.method:.40}: not served here", headers=[allow])

    # --- POST: which wire? --------------------------------------------------------------------------------

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
            await self._post_invalid(request, body)
        elif kind == "batch":
            await self._check_batch(message, stateless_header)
            self.check_open()
            return await self._post_session_wire(request, body, kind, "")
        elif kind == "response":
            if stateless_header:
                raise InvalidRequest(f"a response: {STATELESS} has no requests from the server to answer")
            return await self._post_session_wire(request, body, kind, "")
        elif kind in ("notification", "ignored"):
            if stateless_header or message.envelope is not None:
                if kind == "notification" and self._runtime is not None:  # else nothing is behind it yet
                    self._runtime.take_notification(method, message.params or {})
                await request.answer(202)
            else:
                return await self._post_session_wire(request, body, kind, method)
        elif message.envelope is not None or method == "server/discover":
            return await self._post_stateless(request, body, message)
        elif not stateless_header:
            return await self._post_session_wire(request, body, kind, method)
        elif method == "initialize":
            error = HeaderMismatch(f"MCP-Protocol-Version: {STATELESS} has no initialize")
            await request.refuse(400, error, id)
        else:
            await request.refuse(400, InvalidParams(f"_meta: {VERSION_KEY} is missing"), id)
        return None

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

    async def _post_invalid(self, request: HttpRequest, body: bytes) -> None:
        """Respond to JSON that is not a message: the dispatcher makes the error."""
        exchange = self.exchange(request.principal)
        answer = exchange.receive(body, request.entry)
        self.put_back(exchange)
        await request.answer(400, answer or b"")

    # --- stateless wire: 2026-07-28 -----------------------------------------------------------------------

    async def _post_stateless(self, request: HttpRequest, body: bytes, message: Message) -> Rest:
        id = message.id or b"null"
        try:
            self._check_headers(request, message)
        except ProtocolError as error:
            await request.refuse(400, error, id)
            return None
        exchange = self.exchange(request.principal)
        answer = exchange.receive(body, request.entry)
        if answer is not None:
            self.put_back(exchange)
            await request.answer(stateless_status(answer, id), answer)
            return None
        return self.send_stateless(request, exchange, id)

    async def send_stateless(
        self, request: HttpRequest, exchange: Exchange, id: bytes, seconds: float | None = None
    ) -> None:
        """Send the messages and the response of a stateless request; for `seconds` see `_send_response`."""
        await self._send_response(
            request,
            exchange,
            lambda kind, line: 503 if kind == STOPPED else stateless_status(line, id),
            seconds=seconds,
        )

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

    async def _send_response(
        self,
        request: HttpRequest,
        exchange: Exchange,
        status_of: Callable[[str, bytes], int],
        *,
        cancel: bool = True,
        seconds: float | None = None,
    ) -> None:
        """Send the messages and the response of a request. With `cancel` a disconnect cancels the request.

        `status_of` receives the kind and the line of the response. `seconds` is the time until the first
        keep-alive comment; None: `stream_seconds`.
        """
        self.begin(exchange, None, request.share)
        over = False
        request.watch(exchange.waiter.wake)
        try:
            over = await self._send_messages(request, exchange, status_of, seconds)
        finally:
            if over:
                self.running.discard(exchange)
                self.put_back(exchange)
            elif cancel:
                self.running.discard(exchange)
                exchange.close()
            else:
                exchange.hand_over(lambda kind, line: self._ended_without_client(exchange, kind))

    def _ended_without_client(self, exchange: Exchange, kind: str) -> None:
        """Handle an item of a call whose client has disconnected: it is dropped."""
        if kind in ENDS:
            self.running.discard(exchange)
            self.put_back(exchange)

    async def _send_messages(
        self,
        request: HttpRequest,
        exchange: Exchange,
        status_of: Callable[[str, bytes], int],
        seconds: float | None,
    ) -> bool:
        """Send the items of an exchange up to the response; False if the client has disconnected."""
        while True:
            if request.gone:  # the caller decides about the remaining items, the response included
                return False
            connection = exchange.connection
            if connection.listening and not await self.guard.still_admits(request, connection.principal):
                await request.more(b"", last=True)
                return False
            item = exchange.next()
            if item is None:
                woken = await exchange.waiter.wait(self.stream_seconds if seconds is None else seconds)
                seconds = None
                if not woken:
                    if not request.begun:
                        await request.begin()
                    await request.more(KEEP_ALIVE)
                continue
            kind, line = item
            if self.json_only and kind == MESSAGE:
                continue
            if not request.begun:
                if kind == SILENT:
                    await request.answer(202)
                    return True
                if kind in (ANSWER, STOPPED):
                    await request.answer(status_of(kind, line), line)
                    return True
                await request.begin()
            if line:
                await request.more(event_of(line))
            if kind in ENDS:
                await request.more(b"", last=True)
                return True

    def begin(self, exchange: Exchange, session: HttpSession | None, share: Share | None = None) -> None:
        """Note that a request is in flight: the shutdown waits for it. `share`: what its body takes."""
        if exchange.in_flight:
            exchange.share = share
        if session is None:
            self.running.add(exchange)
            return
        session.begin(exchange)
        if exchange.in_flight:  # a call that has ended already may still have items to send
            self.running.add(exchange)
            exchange.on_end = self.running.discard

    def exchange(self, principal: str, version: str | None = None) -> Exchange:
        """Return an exchange for one request without a session; `version` if it is not of 2026-07-28."""
        idle = self._idle.get(version)
        exchange = idle.pop() if idle else self.new_exchange()
        if version is not None and exchange.dispatcher.session.version is None:
            exchange.dispatcher.adopt_version(version)
        exchange.dispatcher.principal = principal
        return exchange

    def put_back(self, exchange: Exchange) -> None:
        """Reuse the exchange of such a request, which is over."""
        idle = self._idle.get(exchange.dispatcher.session.version)
        if idle is None:
            idle = self._idle[exchange.dispatcher.session.version] = []
        if exchange.reusable and not self.stopping and len(idle) < IDLE_EXCHANGES:
            exchange.hand_over(None)
            idle.append(exchange)
        else:
            exchange.close()

    # --- session wire: up to 2025-11-25 -------------------------------------------------------------------

    async def _post_session_wire(self, request: HttpRequest, body: bytes, kind: str, method: str) -> Rest:
        if method == "initialize" and kind == "request":
            await self._post_initialize(request, body)
            return None
        if b"mcp-session-id" in request.headers:
            return await self._post_in_session(request, body, kind)
        return await self._post_without_session(request, body, kind, method)

    def _session_of(self, request: HttpRequest) -> HttpSession:
        """Return the session that a request names. Raises Refused: 400 without one, 404 if unknown."""
        given = request.header(b"mcp-session-id")
        if given is None:
            raise Refused(400, "Mcp-Session-Id: the header is missing; a session begins with initialize")
        session = self.sessions.find(given, request.principal)
        if session is None:
            raise Refused(404, "Mcp-Session-Id: there is no such session", code=-32001)
        check_version(request.header(b"mcp-protocol-version"))
        return session

    async def _post_initialize(self, request: HttpRequest, body: bytes) -> None:
        session = self.sessions.open(request.principal, asyncio.get_running_loop())
        if session is None:
            raise Refused(429, "Too many sessions are open", headers=[(b"retry-after", b"60")])
        self._runtime = session.dispatcher.runtime
        exchange = session.exchange()
        answer = exchange.receive(body, request.entry)
        if answer is None:  # the proxy connects to its upstream server first
            answer = await self._answer_late(request, session, exchange)
        if not answer or session.version is None:
            self.sessions.end(session)
            exchange.close()  # or its buffers would stay until a garbage collection
            await request.answer(400, answer or b"")
            return
        session.put_back(exchange)
        await request.answer(200, answer, [(b"mcp-session-id", session.id.encode())])

    async def _answer_late(
        self, request: HttpRequest, session: HttpSession, exchange: Exchange
    ) -> bytes | None:
        """Wait for the response to initialize; if the client disconnects, end the session and return None."""
        session.begin(exchange)
        request.watch(exchange.waiter.wake)
        try:
            while not request.gone:
                item = exchange.next()
                if item is None:
                    await exchange.waiter.wait(self.keep_alive_seconds)
                elif item[0] in ENDS:
                    return item[1]
        except BaseException:  # the ASGI server aborts the request
            self.sessions.end(session)
            raise
        return None

    async def _post_in_session(self, request: HttpRequest, body: bytes, kind: str) -> Rest:
        session = self._session_of(request)
        if kind == "batch" and session.version not in BATCHES:
            raise InvalidRequest("Invalid request: batches are part of protocol version 2025-03-26 only")
        exchange = session.exchange()
        answer = exchange.receive(body, request.entry)
        if kind in ("notification", "response"):
            session.put_back(exchange)
            await request.answer(202)
        elif answer is not None:
            session.put_back(exchange)
            await request.answer(200, answer)
        elif not exchange.waits:  # a batch without a request
            session.put_back(exchange)
            await request.answer(202)
        else:
            return self.send_in_session(request, session, exchange)
        return None

    async def send_in_session(
        self, request: HttpRequest, session: HttpSession, exchange: Exchange, seconds: float | None = None
    ) -> None:
        """Send the messages and the response of a request in a session. A disconnect does not cancel it: the
        client may resume the stream. `seconds`: to the first keep-alive comment; None: `stream_seconds`.
        """
        self.begin(exchange, session, request.share)
        request.watch(exchange.waiter.wake)
        try:
            answer = await self._answer_alone(request, session, exchange, seconds)
        except BaseException:  # the ASGI server aborts the request; the call goes on
            session.stream_of(exchange).leave()
            raise
        if answer is not None:
            session.put_back(exchange)
            kind, line = answer
            if kind == SILENT:
                await request.answer(202)
                return
            # The request of a cancelled call had been accepted: its error is a JSON-RPC one. 404 and 503 are
            # for later requests (MCP 2025-11-25, transports: session management); clients give up on them.
            await request.answer(200, line)
            return
        reader = session.stream_of(exchange)
        if request.gone:
            reader.leave()
            return
        request.on_gone = reader.waiter.wake
        await self._send(request, session, reader, 0)

    async def _answer_alone(
        self, request: HttpRequest, session: HttpSession, exchange: Exchange, seconds: float | None
    ) -> tuple[str, bytes] | None:
        """Wait for the response; None if a message precedes it, it takes long, or the client disconnects."""
        while True:
            item = exchange.peek()
            if item is None and not request.gone:
                woken = await exchange.waiter.wait(self.stream_seconds if seconds is None else seconds)
                seconds = None
                if woken:
                    continue
            elif item is not None and item[0] in (ANSWER, STOPPED, SILENT):
                return exchange.next()
            elif item is not None and (
                (item[0] == PAUSED and not session.primed) or (item[0] == MESSAGE and self.json_only)
            ):
                exchange.next()
                continue
            return None

    async def _post_without_session(self, request: HttpRequest, body: bytes, kind: str, method: str) -> Rest:
        """Serve a client that uses no session, as far as the method needs none."""
        version = check_version(request.header(b"mcp-protocol-version")) or ASSUMED
        if kind == "notification":
            await request.answer(202)
            return None
        if kind == "response" or method in NEED_A_SESSION:
            self._session_of(request)
        if kind == "batch" and version not in BATCHES:
            raise InvalidRequest("Invalid request: batches are part of protocol version 2025-03-26 only")
        exchange = self.exchange(request.principal, version)
        answer = exchange.receive(body, request.entry)
        if answer is None and exchange.waits:
            return self._send_response(request, exchange, lambda kind, line: 200, cancel=False)
        self.put_back(exchange)
        await request.answer(200 if answer else 202, answer or b"")
        return None

    async def _delete(self, request: HttpRequest) -> None:
        """End a session. The response is sent before those of the calls that this cancels: the client may
        disconnect after it.
        """
        session = self._session_of(request)
        self.sessions.remove(session)
        try:
            await request.answer(200)
        finally:
            session.close()

    async def _get(self, request: HttpRequest) -> None:
        if not request.accepts("text/event-stream"):
            raise Refused(406, "Accept: expected text/event-stream")
        session = self._session_of(request)
        last = request.header(b"last-event-id")
        reader = session.listen(last)
        if reader is None:
            raise Refused(400, "Last-Event-ID: there is nothing to resume after it")
        request.watch(reader.waiter.wake)
        await self._send(request, session, reader, reader.seen, listens=True)

    async def _send(
        self, request: HttpRequest, session: HttpSession, reader: Reader, seen: int, *, listens: bool = False
    ) -> None:
        """Send the events of a stream until it ends, the client disconnects, or a new reader takes over.
        `listens`: until its token is not valid any more, too."""
        try:
            await request.begin()
            first = session.priming(reader, seen)
            if first:
                await request.more(first)
            while not request.gone:
                ends = listens and not await self.guard.still_admits(request, session.principal)
                data = None if ends else reader.take()
                if data is None:
                    await request.more(b"", last=True)
                    return
                if data:
                    await request.more(data)
                elif not await reader.waiter.wait(self.keep_alive_seconds):
                    await request.more(KEEP_ALIVE)
        finally:
            reader.leave()


def check_version(given: str | None) -> str | None:
    """Return the version of a request of the session wire. Raises Refused for an unsupported one."""
    if given is not None and given not in SESSION_VERSIONS:
        raise Refused(
            400, f"MCP-Protocol-Version: {given[:40]!r} is not served; {', '.join(SESSION_VERSIONS)}"
        )
    return given
