"""An MCP server in the test's own loop that answers byte for byte as the test tells it to, without fastrpc.

    async def play(asked: Asked, saying: Saying) -> None:
        await saying.result(asked, {"tools": []})

    async with Scripted(play) as server: ...       # server.url, server.requests

One request a connection, unless `Scripted.keeps_alive`: then one may follow an answer whose length is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any


class Asked:
    """One request that a scripted server has got."""

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def rpc(self) -> str:
        """The method of its message; empty if there is none."""
        return str(self.message.get("method", "")) if self.body else ""


class Saying:
    """The way back to the client: `head`, then what is to be sent."""

    def __init__(self, writer: asyncio.StreamWriter, keeps_alive: bool) -> None:
        self._writer = writer
        self._keeps_alive = keeps_alive
        self.is_last = True
        """Whether the connection ends with this answer."""

    async def answer(self, status: int, body: Any = None, **headers: str) -> None:
        """Send a whole answer; what is no bytes is sent as JSON."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = {} if body is None or "content_type" in headers else {"content_type": "application/json"}
        await self.head(status, content_length=str(len(data)), **kind, **headers)
        await self.send(data)

    async def result(self, asked: Asked, result: Any, **headers: str) -> None:
        await self.answer(200, {"jsonrpc": "2.0", "id": asked.message["id"], "result": result}, **headers)

    async def error(self, asked: Asked, status: int, code: int, message: str, data: Any = None) -> None:
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        await self.answer(status, {"jsonrpc": "2.0", "id": asked.message["id"], "error": error})

    async def stream(self, **headers: str) -> None:
        await self.head(200, content_type="text/event-stream", **headers)

    async def head(self, status: int, **headers: str) -> None:
        self.is_last = not self._keeps_alive or "content_length" not in headers
        lines = [f"HTTP/1.1 {status} Said", *(["connection: close"] if self.is_last else [])]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode())

    async def event(self, message: Any = None, **fields: str) -> None:
        lines = [f"{name}: {value}" for name, value in fields.items()]
        lines.append("data: " + ("" if message is None else json.dumps(message)))
        await self.send("\n".join([*lines, "", ""]).encode())

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def drop(self) -> None:
        """Break the connection off."""
        self._writer.transport.abort()


class Scripted:
    """A server in this event loop that answers as a function tells it to.

    `requests` are those that have come. `tls`: an ssl.SSLContext.
    """

    keeps_alive = False

    def __init__(self, play: Callable[[Asked, Saying], Awaitable[None]], tls: Any = None) -> None:
        self.requests: list[Asked] = []
        self._play = play
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://localhost:{self.port}/mcp"

    def methods(self) -> list[str]:
        """What was asked, in order: the method of HTTP, and of the message."""
        return [f"{asked.method} {asked.rpc}".strip() for asked in self.requests]

    async def __aenter__(self) -> Scripted:
        self._server = await asyncio.start_server(self._serve, "localhost", 0, ssl=self._tls)
        return self

    async def __aexit__(self, *exception: Any) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await asyncio.sleep(0)  # in which their sockets are closed

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: Any = asyncio.current_task()
        self._serving.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answer(reader, writer):
                    pass
            with contextlib.suppress(ConnectionError):
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()
            self._serving.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request. Return whether another may follow."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = first.split(" ")
        asked = Asked(method, path, headers, body)
        self.requests.append(asked)
        saying = Saying(writer, self.keeps_alive)
        await self._play(asked, saying)
        return not saying.is_last
