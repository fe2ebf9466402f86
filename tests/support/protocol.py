"""The versions of MCP and the members that every request of 2026-07-28 carries: what clients of tests share.

Python's standard library only; nothing of fastrpc is imported, whose tables these would not test otherwise.
"""

from __future__ import annotations

from typing import Any

STATELESS = "2026-07-28"
SESSION_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
EVERYTHING = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
"""The capabilities of a client that can be asked everything."""


def envelope(capabilities: dict[str, Any] | None = None, name: str = "test") -> dict[str, Any]:
    """The `_meta` of a request of 2026-07-28."""
    return {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
        "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
    }


def message(method: str | None, params: Any = None, id: Any = None, **members: Any) -> dict[str, Any]:
    """A JSON-RPC message: a request with an id, a notification without, an answer without a method."""
    found: dict[str, Any] = {"jsonrpc": "2.0", **members}
    if id is not None:
        found["id"] = id
    if method is not None:
        found["method"] = method
    if params is not None:
        found["params"] = params
    return found


def tool_call(id: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    """A call of a tool."""
    return message("tools/call", {"name": tool, "arguments": arguments}, id=id)
