"""Compatibility: ``from fastrpc.compat import FastMCP, Context`` in a file written for another framework.

A server written for FastMCP, or for the official SDK's high-level server, runs unchanged: tools, resources,
prompts, completions, Context, lifespan, mounts. What is not supported raises `NotOffered`, which names the
alternative; docs/compat.md has the table. `FastMCP` is a subclass of `fastrpc.Server`, so everything else of
fastrpc works with it: ``fastrpc serve``, ``fastrpc dev``, `fastrpc.testing.Client`. Names are imported when
they are first used.

`fastmcp` and `mcp` have the names of the two originals, and `names` finds the module of each. Both originals
have a high-level server (`server`, its parts in `highlevel`), a Context (`context`, `calls`), functions that
are described and called by their signatures (`functions`), components as objects (`components`, those of a
server's registries `registered`), clients (`client`), token verifiers (`auth`), and HTTP (`http`). Only
FastMCP has `apps`, `middleware` (called by `interception`), `providers` and `transforms` (asked by
`composition`); only the SDK has the low-level server (`lowlevel`), and only its 2.x what is in `sdk2`.
"""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.compat.client.endpoints import StdioServerParameters
    from fastrpc.compat.client.fastmcp_client import CallToolResult, Client, ElicitResult, MessageHandler
    from fastrpc.compat.client.sessions import (
        ClientSession,
        sse_client,
        stdio_client,
        streamable_http_client,
        streamablehttp_client,
    )
    from fastrpc.compat.context import AcceptedElicitation, CancelledElicitation, Context, DeclinedElicitation
    from fastrpc.compat.errors import McpError, NotOffered
    from fastrpc.compat.errors import McpError as MCPError
    from fastrpc.compat.functions.dependencies import CurrentContext, Depends, get_context
    from fastrpc.compat.sdk2.resolvers import Elicit, ListRoots, Resolve, Sample
    from fastrpc.compat.server import FastMCP, MCPServer
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
    "CurrentContext",
    "DeclinedElicitation",
    "Depends",
    "Elicit",
    "ElicitResult",
    "FastMCP",
    "File",
    "Image",
    "ListRoots",
    "MCPError",
    "MCPServer",
    "McpError",
    "Message",
    "MessageHandler",
    "NotOffered",
    "PromptError",
    "PromptResult",
    "Resolve",
    "ResourceContent",
    "ResourceError",
    "ResourceResult",
    "Sample",
    "StdioServerParameters",
    "ToolError",
    "ToolResult",
    "UserMessage",
    "get_context",
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
    "fastrpc.compat.functions.dependencies": ("CurrentContext", "Depends", "get_context"),
    "fastrpc.compat.client.endpoints": ("StdioServerParameters",),
    "fastrpc.compat.errors": ("McpError", "NotOffered"),
    "fastrpc.compat.client.fastmcp_client": ("CallToolResult", "Client", "ElicitResult", "MessageHandler"),
    "fastrpc.compat.sdk2.resolvers": ("Elicit", "ListRoots", "Resolve", "Sample"),
    "fastrpc.compat.server": ("FastMCP", "MCPServer"),
    "fastrpc.compat.client.sessions": (
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
_ALIASES = {
    "MCPError": "McpError",
    "PromptError": "ToolError",
    "ResourceError": "ToolError",
}
"""Names of classes that have another name here."""

if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        return load(globals(), _HOMES, name, _ALIASES.get(name, ""))
