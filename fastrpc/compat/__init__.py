"""Compatibility: ``from fastrpc.compat import FastMCP, Context`` in a file written for another framework.

A server written for FastMCP, or for the official SDK's high-level server, runs unchanged: tools, resources,
prompts, completions, Context, lifespan, mounts. What is not supported raises `NotOffered`, which names the
alternative; docs/compat.md has the table. `FastMCP` is a subclass of `fastrpc.Server`, so everything else of
fastrpc works with it: ``fastrpc serve``, ``fastrpc dev``, `fastrpc.testing.Client`.

Names are imported when they are first used.
"""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.compat.context import AcceptedElicitation, CancelledElicitation, Context, DeclinedElicitation
    from fastrpc.compat.endpoints import StdioServerParameters
    from fastrpc.compat.errors import McpError, NotOffered
    from fastrpc.compat.errors import McpError as MCPError
    from fastrpc.compat.fastmcp_client import CallToolResult, Client, ElicitResult, MessageHandler
    from fastrpc.compat.server import FastMCP
    from fastrpc.compat.server import FastMCP as MCPServer
    from fastrpc.compat.sessions import (
        ClientSession,
        sse_client,
        stdio_client,
        streamable_http_client,
        streamablehttp_client,
    )
    from fastrpc.compat.values import (
        AssistantMessage,
        Audio,
        File,
        Image,
        Message,
        PromptResult,
        ResourceContent,
        ResourceResult,
        ToolResult,
        UserMessage,
    )
    from fastrpc.errors import ToolError
    from fastrpc.errors import ToolError as PromptError
    from fastrpc.errors import ToolError as ResourceError

__all__ = [
    "AcceptedElicitation",
    "AssistantMessage",
    "Audio",
    "CallToolResult",
    "CancelledElicitation",
    "Client",
    "ClientSession",
    "Context",
    "DeclinedElicitation",
    "ElicitResult",
    "FastMCP",
    "File",
    "Image",
    "MCPError",
    "MCPServer",
    "McpError",
    "Message",
    "MessageHandler",
    "NotOffered",
    "PromptError",
    "PromptResult",
    "ResourceContent",
    "ResourceError",
    "ResourceResult",
    "StdioServerParameters",
    "ToolError",
    "ToolResult",
    "UserMessage",
    "sse_client",
    "stdio_client",
    "streamable_http_client",
    "streamablehttp_client",
]

_HOMES = {
    "fastrpc.compat.context": (
        "AcceptedElicitation",
        "CancelledElicitation",
        "Context",
        "DeclinedElicitation",
    ),
    "fastrpc.compat.endpoints": ("StdioServerParameters",),
    "fastrpc.compat.errors": ("McpError", "NotOffered"),
    "fastrpc.compat.fastmcp_client": ("CallToolResult", "Client", "ElicitResult", "MessageHandler"),
    "fastrpc.compat.server": ("FastMCP",),
    "fastrpc.compat.sessions": (
        "ClientSession",
        "sse_client",
        "stdio_client",
        "streamable_http_client",
        "streamablehttp_client",
    ),
    "fastrpc.compat.values": (
        "AssistantMessage",
        "Audio",
        "File",
        "Image",
        "Message",
        "PromptResult",
        "ResourceContent",
        "ResourceResult",
        "ToolResult",
        "UserMessage",
    ),
    "fastrpc.errors": ("ToolError",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ALIASES = {
    "MCPError": "McpError",
    "MCPServer": "FastMCP",
    "PromptError": "ToolError",
    "ResourceError": "ToolError",
}
"""Names that stand for the same class here."""

_MODULE_ALTERNATIVES = {
    "get_context": "take a parameter ctx: Context",
    "CurrentContext": "take a parameter ctx: Context",
    "Depends": "use the server's lifespan, ctx.request_context.lifespan_context",
    "Resolve": "await ctx.elicit(…) in the tool",
}


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        if name in _MODULE_ALTERNATIVES:
            raise ImportError(f"fastrpc.compat has no {name}; {_MODULE_ALTERNATIVES[name]}")
        return load(globals(), _HOME_OF, name, _ALIASES.get(name))
