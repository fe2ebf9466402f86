"""W13: the official Python SDK's client: `ClientSession` over `stdio_client`; in memory its `Client`.

In memory it can only be given a server of its own SDK.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import driving
from mcp import ClientSession, StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, TextContent


def text_of(result: CallToolResult) -> str:
    block = result.content[0]
    if result.is_error or not isinstance(block, TextContent):
        raise driving.Void(f"the tool failed: {block!r:.200}")
    return block.text


async def drive(load: driving.Load) -> dict[str, Any]:
    if load.app:
        async with Client(load.app, mode="legacy") as client:
            driving.hold_to_version(client.protocol_version)
            return await driving.drive(load, client.call_tool, text_of)
    program, *arguments = load.command
    server = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        driving.hold_to_version(session.protocol_version)
        return await driving.drive(load, session.call_tool, text_of)


if __name__ == "__main__":
    sys.exit(driving.main(drive))
