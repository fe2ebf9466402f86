"""Periodically has all connections of a server check their time limits, with one timer.

Its clock stops while the loop is blocked: no connection is closed because a tool kept the loop from reading
its bytes. Checking 500 connections costs a millisecond. What the limits mean is left to
each connection (`BoundedConnection.check_limits`).
"""

from __future__ import annotations

from fastrpc import diagnostics
from fastrpc.transports.http.connections import ConnectionTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from fastrpc.transports.http.limits import ConnectionLimits

EVERY_SECONDS = 0.5


class ConnectionMonitor:
    """Checks all connections of one server every `every` seconds, by the clock `now`."""

    def __init__(self, limits: ConnectionLimits, loop: AbstractEventLoop) -> None:
        self.limits = limits
        shortest = min(limits.head_seconds, limits.body_seconds, limits.read_seconds, limits.idle_seconds)
        self.every = min(EVERY_SECONDS, shortest / 10)
        self.now = self._checked_at = loop.time()
        self.connections = ConnectionTable(limits, self.now)
        self._loop = loop
        self._timer = loop.call_later(self.every, self._check)

    def close(self) -> None:
        """Stop the timer."""
        self._timer.cancel()

    def _check(self) -> None:
        moment = self._loop.time()
        self.now += min(moment - self._checked_at, 2 * self.every)
        self._checked_at = moment
        self.connections.now = self.now
        self._timer = self._loop.call_later(self.every, self._check)
        for connection in self.connections:
            try:
                connection.check_limits(self.now)
            except Exception as error:
                diagnostics.write("error", "a connection could not be checked", error)
                connection.transport.abort()
