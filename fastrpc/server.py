"""Server: a name, its tools, and the ways to serve them. Puts all the parts together.

Making one costs nothing but its own attributes: what serving needs is imported when serving begins.
"""

from __future__ import annotations

from fastrpc.registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar, overload

    from fastrpc.dispatcher import Dispatcher
    from fastrpc.registry import Tool

    Function = TypeVar("Function", bound=Callable[..., Any])


class Server:
    """An MCP server.

    ``app = Server("demo")``, then ``@app.tool`` on functions, then ``app.run()``.

    `name`, `version` and `title` are what clients are told of it; `instructions` is a text for the
    model. `page_size` bounds the entries of one page of a list, `max_in_flight` the calls that are
    worked on at once (one more is refused with error -31001), `threads` the worker threads for
    synchronous tools.
    """

    __fastrpc_server__ = True

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        instructions: str | None = None,
        page_size: int = 1000,
        max_in_flight: int = 16384,
        threads: int = 40,
    ) -> None:
        self.name = name
        self.version = version
        self.title = title
        self.instructions = instructions
        self.page_size = page_size
        self.max_in_flight = max_in_flight
        self.threads = threads
        self.tools = Registry()
        self._loaders: list[Callable[[], Iterable[Tool]]] = []
        self._service: Any = None

    # --- tools ----------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        @overload
        def tool(self, function: Function) -> Function: ...
        @overload
        def tool(self, function: None = None, **options: Any) -> Callable[[Function], Function]: ...

    def tool(self, function: Any = None, **options: Any) -> Any:
        """Make a function a tool of this server: ``@app.tool`` or ``@app.tool(effect="read")``.

        The options are those of `fastrpc.tool`. Raises DefinitionError for a function that cannot be
        one, or a name that is taken.
        """
        if function is None:
            return lambda function: self.tool(function, **options)
        self.add_tool(function, **options)
        return function

    def add_tool(self, tool: Any, **options: Any) -> None:
        """Add a function or a `Tool`. Raises DefinitionError as `tool` does."""
        self.tools.add(tool, **options)

    def remove_tool(self, name: str) -> None:
        """Remove a tool. Raises KeyError if there is none of this name."""
        self.tools.remove(name)

    def load_tools_later(self, loader: Callable[[], Iterable[Tool]]) -> None:
        """Add the tools that `loader` returns, before the first request that needs to know them."""
        self._loaders.append(loader)

    def load_tools(self) -> None:
        """Call the loaders of `load_tools_later` now, if that has not been done."""
        loaders, self._loaders = self._loaders, []
        for loader in loaders:
            for tool in loader():
                self.add_tool(tool)

    # --- serving --------------------------------------------------------------------------------------

    def run(self, *, drain_seconds: float = 1.0, trace: str | None = None) -> None:
        """Serve over standard input and output until the client is gone or a signal comes.

        At the end of input, calls in flight have `drain_seconds` to end. `trace` names a file to which
        both directions of the wire are written, secrets masked. Raises UsageError if that file cannot
        be written or a standard descriptor is closed.
        """
        from fastrpc.transports import stdio

        writer = None
        if trace is not None:
            from fastrpc.trace import Trace

            writer = Trace(trace)
        dispatcher = self.connect()
        try:
            stdio.serve(dispatcher.connection, drain_seconds=drain_seconds, trace=writer)
        finally:
            dispatcher.close()
            if writer is not None:
                writer.close()
        dispatcher.service.leave_threads_behind()

    def connect(self) -> Dispatcher:
        """Return the serving half of a new connection, for a transport to feed."""
        from fastrpc._core.connection import Connection
        from fastrpc.dispatcher import Dispatcher
        from fastrpc.session import LATEST_LEGACY, MODERN

        service = self.service
        tails = [service.results.endings(version) for version in (LATEST_LEGACY, MODERN)]
        return Dispatcher(service, Connection(*tails))

    @property
    def service(self) -> Any:
        """What all connections of this server share."""
        if self._service is None:
            from fastrpc.service import Service

            info = {"name": self.name, "version": self.version}
            if self.title is not None:
                info["title"] = self.title
            self._service = Service(
                self.tools,
                info,
                instructions=self.instructions,
                page_size=self.page_size,
                max_in_flight=self.max_in_flight,
                threads=self.threads,
                load=self.load_tools,
            )
        return self._service
