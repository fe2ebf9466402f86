"""W13: FastMCP's `Client`, over stdio and HTTP; in memory with a server of its own package."""

from __future__ import annotations

import os
import sys
from typing import Any

import driving
from fastmcp import Client
from fastmcp.client.client import CallToolResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


def text_of(result: CallToolResult) -> str:
    block = result.content[0]
    if result.is_error or block.type != "text":
        raise driving.Void(f"the tool failed: {block!r:.200}")
    return block.text


async def drive(load: driving.Load) -> dict[str, Any]:
    if load.app:
        target = load.app
    elif load.url:
        target = StreamableHttpTransport(load.url, auth=load.token)
    else:
        program, *arguments = load.command
        target = StdioTransport(program, arguments, env=dict(os.environ), keep_alive=False)
    async with Client(target, mode="legacy") as client:
        driving.hold_to_version(client.protocol_version)
        return await driving.drive(load, client.call_tool, text_of)


if __name__ == "__main__":
    sys.exit(driving.main(drive))
