"""How scripted servers answer (`support.scripted_server`): those of two versions, and some that speak no MCP.

A test changes a part of a server: `on_call`, `on_get`, `on_listen`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastrpc.protocol.versions import STATELESS
from support.scripted_server import Asked, Saying

Play = Callable[[Asked, Saying], Awaitable[None]]
ONE = {"name": "one", "inputSchema": {"type": "object"}}
OLD = {"name": "old", "version": "1"}
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
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": OLD}
            await say.result(asked, result, mcp_session_id=self.known)
        elif asked.headers.get("mcp-session-id", "") != self.known:
            await say.answer(404 if "mcp-session-id" in asked.headers else 400)
        elif asked.rpc == "tools/list":
            await say.result(asked, {"tools": [ONE]})
        elif asked.rpc == "tools/call":
            await (self.on_call(asked, say) if self.on_call else say.result(asked, SAID))
        else:
            await say.answer(202)


class Stateless:
    """A server of 2026-07-28 and nothing else; a test says what is different."""

    def __init__(self, on_call: Play | None = None, on_listen: Play | None = None) -> None:
        self.tools: list[dict[str, Any]] = [ONE]
        self.on_call = on_call
        self.on_listen = on_listen

    async def __call__(self, asked: Asked, say: Saying) -> None:
        if asked.method != "POST":
            await say.answer(405)
        elif asked.rpc == "server/discover":
            await say.result(asked, {"supportedVersions": [STATELESS], "capabilities": {"tools": {}}})
        elif asked.rpc == "tools/list":
            await say.result(asked, {"tools": self.tools, "resultType": "complete"})
        elif asked.rpc == "tools/call":
            await (self.on_call(asked, say) if self.on_call else say.result(asked, SAID))
        elif asked.rpc == "subscriptions/listen" and self.on_listen is not None:
            await self.on_listen(asked, say)
        else:
            await say.error(asked, 404, -32601, "no such method")


# --- servers that speak no MCP ----------------------------------------------------------------------------


async def only_2030(asked: Asked, say: Saying) -> None:
    await say.error(asked, 400, -32022, "Unsupported protocol version", {"supported": ["2030-01-01"]})


async def html(asked: Asked, say: Saying) -> None:
    await say.answer(200, b"<html>hello</html>", content_type="text/html")


async def broken(asked: Asked, say: Saying) -> None:
    await say.answer(200, b'{"jsonrpc":', content_type="application/json")


async def something(asked: Asked, say: Saying) -> None:
    await say.answer(200, {"detail": "hello"})


async def cut(asked: Asked, say: Saying) -> None:
    await say.head(200, content_type="application/json", content_length="100")
    say.drop()


async def unavailable(asked: Asked, say: Saying) -> None:
    await say.answer(503)


async def strange(asked: Asked, say: Saying) -> None:
    await say.result(asked, {"protocolVersion": "1999-01-01", "capabilities": {}})


async def nowhere(asked: Asked, say: Saying) -> None:
    await say.answer(404, {"detail": "Not Found"})


async def round_and_round(asked: Asked, say: Saying) -> None:
    await say.answer(307, location=asked.path)


async def elsewhere(asked: Asked, say: Saying) -> None:
    if asked.method == "GET":
        await say.stream()
        await say.send(b"event: endpoint\ndata: http://[/messages\n\n")
    else:
        await say.answer(405)
