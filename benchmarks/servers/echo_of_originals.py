"""One small server for each of the originals, by name: what `benchmarks/original_objects.py` measures besides
public servers. Run by an interpreter that has the original."""

from __future__ import annotations

import sys


def sdk1_fastmcp() -> None:
    from mcp.server.fastmcp import FastMCP

    _serve(FastMCP("echo", log_level="WARNING"))


def sdk2_mcpserver() -> None:
    from mcp.server.mcpserver import MCPServer

    _serve(MCPServer("echo", version="1"))


def fastmcp() -> None:
    from fastmcp import FastMCP

    _serve(FastMCP("echo", version="1"))


def _serve(server) -> None:
    @server.tool()
    def echo(text: str) -> str:
        """Return the text."""
        return text

    server.run()


def sdk1_server() -> None:
    import anyio
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    server = Server("echo", version="1")
    text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

    @server.list_tools()
    async def list_tools() -> list[types.Tool]:
        return [types.Tool(name="echo", description="Return the text.", inputSchema=text)]

    @server.call_tool()
    async def call_tool(name: str, arguments: dict) -> list[types.TextContent]:
        return [types.TextContent(type="text", text=arguments["text"])]

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


if __name__ == "__main__":
    {each.__name__: each for each in (sdk1_fastmcp, sdk1_server, sdk2_mcpserver, fastmcp)}[sys.argv[1]]()
