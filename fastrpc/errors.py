"""Every error fastrpc raises, in one tree with one root.

There is a branch for each side: `ProtocolError` is the client's fault and becomes a JSON-RPC
error with its `code`; `ToolError` and `ArgumentError` become a tool result with ``isError: true``;
`DefinitionError` is the tool author's fault, raised while a tool is decorated; `UsageError` is the
fault of the person who typed the command, and ends it with exit code 2. Errors are raised deep and turned
into an answer in one place, `fastrpc.dispatcher`. Importing this module imports nothing.

Whoever refuses a name may say which one was meant: `resembling` finds it. What came is quoted by `excerpt`:
an error is never as large as what it is about.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


FAILURES = (Exception, SystemExit, KeyboardInterrupt)
"""What a function of a user's fails with. Not among them: what ends a coroutine that is no longer wanted, and
what goes through a handler on purpose (`fastrpc.calls.InputRequired`)."""


class FastrpcError(Exception):
    """The root: whatever fastrpc raises on purpose is one of these.

    `outcome` is what the record of a call says that ended with it (`fastrpc._core.recorder.OUTCOMES`).
    """

    outcome = "tool_error"


class ProtocolError(FastrpcError):
    """The client sent something that the protocol does not allow.

    `code` is the JSON-RPC 2.0 error code (section 5.1) or one that MCP defines; `data` is the
    error's optional ``data`` member, any JSON value.
    """

    code = -32603
    outcome = "protocol_error"

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.data: Any = data


class ParseError(ProtocolError):
    """The line is no JSON document."""

    code = -32700


class InvalidRequest(ProtocolError):
    """JSON, but no JSON-RPC request; or a request out of turn."""

    code = -32600


class BatchTooLarge(InvalidRequest):
    """A batch has more elements than are served at once. It is refused whole."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(
            f"Invalid request: a batch of {size:,} messages; expected at most {most:,}", {"maxBatch": most}
        )


class MethodNotFound(ProtocolError):
    """No such method in the version the client speaks."""

    code = -32601


class InvalidParams(ProtocolError):
    """The method's parameters do not have the shape that it defines."""

    code = -32602
    outcome = "invalid"


class UnknownName(InvalidParams):
    """There is no tool, or no prompt, of this name."""

    outcome = "unknown"


class InternalError(ProtocolError):
    """fastrpc's own fault. The answer says so; the traceback is on stderr."""

    code = -32603


class Overloaded(ProtocolError):
    """Too many calls are in flight; the call was not begun and may be sent again.

    The code is fastrpc's own. It lies outside the range that JSON-RPC 2.0 reserves, as MCP
    2026-07-28 asks of new codes.
    """

    code = -31001
    outcome = "overloaded"


class UnsupportedProtocolVersion(ProtocolError):
    """A request names a protocol version that is not served (MCP 2026-07-28)."""

    code = -32022


class ResourceNotFound(ProtocolError):
    """There is nothing at a resource's URI (MCP, resources: error handling).

    A function that reads a resource may raise it, or return None. `legacy`: the client speaks a version
    up to 2025-11-25, which has a code of its own for this.
    """

    code = -32602
    outcome = "unknown"

    def __init__(self, uri: str, hint: str = "", *, legacy: bool = False) -> None:
        uri = excerpt(uri)
        super().__init__(f"Resource not found: {uri}{hint}", {"uri": uri})
        if legacy:
            self.code = -32002


class ToolError(FastrpcError):
    """Raised by a tool: its message is shown to the model as a result with ``isError: true``."""


class CallTimeout(ToolError):
    """A call has not ended within its handler's `timeout_seconds`."""

    outcome = "timeout"


class MissingRequiredClientCapability(ProtocolError, ToolError):
    """The client cannot be asked what the server needs to know (MCP 2026-07-28).

    `data` says in ``requiredCapabilities`` what it would have to declare. A ToolError too: whoever can go
    on without an answer catches that, in each version.
    """

    code = -32021


class ArgumentError(FastrpcError):
    """A call's arguments do not fit the tool's schema.

    The message names the field, what was expected and what came. It reaches the model as a result
    with ``isError: true`` (MCP 2025-11-25, tools: error handling).
    """

    outcome = "invalid"


class DefinitionError(FastrpcError, TypeError):
    """A tool cannot be defined like this. The message names the function and the cure."""


class UsageError(FastrpcError):
    """A wrong option, a missing file, an unknown target: one line on stderr, exit code 2."""


LONGEST_EXCERPT = 200
"""Characters of a text that came, in an error."""


def excerpt(text: str) -> str:
    """Return a text that came as an error quotes it: the beginning of a long one, with an ellipsis."""
    return text if len(text) <= LONGEST_EXCERPT else text[: LONGEST_EXCERPT - 1] + "…"


def resembling(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the known names that a misspelled one resembles, the nearest first; capitals do not count.

    The name itself is none of them: that it is known and refused has another reason than its spelling.
    """
    from difflib import get_close_matches

    folded = {each.lower(): each for each in known if each != name}
    return [folded[close] for close in get_close_matches(name[:128].lower(), folded, most)]


def suggestion(name: str, known: Iterable[str], most: int = 3) -> str:
    """Return a hint at the known names that `name` resembles, at most so many; "" where there is none."""
    near = resembling(name, known, most)
    return f" (did you mean {', '.join(near)}?)" if near else ""
