"""The errors that code written for another framework expects, and the translation of ours into them.

An error is also one of that framework's own class where the program has imported it, so that its ``except``
clauses catch it. Nothing is imported here that is not imported anyway.
"""

from __future__ import annotations

import sys

from fastrpc.errors import (
    ClientError,
    ConnectionLost,
    DefinitionError,
    RemoteError,
    RequestTimeout,
    ToolError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONNECTION_CLOSED = -32000
REQUEST_TIMEOUT = -32001
FORMER_REQUEST_TIMEOUT = 408
"""The code of a timeout in the official SDK up to 1.x."""


class NotOffered(DefinitionError, AttributeError):
    """A feature of other frameworks that fastrpc does not have. The message names the alternative."""


class McpError(RemoteError):
    """A request failed: `error` has the ``code``, the ``message`` and the ``data``, as in the official SDK,
    and so has the exception itself.

    The codes -32000 and -32001 (408 beside the SDK's 1.x) also stand for a connection that has ended and for
    a time limit. Takes these three values, or an ErrorData.
    """

    code: int = 0
    message: str = ""
    data: Any = None
    status: int | None = None

    def __init__(self, code: Any = 0, message: str = "", data: Any = None) -> None:
        if not isinstance(code, int):
            code, message, data = code.code, code.message, getattr(code, "data", None)
        Exception.__init__(self, code, message, data)
        self.code = code
        self.message = message
        self.data = data

    @property
    def error(self) -> Any:
        """The error as an object (JSON-RPC 2.0, section 5.1)."""
        from fastrpc.compat.models import typed

        return typed("ErrorData", {"code": self.code, "message": self.message, "data": self.data})

    def __str__(self) -> str:
        return self.message


_made: dict[tuple[type[Exception], type[Exception]], type[Exception]] = {}


def _both(ours: type[Exception], theirs: type[Exception]) -> type[Exception]:
    if (ours, theirs) not in _made:
        members = {"__module__": ours.__module__, "__doc__": ours.__doc__}
        _made[ours, theirs] = type(ours.__name__, (ours, theirs), members)
    return _made[ours, theirs]


def _with_class_of(ours: type[Exception], module: str, *names: str) -> type[Exception]:
    """Return a class that is also that of another package, where the program has imported it."""
    loaded = sys.modules.get(module)
    for name in names:
        theirs = getattr(loaded, name, None)
        if isinstance(theirs, type) and issubclass(theirs, Exception):
            return _both(ours, theirs)
    return ours


def tool_error(message: str) -> Exception:
    """Return the error for a tool that has failed."""
    return _with_class_of(ToolError, "fastmcp.exceptions", "ToolError")(message)


def translated(error: ClientError) -> Exception:
    """Return the error that the official SDK's session raises in the place of one of ours; ours if it has
    none for it."""
    if isinstance(error, RemoteError):
        parts = error.code, error.message, error.data
    elif isinstance(error, RequestTimeout):
        is_former = "mcp.types" in sys.modules and "mcp_types" not in sys.modules
        parts = FORMER_REQUEST_TIMEOUT if is_former else REQUEST_TIMEOUT, str(error), None
    elif isinstance(error, ConnectionLost):
        parts = CONNECTION_CLOSED, f"Connection closed: {error}", None
    else:
        return error
    return _with_class_of(McpError, "mcp.shared.exceptions", "MCPError", "McpError")(*parts)
