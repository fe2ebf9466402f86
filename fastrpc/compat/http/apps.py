"""The ASGI applications of a compat server, for `run` over HTTP and for the program that mounts them.

`CompatApplication` serves the server at the paths that its settings name. Where Starlette is installed,
`mountable` puts it into an application of Starlette, with the custom routes and middleware; without it the
application has what mounting needs. Imported when a server is served over HTTP.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace

from fastrpc.compat.errors import NotOffered
from fastrpc.compat.http.guard import PlaceGuard
from fastrpc.transports.http.asgi import Application
from fastrpc.transports.http.auth import authenticator_from
from fastrpc.transports.http.custom_app import CustomApp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Any

    from fastrpc.compat.http.guard import Places
    from fastrpc.compat.http.interfaces import Served
    from fastrpc.engine.runtime import Runtime
    from fastrpc.transports.http.interfaces import Front, Mapped, Receive, Send

STARLETTE = "it needs Starlette; pip install starlette"
ALL_SSE_PATHS = {"/sse": "/messages", "/mcp/sse": "/mcp/sse/message"}


class Layout:
    """What is served where. `transport` is ``streamable-http`` or ``sse``, None for both; then the paths that
    `fastrpc.Server` has are served besides those given.

    `token` is what ``asgi(token=…)`` takes, None without authentication. `limits` are options of `HttpApp`.
    `middleware` are objects of Starlette.
    """

    def __init__(
        self,
        transport: str | None,
        *,
        places: Places,
        mcp_path: str,
        sse_path: str,
        message_path: str,
        mount_path: str = "",
        json_response: bool = False,
        stateless: bool = False,
        retry_ms: int | None = None,
        middleware: Sequence[Any] = (),
        debug: bool = False,
        limits: dict[str, Any] | None = None,
    ) -> None:
        self.transport = transport
        self.places = places
        self.mcp_path = mcp_path
        self.sse_path = sse_path
        self.message_path = message_path
        self.mount_path = mount_path
        self.json_response = json_response
        self.stateless = stateless
        self.retry_ms = retry_ms
        self.middleware = list(middleware)
        self.debug = debug
        self.limits = limits or {}

    @property
    def path(self) -> str:
        """The path that a client connects to."""
        return self.sse_path if self.transport == "sse" else self.mcp_path

    @property
    def mcp_paths(self) -> list[str]:
        if self.transport is None:
            return [self.mcp_path, *CustomApp.mcp_paths]
        return [self.mcp_path] if self.transport != "sse" else []

    @property
    def sse_paths(self) -> dict[str, str]:
        if self.transport is None:
            return {**ALL_SSE_PATHS, self.sse_path: self.message_path}
        return {self.sse_path: self.message_path} if self.transport == "sse" else {}


class CompatApplication(Application):
    """The ASGI application of a compat server; `tokens` are the options of `Server.asgi` for tokens. The
    methods ``opened`` and ``closed`` of `sse_watcher` are called with sessions over SSE."""

    def __init__(
        self, server: Served, layout: Layout, tokens: dict[str, Any], sse_watcher: Any = None
    ) -> None:
        self.layout = layout
        self.state = SimpleNamespace(
            fastmcp_server=server, path=layout.path, transport_type=layout.transport or "streamable-http"
        )
        self._server = server
        self._tokens = tokens
        self._sse_watcher = sse_watcher
        self.sees_all = bool(layout.middleware)
        super().__init__(self._new_app)

    def _new_app(self) -> CustomApp:
        layout = self.layout
        app = _LivingApp(
            self._server.connect,
            PlaceGuard(authenticator_from(dict(self._tokens)), layout.places),
            tool_schema=self._server.runtime.plans.input_schema_of,
            max_batch=self._server.max_batch,
            mcp_paths=layout.mcp_paths,
            sse_paths=layout.sse_paths,
            mount_path=layout.mount_path,
            json_response=layout.json_response,
            stateless=layout.stateless,
            retry_ms=layout.retry_ms,
            runtime=self._server.runtime,
            **layout.limits,
        )
        if self._sse_watcher is not None:
            app.watch_sse(self._sse_watcher.opened, self._sse_watcher.closed)
        return app

    @property
    def metadata_paths(self) -> list[str]:
        """The paths of the protected resource's metadata (RFC 9728), if there are any."""
        authenticator = authenticator_from(dict(self._tokens))
        path = None if authenticator is None else authenticator.metadata_path
        return [] if path is None else [path]

    def front(self, app: Front) -> Front:
        """Return what serves `run`: custom routes and middleware before the application."""
        routes = self._server._served_routes(self.layout.path)
        if not routes and not self.layout.middleware:
            return app
        return _RoutedFront(app, starlette_application(self, app, catches_all=True))

    @asynccontextmanager
    async def lifespan(self, host: object = None) -> AsyncIterator[None]:
        """Enter the lifespans of the server and of those mounted in it, and leave them at the end."""
        runtime = self._server.runtime
        await enter_lifespans(runtime)
        try:
            async with super().lifespan(host):
                yield
        finally:
            await runtime.leave()

    # --- without Starlette ------------------------------------------------------------------------------

    @property
    def router(self) -> SimpleNamespace:
        """As far as an application that mounts this one needs it: ``app.router.lifespan_context``."""
        return SimpleNamespace(lifespan_context=self.lifespan, routes=[])

    def add_middleware(self, middleware: Callable[..., Any], **options: Any) -> None:
        """Raises NotOffered: that is a method of Starlette's applications."""
        raise NotOffered(f"fastrpc.compat: add_middleware: {STARLETTE}")


class _LivingApp(CustomApp):
    """Enters the lifespans when the ASGI server starts it."""

    def __init__(self, *values: Any, runtime: Runtime, **options: Any) -> None:
        super().__init__(*values, **options)
        self._served = runtime

    async def _live(self, receive: Receive, send: Send) -> None:
        message = await receive()
        try:
            await enter_lifespans(self._served)
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        began = [message]

        async def received() -> Mapped:
            return began.pop() if began else await receive()

        await super()._live(received, send)


class _RoutedFront:
    """An application of Starlette in front of another one, which it ends with."""

    def __init__(self, app: Front, routed: Any) -> None:
        self._app = app
        self._routed = routed

    async def __call__(self, scope: Mapped, receive: Receive, send: Send) -> None:
        await self._routed(scope, receive, send)

    async def stop(self, grace_seconds: float | None) -> None:
        await self._app.stop(grace_seconds)


async def enter_lifespans(runtime: Runtime) -> None:
    """Enter the lifespans of a server and of those mounted in it now. Raises ToolError."""
    if runtime.lifespan is not None:
        await runtime.lifespan.enter()
    for server in runtime.mounts:
        await enter_lifespans(server.runtime)


def mountable(application: CompatApplication) -> Any:
    """Return what `http_app` returns: an application of Starlette, or `application` where that is missing.

    Raises NotOffered for middleware without Starlette.
    """
    try:
        import starlette.applications  # noqa: F401
    except ImportError:
        if application.layout.middleware:
            raise NotOffered(f"fastrpc.compat: middleware: {STARLETTE}") from None
        return application
    return starlette_application(application, application)


def starlette_application(application: CompatApplication, endpoint: Any, *, catches_all: bool = False) -> Any:
    """Return an application of Starlette that serves `endpoint` at its paths, and the custom routes.

    With `catches_all` every other path is `endpoint`'s, too.
    """
    from starlette.applications import Starlette
    from starlette.routing import Mount, Route

    class McpStarlette(Starlette):
        """An application of Starlette whose lifespan another one can take over."""

        @property
        def lifespan(self) -> Any:
            return self.router.lifespan_context

    layout, server = application.layout, application._server
    served = _Endpoint(endpoint)
    routes: list[Any] = [Route(path, served) for path in layout.mcp_paths]
    for stream, messages in layout.sse_paths.items():
        routes += [Route(stream, served), Route(messages, served)]
    routes += [Route(path, served) for path in application.metadata_paths]
    routes += server._served_routes(layout.path)
    if catches_all:
        routes.append(Mount("", served))
    app = McpStarlette(
        debug=layout.debug, routes=routes, middleware=layout.middleware, lifespan=application.lifespan
    )
    for name, value in vars(application.state).items():
        setattr(app.state, name, value)
    return app


class _Endpoint:
    """An ASGI application as the endpoint of a route; a function would be called with a request."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Mapped, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
