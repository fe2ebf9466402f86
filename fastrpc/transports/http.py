"""Serves MCP over HTTP as an ASGI application (MCP: Streamable HTTP, both eras).

A request is let in by the guard, read once, and goes to the era that it speaks: one with the envelope of 2026-07-28
is served by itself, all others belong to a session. The answer is one JSON body when nothing else is to be said,
else a stream of events. Errors of HTTP have a JSON-RPC body too, never HTML. What runs below (uvicorn or another
server) reads sockets and bounds headers.
"""

from __future__ import annotations

import asyncio

from fastrpc._core.encode import dumps
from fastrpc._core.message import Message
from fastrpc.errors import InvalidParams, InvalidRequest, ParseError, ProtocolError
from fastrpc.transports._http_exchange import ANSWER, MESSAGE, Exchange
from fastrpc.transports._http_guard import Guard, Refused, cors_headers, headers_of, preflight_headers
from fastrpc.transports._http_headers import check_headers, check_parameters
from fastrpc.transports._http_sessions import Session, Sessions
from fastrpc.transports._http_streams import KEEP_ALIVE, Stream, event, priming
from fastrpc.versions import BATCHES, LEGACY_VERSIONS, MODERN, VERSION_KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    Headers = list[tuple[bytes, bytes]]

MAX_BODY = 16 * 1024 * 1024
KEEP_ALIVE_SECONDS = 15.0
RETRY_MS = 1000
IDLE_EXCHANGES = 256

JSON = (b"content-type", b"application/json")
EVENTS: Headers = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
STATUS = {-32601: 404}
"""Errors that have another status than 400, where an error has one at all (MCP 2026-07-28)."""
ERROR_STATUS = {-32700: 400, -32600: 400, -32601: 404, -32602: 200, -32020: 400, -32021: 400, -32022: 400}


class HttpApp:
    """The ASGI application of one server.

    `connect` returns a new dispatcher, or another one of a session's, ``connect(main=dispatcher)``;
    `tool_schema` the input schema of a tool by its name, or None.
    """

    def __init__(
        self,
        connect: Callable[..., Any],
        guard: Guard,
        *,
        tool_schema: Callable[[str], dict[str, Any] | None] = lambda name: None,
        sessions: Sessions | None = None,
        max_body: int = MAX_BODY,
    ) -> None:
        self._connect = connect
        self.guard = guard
        self.tool_schema = tool_schema
        self._sessions = sessions or Sessions(connect)
        self._max_body = max_body
        self._idle: list[Exchange] = []
        self._message = Message()
        self._stopping = False
        self._routes = {"/mcp": self._mcp, "/mcp/http": self._mcp}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        kind = scope["type"]
        if kind == "http":
            await Request(scope, receive, send).serve(self)
        elif kind == "lifespan":
            await self._live(receive, send)
        elif kind == "websocket":
            await send({"type": "websocket.close", "code": 1002})

    async def _live(self, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def close(self) -> None:
        """End every session and let nothing new in."""
        self._stopping = True
        self._sessions.end_all()

    # --- routes -------------------------------------------------------------------------------------------

    async def route(self, request: Request) -> None:
        path = request.path
        if path in ("/healthz", "/readyz"):
            self.guard.check_place(request.headers)
            ready = path == "/healthz" or not self._stopping
            await request.answer(
                200 if ready else 503, b'{"status":"ok"}' if ready else b'{"status":"stopping"}'
            )
            return
        request.origin = self.guard.check_place(request.headers)
        if request.method == "OPTIONS" and request.origin is not None:
            await request.answer(204, b"", preflight_headers(request.origin))
            return
        serve = self._routes.get(path)
        request.principal = self.guard.principal_of(request.headers)
        if serve is None:
            raise Refused(404, f"There is nothing at {path[:200]}")
        await serve(request)

    async def _mcp(self, request: Request) -> None:
        if request.method == "POST":
            await self._post(request)
        elif request.header(b"mcp-protocol-version") == MODERN:
            raise Refused(
                405, f"{request.method}: only POST is served in {MODERN}", headers=[(b"allow", b"POST")]
            )
        elif request.method == "GET":
            await self._get(request)
        elif request.method == "DELETE":
            self._sessions.end(self._session_of(request))
            await request.answer(200, b"")
        else:
            raise Refused(
                405, f"{request.method}: not served here", headers=[(b"allow", b"GET, POST, DELETE")]
            )

    # --- POST ---------------------------------------------------------------------------------------------

    async def _post(self, request: Request) -> None:
        if request.media_type() != "application/json":
            raise Refused(415, "Content-Type: expected application/json")
        if not request.accepts("application/json"):
            raise Refused(406, "Accept: expected application/json and text/event-stream")
        body = await request.body(self._max_body)
        message = self._message
        message.read(body)
        kind = message.kind
        if kind == "broken":
            raise ParseError(f"Parse error: {message.error}")
        given = request.header(b"mcp-protocol-version")
        if kind == "invalid":
            await self._post_invalid(request, body, message.id)
            return
        params = message.params or {}
        method = message.method
        version = _envelope_of(params)
        is_modern_header = given is not None and given >= MODERN
        if kind == "batch":
            await self._post_batch(request, body, given)
        elif kind == "request" and (version is not None or (is_modern_header and method != "initialize")):
            await self._post_modern(request, body, method or "", params, version, message.id or b"null")
        elif kind == "notification" and (version is not None or is_modern_header):
            await request.answer(202, b"")
        elif kind == "response" and is_modern_header:
            raise InvalidRequest(f"a response: {MODERN} has no requests of the server's to answer")
        elif method == "initialize" and kind == "request":
            if is_modern_header:
                from fastrpc.transports._http_headers import HeaderMismatch

                raise HeaderMismatch(f"MCP-Protocol-Version: {given:.40} has no initialize")
            await self._post_initialize(request, body)
        else:
            await self._post_in_session(request, body, kind)

    async def _post_invalid(self, request: Request, body: bytes, id: bytes | None) -> None:
        """JSON, but no message: the dispatcher says what is wrong with it."""
        exchange = self._exchange()
        answer = exchange.receive(body)
        self._put_back(exchange)
        await request.answer(400, answer or b"")

    # --- 2026-07-28 ---------------------------------------------------------------------------------------

    async def _post_modern(
        self,
        request: Request,
        body: bytes,
        method: str,
        params: dict[str, Any],
        version: str | None,
        id: bytes,
    ) -> None:
        if not request.accepts("text/event-stream"):
            raise Refused(406, "Accept: expected application/json and text/event-stream")
        exchange = self._exchange()
        try:
            if version is not None:
                self._check_headers(request, method, params, version)
        except ProtocolError as error:
            self._put_back(exchange)
            await request.refuse(400, error, id)
            return
        answer = exchange.receive(body)
        if answer is not None:
            self._put_back(exchange)
            await request.answer(_status_of(answer, id, modern=True), answer)
            return
        await self._stream_modern(request, exchange, id)

    def _check_headers(self, request: Request, method: str, params: dict[str, Any], version: str) -> None:
        check_headers(request.headers, method, params, version)
        if method == "tools/call":
            name, arguments = params.get("name"), params.get("arguments", {})
            schema = self.tool_schema(name) if isinstance(name, str) else None
            if schema is not None and isinstance(arguments, dict):
                check_parameters(request.headers, schema, arguments)

    async def _stream_modern(self, request: Request, exchange: Exchange, id: bytes) -> None:
        """Wait for what a request comes to; a client that goes away meanwhile has cancelled it."""
        gone = asyncio.ensure_future(request.disconnected())
        try:
            over = await self._tell_modern(request, exchange, id, gone)
        finally:
            gone.cancel()
        if over:
            self._put_back(exchange)
        else:
            exchange.cancel()

    async def _tell_modern(
        self, request: Request, exchange: Exchange, id: bytes, gone: asyncio.Future[None]
    ) -> bool:
        """Send what is said, the answer last; False if the client has gone."""
        begun = False
        while True:
            following = asyncio.ensure_future(exchange.next())
            await asyncio.wait(
                {following, gone}, timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            while not following.done() and not gone.done():
                if not begun:
                    begun = True
                    await request.begin(200, EVENTS)
                await request.more(KEEP_ALIVE)
                await asyncio.wait(
                    {following, gone}, timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
            if not following.done() or exchange.overflown:
                following.cancel()
                return False
            kind, line = following.result()
            if kind == ANSWER and not begun:
                await request.answer(_status_of(line, id, modern=True), line)
                return True
            if not begun:
                begun = True
                await request.begin(200, EVENTS)
            if line:
                await request.more(event(line))
            if kind != MESSAGE:
                await request.more(b"", last=True)
                return True

    def _exchange(self) -> Exchange:
        if self._idle:
            return self._idle.pop()
        return Exchange(self._connect(), asyncio.get_running_loop())

    def _put_back(self, exchange: Exchange) -> None:
        if len(self._idle) < IDLE_EXCHANGES:
            self._idle.append(exchange)
        else:
            exchange.dispatcher.close()

    # --- up to 2025-11-25 ---------------------------------------------------------------------------------

    def _session_of(self, request: Request) -> Session:
        """Return the session that a request names. Raises Refused: 400 without one, 404 for an unknown one."""
        given = request.header(b"mcp-session-id")
        if given is None:
            raise Refused(400, "Mcp-Session-Id: the header is missing; a session begins with initialize")
        session = self._sessions.find(given, request.principal)
        if session is None:
            raise Refused(404, "Mcp-Session-Id: there is no such session", code=-32001)
        version = request.header(b"mcp-protocol-version")
        if version is not None and version not in LEGACY_VERSIONS:
            raise Refused(
                400, f"MCP-Protocol-Version: {version[:40]!r} is not served; {', '.join(LEGACY_VERSIONS)}"
            )
        return session

    async def _post_initialize(self, request: Request, body: bytes) -> None:
        session = self._sessions.open(request.principal, asyncio.get_running_loop())
        if session is None:
            raise Refused(429, "Too many sessions are open", headers=[(b"retry-after", b"60")])
        exchange = session.first_exchange()
        answer = exchange.receive(body)
        if answer is None or session.version is None:
            self._sessions.end(session)
            await request.answer(400, answer or b"")
            return
        session.settle_handshake(exchange)
        session.put_back(exchange)
        await request.answer(200, answer, [(b"mcp-session-id", session.id.encode())])

    async def _post_batch(self, request: Request, body: bytes, given: str | None) -> None:
        if given is not None and given not in BATCHES:
            raise InvalidRequest("Invalid request: batches are part of protocol version 2025-03-26 only")
        await self._post_in_session(request, body, "batch")

    async def _post_in_session(self, request: Request, body: bytes, kind: str) -> None:
        session = self._session_of(request)
        exchange = session.exchange()
        answer = exchange.receive(body)
        if kind in ("notification", "response"):
            session.put_back(exchange)
            await request.answer(202, b"")
        elif answer is not None:
            session.put_back(exchange)
            await request.answer(200, answer)
        elif kind == "batch" and not session.dispatcher.in_flight:
            session.put_back(exchange)
            await request.answer(202, b"")
        else:
            await self._stream_in_session(request, session, exchange)

    async def _stream_in_session(self, request: Request, session: Session, exchange: Exchange) -> None:
        """Wait for what a request comes to. A client that goes away has not cancelled it: it may come back."""
        try:
            kind, line = await asyncio.wait_for(exchange.next(), KEEP_ALIVE_SECONDS)
        except asyncio.TimeoutError:
            said = []
        else:
            if kind == ANSWER:
                session.put_back(exchange)
                await request.answer(200, line)
                return
            said = [(kind, line)]
        await self._send_stream(request, session, session.stream_for(exchange, said), 0)

    async def _get(self, request: Request) -> None:
        if not request.accepts("text/event-stream"):
            raise Refused(406, "Accept: expected text/event-stream")
        session = self._session_of(request)
        last = request.header(b"last-event-id")
        found = (session.streams[0], session.streams[0].last) if last is None else session.stream_of(last)
        if found is None:
            raise Refused(404, "Last-Event-ID: there is nothing to resume behind it")
        if last is None and session.streams[0].unread:
            found = (session.streams[0], 0)
        await self._send_stream(request, session, *found)

    async def _send_stream(self, request: Request, session: Session, stream: Stream, seen: int) -> None:
        """Send the events of a stream behind number `seen` until it ends, or the client goes."""
        reader = stream.take_over()
        gone = asyncio.ensure_future(request.disconnected())
        await request.begin(200, EVENTS)
        if session.version == LEGACY_VERSIONS[-1]:
            await request.more(priming(f"{stream.number}-{seen}", RETRY_MS))
        try:
            while True:
                following = asyncio.ensure_future(stream.after(seen, reader))
                await asyncio.wait(
                    {following, gone}, timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if gone.done():
                    following.cancel()
                    return
                if not following.done():
                    following.cancel()
                    await request.more(KEEP_ALIVE)
                    continue
                events = following.result()
                if events is None:
                    await request.more(b"", last=True)
                    return
                for number, line in events:
                    await request.more(event(line, f"{stream.number}-{number}"))
                    seen = number
        finally:
            gone.cancel()


class Request:
    """One request of HTTP and its answer."""

    def __init__(
        self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ):
        self.method: str = scope["method"]
        path: str = scope["path"]
        root: str = scope.get("root_path", "")
        self.path = path[len(root) :] if root and path.startswith(root) else path
        self.headers = headers_of(scope)
        self.origin: str | None = None
        self.principal = ""
        self._receive = receive
        self._send = send
        self._read = False

    async def serve(self, app: HttpApp) -> None:
        try:
            await app.route(self)
        except Refused as refused:
            error = ProtocolError(refused.message)
            error.code = refused.code
            await self.refuse(refused.status, error, b"null", refused.headers)
        except ProtocolError as error:
            await self.refuse(ERROR_STATUS.get(error.code, 400), error)

    def header(self, name: bytes) -> str | None:
        """Return a header's value, None where it is missing. Raises Refused for one that stands there twice."""
        values = self.headers.get(name)
        if values is None:
            return None
        if len(values) > 1:
            raise Refused(400, f"{name.decode()}: the header stands there {len(values)} times")
        return values[0].decode("latin-1").strip(" \t")

    def media_type(self) -> str:
        return (self.header(b"content-type") or "").partition(";")[0].strip().lower()

    def accepts(self, media_type: str) -> bool:
        """Whether the client takes an answer of this type; one that says nothing takes any."""
        values = self.headers.get(b"accept")
        if not values:
            return True
        kind = media_type.partition("/")[0]
        ranges = [
            part.partition(";")[0].strip().lower()
            for value in values
            for part in value.decode("latin-1").split(",")
        ]
        return any(found in (media_type, f"{kind}/*", "*/*") for found in ranges)

    async def body(self, limit: int) -> bytes:
        """Return the body. Raises Refused: 413 for one over the limit, 400 for one that was cut short."""
        length = self.header(b"content-length")
        if length is not None and length.isdigit() and int(length) > limit:
            raise Refused(413, f"the body is longer than {limit} bytes", headers=[(b"connection", b"close")])
        parts = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "the body was cut short")
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise Refused(
                    413, f"the body is longer than {limit} bytes", headers=[(b"connection", b"close")]
                )
            parts.append(part)
            if not message.get("more_body", False):
                self._read = True
                return parts[0] if len(parts) == 1 else b"".join(parts)

    async def disconnected(self) -> None:
        """Wait until the client has gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def answer(self, status: int, body: bytes, headers: Headers | None = None) -> None:
        """Send a whole answer; a body is JSON."""
        body = body.rstrip(b"\n")
        head = [*(headers or []), *cors_headers(self.origin), (b"content-length", str(len(body)).encode())]
        if body:
            head.append(JSON)
        await self._send({"type": "http.response.start", "status": status, "headers": head})
        await self._send({"type": "http.response.body", "body": body})

    async def refuse(
        self, status: int, error: ProtocolError, id: bytes = b"null", headers: Headers | None = None
    ) -> None:
        body: dict[str, Any] = {"code": error.code, "message": error.message}
        if error.data is not None:
            body["data"] = error.data
        await self.answer(status, b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, dumps(body)), headers)

    async def begin(self, status: int, headers: Headers) -> None:
        head = [*headers, *cors_headers(self.origin)]
        await self._send({"type": "http.response.start", "status": status, "headers": head})

    async def more(self, data: bytes, *, last: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})


def application(
    connect: Callable[..., Any], tool_schema: Callable[[str], dict[str, Any] | None], options: dict[str, Any]
) -> HttpApp:
    """Make the application of `Server.asgi`. Raises UsageError for options that leave open who may use it."""
    from fastrpc.errors import UsageError

    options = dict(options)
    token = options.pop("token", None)
    if token is None and options.pop("auth", "needed") is not None:
        raise UsageError("asgi: give token=…, or auth=None for a server that anybody may use")
    tokens = None if token is None else [token] if isinstance(token, str) else list(token)
    return HttpApp(connect, Guard(tokens, **options), tool_schema=tool_schema)


def _envelope_of(params: dict[str, Any]) -> str | None:
    """Return the version that a request's envelope names, None without one. Raises InvalidParams."""
    meta = params.get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    if version is not None and not isinstance(version, str):
        raise InvalidParams(f"_meta: {VERSION_KEY}: expected a string")
    return version


def _status_of(answer: bytes, id: bytes, *, modern: bool) -> int:
    """Return the status of an answer: an error's, where HTTP has one for it."""
    prefix = b'{"jsonrpc":"2.0","id":%b,"error":{"code":' % id
    if not answer.startswith(prefix):
        return 200
    code = int(answer[len(prefix) :].partition(b",")[0])
    if code == -32602:
        return 400 if b"_meta" in answer[:200] else 200
    return ERROR_STATUS.get(code, 200)
