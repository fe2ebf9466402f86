"""A pending request to the upstream server, and the errors that may end it.

Connections, transports and entries share these; nothing here sends or waits.
"""

from __future__ import annotations

import asyncio

from fastrpc.errors import ProtocolError, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.context import Context

REFUSED = -32603
"""The code for an error that has none (JSON-RPC 2.0, 5.1: internal error)."""


class RemoteError(ProtocolError):
    """An error response of the upstream server, forwarded unchanged.

    `status`: the HTTP status, for an error that does not name its request.
    """

    def __init__(self, error: Any, status: int | None = None) -> None:
        self.status = status
        error = error if isinstance(error, dict) else {}
        super().__init__(str(error.get("message", "the server behind gave no reason")), error.get("data"))
        code = error.get("code")
        self.code = code if type(code) is int else REFUSED


class SessionGone(ToolError):
    """The server does not know our session. It has not processed the request, which may be sent again."""


class PendingRequest:
    """A pending request. `events` receives its result, its error, and requests of the server meanwhile."""

    __slots__ = ("context", "events", "id", "method", "task")

    def __init__(self, id: int, method: str, context: Context | None) -> None:
        self.id = id
        self.method = method
        self.context = context
        self.events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.task: asyncio.Task[None] | None = None
        """The task that waits for the answer, on transports with a task for each request."""
