"""What the modules that serve a compat server over HTTP read of it, as an interface.

For type checkers alone: no module imports this when it runs.
"""

from __future__ import annotations

from typing import Any, Protocol

from typing_extensions import Unpack

from fastrpc.compat.dialect import Dialect
from fastrpc.compat.highlevel.settings import FastMCPSettings
from fastrpc.engine.dispatcher import Dispatcher
from fastrpc.engine.runtime import Runtime
from fastrpc.options import AsgiOptions
from fastrpc.telemetry.access_log import AccessLog
from fastrpc.telemetry.statistics import StatisticsPrinter
from fastrpc.transports.http.asgi import Application


class Served(Protocol):
    """A compat server."""

    settings: FastMCPSettings
    max_batch: int
    _retry_interval: int | None

    @property
    def dialect(self) -> Dialect: ...
    @property
    def runtime(self) -> Runtime: ...
    def connect(self, main: Dispatcher | None = None) -> Dispatcher: ...
    def asgi(self, **options: Unpack[AsgiOptions]) -> Application: ...
    def drain_observers(self, *, at_end: bool = ...) -> None: ...
    def print_statistics(self) -> StatisticsPrinter: ...
    def open_access_log(self, path: str, *, as_json: bool = False) -> AccessLog: ...
    def _served_routes(self, mcp_path: str) -> list[Any]:
        """Return the routes of Starlette beside MCP."""

    def _token_check(self, path: str = "/mcp") -> Any:
        """Return what ``asgi(token=…)`` takes; None if the server asks for no token."""
