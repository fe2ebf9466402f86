"""What a tool is handed besides its arguments: the call it serves.

A parameter annotated with `Context` gets one and never shows in the schema. It costs nothing to a tool
that does not ask for it. How messages reach the client is the dispatcher's affair.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any


class Done:
    """The result of something that is done already, for tools that write ``await`` before it."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


DONE = Done()


class Context:
    """One call of a tool.

    `request_id` is the JSON-RPC id; `protocol_version` the version that the client speaks;
    `client_info` what it said of itself; `wants_progress` whether it asked for progress.
    """

    __slots__ = ("_progress", "_reached", "cancelled", "client_info", "protocol_version", "request_id")

    def __init__(
        self,
        request_id: str | int = 0,
        protocol_version: str = "",
        client_info: dict[str, Any] | None = None,
        progress: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        self.request_id = request_id
        self.protocol_version = protocol_version
        self.client_info = client_info or {}
        self.cancelled = False
        """True once the client has cancelled the call or gone away. For tools that run on a thread:
        look at it from time to time and return. An async tool gets asyncio.CancelledError instead."""
        self._progress = progress
        self._reached: float | None = None

    @property
    def wants_progress(self) -> bool:
        """Whether the request carried a progress token (MCP, utilities: progress)."""
        return self._progress is not None

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Done:
        """Report progress, if the client asked for it; may be called from a thread.

        `progress` must grow from report to report; one that does not is left out. The notification is
        on its way when this returns; the returned value may be awaited, and need not be.
        """
        if self._progress is None or self.cancelled:
            return DONE
        if self._reached is not None and progress <= self._reached:
            return DONE
        self._reached = progress
        report: dict[str, Any] = {"progress": progress}
        if total is not None:
            report["total"] = total
        if message is not None:
            report["message"] = message
        self._progress(report)
        return DONE
