"""An in-memory client, for the authors of tools and for fastrpc's own tests.

::

    async def test_counts_words():
        async with Client(app) as client:
            result = await client.call("word_count", text="two words")
            assert result.text == "2"

The server is the real one, parser and encoder included; only the pipes are left out.
"""

from __future__ import annotations

import asyncio
import json

from fastrpc.errors import FastrpcError
from fastrpc.session import CAPABILITIES_KEY, LATEST_LEGACY, MODERN, VERSION_KEY
from fastrpc.transports.memory import MemoryTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from fastrpc.server import Server


class RemoteError(FastrpcError):
    """The server answered with a JSON-RPC error: `code`, `message`, `data`."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error.get('message')} ({error.get('code')})")
        self.code: int = error.get("code", 0)
        self.message: str = error.get("message", "")
        self.data: Any = error.get("data")


class CallResult:
    """The result of a tool call: `content` blocks, `structured`, `is_error`, `meta`; `raw` as it came."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.content: list[dict[str, Any]] = raw["content"]
        self.structured: Any = raw.get("structuredContent")
        self.is_error: bool = raw.get("isError", False)
        self.meta: dict[str, Any] = raw.get("_meta", {})

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")


class Client:
    """A client of `server` in this event loop, speaking `version`; to be used with ``async with``."""

    def __init__(self, server: Server, *, version: str = LATEST_LEGACY) -> None:
        self.version = version
        self.notifications: list[dict[str, Any]] = []
        self.info: dict[str, Any] = {}
        self._server = server
        self._last_id = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._progress: dict[int, Callable[[dict[str, Any]], object]] = {}
        self._transport: MemoryTransport | None = None

    async def __aenter__(self) -> Client:
        self._transport = MemoryTransport(self._server.connect().connection, self._receive)
        if self.version == MODERN:
            self.info = await self.request("server/discover")
        else:
            client = {"name": "fastrpc.testing", "version": "1"}
            params = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": client}
            self.info = await self.request("initialize", params)
            self.notify("notifications/initialized")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._transport is not None:
            self._transport.close()
        for future in self._waiting.values():
            future.cancel()

    async def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its result. Raises RemoteError."""
        return await self.begin(method, params)[1]

    def begin(
        self, method: str, params: dict[str, Any] | None = None
    ) -> tuple[int, asyncio.Future[dict[str, Any]]]:
        """Send a request; return its id and a future of its result."""
        self._last_id += 1
        id = self._last_id
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[id] = future
        self._send({"jsonrpc": "2.0", "id": id, "method": method, "params": self._with_envelope(params)})
        return id, future

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    async def call(
        self, tool: str, /, on_progress: Callable[[dict[str, Any]], object] | None = None, **arguments: Any
    ) -> CallResult:
        """Call a tool. `on_progress` gets each progress report. Raises RemoteError for a protocol error."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if on_progress is not None:
            token = self._last_id + 1
            self._progress[token] = on_progress
            params["_meta"] = {"progressToken": token}
        return CallResult(await self.request("tools/call", params))

    async def tools(self) -> list[dict[str, Any]]:
        """Return the descriptors of all tools, page by page."""
        result = await self.request("tools/list")
        found: list[dict[str, Any]] = result["tools"]
        while "nextCursor" in result:
            result = await self.request("tools/list", {"cursor": result["nextCursor"]})
            found += result["tools"]
        return found

    def cancel(self, id: int) -> None:
        """Tell the server to stop a request that was begun; its future is cancelled too."""
        self.notify("notifications/cancelled", {"requestId": id})
        self._waiting.pop(id).cancel()

    def _with_envelope(self, params: dict[str, Any] | None) -> dict[str, Any]:
        params = dict(params or {})
        if self.version == MODERN:
            params["_meta"] = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, **params.get("_meta", {})}
        return params

    def _send(self, message: dict[str, Any]) -> None:
        if self._transport is None:
            raise RuntimeError("use the client with 'async with'")
        self._transport.send(json.dumps(message).encode())

    def _receive(self, line: bytes) -> None:
        message = json.loads(line)
        if "method" in message:
            self.notifications.append(message)
            token = message.get("params", {}).get("progressToken")
            if token in self._progress:
                self._progress[token](message["params"])
            return
        future = self._waiting.pop(message["id"], None)
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(RemoteError(message["error"]))
        else:
            future.set_result(message["result"])
