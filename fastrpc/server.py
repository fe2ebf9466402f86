"""Server: declares tools, resources and prompts, composes servers, and serves them over a transport.

Creating a server only sets its attributes: what serving needs is imported when serving begins.
"""

from __future__ import annotations

from fastrpc.definitions.registry import Registries, check_options, decorator, settle_or_exit
from fastrpc.errors import DefinitionError, UsageError
from fastrpc.garbage import collect_seldom

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager
    from types import ModuleType
    from typing import Any, TypeVar, overload

    from typing_extensions import Self, Unpack

    from fastrpc._core.call_info import CallInfo
    from fastrpc._core.recorder import CallRecord, RecordBatch
    from fastrpc.definitions.addresses import Addresses
    from fastrpc.definitions.registry import ToolRegistry
    from fastrpc.definitions.tool import Tool
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.interceptors import Hook
    from fastrpc.engine.list_filter import ListFilter, ListItem
    from fastrpc.engine.monitor import Monitor
    from fastrpc.engine.runtime import Runtime
    from fastrpc.options import (
        AsgiOptions,
        CacheScope,
        CallOptions,
        CommandProxyOptions,
        HttpOptions,
        Icon,
        LogLevel,
        PromptOptions,
        ProviderOptions,
        ResourceOptions,
        ToolOptions,
        UrlProxyOptions,
    )
    from fastrpc.telemetry.access_log import AccessLog
    from fastrpc.telemetry.observers import Observers
    from fastrpc.telemetry.statistics import Statistics, StatisticsPrinter
    from fastrpc.transports.base import Transport
    from fastrpc.transports.http.asgi import Application
    from fastrpc.transports.http.endpoints import Endpoint
    from fastrpc.transports.http.interfaces import MakeFront

    Lifespan = Callable[["Server"], AbstractAsyncContextManager[object]]
    Function = TypeVar("Function", bound=Callable[..., object])
    Thing = TypeVar("Thing")
    Guard = TypeVar("Guard", bound=Callable[[CallInfo], Awaitable[None] | None])
    Observer = TypeVar("Observer", bound=Callable[[list[CallRecord]], object])
    Before = TypeVar("Before", bound=Callable[[CallInfo], object])
    After = TypeVar("After", bound=Callable[[CallInfo, Any], object])
    OnError = TypeVar("OnError", bound=Callable[[CallInfo, Exception], object])
    CallerClass = TypeVar("CallerClass", bound=Hashable)
    Shows = Callable[[CallerClass, ListItem], bool]
    Classify = Callable[[str], CallerClass]
else:
    globals()["overload"] = staticmethod  # any decorator: importing `typing` takes 10 ms


class Server:
    """An MCP server.

    ``app = Server("demo")``, then ``@app.tool`` on functions, then ``app.run()``.

    `name`, `version`, `title`, `description`, `website_url` and `icons` are its `serverInfo` (MCP:
    Implementation); `instructions` is a text for the model. `page_size` bounds the entries of one page of a
    list, `max_in_flight` the calls in flight (one more is refused with error -31001), `max_batch` the
    messages of one batch (MCP 2025-03-26; a larger one is refused with error -32600), `threads` the worker
    threads for synchronous functions. `ttl_ms` and `cache_scope` (``private`` or ``public``) are the caching
    hints of lists (MCP 2026-07-28). `extensions` (settings by the extension's name, from 2026-07-28 on) and
    `experimental` are further capabilities that are declared to clients.
    `lifespan` is a function that receives the server and returns an async context manager. It is entered
    before the first call and exited at the end; its value is `Context.state`.
    """

    __fastrpc_server__ = True

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: list[Icon] | None = None,
        instructions: str | None = None,
        page_size: int = 1000,
        max_in_flight: int = 16384,
        max_batch: int = 100,
        threads: int = 40,
        ttl_ms: int = 60_000,
        cache_scope: CacheScope = "private",
        lifespan: Lifespan | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        experimental: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.title = title
        self.description = description
        self.website_url = website_url
        self.icons = icons
        self.instructions = instructions
        self.page_size = page_size
        self.max_in_flight = max_in_flight
        self.max_batch = max_batch
        self.threads = threads
        self.ttl_ms = ttl_ms
        self.cache_scope: CacheScope = cache_scope
        self.lifespan = lifespan
        self.extensions = extensions
        self.experimental = experimental
        check_options("Server", vars(self), Server.__init__.__kwdefaults__ or {})
        self.registries = Registries()
        self._loaders: list[Callable[[], Iterable[Tool]]] = []
        self.expects_tasks = False
        self._hooks: list[Hook] = []
        self._guards: list[Callable[[CallInfo], Awaitable[None] | None]] = []
        self.list_filters: list[ListFilter] = []
        self._wrapper: Any = None  # wraps its requests: `fastrpc.engine.wrappers`
        self._observers: Observers | None = None
        self._mounts: list[Server] = []  # servers that are mounted here
        self._hosts: list[Server] = []  # where this server is mounted
        self._addresses: dict[Server, list[Addresses]] = {}  # of the mounted servers' resources
        self._upstream: Any = None  # the server behind a proxy
        self._runtime: Runtime | None = None
        self.watching: Monitor | None = None
        self._over_http = False
        self.warns = True  # whether `asgi` names tools without a description: another process may have
        self.http_endpoints: dict[str, Endpoint] = {}  # by path: `fastrpc.transports.http.endpoints`
        self.statistics: Statistics | None = None  # what `print_statistics` prints
        self.http_fronts: list[MakeFront] = []  # each makes what serves requests before the application
        self.page_sources: dict[str, Any] = {}  # what toolsets show in the dashboard: fields of its `Sources`
        self.settled = True  # the working folder will not change any more
        self._note: Callable[[], list[str]] | None = None

    # --- tools ----------------------------------------------------------------------------------------

    @property
    def tools(self) -> ToolRegistry:
        """The tools of this server, in the order in which they are listed."""
        return self.registries.tools

    @overload
    def tool(self, function: Function) -> Function: ...
    @overload
    def tool(self, **options: Unpack[ToolOptions]) -> Callable[[Function], Function]: ...
    def tool(self, function: Any = None, **options: Any) -> Any:
        """Make a function a tool of this server: ``@app.tool`` or ``@app.tool(effect="read")``.

        The options are those of `fastrpc.tool`. Raises DefinitionError for a function that cannot be a
        tool, or a name that is taken.
        """
        if function is None:
            return lambda function: self.tool(function, **options)
        self.add_tool(function, **options)
        return function

    @overload
    def add_tool(self, tool: Tool) -> None: ...
    @overload
    def add_tool(self, tool: Callable[..., object], **options: Unpack[ToolOptions]) -> None: ...
    def add_tool(self, tool: Any, **options: Any) -> None:
        """Add a function or a `Tool`. Raises DefinitionError as `tool` does."""
        self.registries.tools.add(tool, **options)

    def _make_part(self, name: str) -> Any:
        from fastrpc import assembly

        return getattr(assembly, name)(self)

    def remove_tool(self, name: str) -> None:
        """Remove a tool. Raises KeyError for an unknown name."""
        self.registries.tools.remove(name)

    def load_tools_later(
        self, loader: Callable[[], Iterable[Tool]], *, some_allow_tasks: bool = False
    ) -> None:
        """Add the tools that `loader` returns, before the first request that needs to know them. The
        handshake does not: `some_allow_tasks` says whether it offers tasks for them (docs/tasks.md)."""
        self._loaders.append(loader)
        self.expects_tasks |= some_allow_tasks

    def load_tools(self) -> None:
        """Call the loaders of `load_tools_later` now, unless they have been called."""
        loaders, self._loaders = self._loaders, []
        for loader in loaders:
            for tool in loader():
                self.add_tool(tool)

    # --- resources, prompts, completion ---------------------------------------------------------------

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[Function], Function]:
        """Make a function a resource: ``@app.resource("docs://guide")`` or, with variables in the URI, a
        template: ``@app.resource("docs://{id}/{path*}")`` (RFC 6570, levels 1 to 3).

        The options are those of `fastrpc.definitions.resource.Resource`. Raises DefinitionError.
        """
        from fastrpc.definitions.resource import is_template

        if not isinstance(uri, str):
            raise DefinitionError("@app.resource needs a URI: @app.resource('docs://guide')")
        kind = self.registries.templates if is_template(uri) else self.registries.resources
        return decorator(kind, {"uri": uri, **options})

    def resources(self, scheme: str, **options: Unpack[ProviderOptions]) -> Callable[[Thing], Thing]:
        """Make a class or an object the provider of all resources of a scheme, listed page by page.

        See `fastrpc.definitions.resource.Provider` for the methods that it has.
        """
        if not isinstance(scheme, str):
            raise DefinitionError("@app.resources needs a scheme: @app.resources('docs')")
        return decorator(self.registries.providers, {"scheme": scheme, **options})

    def add_resource(self, uri: str, content: object, **options: Unpack[ResourceOptions]) -> None:
        """Add a text, bytes, or a function as the resource at a URI. Raises DefinitionError."""
        self.resource(uri, **options)(content if callable(content) else lambda: content)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template. Raises KeyError if there is none with this URI."""
        kind = self.registries.resources if uri in self.registries.resources else self.registries.templates
        kind.remove(uri)

    def resource_updated(self, uri: str, rest: dict[str, Any] | None = None) -> None:
        """Notify the subscribed clients that a resource has changed, with the params `rest`. Thread-safe."""
        from fastrpc.mounting import places_of

        for runtime, shown in places_of(self, uri):
            runtime.announcements.announce("resource_updated", shown, rest)

    @overload
    def prompt(self, function: Function) -> Function: ...
    @overload
    def prompt(self, **options: Unpack[PromptOptions]) -> Callable[[Function], Function]: ...
    def prompt(self, function: Any = None, **options: Any) -> Any:
        """Make a function a prompt: ``@app.prompt``, with options of `fastrpc.definitions.prompt.Prompt`."""
        if function is None:
            return lambda function: self.prompt(function, **options)
        self.registries.prompts.add(function, **options)
        return function

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt. Raises KeyError for an unknown name."""
        self.registries.prompts.remove(name)

    def complete(
        self, target: str | Callable[..., object], argument: str, **options: Unpack[CallOptions]
    ) -> Callable[[Function], Function]:
        """Make a function complete an argument of a prompt (by name or function) or a template's variable (by
        its URI): ``@app.complete("review", "language")``. See `fastrpc.definitions.completion`."""
        from fastrpc.definitions.completion import target_of

        key = target_of(self.registries.prompts, self.registries.templates, target, argument)
        return decorator(self.registries.completions, {"target": key, "argument": argument, **options})

    # --- hooks ----------------------------------------------------------------------------------------

    @overload
    def before(self, function: Before) -> Before: ...
    @overload
    def before(self, *, tools: str = "*") -> Callable[[Before], Before]: ...
    def before(self, function: Any = None, *, tools: str = "*") -> Any:
        """Call a function before each call of the tools that match: see `fastrpc.engine.interceptors`."""
        return self._hook("before", function, tools)

    @overload
    def after(self, function: After) -> After: ...
    @overload
    def after(self, *, tools: str = "*") -> Callable[[After], After]: ...
    def after(self, function: Any = None, *, tools: str = "*") -> Any:
        """Call a function with each result of the tools that match: see `fastrpc.engine.interceptors`."""
        return self._hook("after", function, tools)

    @overload
    def on_error(self, function: OnError) -> OnError: ...
    @overload
    def on_error(self, *, tools: str = "*") -> Callable[[OnError], OnError]: ...
    def on_error(self, function: Any = None, *, tools: str = "*") -> Any:
        """Call a function with each error of the tools that match: see `fastrpc.engine.interceptors`."""
        return self._hook("on_error", function, tools)

    def _hook(self, when: str, function: Any, tools: str) -> Any:
        if function is None:
            return lambda function: self._hook(when, function, tools)
        from fastrpc.engine.interceptors import Hook

        self._hooks.append(Hook(when, function, tools))
        self._plan_anew()
        return function

    def guard(self, function: Guard) -> Guard:
        """Have a function decide about each call of a tool, a resource or a prompt: ``@app.guard``.

        It receives a `CallInfo` with the caller (`principal`), the target (`kind`, `name`, `effect`) and the
        bound `arguments`. It allows the call by returning None, refuses it by raising ToolError or
        ProtocolError, or returns an awaitable that does either later; any other exception refuses too. It
        runs on the thread of the connection, before any hook, and must be quick. The guards of a mounted
        server apply to its tools, resources and prompts here, too.
        """
        self._guards.append(function)
        self._plan_anew()
        return function

    @overload
    def filter_lists(self, shows: Shows[str], *, enforced: bool = False) -> None: ...
    @overload
    def filter_lists(
        self, shows: Shows[CallerClass], classify: Classify[CallerClass], *, enforced: bool = False
    ) -> None: ...
    def filter_lists(self, shows: Any, classify: Any = None, *, enforced: bool = False) -> None:
        """Show in lists what the caller's class may see: `classify(principal)` returns the class, by default
        the principal itself; `shows(caller_class, item)` returns whether it sees a `ListItem`. `classify` is
        called for each list; what a class sees is cached until `lists_changed`. A hidden entry can be called
        unless the filter is `enforced`: then it does not exist for the caller, whose class is looked up for
        each call, and a URI is filtered as a resource with that URI. All filters, including those of mounted
        servers, must show an entry; if one raises, the response is error -32603. Raises DefinitionError for
        what is not a function.
        """
        from fastrpc.engine.list_filter import ListFilter

        self.list_filters.append(ListFilter(shows, classify, enforced))
        self._plan_anew()
        self.lists_changed()

    def lists_changed(self, concerns: Callable[[str], bool] | None = None) -> None:
        """Call the filters again, and notify the clients of principals that it `concerns`, by default all."""
        for runtime in self._runtimes():
            runtime.announcements.lists_changed(concerns)

    def observe(self, function: Observer) -> Observer:
        """Pass a record of each finished call of a tool, a resource or a prompt to a function:
        ``@app.observe``.

        It receives a list of `CallRecord` every 50 ms while there are calls, on a separate thread: caller
        and target, the outcome as the client saw it, the duration of each stage, the bytes of the response.
        Calls of mounted servers are included, by the names that clients call; so are calls of this server's
        handlers where it is mounted, by their names here. For other methods of observers see docs/guards.md.
        """
        self._observed().add(function)
        return function

    def drain_observers(self, *, at_end: bool = False) -> None:
        """Pass the records of all finished calls to the observers now, here and where this is mounted.
        `at_end`: then call the method ``at_end`` of those that have one, since serving has ended."""
        for host in self._hosts:
            host.drain_observers(at_end=at_end)
        if self._observers is not None:
            self._observers.drain(at_end=at_end)

    def print_statistics(self) -> StatisticsPrinter:
        """Print calls, errors by outcome, p50 and p99 of each tool, resource and prompt to standard error: on
        SIGUSR1, and when `end()` of the returned report is called. ``run(stats=True)`` does both.

        For programs that serve by other means, such as `asgi`. Calls are counted from here on; until the end
        the report handles SIGUSR1, one report at a time. Raises OSError if no pipe can be created.
        """
        from fastrpc.telemetry.statistics import StatisticsPrinter

        report = StatisticsPrinter(self._observed())
        self.statistics = report.statistics
        return report

    def open_access_log(self, path: str, *, as_json: bool = False) -> AccessLog:
        """Open an access log, for a server over HTTP. Raises OSError."""
        from fastrpc.telemetry.access_log import AccessLog

        return AccessLog(path, as_json=as_json)

    def _observed(self) -> Observers:
        if self._observers is None:
            from fastrpc.telemetry.observers import Observers

            self._observers = Observers(self._plan_anew, self._shares_of)
        return self._observers

    def _shares_of(self, batch: RecordBatch) -> list[tuple[Observers, list[CallRecord]]]:
        """Return the records that belong to mounted servers, for the observers of each."""
        from fastrpc.mounting import shares_of

        return shares_of(self.registries, batch.calls(), Server._observed) if self._mounts else []

    def remove_hook(self, function: Callable[..., object]) -> None:
        """Remove a hook. Does nothing if the function is not a hook."""
        self._hooks[:] = [hook for hook in self._hooks if hook.function != function]
        self._plan_anew()

    def set_note(self, function: Callable[[], list[str]] | None) -> None:
        """Append the texts of `function()` to each result of a tool, errors included. None ends it.

        With a function, calls of tools take the slower path through the dispatcher."""
        self._note = function
        self._plan_anew()

    def _plan_anew(self) -> None:
        """Hooks, guards or notes have changed: make the plans again, also where this server is mounted."""
        if self._runtime is not None:
            self._set_around(self._runtime)
            self._runtime.forget_plans()
        for host in self._hosts:
            host._plan_anew()

    # --- polling, log messages ------------------------------------------------------------------------

    def watch(self, function: Callable[[], object], every_seconds: float = 2.0) -> None:
        """Call a function every few seconds while a client is connected (`fastrpc.engine.monitor`).

        It polls for changes, such as of a folder or of the time. It is called on the thread that serves a
        connection and must be quick. A list of tools does not wait for it, unless no event loop runs yet.
        """
        if self.watching is None:
            from fastrpc.engine.monitor import Monitor

            self.watching = Monitor()
        self.watching.add(function, every_seconds)
        for runtime in self._runtimes():
            runtime.monitors.begin_soon()

    def unwatch(self, function: Callable[[], object]) -> None:
        """Stop calling a function of `watch`."""
        if self.watching is not None:
            self.watching.remove(function)

    def log(
        self,
        data: object,
        level: LogLevel = "info",
        logger: str | None = None,
        to: Callable[[str], bool] | None = None,
    ) -> int:
        """Send a log message that belongs to no call to each client that has asked for its level by
        logging/setLevel (MCP, utilities: logging). With `to`, only to clients of principals for which it
        returns True. Returns the number of these clients. Clients of 2026-07-28 receive only messages of
        their calls. Thread-safe. Raises ValueError for an unknown level."""
        from fastrpc.methods.logging import log_to_sessions

        return log_to_sessions(self._runtimes(), level, data, logger, to)

    @property
    def busy(self) -> bool:
        """Whether a call is in flight: one that waits, or that runs on a thread."""
        return any(runtime.calls.count > 0 for runtime in self._runtimes())

    def _runtimes(self) -> list[Runtime]:
        """The runtimes of this server, if it is served, and of those where it is mounted."""
        found = [] if self._runtime is None else [self._runtime]
        for host in self._hosts:
            found += host._runtimes()
        return found

    # --- composition ----------------------------------------------------------------------------------

    def include(self, module: ModuleType) -> None:
        """Add all tools that a module or package marks, and call its function ``attach(server)`` if it has
        one. Raises DefinitionError for a name that is taken."""
        from fastrpc.loader import attach, collect

        for tool in collect(module):
            self.add_tool(tool)
        attach(module, self)

    def mount(self, other: Server, prefix: str = "") -> None:
        """Mount another server: add its tools, resources and prompts, now and later, with `prefix` before the
        names. See `fastrpc.mounting`. Raises DefinitionError for anything but a server, for a server that
        would contain itself, and for a name or a URI that is taken: nothing is mounted then."""
        self._mount(other, prefix)

    def _mount(self, other: Server, prefix: str, addresses: Addresses | None = None) -> None:
        """Mount another server, whose resources get their URIs here from `addresses`."""
        from fastrpc.mounting import mount_in

        mount = mount_in(self, other, prefix, addresses)
        self._plan_anew()
        mount.follow()
        self.load_tools_later(mount.load)
        if self._runtime is not None:
            self.load_tools()

    def _addresses_of(self, other: Server, uri: str) -> Sequence[Addresses]:
        """The addresses of a mounted server's resource that has this URI here or there."""
        from fastrpc.mounting import addresses_of

        return addresses_of(self, other, uri)

    def _with_mounts(self) -> list[Server]:
        """This server and all servers that are mounted in it, directly or indirectly."""
        found = [self]
        for inner in found:
            found += [other for other in inner._mounts if other not in found]
        return found

    @overload
    @classmethod
    def proxy(cls, where: str, **options: Unpack[UrlProxyOptions]) -> Self: ...
    @overload
    @classmethod
    def proxy(cls, where: list[str] | tuple[str, ...], **options: Unpack[CommandProxyOptions]) -> Self: ...
    @classmethod
    def proxy(cls, where: Iterable[str] | str, **options: Any) -> Self:
        """Return a proxy of another MCP server: one that a command starts, a list of str, over its standard
        input and output, or one at an http URL. See docs/composition.md.

        `options` are those of `Server`, ``start_seconds``, in which the upstream server must start and list
        its features (30), and those of the target: see `fastrpc.proxy.targets.target_of`. ``name`` is by
        default that of the command or the host. Raises DefinitionError.
        """
        from fastrpc.proxy import proxy_of

        server: Self
        server, server._upstream = proxy_of(cls, where, options)
        return server

    # --- serving --------------------------------------------------------------------------------------

    @overload
    def run(
        self,
        *,
        drain_seconds: float | None = None,
        trace: str | None = None,
        stats: bool = False,
        transport: Transport | None = None,
    ) -> None: ...
    @overload
    def run(
        self,
        *,
        drain_seconds: float | None = None,
        trace: str | None = None,
        stats: bool = False,
        http: str | None,
        **options: Unpack[HttpOptions],
    ) -> None: ...
    def run(
        self,
        *,
        drain_seconds: float | None = None,
        trace: str | None = None,
        stats: bool = False,
        transport: Transport | None = None,
        http: str | None = None,
        **options: Any,
    ) -> None:
        """Serve over standard input and output until the client disconnects or a signal arrives.

        At the end of input, calls in flight have `drain_seconds` (1) to end. `trace` names a file to which
        all messages are written, secrets masked, over HTTP too. Raises UsageError if that file cannot be
        written or a standard descriptor is closed. `stats` prints those of calls: see `print_statistics`.

        With `http`, an address like ``127.0.0.1:8000``, serve over HTTP instead, until a signal arrives:
        calls in flight then have `drain_seconds` (5) to end. `options` are those of `asgi`, and ``workers``,
        ``notice_seconds``, ``tls_cert``, ``tls_key``, ``secret``, ``access_log``, ``access_log_format``;
        FASTRPC_TOKEN and FASTRPC_SECRET are used too, then removed. Raises UsageError for invalid options.

        With a `transport`, serve over that instead, in a new event loop: see `serve`. The first signal begins
        the shutdown, the second one skips the wait for calls in flight.

        An entry whose annotations are undefined is named on standard error; the program exits with code 2.
        """
        if transport is not None:
            from fastrpc.definitions.option_types import check_transport

            check_transport(transport, excludes=http is not None or bool(options))
        settle_or_exit(each.registries for each in self._with_mounts())
        if http is not None:
            from fastrpc.transports.http.run import run
            from fastrpc.transports.http.settings import HttpSettings

            settings = HttpSettings.from_environment(
                http, drain_seconds=drain_seconds, trace=trace, stats=stats, **options
            )
            run(lambda: self, settings)
            return
        if options:
            raise UsageError(f"run: {next(iter(options))} is an option of HTTP: give http= too")
        seconds = 1.0 if drain_seconds is None else drain_seconds
        writer = None
        if trace is not None:
            from fastrpc.transports.trace import Trace

            writer = Trace(trace)
        report = self.print_statistics() if stats else None
        try:
            if transport is None:
                collect_seldom()
                from fastrpc.transports.stdio import run as run_stdio

                run_stdio(self, seconds, writer)
            else:
                from fastrpc.transports.shutdown import run as run_transport

                self._over_http |= transport.remote
                run_transport(self, transport, seconds, writer)
        finally:
            if writer is not None:
                writer.close()
            self.drain_observers(at_end=True)
            if report is not None:
                report.end()
            self.runtime.stop_sharing()
        self.runtime.leave_threads_behind()

    async def serve(
        self, transport: Transport, *, drain_seconds: float = 1.0, trace: str | None = None
    ) -> None:
        """Serve over a custom transport in the running event loop, until the transport is closed.

        Its contract is `fastrpc.transports.base.Transport`. At the end calls in flight have `drain_seconds`,
        none if this is cancelled; then the lifespan is exited and programs of tools are ended. Signals are
        not handled. Raises what the transport raises, and UsageError for an unwritable `trace`.
        """
        from fastrpc.transports.shutdown import serve_in_loop

        self._over_http |= transport.remote
        await serve_in_loop(self, transport, drain_seconds, trace)

    def asgi(self, **options: Unpack[AsgiOptions]) -> Application:
        """Return an ASGI application that serves this server over HTTP (MCP: Streamable HTTP; docs/http.md).

        `token` (a string, several, or a function of a token that returns its principal), `token_file` or
        `auth_servers` authenticate callers; ``auth=None`` admits everyone. Raises UsageError without any, and
        for a ``FASTRPC_SECRET`` or ``FASTRPC_SECRET_FILE`` that cannot be used.
        """
        from functools import partial

        from fastrpc.signed_texts import keys_of
        from fastrpc.transports.http.asgi import Application, application

        self.registries.settle()
        for each in self._with_mounts() if self.warns else ():
            each.registries.warn_of_missing_descriptions()
        keys_of(self.runtime)  # what is wrong with them must not be found by the first session
        self._over_http = True
        schema_of = self.runtime.plans.input_schema_of
        make = partial(application, self.connect, schema_of, {**options}, self.max_batch)
        return Application(make, self.http_endpoints, self.http_fronts)

    @property
    def over_http(self) -> bool:
        """Whether this server, or one where it is mounted, serves or has served over HTTP. Callers may be on
        other machines: tools must not fetch for them what only this machine can reach."""
        return self._over_http or any(host.over_http for host in self._hosts)

    def connect(self, main: Dispatcher | None = None) -> Dispatcher:
        """Return the dispatcher of a new connection, which a transport feeds. `main` is the dispatcher of the
        session that the connection belongs to, if there is one."""
        from fastrpc._core.connection import Connection
        from fastrpc.engine.dispatcher import Dispatcher
        from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

        runtime = self.runtime
        runtime.shared  # noqa: B018  # from the first connection on, this process hears other hosts
        tails = map(runtime.results.endings, (LATEST_SESSION_VERSION, STATELESS))
        kind = Dispatcher if runtime.recorder is None else self._observed().dispatcher_type
        return kind(runtime, Connection(*tails), main)

    @property
    def info(self) -> dict[str, Any]:
        """The server's `serverInfo` (MCP: Implementation)."""
        info = {name: getattr(self, name) for name in ("name", "version", "title", "description")}
        info |= {"websiteUrl": self.website_url, "icons": self.icons}
        return {name: value for name, value in info.items() if value is not None}

    @property
    def runtime(self) -> Runtime:
        """What all connections of this server share."""
        if self._runtime is None:
            from fastrpc import methods
            from fastrpc.engine.runtime import Runtime

            self.registries.settle()
            self._runtime = Runtime(self, methods)
            self._set_around(self._runtime)
        return self._runtime

    def _set_around(self, runtime: Runtime) -> None:
        runtime.results.notes = [each._note for each in self._with_mounts() if each._note is not None]
        runtime.take_wrappers([each._wrapper for each in self._with_mounts()])
        seen = [each for each in self._with_mounts() if each._observers and each._observers.functions]
        runtime.is_observed = self in seen
        runtime.recorder = self._observed().recorder_for(map(Server._observed, seen)) if seen else None
