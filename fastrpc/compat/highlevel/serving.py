"""How a compat server is run and served: `run`, its asynchronous forms, and the ASGI applications.

The transport's options are accepted where the originals accept them: in the constructor, as settings, in the
environment, and in each method. Costs nothing until a server runs; HTTP is imported when it is served.
docs/compat.md says where a server over HTTP needs a token.
"""

from __future__ import annotations

from fastrpc.compat.errors import NotOffered
from fastrpc.compat.highlevel.settings import FastMCPSettings, settings
from fastrpc.definitions.registry import settle_or_exit
from fastrpc.errors import UsageError
from fastrpc.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, TypeVar

    from typing_extensions import Unpack

    from fastrpc.compat.dialect import Dialect
    from fastrpc.compat.highlevel.options import HttpAppOptions, RunOptions, StreamableAppOptions
    from fastrpc.compat.http.apps import CompatApplication, Layout
    from fastrpc.compat.http.run import SessionManager
    from fastrpc.options import AsgiOptions
    from fastrpc.transports.base import Transport

    Handler = TypeVar("Handler", bound=Callable[..., Any])
    Name = Literal["stdio", "http", "streamable-http", "sse"]

SETTINGS = (
    "host",
    "port",
    "mount_path",
    "sse_path",
    "message_path",
    "streamable_http_path",
    "json_response",
    "stateless_http",
    "transport_security",
    "max_request_body_size",
    "session_idle_timeout",
    "max_sessions",
    "debug",
    "log_level",
)
"""Options of the constructor that become settings of the server."""

TRANSPORTS = ("stdio", "http", "streamable-http", "sse")
STDIO_OPTIONS = ("show_banner", "log_level", "stateless", "drain_seconds", "trace", "stats")


class Serving(Server):
    """The methods of a compat server that run it."""

    dialect: Dialect
    settings: FastMCPSettings

    def _take_serving_options(self, options: dict[str, Any]) -> None:
        """Take the constructor's options for transports out of `options`."""
        given = {name: options.pop(name) for name in SETTINGS if name in options}
        self.settings = FastMCPSettings(
            settings, **{key: value for key, value in given.items() if value is not None}
        )
        self._event_store = options.pop("event_store", None)
        self._retry_interval = options.pop("retry_interval", None)
        self._uvicorn_config = options.pop("uvicorn_config", None)
        self._custom_routes: list[tuple[str, Any, dict[str, Any]]] = []
        self._additional_http_routes: list[Any] = []
        """Routes of Starlette, WebSocket's too, that a file adds by this name of FastMCP's."""
        self._mounted: CompatApplication | None = None
        self._set_log_level(self.settings.log_level if self.settings.is_set("log_level") else None)

    # --- running ----------------------------------------------------------------------------------------

    def run(
        self, transport: Name | Transport | None = None, *given: object, **options: Unpack[RunOptions]
    ) -> None:
        """Serve until the client disconnects or a signal arrives: over standard input and output, over HTTP
        with ``transport="streamable-http"`` (also ``http``) or ``sse``; or over a transport of your own.

        The options of `fastrpc.Server.run` are accepted too, ``http="127.0.0.1:8000"`` among them. Raises
        TypeError for an unknown option, and UsageError for one that cannot be served: see docs/compat.md.
        """
        settle_or_exit([self.registries])
        all_options = self._run_options(given, dict(options))
        if all_options.get("http") is not None or not (transport is None or isinstance(transport, str)):
            self._run_own(transport, all_options)
            return
        all_options.pop("http", None)
        name = self._transport_named(transport)
        if name == "stdio":
            from fastrpc.compat.stdio import redirected

            with redirected():
                super().run(**self._stdio_options(all_options))
            return
        from fastrpc.compat.http.options import run_settings
        from fastrpc.transports.http.run import run

        found = self._http_options(all_options)
        run(lambda: self, run_settings(self, name, found))

    async def run_async(
        self, transport: Name | None = None, *given: object, **options: Unpack[RunOptions]
    ) -> None:
        """Serve in the running event loop (asyncio), as `run` does in its own."""
        name = self._transport_named(transport)
        all_options = self._run_options(given, dict(options))
        if name == "stdio":
            await self.run_stdio_async(**all_options)
        else:
            await self._serve_http(name, all_options)

    async def run_stdio_async(self, show_banner: object = None, **options: Any) -> None:
        """Serve over standard input and output in the running event loop, until the client disconnects.

        Of the options of `run` it has ``drain_seconds``. Raises UsageError.
        """
        from fastrpc.compat.stdio import serve_stdio

        given = self._stdio_options(options)
        for name in ("trace", "stats"):
            if given.get(name):
                raise UsageError(f"run_stdio_async: {name}: mcp.run() has that")
        await serve_stdio(self, drain_seconds=given.get("drain_seconds", 1.0))

    async def run_http_async(
        self, *given: object, transport: Name = "http", **options: Unpack[RunOptions]
    ) -> None:
        """Serve over HTTP in the running event loop."""
        await self._serve_http(self._transport_named(transport), self._run_options(given, dict(options)))

    async def run_streamable_http_async(self, **options: Unpack[RunOptions]) -> None:
        """Serve over Streamable HTTP in the running event loop."""
        await self._serve_http("streamable-http", dict(options))

    async def run_sse_async(self, *given: object, **options: Unpack[RunOptions]) -> None:
        """Serve over HTTP+SSE, the transport of 2024-11-05, in the running event loop."""
        if given:
            name = "mount_path" if self._is_sdk else "host"
            options = {name: given[0], **options}  # type: ignore[misc]
        await self._serve_http("sse", dict(options))

    # --- ASGI applications ------------------------------------------------------------------------------

    def http_app(
        self,
        path: str | None = None,
        middleware: Any = None,
        json_response: bool | None = None,
        stateless_http: bool | None = None,
        transport: Literal["http", "streamable-http", "sse"] = "http",
        **options: Unpack[HttpAppOptions],
    ) -> Any:
        """Return an ASGI application to mount, of Starlette where that is installed, with its ``lifespan``.

        It asks for a token only if the server has ``auth=`` or ``token_verifier=``. Raises TypeError for an
        unknown option.
        """
        from fastrpc.compat.http.apps import CompatApplication, mountable
        from fastrpc.compat.http.options import APP_OPTIONS, check_names, layout_of

        check_names("http_app", options, APP_OPTIONS)
        name = self._transport_named(transport)
        if name == "stdio":
            raise UsageError("http_app: transport: expected http, streamable-http or sse")
        given = {
            **options,
            "path": path,
            "middleware": middleware,
            "json_response": json_response,
            "stateless_http": stateless_http,
        }
        layout = layout_of(self, name, given, address=None)
        self._over_http = True
        application = CompatApplication(self, layout, self._asgi_auth_options(layout.path))
        if name != "sse":
            self._mounted = application
        return mountable(application)

    def streamable_http_app(self, path: str | None = None, **options: Unpack[StreamableAppOptions]) -> Any:
        """Return an ASGI application that serves Streamable HTTP: see `http_app`."""
        return self.http_app(path, **options)

    def sse_app(self, path: str | None = None, *given: Any, **options: Unpack[HttpAppOptions]) -> Any:
        """Return an ASGI application that serves HTTP+SSE: see `http_app`.

        The first argument is the path of the stream, for the official SDK's classes the mount path.
        """
        all_options: dict[str, Any] = {**dict(zip(("message_path", "middleware"), given, strict=False))}
        all_options.update(options)
        if path is not None:
            all_options["mount_path" if self._is_sdk else "path"] = path
        return self.http_app(**all_options, transport="sse")

    @property
    def session_manager(self) -> SessionManager:
        """What serves the sessions of `streamable_http_app`: ``async with mcp.session_manager.run():``.

        Raises RuntimeError before that has been called.
        """
        if self._mounted is None:
            raise RuntimeError("session_manager: call streamable_http_app() first")
        from fastrpc.compat.http.run import SessionManager

        return SessionManager(self._mounted)

    def asgi(self, *, layout: Layout | None = None, **options: Unpack[AsgiOptions]) -> CompatApplication:
        """Return an ASGI application, as `fastrpc.Server.asgi` does. `layout` is for `run`."""
        from fastrpc.compat.http.run import application

        self._over_http = True
        return application(self, layout, dict(options))

    def custom_route(
        self, path: str, methods: list[str], name: str | None = None, include_in_schema: bool = True
    ) -> Callable[[Handler], Handler]:
        """Register an async function of a Starlette request that returns a Starlette response, beside MCP.

        It is served over HTTP without authorization. Raises NotOffered without Starlette.
        """
        from importlib.util import find_spec

        if find_spec("starlette") is None:
            raise NotOffered("fastrpc.compat: custom_route: it needs Starlette; pip install starlette")
        options = {"methods": methods, "name": name, "include_in_schema": include_in_schema}

        def decorate(function: Handler) -> Handler:
            self._custom_routes.append((path, function, options))
            return function

        return decorate

    def _http_routes(self, mcp_path: str) -> list[Any]:
        """Return the routes of Starlette beside MCP: its own, and those of the servers mounted in it."""
        found = []
        if self._custom_routes:
            from starlette.routing import Route

            found += [Route(path, function, **options) for path, function, options in self._custom_routes]
        found += self._additional_http_routes
        for server in self._mounts:
            if isinstance(server, Serving):
                found += server._http_routes(mcp_path)
        return found

    def _get_additional_http_routes(self) -> list[Any]:
        """Return the routes that `custom_route` and files have added, by FastMCP's name."""
        return self._http_routes("")

    def _served_routes(self, mcp_path: str) -> list[Any]:
        """Return the routes of Starlette that are served beside MCP."""
        return [*self._authorization_routes(mcp_path), *self._http_routes(mcp_path)]

    if TYPE_CHECKING:  # `Authorization` has these

        def _asgi_auth_options(self, path: str = "/mcp") -> dict[str, Any]: ...

        def _token_check(self, path: str = "/mcp") -> Any: ...

        def _authorization_routes(self, path: str) -> list[Any]: ...

    # --- internal ---------------------------------------------------------------------------------------

    @property
    def _is_sdk(self) -> bool:
        return self.dialect.original.startswith("mcp.")

    def _run_own(self, transport: Any, options: dict[str, Any]) -> None:
        """Run as `fastrpc.Server` does: at an address, or over a transport of the user's own."""
        for name in ("show_banner", "log_level"):
            options.pop(name, None)
        if transport is not None and options.get("http") is not None:
            raise UsageError(f"run: transport={transport!r} excludes http=; leave one of them out")
        if options.get("http") is not None:
            from fastrpc.compat.http.options import OWN, TOKENS, check_names

            check_names("run", options, ("http", *OWN))
            check = None if any(name in options for name in TOKENS) else self._token_check()
            if check is not None:
                options["token"] = check
        super().run(transport=transport, **options)

    def _run_options(self, given: tuple[object, ...], options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of `run` by their names; the second argument may be given by its place."""
        if len(given) > 1:
            raise TypeError("run: expected at most two positional arguments")
        if given:
            options = {"mount_path" if self._is_sdk else "show_banner": given[0], **options}
        if "transport" in options:
            raise TypeError("run: transport is given twice")
        return options

    def _transport_named(self, transport: Any) -> str:
        """Return the transport's name; by default FASTMCP_TRANSPORT. Raises UsageError."""
        name = self.settings.transport if transport is None and not self._is_sdk else transport or "stdio"
        if name not in TRANSPORTS:
            raise UsageError(f"run: transport: expected one of {', '.join(TRANSPORTS)}; got {name!r:.80}")
        return "streamable-http" if name == "http" else str(name)

    def _stdio_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options that `fastrpc.Server.run` has for stdio; those for HTTP have no effect."""
        unknown = [name for name in options if name not in STDIO_OPTIONS]
        if unknown:
            from fastrpc.compat.http.options import OWN, RUN_OPTIONS, check_names

            check_names("run", unknown, ("http", *RUN_OPTIONS, *OWN))
        self._set_log_level(options.get("log_level"))
        own = ("drain_seconds", "trace", "stats")
        return {name: options[name] for name in own if options.get(name) is not None}

    def _http_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of `run` over HTTP, with those of the constructor."""
        self._set_log_level(options.get("log_level"))
        if self._uvicorn_config and not options.get("uvicorn_config"):
            options["uvicorn_config"] = self._uvicorn_config
        if options.get("event_store") is not None or self._event_store is not None:
            from fastrpc.diagnostics import write

            write("warning", "event_store: streams are resumed from this process's memory instead")
        return options

    async def _serve_http(self, name: str, options: dict[str, Any]) -> None:
        from fastrpc.compat.http.run import serve

        sockets = options.pop("sockets", None)
        await serve(self, name, self._http_options(options), sockets)

    def _set_log_level(self, given: Any) -> None:
        """Set the level of log records, if one was given, and what the official SDK does with `logging`."""
        if given is None and not self._is_sdk:
            return
        from fastrpc import diagnostics

        level = str(given or self.settings.log_level).lower()
        if level not in diagnostics.LEVELS:
            raise UsageError(f"log_level: expected one of {', '.join(diagnostics.LEVELS)}; got {given!r:.80}")
        if given is not None:
            diagnostics.set_default_level(level)
        if self._is_sdk:
            diagnostics.configure_root(level)
