"""fastrpc: an MCP server framework with a compiled hot path. The public names, nothing else.

A name is imported when it is first used, so ``import fastrpc`` itself costs almost nothing. Renamed public
modules are found under their former names, too, until 1.0.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from msgspec import Meta

    from fastrpc._core.call_info import CallInfo
    from fastrpc._core.call_result import CallResult
    from fastrpc._core.recorder import CallRecord
    from fastrpc.callers import Caller
    from fastrpc.client.client import Client
    from fastrpc.content import (
        Audio,
        Contents,
        EmbeddedResource,
        Image,
        ResourceLink,
        Text,
        ToolResult,
    )
    from fastrpc.context import Context
    from fastrpc.definitions.completion import Completions
    from fastrpc.definitions.prompt import Message
    from fastrpc.definitions.tool import tool
    from fastrpc.engine.list_filter import ListItem
    from fastrpc.errors import (
        ArgumentError,
        AuthorizationFailed,
        ClientError,
        ConnectionLost,
        DefinitionError,
        FastrpcError,
        InvalidAnswer,
        ProtocolError,
        RemoteError,
        RequestTimeout,
        ResourceNotFound,
        TaskCancelled,
        TasksUnsupported,
        ToolCallFailed,
        ToolError,
        UsageError,
    )
    from fastrpc.server import Server
    from fastrpc.version import __version__

__all__ = [
    "ArgumentError",
    "Audio",
    "AuthorizationFailed",
    "CallInfo",
    "CallRecord",
    "CallResult",
    "Caller",
    "Client",
    "ClientError",
    "Completions",
    "ConnectionLost",
    "Contents",
    "Context",
    "DefinitionError",
    "EmbeddedResource",
    "FastrpcError",
    "Image",
    "InvalidAnswer",
    "ListItem",
    "Message",
    "Meta",
    "ProtocolError",
    "RemoteError",
    "RequestTimeout",
    "ResourceLink",
    "ResourceNotFound",
    "Server",
    "TaskCancelled",
    "TasksUnsupported",
    "Text",
    "ToolCallFailed",
    "ToolError",
    "ToolResult",
    "UsageError",
    "__version__",
    "tool",
]

_HOMES = {
    "Audio": "fastrpc.content",
    "CallInfo": "fastrpc._core.call_info",
    "CallRecord": "fastrpc._core.recorder",
    "CallResult": "fastrpc._core.call_result",
    "Caller": "fastrpc.callers",
    "Client": "fastrpc.client.client",
    "Completions": "fastrpc.definitions.completion",
    "Contents": "fastrpc.content",
    "Context": "fastrpc.context",
    "EmbeddedResource": "fastrpc.content",
    "Image": "fastrpc.content",
    "ListItem": "fastrpc.engine.list_filter",
    "Message": "fastrpc.definitions.prompt",
    "Meta": "msgspec",
    "ResourceLink": "fastrpc.content",
    "Server": "fastrpc.server",
    "Text": "fastrpc.content",
    "ToolResult": "fastrpc.content",
    "tool": "fastrpc.definitions.tool",
    "__version__": "fastrpc.version",
}
"""The module of each public name that is not an error: those are in `fastrpc.errors`."""


if not TYPE_CHECKING:  # so that a type checker reports a misspelled name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'fastrpc' has no attribute {name!r}")
        value = getattr(__import__(_HOMES.get(name, "fastrpc.errors"), fromlist=[name]), name)
        globals()[name] = value
        return value


class _FormerNames:
    """Finds what no other finder has found: modules by their former names (`fastrpc.former_names`)."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not name.startswith("fastrpc."):
            return None
        from fastrpc.former_names import spec_of

        return spec_of(name)


sys.meta_path.append(_FormerNames)


def __dir__() -> list[str]:
    return sorted(__all__)
