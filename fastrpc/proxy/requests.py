"""A request to the server behind: what is known of it until it is answered, and the errors that may end it.

Peers, transports and entries share these; nothing here sends or waits.
"""

from __future__ import annotations

import asyncio

from fastrpc.errors import ProtocolError, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.context import Context

REFUSED = -32603
"""The code of an error that has none (JSON-RPC 2.0, 5.1: internal error)."""


class RemoteError(ProtocolError):
    """An error with which the server behind has answered, passed on as it is.

    `status`: that of HTTP, for an answer that does not say which request it is to.
    """

    def __init__(self, error: Any, status: int | None = None) -> None:
        self.status = status
        error = error if isinstance(error, dict) else {}
        super().__init__(str(error.get("message", "the server behind gave no reason")), error.get("data"))
        code = error.get("code")
        self.code = code if type(code) is int else REFUSED


class SessionGone(ToolError):
    """The server does not know our session: it has not looked at what we asked, and may be asked anew."""


class Asked:
    """A request that is not answered yet. `events` are its result, its error, and questions on the way."""

    __slots__ = ("context", "events", "id", "method", "task")

    def __init__(self, id: int, method: str, context: Context | None) -> None:
        self.id = id
        self.method = method
        self.context = context
        self.events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.task: asyncio.Task[None] | None = None
        """What waits for the answer, where each request has a task of its own."""
