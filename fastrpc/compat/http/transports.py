"""What serves a server of the official SDK in a program's own application: sessions over HTTP, and SSE.

`StreamableHTTPSessionManager` and `SseServerTransport` are mounted by the program, which says at which paths.
Streams and sessions are fastrpc's own; the SDK need not be installed. `streamable_http_app` makes the whole
application of a low-level server, of Starlette, with authorization.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from uuid import UUID

from fastrpc import diagnostics
from fastrpc.compat.dialect import SDK_2
from fastrpc.compat.http.apps import CompatApplication, Layout
from fastrpc.compat.http.guard import Places
from fastrpc.compat.http.run import SessionManager
from fastrpc.compat.server import FastMCP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    from fastrpc.compat.http.parts import TransportSecuritySettings
    from fastrpc.transports.http.interfaces import Mapped, Receive, Send
    from fastrpc.transports.http.sse import SseSession

MCP, STREAM, MESSAGES = "/mcp", "/sse", "/messages"
"""The paths of an application that the program mounts where it wants."""

WITHOUT_AUTHORIZATION = {"auth": None}


class StreamableHTTPSessionManager:
    """The sessions of one server: `handle_request` serves a request, at whatever path, within `run`.

    `event_store` is accepted and not used. Raises NotOffered for another server than those of this package.
    """

    def __init__(
        self,
        app: Any,
        event_store: Any = None,
        json_response: bool = False,
        stateless: bool = False,
        security_settings: TransportSecuritySettings | None = None,
        retry_interval: int | None = None,
        session_idle_timeout: float | None = None,
        max_request_body_size: int | None = None,
        max_sessions: int | None = None,
    ) -> None:
        self.app = app
        self.event_store = event_store
        self.json_response = json_response
        self.stateless = stateless
        self.security_settings = security_settings
        limits: dict[str, Any] = {
            "session_idle_seconds": session_idle_timeout,
            "max_body": max_request_body_size,
            "max_sessions": max_sessions,
        }
        self._sessions = SessionManager(
            _application(
                app,
                "streamable-http",
                security_settings,
                json_response=json_response,
                stateless=stateless,
                retry_ms=retry_interval,
                limits={name: value for name, value in limits.items() if value is not None},
            )
        )
        self._is_running = self._has_run = False

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Enter the server's lifespan; at the end sessions and streams are ended. Raises RuntimeError when
        called again."""
        if self._has_run:
            raise RuntimeError("StreamableHTTPSessionManager: run() is for once; make another one")
        self._has_run = self._is_running = True
        try:
            async with self._sessions.run():
                yield
        finally:
            self._is_running = False

    async def handle_request(self, scope: Mapped, receive: Receive, send: Send) -> None:
        """Serve a request. Raises RuntimeError outside of `run`."""
        if not self._is_running:
            raise RuntimeError("StreamableHTTPSessionManager: use it within: async with manager.run()")
        await self._sessions.handle_request(scope, receive, send)

    @property
    def asgi_app(self) -> Any:
        """`handle_request`, as an ASGI application."""
        return self.handle_request


class StreamableHTTPASGIApp:
    """An ASGI application that a session manager serves."""

    def __init__(self, session_manager: StreamableHTTPSessionManager) -> None:
        self.session_manager = session_manager

    async def __call__(self, scope: Mapped, receive: Receive, send: Send) -> None:
        await self.session_manager.handle_request(scope, receive, send)


class SseServerTransport:
    """HTTP with SSE, the transport of 2024-11-05: `connect_sse` opens a stream; its client posts messages to
    `endpoint`, and `handle_post_message` serves them."""

    def __init__(
        self,
        endpoint: str,
        security_settings: TransportSecuritySettings | None = None,
        max_request_body_size: int | None = None,
    ) -> None:
        self.endpoint = endpoint if endpoint.startswith("/") else f"/{endpoint}"
        self._security = security_settings
        self._limits = {} if max_request_body_size is None else {"max_body": max_request_body_size}
        self._applications: dict[tuple[int, str], CompatApplication] = {}
        self._read_stream_writers: dict[UUID, MessageWriter] = {}
        """What takes the messages of each open session: subclasses that serve posts themselves look there."""

    @asynccontextmanager
    async def connect_sse(
        self, scope: Mapped, receive: Receive, send: Send
    ) -> AsyncIterator[tuple[SseStream, SseStream]]:
        """Yield the two streams of a connection, for ``server.run``, which serves it until its end."""
        stream = SseStream(self, scope, receive, send)
        yield stream, stream

    async def handle_post_message(self, scope: Mapped, receive: Receive, send: Send) -> None:
        """Serve a message of a client, as an ASGI application."""
        inner = {**scope, "path": self.endpoint, "root_path": ""}
        for application in list(self._applications.values())[:1]:
            await application(inner, receive, send)
            return
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b"no session"})

    def application(self, server: Any, root: str) -> CompatApplication:
        """Return what serves the streams of a server, which is mounted at `root`."""
        found = self._applications.get((id(server), root))
        if found is None:
            found = self._applications[id(server), root] = _application(
                server,
                "sse",
                self._security,
                mount_path=root.rstrip("/"),
                message_path=self.endpoint,
                limits=self._limits,
                sse_watcher=self,
            )
        return found

    def opened(self, session: SseSession) -> None:
        """Called when a session begins."""
        self._read_stream_writers[UUID(hex=session.id)] = MessageWriter(session)

    def closed(self, session: SseSession) -> None:
        """Called when a session is over."""
        self._read_stream_writers.pop(UUID(hex=session.id), None)


class MessageWriter:
    """Takes the messages of a session, as the SDK's stream does: ``await writer.send(SessionMessage(…))``."""

    def __init__(self, session: SseSession) -> None:
        self._session = session

    def send_nowait(self, item: Any) -> None:
        """Serve a message, a SessionMessage or what it holds; an exception is logged."""
        if isinstance(item, Exception):
            diagnostics.write("warning", f"a message could not be read: {item}")
            return
        message = getattr(item, "message", item)
        self._session.receive(message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async def send(self, item: Any) -> None:
        """Do what `send_nowait` does."""
        self.send_nowait(item)

    async def aclose(self) -> None:
        """The session ends with its stream."""


class SseStream:
    """One connection of an `SseServerTransport`, in the place of both its streams."""

    def __init__(self, transport: SseServerTransport, scope: Mapped, receive: Receive, send: Send) -> None:
        self._transport = transport
        self._request = scope, receive, send

    async def serve(self, server: Any) -> None:
        """Serve the connection until its client goes."""
        scope, receive, send = self._request
        application = self._transport.application(server, str(scope.get("root_path", "")))
        await application({**scope, "path": STREAM, "root_path": ""}, receive, send)


def _application(
    app: Any, transport: str, security: TransportSecuritySettings | None, **options: Any
) -> CompatApplication:
    """Return what serves a server, a low-level one or the inner one of another. Raises NotOffered."""
    server = getattr(app, "_server", app)
    if not hasattr(server, "connect"):
        from fastrpc.compat.errors import NotOffered

        raise NotOffered(
            f"fastrpc.compat: app: expected a server of fastrpc.compat, got {type(app).__name__}"
        )
    server._over_http = True
    message_path = options.pop("message_path", MESSAGES)
    watcher = options.pop("sse_watcher", None)
    layout = Layout(
        transport,
        places=_places(security),
        mcp_path=MCP,
        sse_path=STREAM,
        message_path=message_path,
        **options,
    )
    return CompatApplication(server, layout, WITHOUT_AUTHORIZATION, watcher)


def _places(security: TransportSecuritySettings | None) -> Places:
    """Return the rules for hosts and origins: none where the program has given none."""
    if security is None or not security.enable_dns_rebinding_protection:
        return Places(False)
    return Places(True, hosts=security.allowed_hosts, origins=security.allowed_origins)


# --- the application of a low-level server ---------------------------------------------------------------


class _Shell(FastMCP["Any"]):
    """A low-level server with the options that a `FastMCP` has over HTTP."""

    dialect = SDK_2

    def __init__(self, inner: Any, routes: Any, **options: Any) -> None:
        super().__init__(inner.name, **options)
        self._inner = inner
        self._routes = list(routes or ())
        inner._over_http = True

    @property
    def runtime(self) -> Any:
        return self._inner.runtime

    def connect(self, main: Any = None) -> Any:
        return self._inner.connect(main)

    def _http_routes(self, mcp_path: str) -> list[Any]:
        return self._routes


def streamable_http_app(
    server: Any,
    *,
    streamable_http_path: str = MCP,
    auth: Any = None,
    token_verifier: Any = None,
    auth_server_provider: Any = None,
    custom_starlette_routes: Any = None,
    **options: Any,
) -> tuple[Any, SessionManager]:
    """Return the application of a low-level server, and what serves its sessions. Raises as
    `FastMCP.http_app`."""
    given = {
        "auth": auth,
        "token_verifier": token_verifier,
        "auth_server_provider": auth_server_provider,
    }
    shell = _Shell(server, custom_starlette_routes, **given)
    app = shell.streamable_http_app(streamable_http_path, **options)
    return app, shell.session_manager
