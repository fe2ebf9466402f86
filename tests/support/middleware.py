"""Small servers with middleware, and conversations with them in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fastrpc
from fastrpc.compat.fastmcp import FastMCP
from fastrpc.protocol.versions import LATEST_SESSION_VERSION
from fastrpc.testing import Client
from support.in_memory import with_client


def conversing(
    app: fastrpc.Server, talk: Callable[[Client], Any], version: str = LATEST_SESSION_VERSION
) -> Any:
    return with_client(app, talk, version)


def call(app: fastrpc.Server, name: str, version: str = LATEST_SESSION_VERSION, /, **arguments: Any) -> Any:
    """Call one tool, and return its result."""
    return conversing(app, lambda client: client.call(name, **arguments), version)


def server_with(*middleware: Any, **options: Any) -> FastMCP:
    """A server with one tool, and middleware."""
    mcp = FastMCP("t", middleware=[*middleware], **options)

    @mcp.tool
    def echo(text: str) -> str:
        return text

    return mcp


def server_of_all(*middleware: Any) -> FastMCP:
    mcp = server_with(*middleware)
    mcp.resource("data://x")(lambda: "x")

    @mcp.prompt
    def ask() -> str:
        return "ask"

    return mcp
