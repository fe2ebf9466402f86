"""W13: the official Python SDK's client: `ClientSession`, over `stdio_client` or `streamable_http_client`.

In memory it is its `Client`, which can only be given a server of its own SDK there.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import driving
from mcp import ClientSession, StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
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
    if load.url:
        headers = {"Authorization": f"Bearer {load.token}"}
        async with create_mcp_http_client(headers) as http:
            return await drive_over(streamable_http_client(load.url, http_client=http), load)
    program, *arguments = load.command
    server = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
    return await drive_over(stdio_client(server), load)


async def drive_over(transport: Any, load: driving.Load) -> dict[str, Any]:
    async with transport as streams, ClientSession(*streams) as session:
        await session.initialize()
        driving.hold_to_version(session.protocol_version)
        return await driving.drive(load, session.call_tool, text_of)


if __name__ == "__main__":
    sys.exit(driving.main(drive))
