"""A client of a URL before a scripted server::

with_script(Stateless(on_call), conversation)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastrpc.client import Client
from support.scripted_plays import Play
from support.scripted_server import Scripted


def with_script(
    play: Play, conversation: Callable[[Client, Scripted], Awaitable[Any]], **options: Any
) -> Scripted:
    """Let a client speak with a scripted server, and return that."""

    async def whole() -> Scripted:
        async with Scripted(play) as server, Client(server.url, **options) as client:
            await conversation(client, server)
        return server

    return asyncio.run(asyncio.wait_for(whole(), 60))


async def call_one(client: Client, server: Scripted) -> None:
    assert (await client.call_tool("one")).text == "said"


def calls(server: Scripted) -> int:
    return sum(asked.rpc == "tools/call" for asked in server.requests)
