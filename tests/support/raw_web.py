"""A web server in the test's own loop that reads requests and writes whatever bytes the test gives it.

    async def play(line: Line) -> None:
        asked = await line.request()
        line.say(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nok")

    async with RawWeb(play) as server: ...       # server.url, server.port, server.lines

A connection is closed when its `play` returns. Unlike `scripted_server` it knows nothing of MCP, and any
number of requests may come on a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


class Gone(Exception):
    """The client has closed the connection."""


class Line:
    """One connection of a client. `heads`: of the requests so far, each as bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads: list[bytes] = []
        self.closed = asyncio.Event()
        self._reader = reader
        self.writer = writer

    async def request(self) -> bytes:
        """Read a request, and return its body. Raises Gone."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            length = self.field("content-length")
            return await self._reader.readexactly(int(length or "0"))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Gone from None

    def field(self, name: str) -> str | None:
        """Return a header of the latest request."""
        for line in self.heads[-1].decode("latin-1").split("\r\n")[1:]:
            found, _, value = line.partition(":")
            if found.lower() == name:
                return value.strip()
        return None

    def say(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)

    async def pieces(self, parts: list[bytes]) -> None:
        """Send parts so that the client reads each one alone, as far as the system lets it."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def gone(self) -> None:
        """Wait until the client closes the connection."""
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(65536):
                pass


class RawWeb:
    """A server in this event loop; `lines` are the connections that it has had."""

    def __init__(
        self, play: Callable[[Line], Awaitable[None]], tls: Any = None, host: str = "127.0.0.1"
    ) -> None:
        self.lines: list[Line] = []
        self._play = play
        self._tls = tls
        self._host = host
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}/mcp"

    @property
    def heads(self) -> list[bytes]:
        return [head for line in self.lines for head in line.heads]

    async def __aenter__(self) -> RawWeb:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls)
        return self

    async def __aexit__(self, *exception: Any) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        line = Line(reader, writer)
        self.lines.append(line)
        try:
            with contextlib.suppress(Gone, ConnectionError):
                await self._play(line)
        finally:
            line.closed.set()
            writer.close()
            self._tasks.discard(task)
