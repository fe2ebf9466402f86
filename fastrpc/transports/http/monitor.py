"""The one timer of a server that has all its connections keep their limits.

It keeps a clock of its own that stands still while the loop is held up: nobody is closed for bytes that lie
in the kernel because a tool did not let us read. A look at 500 connections costs a millisecond. What is too
long is for each connection to say (`protocol.Protocol.look`).
"""

from __future__ import annotations

from fastrpc import diagnostics
from fastrpc.transports.http.connections import Connections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from fastrpc.transports.http.limits import Limits

EVERY_SECONDS = 0.5


class Monitor:
    """Looks at all connections of one server every `every` seconds, by the clock `now`."""

    def __init__(self, limits: Limits, loop: AbstractEventLoop) -> None:
        self.limits = limits
        shortest = min(limits.head_seconds, limits.body_seconds, limits.read_seconds, limits.idle_seconds)
        self.every = min(EVERY_SECONDS, shortest / 10)
        self.now = self._looked = loop.time()
        self.connections = Connections(limits, self.now)
        self._loop = loop
        self._timer = loop.call_later(self.every, self._look)

    def close(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        moment = self._loop.time()
        self.now += min(moment - self._looked, 2 * self.every)
        self._looked = moment
        self.connections.now = self.now
        self._timer = self._loop.call_later(self.every, self._look)
        for connection in self.connections:
            try:
                connection.look(self.now)
            except Exception as error:
                diagnostics.write("error", "a connection could not be looked at", error)
                connection.transport.abort()
