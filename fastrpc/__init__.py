"""fastrpc: an MCP server framework with a compiled hot path. The public names, nothing else.

A name is imported when it is first used, so that ``import fastrpc`` itself costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from msgspec import Meta

    from fastrpc.context import Context
    from fastrpc.errors import (
        ArgumentError,
        DefinitionError,
        FastrpcError,
        ProtocolError,
        ToolError,
        UsageError,
    )
    from fastrpc.registry import tool
    from fastrpc.server import Server
    from fastrpc.types import Image, Text, ToolResult

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Context",
    "DefinitionError",
    "FastrpcError",
    "Image",
    "Meta",
    "ProtocolError",
    "Server",
    "Text",
    "ToolError",
    "ToolResult",
    "UsageError",
    "__version__",
    "tool",
]

_HOMES = {
    "ArgumentError": "fastrpc.errors",
    "Context": "fastrpc.context",
    "DefinitionError": "fastrpc.errors",
    "FastrpcError": "fastrpc.errors",
    "Image": "fastrpc.types",
    "Meta": "msgspec",
    "ProtocolError": "fastrpc.errors",
    "Server": "fastrpc.server",
    "Text": "fastrpc.types",
    "ToolError": "fastrpc.errors",
    "ToolResult": "fastrpc.types",
    "UsageError": "fastrpc.errors",
    "tool": "fastrpc.registry",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fastrpc' has no attribute {name!r}")
    value = getattr(__import__(home, fromlist=[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
