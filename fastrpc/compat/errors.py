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
    InvalidParams,
    InvalidRequest,
    ProtocolError,
    RemoteError,
    RequestTimeout,
    ToolError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.dialect import Dialect

URL_ELICITATION_REQUIRED = -32042
CONNECTION_CLOSED = -32000
REQUEST_TIMEOUT = -32001
FORMER_REQUEST_TIMEOUT = 408
"""The code of a timeout in the official SDK up to 1.x."""


class NotOffered(DefinitionError, AttributeError):
    """A feature of other frameworks that fastrpc does not have. The message names the alternative."""


class McpError(RemoteError):
    """A request failed: `error` has the ``code``, the ``message`` and the ``data``, as in the official SDK,
    and so has the exception itself.

    The codes -32000 and -32001 (408 beside the SDK's 1.x) also mean that a connection has ended, and
    that a time limit is over. Takes these three values, or an ErrorData.
    """

    code: int = 0
    message: str = ""
    data: Any = None
    status: int | None = None

    def __init__(self, code: Any = 0, message: str = "", data: Any = None, *, error: Any = None) -> None:
        code = code if error is None else error
        if not isinstance(code, int):
            message, code, data = code.message, code.code, getattr(code, "data", None)
        Exception.__init__(self, code, message, data)
        self.code = code
        self.message = message
        self.data = data

    @property
    def error(self) -> Any:
        """The error as an object (JSON-RPC 2.0, section 5.1)."""
        from fastrpc.compat.models import typed

        return typed("ErrorData", {"code": self.code, "message": self.message, "data": self.data})

    @classmethod
    def from_error_data(cls, error: Any) -> McpError:
        """Return the exception for an ErrorData."""
        return McpError(error)

    def answering(self, kind: str, server: Any) -> BaseException:
        """Return the error that the original of `server` answers with: one of JSON-RPC, or this one."""
        dialect = getattr(server, "dialect", None)
        is_protocol_error = dialect is not None and _KINDS.get(kind, kind) in self._protocol_kinds(dialect)
        return _answer(self.code, self.message, self.data) if is_protocol_error else self

    def _protocol_kinds(self, dialect: Dialect) -> frozenset[str]:
        return dialect.protocol_errors

    def __str__(self) -> str:
        return self.message


class UrlElicitationRequiredError(McpError):
    """The client must first open these URLs (MCP 2025-11-25, elicitation: URLElicitationRequiredError).

    `elicitations` are the params of URL elicitations.
    """

    def __init__(self, elicitations: Any, message: str | None = None) -> None:
        from fastrpc.compat.values import plain

        self.elicitations = elicitations
        plural = "s" if len(elicitations) > 1 else ""
        super().__init__(
            URL_ELICITATION_REQUIRED,
            message or f"URL elicitation{plural} required",
            {"elicitations": plain(elicitations)},
        )

    def _protocol_kinds(self, dialect: Dialect) -> frozenset[str]:
        return dialect.protocol_errors | dialect.url_errors


class NoBackChannelError(McpError):
    """A request to the client has no channel that leads there, for example in a stateless server."""

    def __init__(self, method: str) -> None:
        self.method = method
        super().__init__(
            InvalidRequest.code, f"Cannot send {method!r}: this connection has no channel to the client"
        )


class MCPDeprecationWarning(UserWarning):
    """The class of the official SDK's warnings, for filters of a file; fastrpc does not warn."""


_KINDS = {"template": "resource", "provider": "resource"}


def _answer(code: int, message: str, data: Any = None) -> ProtocolError:
    error = ProtocolError(message, data)
    error.code = code
    return error


# ------------------------------------------------------------------------- raised by tools and resources


class _Told(ToolError):
    """An error whose message the client gets, but where the official SDK 2.x hides it: in what is not one of
    these kinds."""

    told_by: tuple[str, ...] = ()

    def answering(self, kind: str, server: Any) -> BaseException:
        """Return the error that answers the call: this one, or one whose text is hidden."""
        dialect = getattr(server, "dialect", None)
        if dialect is None or not dialect.style.hides_failures or kind in self.told_by:
            return self
        hidden = RuntimeError(str(self))
        hidden.__cause__ = self
        return hidden


class ToolFailure(_Told):
    """A tool has failed; the client gets the message. A sibling of `ResourceError`, as in the originals: a
    class of a program may derive from both."""

    told_by = ("tool",)


ToolFailure.__name__ = ToolFailure.__qualname__ = "ToolError"


class ResourceError(_Told):
    """A resource has failed; the client gets the message."""

    told_by = ("resource", "template", "provider", "tool")


class PromptError(ToolError):
    """A prompt has failed; the client gets the message."""


class ValidationError(ToolError):
    """A value is invalid; the client gets the message."""

    def answering(self, kind: str, server: Any) -> BaseException:
        """Return the error that answers the call: invalid params, except for a tool."""
        return self if kind == "tool" else InvalidParams(str(self))


class ResourceNotFoundError(ResourceError):
    """There is no such resource; the client gets the message."""

    def answering(self, kind: str, server: Any) -> BaseException:
        """Return the error that answers the call: invalid params, except for a tool."""
        return self if kind == "tool" else InvalidParams(str(self))


class UnknownResourceError(ResourceError, ValueError):
    """A tool has read a resource that is not there. In the official SDK it is a ValueError."""


class NotFoundError(Exception):
    """There is no component of this name."""


class DisabledError(Exception):
    """The component is disabled."""


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
        if isinstance(theirs, type) and issubclass(theirs, Exception) and not issubclass(ours, theirs):
            return _both(ours, theirs)
    return ours


def tool_error(message: str) -> Exception:
    """Return the error for a tool that has failed."""
    return _with_class_of(ToolFailure, "fastmcp.exceptions", "ToolError")(message)


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
