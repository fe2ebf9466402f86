"""How much time and room one HTTP connection may take, and the one timer that sees to it for all of them.

The timer keeps a clock of its own that stands still while the loop is held up: nobody is closed for bytes that lie
in the kernel because a tool did not let us read. A look at 500 connections costs a millisecond.
"""

from __future__ import annotations

from fastrpc import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from fastrpc.transports.http.protocol import Protocol


class Limits:
    """The limits of a connection. Times are in seconds, kept to within two looks (`EVERY_SECONDS`), never exceeded."""

    def __init__(
        self,
        *,
        head_seconds: float = 10.0,
        body_seconds: float = 10.0,
        read_seconds: float = 10.0,
        idle_seconds: float = 75.0,
        least_rate: int = 4096,
        head_bytes: int = 64 * 1024,
        url_bytes: int = 8 * 1024,
        headers: int = 100,
        waiting: int = 64,
        connections: int = 1024,
    ) -> None:
        self.head_seconds = head_seconds
        """For a whole head, from its first byte on; the first head from the connection on."""
        self.body_seconds = body_seconds
        """For a body, and a second more for every `least_rate` bytes of it that have come."""
        self.read_seconds = read_seconds
        """For an answer that waits to be read, by the same rule."""
        self.idle_seconds = idle_seconds
        """Between two requests."""
        self.least_rate = least_rate
        self.head_bytes = head_bytes
        self.url_bytes = url_bytes
        self.headers = headers
        self.waiting = waiting
        """Requests that a client may send before it has the answer to the first."""
        self.connections = connections
        """Of one process."""


EVERY_SECONDS = 0.5


class Watch:
    """Looks at all connections of one server now and then."""

    def __init__(self, limits: Limits, loop: AbstractEventLoop) -> None:
        self.limits = limits
        self.connections: set[Protocol] = set()
        shortest = min(limits.head_seconds, limits.body_seconds, limits.read_seconds, limits.idle_seconds)
        self.every = min(EVERY_SECONDS, shortest / 10)
        self.now = self._looked = loop.time()
        self._loop = loop
        self._timer = loop.call_later(self.every, self._look)

    def close(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        moment = self._loop.time()
        self.now += min(moment - self._looked, 2 * self.every)
        self._looked = moment
        self._timer = self._loop.call_later(self.every, self._look)
        for connection in list(self.connections):
            try:
                connection.look(self.now)
            except Exception as error:
                log.write("error", "a connection could not be looked at", error)
                connection.transport.abort()
