"""The engine's connections as a transport of `fastrpc.Server.run`, which begins and ends them in order.

At the end no request is taken any more; those that are served have the time that `run` gives them, then they
are cancelled, and say so. The contract is that of `fastrpc.transports.base`.
"""

from __future__ import annotations

import asyncio
import sys

from .connection import Connection
from .wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from .access import Access

MOST_CONNECTIONS = 256
LAST_SECONDS = 1.0  # for what was cancelled to be answered


class EngineServer:
    """Serves at a socket that listens. `url` is what it announces."""

    remote = True

    def __init__(self, listener: socket.socket, url: str, access: Access) -> None:
        self.access = access
        self.wire = Wire()
        self.connections: set[Connection] = set()
        self.is_ending = False
        self._listener = listener
        self._url = url
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.AbstractServer | None = None

    @property
    def is_full(self) -> bool:
        return len(self.connections) > MOST_CONNECTIONS

    def watch(self, task: asyncio.Task[None]) -> None:
        """Keep a task that serves requests until its end: its connection may be gone before."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- the transport --------------------------------------------------------------------------------

    async def start(self, connections: object) -> None:
        """Accept clients. `connections`, which are MCP's, are not used."""
        loop = asyncio.get_running_loop()
        self._accepting = await loop.create_server(lambda: Connection(self), sock=self._listener)
        print(f"fastrpc: contracts engine: {self._url}", file=sys.stderr, flush=True)

    async def wait_closed(self) -> None:
        """Never returns: a signal is what ends it."""
        await asyncio.get_running_loop().create_future()

    async def stop_accepting(self) -> None:
        self.is_ending = True
        if self._accepting is not None:
            self._accepting.close()
        for connection in list(self.connections):
            connection.end()

    async def drain(self) -> None:
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=LAST_SECONDS)
        for connection in list(self.connections):
            connection.end()

    def let_go(self) -> None:
        """For a forked child; none is made here: programs are started by the reaper."""
