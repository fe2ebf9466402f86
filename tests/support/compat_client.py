"""A conversation of FastMCP's client, as fastrpc has it, with a server in memory."""

from __future__ import annotations

import asyncio
from typing import Any

from fastrpc.compat.fastmcp import Client

SECONDS = 60


def talk(server: Any, conversation: Any) -> Any:
    """Run a coroutine function with a connected client of `server`, and return what it returns."""

    async def connected() -> Any:
        async with Client(server) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(connected(), SECONDS))
