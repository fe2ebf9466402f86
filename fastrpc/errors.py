"""Every error that fastrpc raises, in one tree.

Each party has a branch. `ProtocolError` is the client's fault and becomes a JSON-RPC error with its `code`.
`ToolError` and `ArgumentError` become a tool result with ``isError: true``. `DefinitionError` is the tool
author's fault, raised while a tool is decorated. `fastrpc.Client` raises `ClientError` for a server's faults.
`UsageError` is a mistake on the command line, and exits with code 2. Errors are raised deep in the code;
`fastrpc.engine.dispatcher` alone converts them into responses. Importing this module imports nothing.

An error about an unknown name may suggest similar ones (`suggest`). Input is quoted by `excerpt`, so that
an error is never as large as the input.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


FAILURES = (Exception, SystemExit, KeyboardInterrupt)
"""The exceptions of a user's function that count as failures. Cancellation does not, nor do exceptions that
pass through a handler on purpose (`fastrpc.engine.call.InputRequired`)."""


class FastrpcError(Exception):
    """The root of all errors that fastrpc raises on purpose.

    `outcome` is stored in the record of a call that ends with the error (`fastrpc._core.recorder.OUTCOMES`).
    """

    outcome = "tool_error"

    def answering(self, kind: str, server: Any) -> BaseException:
        """Return the error that answers the call of a handler of this kind that has raised this one."""
        return self


class ProtocolError(FastrpcError):
    """The client violated the protocol.

    `code` is a JSON-RPC 2.0 error code (section 5.1) or one that MCP defines; `data` is the error's optional
    ``data`` member, any JSON value.
    """

    code = -32603
    outcome = "protocol_error"

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.data: Any = data


class ParseError(ProtocolError):
    """The line is not a JSON document."""

    code = -32700


class InvalidRequest(ProtocolError):
    """JSON, but not a JSON-RPC request; or a request that is not allowed in this state."""

    code = -32600


class BatchTooLarge(InvalidRequest):
    """A batch has more elements than the limit. None of them is processed."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(
            f"Invalid request: a batch of {size:,} messages; expected at most {most:,}", {"maxBatch": most}
        )


class MethodNotFound(ProtocolError):
    """The client's protocol version has no such method."""

    code = -32601


class InvalidParams(ProtocolError):
    """The params do not match the method's definition."""

    code = -32602
    outcome = "invalid"


class UnknownName(InvalidParams):
    """There is no tool, or no prompt, with this name."""

    outcome = "unknown"


class InternalError(ProtocolError):
    """A fault of fastrpc itself. The client receives only this; the traceback is logged."""

    code = -32603


class Overloaded(ProtocolError):
    """Too many calls are in flight. The call was not started and may be sent again.

    The code is specific to fastrpc. It is outside the range that JSON-RPC 2.0 reserves, as MCP 2026-07-28
    requires for new codes.
    """

    code = -31001
    outcome = "overloaded"


class UnsupportedProtocolVersion(ProtocolError):
    """A request names a protocol version that this server does not support (MCP 2026-07-28)."""

    code = -32022


class HeaderMismatch(ProtocolError):
    """An HTTP header is missing, or differs from the body (MCP 2026-07-28, transports: HTTP)."""

    code = -32020


class ResourceNotFound(ProtocolError):
    """There is no resource with this URI (MCP, resources: error handling).

    A function that reads a resource may raise it, or return None. `legacy`: the client uses a version with
    sessions (up to 2025-11-25), which has a separate code for this.
    """

    code = -32602
    outcome = "unknown"

    def __init__(self, uri: str, hint: str = "", *, legacy: bool = False) -> None:
        uri = excerpt(uri)
        super().__init__(f"Resource not found: {uri}{hint}", {"uri": uri})
        if legacy:
            self.code = -32002


class CallRefused(ProtocolError):
    """A guard has refused the call of a resource or a prompt, whose results cannot represent an error.

    MCP defines no code for it. Up to 2025-11-25 the code is from the range that JSON-RPC 2.0 (5.1) leaves to
    servers. 2026-07-28 reserves that range, so its clients get HTTP's 403, outside JSON-RPC's reserved range.
    """

    code = 403
    outcome = "refused"

    def __init__(self, message: str, data: object = None, *, legacy: bool = False) -> None:
        super().__init__(message, data)
        if legacy:
            self.code = -32000


class ToolError(FastrpcError):
    """Raised by a tool: the message is sent to the model as a result with ``isError: true``."""


class CallTimeout(ToolError):
    """A call has not ended within its handler's `timeout_seconds`."""

    outcome = "timeout"


class CallStopped(ToolError):
    """A call in flight was cancelled by a person other than its caller."""

    outcome = "cancelled"


class MissingRequiredClientCapability(ProtocolError, ToolError):
    """The client lacks a capability that the server needs to ask it (MCP 2026-07-28).

    `data` holds the missing ``requiredCapabilities``. It is also a ToolError, so a handler that can continue
    without an answer catches the same type in every version.
    """

    code = -32021


class ArgumentError(FastrpcError):
    """The arguments of a call do not match the tool's schema.

    The message names the field, what was expected and what was received. The model receives it as a result
    with ``isError: true`` (MCP 2025-11-25, tools: error handling).
    """

    outcome = "invalid"


class ClientError(FastrpcError):
    """A client's request has failed: the root of all errors that `fastrpc.Client` raises for what a server
    does.

    `outcome` applies to a call whose handler called another server and did not handle the failure.
    """


class RemoteError(ClientError):
    """The server answered with an error (JSON-RPC 2.0, section 5.1): `code`, `message`, `data`.

    A handler of a client (``on_elicit=`` and others) may raise it to answer the server with an error.
    `status`: over HTTP, the status of an error that does not name its request; else None.
    """

    def __init__(self, error: dict[str, Any], status: int | None = None) -> None:
        code, message = error.get("code"), error.get("message")
        super().__init__(f"{message} ({code})")
        self.code: int = code if type(code) is int else 0
        self.message: str = message if isinstance(message, str) else ""
        self.data: Any = error.get("data")
        self.status = status


class HttpStatusError(ClientError):
    """The server, or a proxy before it, refused a request with an HTTP status and without an MCP message.

    `status`: 401 for a missing or wrong token, 404 where there is no MCP endpoint, and so on (RFC 9110).
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later: the server fails, or is asked too often (429)."""
        return self.status >= 500 or self.status == 429


class AuthorizationFailed(ClientError):
    """OAuth has produced no token that the server accepts: the login was denied or not completed, or an
    authorization server violates its protocol (MCP, authorization). The message contains no secret."""


class InvalidAnswer(ClientError):
    """The server's response is not a valid result of the method. The message names the invalid member."""


class RequestTimeout(ClientError, TimeoutError):
    """The server has not answered a request within its time limit. The request was cancelled."""


class ConnectionLost(ClientError, ConnectionError):
    """The server or the connection to it has ended. Whether the server has processed the request is unknown.

    `exit_code` of a server that the client has started: negative for a signal, None if unknown. `stderr`: the
    last lines that such a server wrote to its standard error.
    """

    def __init__(self, message: str, *, exit_code: int | None = None, stderr: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr = stderr

    def again(self, before: str = "") -> ConnectionLost:
        """Return a new error about the same connection, for another request. `before` begins its message."""
        return type(self)(f"{before}{self}", exit_code=self.exit_code, stderr=self.stderr)


class SessionExpired(ConnectionLost):
    """Over HTTP: the server does not know the session any more (MCP 2025-11-25, session management).

    It has not processed this request, which may be sent again in a new session.
    """


class ToolCallFailed(ClientError):
    """The tool failed in a call that returns a value (``as_type=``). `result` is the complete result."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class TasksUnsupported(ClientError):
    """The server, the tool or the version has no tasks, but the call was to become one; it has not run."""


class TaskCancelled(ClientError):
    """A task was waited for, and has been cancelled: it has no result."""


class InvalidConfig(FastrpcError, ValueError):
    """A file with servers (``.mcp.json``) cannot be read, or one of its entries cannot be used. The message
    names the file, the server and the member."""


class _Mistake(FastrpcError):
    """An author's mistake. One that ends a program of theirs is shown as one line."""

    def __init__(self, *words: object) -> None:
        super().__init__(*words)
        from fastrpc.definition_mistakes import install

        install(_Mistake)


class DefinitionError(_Mistake, TypeError):
    """A tool is defined incorrectly. The message names the function and a solution."""


class UsageError(_Mistake):
    """A wrong option, a missing file, an unknown target: one line on stderr, exit code 2."""


class Reworded:
    """``with Reworded(OSError, UsageError, f"{path}: "):`` raises another error in place of one of a class or
    of a tuple of classes. Its text is the other's, or the system's reason, between `before` and `after`."""

    __slots__ = ("_after", "_before", "_caught", "_raised")

    def __init__(self, caught: Any, raised: Any, before: str = "", after: str = "") -> None:
        self._caught, self._raised, self._before, self._after = caught, raised, before, after

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self._caught):
            text = getattr(error, "strerror", None) or error
            raise self._raised(f"{self._before}{text}{self._after}") from None


MOST_COMPARED, LONGEST_COMPARED = 64, 128
"""How many names, and characters of each, are compared with a misspelled one: a caller may send many."""

LONGEST_EXCERPT = 200
"""Characters of an input that an error quotes."""


def excerpt(text: str, longest: int = LONGEST_EXCERPT) -> str:
    """Return an input as an error quotes it: a long one is cut and ends with an ellipsis."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def suggest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the known names that are similar to a misspelled one, the most similar first, ignoring case.

    The name itself is never returned: a known name was refused for a reason other than its spelling.
    """
    from difflib import get_close_matches

    wanted = name[:LONGEST_COMPARED].lower()
    folded = {each[:LONGEST_COMPARED].lower(): each for each in known if each != name}
    nearest = folded if len(folded) <= MOST_COMPARED else _nearest(wanted, folded)
    return [folded[close] for close in get_close_matches(wanted, nearest, most)]


def _nearest(wanted: str, names: Iterable[str]) -> list[str]:
    """Return the names with the most pairs of letters in common with `wanted`, to limit the number of full
    comparisons, each of which takes up to 1 ms."""
    from heapq import nlargest
    from operator import add

    pairs = {*map(add, wanted, wanted[1:])}
    return nlargest(MOST_COMPARED, names, key=lambda each: len(pairs.intersection(map(add, each, each[1:]))))


def suggestion(name: str, known: Iterable[str], most: int = 3) -> str:
    """Return a hint with at most `most` known names similar to `name`; "" if there is none."""
    near = suggest(name, known, most)
    return f" (did you mean {', '.join(near)}?)" if near else ""
