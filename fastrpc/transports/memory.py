"""Serves one client in memory, in the running event loop. For tests; no descriptors, no pipes.

Messages are parsed, planned and encoded as over stdio. They arrive one at a time by `send`; the server's
messages are passed, line by line, to `on_line`. The smallest transport.
"""

from __future__ import annotations

import asyncio

from fastrpc.transports.base import Transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc.transports.base import Connections


class MemoryTransport(Transport):
    """One client in memory. `on_line` is called with each message for it, without the newline."""

    remote = False

    def __init__(self, on_line: Callable[[bytes], object]) -> None:
        self._on_line = on_line
        self._gone = asyncio.Event()

    def connect(self, connections: Connections, principal: str = "") -> None:
        """Open the connection, with an event loop or without: inline calls need none."""
        self._connection = connections.open(self._write, principal=principal, at_once=True)

    async def start(self, connections: Connections) -> None:
        self.connect(connections)

    async def wait_closed(self) -> None:
        await self._gone.wait()

    def send(self, line: bytes) -> None:
        """Send a message, without its newline, to the server."""
        self._connection.receive(line)

    def disconnect(self) -> None:
        """The client disconnects: its calls in flight are cancelled."""
        self._connection.close()
        self._gone.set()

    def _write(self, data: bytes) -> None:
        for line in data.splitlines():
            self._on_line(line)
