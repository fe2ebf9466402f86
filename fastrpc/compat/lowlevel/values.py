"""Converts what handlers of a low-level server return into what the engine encodes.

Models of ``mcp.types`` are read by their members, so that the SDK is not imported; dicts in the wire format
are accepted in their place. A result that is one text, the most common, stays a `str`, which compiled code
writes by itself.
"""

from __future__ import annotations

from fastrpc import tracebacks
from fastrpc.compat.values import _call_result, plain
from fastrpc.content import KINDS_OF_CONTENT, Block, Text, ToolResult, block_of
from fastrpc.errors import InternalError, ProtocolError, ToolError
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.lowlevel.schema import SchemaCheck

URL_ELICITATION_REQUIRED = -32042
HINTS = {"ttlMs": "ttl_ms", "cacheScope": "cache_scope"}
"""The members of a result that say how long it may be kept, and their names in the models."""


class WholeResult(ToolResult):
    """A result of another type, as it is sent: one that requires input, or an extension's."""

    __slots__ = ("whole",)
    is_checked = False

    def __init__(self, raw: dict[str, Any]) -> None:
        super().__init__()
        self.whole = raw


class HandlerError(ProtocolError):
    """The JSON-RPC error that a handler has raised, with its own code."""

    outcome = "tool_error"

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message, data)
        self.code = code


def error_of(error: Exception, version: str) -> ProtocolError:
    """Return the JSON-RPC error for what a handler has raised: that of the SDK's McpError, else one with the
    code 0 and the exception's text; from 2026-07-28 on an internal one, and the exception is logged."""
    if isinstance(error, ProtocolError):
        return error
    given = getattr(error, "error", None)
    code, message = getattr(given, "code", None), getattr(given, "message", None)
    if type(code) is int and isinstance(message, str):
        return HandlerError(code, message, plain(getattr(given, "data", None)))
    if version == STATELESS:
        tracebacks.report("a handler failed", error)
        return InternalError("Internal server error")
    return HandlerError(0, str(error))


def is_url_elicitation(error: Exception) -> bool:
    """Whether an exception is the SDK's UrlElicitationRequiredError, which is no result of the tool."""
    return getattr(getattr(error, "error", None), "code", None) == URL_ELICITATION_REQUIRED


# ---------------------------------------------------------------------------------- results of tools


def tool_result(value: Any, output: SchemaCheck | None) -> Any:
    """Return a handler's result as a `str`, a list of `Text` or a `ToolResult`. Raises ToolError.

    As in the SDK: content blocks, a dict of structured content, a tuple of both, or a CallToolResult, which
    alone is not validated against the tool's output schema.
    """
    structured: Any = None
    if isinstance(value, tuple) and len(value) == 2:
        parts, structured = value
    elif isinstance(value, dict):
        import json

        parts, structured = [json.dumps(value, indent=2)], value
    elif hasattr(value, "content") and (hasattr(value, "isError") or hasattr(value, "is_error")):
        return _call_result(plain(value))
    elif hasattr(value, "__iter__") and not isinstance(value, (str, bytes)):
        parts = value
    else:
        raise ToolError(f"Unexpected return type from tool: {type(value).__name__}")
    structured = plain(structured)
    if output is not None:
        _check_output(structured, output)
    content = [_part(part) for part in parts]
    if structured is not None:
        return ToolResult(content, structured=structured)
    if not all(type(part) is str for part in content) or not content:
        return ToolResult(content)
    return content[0] if len(content) == 1 else [Text(content[0]), *content[1:]]


def _check_output(structured: Any, output: SchemaCheck) -> None:
    if structured is None:
        raise ToolError("Output validation error: outputSchema defined but no structured output returned")
    problem = output.problem(structured)
    if problem is not None:
        raise ToolError(f"Output validation error: {problem}")


def _part(part: Any) -> Any:
    """Return a content block as a `str`, where it is nothing but a text, or a `Block`. Raises ToolError."""
    if type(part) is str:
        return part
    if getattr(part, "type", None) == "text" and not getattr(part, "model_extra", None):
        text = part.text
        if (
            type(text) is str
            and getattr(part, "annotations", None) is None
            and getattr(part, "meta", None) is None
        ):
            return text
    raw = plain(part)
    if not isinstance(raw, dict) or raw.get("type") not in KINDS_OF_CONTENT:
        raise ToolError(f"expected a list of content blocks, got {type(part).__name__} in it")
    return Block(raw)


def call_result(value: Any) -> ToolResult:
    """Return the tool's result for a CallToolResult, a model or a dict. Raises ToolError."""
    raw = result_of(value)
    if raw.get("resultType", "complete") != "complete":
        return WholeResult(raw)
    if not isinstance(raw.get("content", []), list):
        raise ToolError("content: expected a list of content blocks")
    return _call_result(raw)


def wire_result(value: Any) -> dict[str, Any]:
    """Return what `tool_result` has returned as a CallToolResult in its wire format."""
    result = (
        value if isinstance(value, ToolResult) else ToolResult(value if isinstance(value, list) else [value])
    )
    parts: Any = result.content or ()
    found: dict[str, Any] = {
        "content": [block_of(part, STATELESS) for part in parts],
        "isError": result.is_error,
    }
    if result.structured is not None:
        found["structuredContent"] = result.structured
    if result.meta is not None:
        found["_meta"] = result.meta
    return found


# ---------------------------------------------------------------------------------- other results


def result_of(value: Any) -> dict[str, Any]:
    """Return a result, a model or a dict, in its wire format; that of the SDK's ServerResult is its root."""
    if value is None:
        return {}
    raw = plain(getattr(value, "root", value))
    if not isinstance(raw, dict):
        raise TypeError(f"expected a result of mcp.types, got {type(value).__name__}")
    given = getattr(value, "model_fields_set", None)
    if given is not None and "ttlMs" in raw:  # the model's defaults say nothing
        return {
            name: each for name, each in raw.items() if HINTS.get(name, name) in given or name not in HINTS
        }
    return raw


def is_result(value: Any, member: str) -> bool:
    """Whether a value is a result with this member, and not the member's value."""
    return member in value if isinstance(value, dict) else hasattr(value, member)


def contents_of(value: Any, uri: str) -> dict[str, Any]:
    """Return the result of ``resources/read`` for what its handler returns. Raises TypeError."""
    if isinstance(value, (str, bytes, bytearray)):
        return {"contents": [_contents(value, None, None, uri)]}
    if not hasattr(value, "__iter__"):
        raise TypeError(f"Unexpected return type from read_resource: {type(value)}")
    return {
        "contents": [
            _contents(part.content, part.mime_type, getattr(part, "meta", None), uri) for part in value
        ]
    }


def _contents(data: Any, mime_type: str | None, meta: Any, uri: str) -> dict[str, Any]:
    found: dict[str, Any] = {"uri": uri, "mimeType": mime_type}
    if meta is not None:
        found["_meta"] = meta
    if isinstance(data, str):
        found["mimeType"] = mime_type or "text/plain"
        found["text"] = data
    else:
        from base64 import b64encode

        found["mimeType"] = mime_type or "application/octet-stream"
        found["blob"] = b64encode(data).decode()
    return found
