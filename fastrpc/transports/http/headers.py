"""Compares the headers that repeat values of a 2026-07-28 request's body with the body.

Intermediaries (a router, a rate limit) read the headers, the server reads the body: they must be equal (MCP
2026-07-28, transports: Streamable HTTP, request headers). Pure functions.
"""

from __future__ import annotations

from base64 import b64decode

from fastrpc.errors import HeaderMismatch, excerpt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The parameter that the header ``Mcp-Name`` repeats, by method."""

_OPEN, _CLOSE = "=?base64?", "?="


def check_headers(headers: dict[bytes, list[bytes]], method: str, name: Any, version: str) -> None:
    """Raise HeaderMismatch unless method, name and version are the same in headers and body.

    `name` is the body's parameter according to `NAMED`, of any type; None if there is none.
    """
    _check(headers, "MCP-Protocol-Version", version)
    _check(headers, "Mcp-Method", method)
    if isinstance(name, str):
        _check(headers, "Mcp-Name", name)


def check_parameters(
    headers: dict[bytes, list[bytes]], schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    """Compare the ``Mcp-Param-…`` headers of a tool with a call's arguments. Raises HeaderMismatch."""
    for header, path in parameter_headers(schema):
        value = value_at(arguments, path)
        if value is not None:
            _check(headers, f"Mcp-Param-{header}", value)


def parameter_headers(
    schema: dict[str, Any], path: tuple[str, ...] = ()
) -> list[tuple[str, tuple[str, ...]]]:
    """Return the ``x-mcp-header`` marks of a schema's properties, each with the path to its argument."""
    found = []
    for key, member in schema.get("properties", {}).items():
        if isinstance(member, dict):
            mark = member.get("x-mcp-header")
            if isinstance(mark, str):
                found.append((mark, (*path, key)))
            found += parameter_headers(member, (*path, key))
    return found


def value_at(arguments: Any, path: tuple[str, ...]) -> Any:
    """Return the argument at a path of `parameter_headers`, None if it is missing."""
    for key in path:
        arguments = arguments.get(key) if isinstance(arguments, dict) else None
    return arguments


def _check(headers: dict[bytes, list[bytes]], name: str, expected: Any) -> None:
    given = _value_of(headers, name)
    if isinstance(expected, bool):
        same = given == ("true" if expected else "false")
    elif isinstance(expected, int):
        is_integer = len(given) < 40 and given.isascii() and given.removeprefix("-").isdecimal()
        same = is_integer and int(given) == expected
    else:
        same = given == expected
    if not same:
        body = repr(excerpt(expected)) if isinstance(expected, str) else f"{expected!r:.80}"
        raise HeaderMismatch(f"{name}: the header says {excerpt(given)!r}, the body {body}")


def _value_of(headers: dict[bytes, list[bytes]], name: str) -> str:
    values = headers.get(name.lower().encode(), [])
    if not values:
        raise HeaderMismatch(f"{name}: the header is missing")
    if len(values) > 1:
        raise HeaderMismatch(f"{name}: the header occurs {len(values)} times")
    if not values[0].isascii():  # parsers decode other bytes differently
        raise HeaderMismatch(f"{name}: expected plain ASCII, or base64 between {_OPEN} and {_CLOSE}")
    return decoded(name, values[0].decode("ascii").strip(" \t"))


def decoded(name: str, text: str) -> str:
    """Return a header's text; ``=?base64?…?=`` holds UTF-8. Raises HeaderMismatch."""
    if not (text.startswith(_OPEN) and text.endswith(_CLOSE) and len(text) >= len(_OPEN) + len(_CLOSE)):
        return text
    try:
        return b64decode(text[len(_OPEN) : -len(_CLOSE)].encode("ascii"), validate=True).decode("utf-8")
    except (ValueError, UnicodeError):
        raise HeaderMismatch(
            f"{name}: the text between {_OPEN} and {_CLOSE} is not base64 of UTF-8"
        ) from None
