"""`CustomApp`: an `HttpApp` with other paths, without sessions, or with one JSON body as every response.

For servers written for other frameworks (`fastrpc.compat`), which have these options. Costs what `HttpApp`
does; without sessions the requests of versions up to 2025-11-25 do not take the fast path.
"""

from __future__ import annotations

from functools import partial

from fastrpc.transports.http.app import HttpApp
from fastrpc.transports.http.current_request import exposed
from fastrpc.transports.http.guard import AccessRules, Refused
from fastrpc.transports.http.session_wire import ASSUMED, NEED_A_SESSION, SessionWire, check_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from fastrpc.transports.http.request import HttpRequest
    from fastrpc.transports.http.session_wire import Rest
    from fastrpc.transports.http.sse import SseSession
    from fastrpc.transports.interfaces import Connect

NEVER = 365 * 86400.0
"""Seconds, as far as a timer of an event loop goes."""


class CustomApp(HttpApp):
    """The ASGI application of one server, whose handlers can read their HTTP request.

    `mcp_paths` are those of Streamable HTTP, `sse_paths` the path of the messages by that of the stream. With
    `json_response` messages before a response are dropped; with `stateless` there are no sessions.
    `mount_path` precedes the path of the messages that a client is sent. `retry_ms` is when a client should
    reconnect. The other options are those of `HttpApp`.
    """

    exposes_requests = True

    def __init__(
        self,
        connect: Connect,
        guard: AccessRules,
        *,
        mcp_paths: Iterable[str],
        sse_paths: Mapping[str, str],
        json_response: bool = False,
        stateless: bool = False,
        mount_path: str = "",
        retry_ms: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(connect, guard, **options)
        self.mcp_paths = tuple(each for path in mcp_paths for each in spellings(path))
        self._serve_mcp = self._mcp_without_sessions if stateless else self._mcp
        if stateless:
            self.session_wire = WireWithoutSessions(self.exchanges, self.sessions, self.responses)
        if json_response:
            self.responses.json_only = True
            self.media_types = ("application/json",)
            self.responses.stream_seconds = NEVER
        if retry_ms is not None:
            self.sessions.retry_ms = retry_ms
        self.routes = dict.fromkeys(self.mcp_paths, self._serve_mcp)
        for stream, messages in sse_paths.items():
            serve = partial(self._sse.open, address=mount_path.rstrip("/") + messages)
            self.routes.update(dict.fromkeys(spellings(stream), serve))
            self.routes.update(dict.fromkeys(spellings(messages), self._sse.post))

    def watch_sse(
        self, opened: Callable[[SseSession], object], closed: Callable[[SseSession], object]
    ) -> None:
        """Call these when a session over SSE begins and when it is over."""
        self._sse.on_opened, self._sse.on_closed = opened, closed

    async def _route(self, request: HttpRequest) -> None:
        transport = "streamable-http" if request.path in self.mcp_paths else "sse"
        with exposed(request.scope, transport):
            await super()._route(request)

    async def _mcp_without_sessions(self, request: HttpRequest) -> None:
        """Serve a request: POST only; a session's id is ignored."""
        if request.method != "POST":
            raise Refused(405, f"{request.method:.40}: there are no sessions", headers=[(b"allow", b"POST")])
        request.headers.pop(b"mcp-session-id", None)
        await self._post(request)


class WireWithoutSessions(SessionWire):
    """Serves the session wire to clients that get no session."""

    async def post(self, request: HttpRequest, body: bytes, kind: str, method: str) -> Rest:
        if kind == "response":
            await request.answer(202)
        elif kind == "request" and (method == "initialize" or method in NEED_A_SESSION):
            await self._post_alone(request, body, method)
        else:
            return await self.post_without_session(request, body, kind, method)
        return None

    async def _post_alone(self, request: HttpRequest, body: bytes, method: str) -> None:
        """Serve a request that changes its connection, which is not used again."""
        version = check_version(request.header(b"mcp-protocol-version")) or ASSUMED
        exchange = self._exchanges.new()
        exchange.reusable = False
        exchange.dispatcher.principal = request.principal
        if method != "initialize":
            exchange.dispatcher.adopt_version(version)
        answer = exchange.receive(body, request.entry)
        if answer is None:
            await self._responses.send(request, exchange)
        else:
            self._exchanges.put_back(exchange)
            await request.answer(200, answer)


def spellings(path: str) -> tuple[str, ...]:
    """Return a path with and without a final slash."""
    bare = path.rstrip("/")
    return (bare, f"{bare}/") if bare else ("/",)
