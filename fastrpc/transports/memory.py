"""Serves one client in memory, in the event loop that already runs. For tests; no descriptors, no pipes.

Messages take the same way through parser, plans and encoder as over stdio. They arrive one at a time
with `send`; what the server says is handed, line by line, to `on_line`. The smallest transport there is.
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

    def connect(self, connections: Connections) -> None:
        """Be connected, with an event loop or without: inline calls need none."""
        self._connection = connections.open(self._write, at_once=True)

    async def start(self, connections: Connections) -> None:
        self.connect(connections)

    async def wait_closed(self) -> None:
        await self._gone.wait()

    def send(self, line: bytes) -> None:
        """Hand a message, without its newline, to the server."""
        self._connection.receive(line)

    def disconnect(self) -> None:
        """The client goes: its calls in flight are cancelled."""
        self._connection.close()
        self._gone.set()

    def _write(self, data: bytes) -> None:
        for line in data.splitlines():
            self._on_line(line)
