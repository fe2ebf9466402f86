"""A client of a URL before a scripted server: how servers of two versions answer; a test changes a part.

with_script(Stateless(on_call), conversation)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastrpc.client import Client
from fastrpc.protocol.versions import MODERN
from support.scripted_server import Asked, Saying, Scripted

Play = Callable[[Asked, Saying], Awaitable[None]]
SAID = {"content": [{"type": "text", "text": "said"}]}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


class Sessions:
    """A server of 2025-11-25 and nothing else; a test says what is different."""

    def __init__(self) -> None:
        self.begun = 0
        self.known = ""
        self.on_call: Play | None = None
        self.on_get: Play | None = None

    async def __call__(self, asked: Asked, say: Saying) -> None:
        if asked.method == "GET":
            await (self.on_get(asked, say) if self.on_get else say.answer(405))
        elif asked.method == "DELETE":
            await say.answer(200)
        elif asked.rpc == "initialize":
            self.begun += 1
            self.known = f"session-{self.begun}"
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "old"}}
            await say.result(asked, result, mcp_session_id=self.known)
        elif asked.headers.get("mcp-session-id", "") != self.known:
            await say.answer(404 if "mcp-session-id" in asked.headers else 400)
        elif asked.rpc == "tools/call":
            await (self.on_call(asked, say) if self.on_call else say.result(asked, SAID))
        else:
            await say.answer(202)


class Stateless:
    """A server of 2026-07-28 and nothing else; a test says what is different."""

    def __init__(self, on_call: Play | None = None, on_listen: Play | None = None) -> None:
        self.tools: list[dict[str, Any]] = [{"name": "one", "inputSchema": {"type": "object"}}]
        self.on_call = on_call
        self.on_listen = on_listen

    async def __call__(self, asked: Asked, say: Saying) -> None:
        if asked.rpc == "server/discover":
            await say.result(asked, {"supportedVersions": [MODERN], "capabilities": {"tools": {}}})
        elif asked.rpc == "tools/list":
            await say.result(asked, {"tools": self.tools, "resultType": "complete"})
        elif asked.rpc == "tools/call":
            await (self.on_call(asked, say) if self.on_call else say.result(asked, SAID))
        elif asked.rpc == "subscriptions/listen" and self.on_listen is not None:
            await self.on_listen(asked, say)
        else:
            await say.error(asked, 404, -32601, "no such method")


def with_script(
    play: Play, conversation: Callable[[Client, Scripted], Awaitable[Any]], **options: Any
) -> Scripted:
    """Let a client speak with a scripted server, and return that."""

    async def whole() -> Scripted:
        async with Scripted(play) as server, Client(server.url, **options) as client:
            await conversation(client, server)
        return server

    return asyncio.run(asyncio.wait_for(whole(), 60))


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


async def call_one(client: Client, server: Scripted) -> None:
    assert (await client.call_tool("one")).text == "said"


def calls(server: Scripted) -> int:
    return sum(asked.rpc == "tools/call" for asked in server.requests)
