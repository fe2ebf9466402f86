"""Serves one peer in memory, in the event loop that already runs. For tests; no descriptors, no pipes.

Messages take the same way through parser, plans and encoder as over stdio. They arrive one at a time
with `send`; what the server says is handed, line by line, to `on_line`.
"""

from __future__ import annotations

from asyncio import get_running_loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from fastrpc._core.connection import Connection


class MemoryTransport:
    """One connection in memory."""

    def __init__(self, connection: Connection, on_line: Callable[[bytes], object]) -> None:
        self._connection = connection
        self._on_line = on_line
        connection.call_in_loop = lambda function: function()
        connection.flush = self._flush
        loop = running_loop()
        if loop is not None:
            connection.dispatcher.loop_runs(loop)

    def send(self, line: bytes) -> None:
        """Hand a message, without its newline, to the server."""
        self._connection.receive(line)
        self._flush()

    def _flush(self) -> None:
        for line in self._connection.output.take().splitlines():
            self._on_line(line)

    def close(self) -> None:
        """Stop whatever is in flight."""
        self._connection.dispatcher.close()


def running_loop() -> AbstractEventLoop | None:
    """Return the event loop that this thread runs, if it runs one: inline calls need none."""
    try:
        return get_running_loop()
    except RuntimeError:
        return None
