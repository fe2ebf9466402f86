"""The connections to one server: idle ones are used again, the latest first; others are made when needed.

An idle connection is closed after some seconds. Requests beyond the bound wait for a connection, except those
on which requests in flight may depend. Making a connection is left to `dialing`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic

from fastrpc.client.http.connection import HttpConnection

IDLE_SECONDS = 30.0
MOST_IDLE = 256
MOST_CONNECTIONS = 512
"""At once; more requests wait for their turn."""


class Pool:
    """Connections that `dial` makes; it is handed the two callbacks of `HttpConnection`."""

    def __init__(
        self,
        dial: Callable[
            [Callable[[HttpConnection], object], Callable[[HttpConnection], object]],
            Awaitable[HttpConnection],
        ],
    ) -> None:
        self._dial = dial
        self._loop = asyncio.get_running_loop()
        self._idle: list[HttpConnection] = []
        self.open: set[HttpConnection] = set()
        self._dialing = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._all_closed: asyncio.Future[None] | None = None

    def take_idle(self) -> HttpConnection | None:
        """Return a connection that can be used at once, or None."""
        while self._idle:
            connection = self._idle.pop()
            if monotonic() - connection.idle_since < IDLE_SECONDS and connection.is_usable:
                return connection
            connection.close()
        return None

    async def take(self, is_bounded: bool) -> HttpConnection:
        """Return a connection. `is_bounded`: wait for one where there are many. Raises what `dial` raises."""
        while True:
            connection = self.take_idle()
            if connection is not None:
                return connection
            if not is_bounded or len(self.open) + self._dialing < MOST_CONNECTIONS:
                return await self._new()
            await self._turn()

    async def _new(self) -> HttpConnection:
        self._dialing += 1
        try:
            connection = await self._dial(self.put, self._forget)
            if not connection.is_closed:
                self.open.add(connection)
        finally:
            self._dialing -= 1
            self._call_next()
        return connection

    async def _turn(self) -> None:
        """Wait until there may be a connection, or room for one."""
        turn = self._loop.create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._call_next()  # the turn passes to the next waiter
            raise

    def _call_next(self) -> None:
        """Wake the task that has waited longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def put(self, connection: HttpConnection) -> None:
        """Take back a connection that is idle."""
        if len(self._idle) >= MOST_IDLE or self._all_closed is not None:
            connection.close()
            return
        connection.idle_since = monotonic()
        self._idle.append(connection)
        if self._waiting:
            self._call_next()
        if self._timer is None:
            self._timer = self._loop.call_later(IDLE_SECONDS, self._expire)

    def _expire(self) -> None:
        """Close connections that have been idle for too long: the first ones, as the last are used first."""
        self._timer = None
        oldest = monotonic() - IDLE_SECONDS
        while self._idle and self._idle[0].idle_since <= oldest:
            self._idle.pop(0).close()
        if self._idle:
            left = self._idle[0].idle_since - oldest
            self._timer = self._loop.call_later(left, self._expire)

    def _forget(self, connection: HttpConnection) -> None:
        self.open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._call_next()
        if self._all_closed is not None and not self.open and not self._all_closed.done():
            self._all_closed.set_result(None)

    async def close(self) -> None:
        """Close all connections, and wait for that. The pool may be used again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._idle.clear()
        if not self.open:
            return
        self._all_closed = self._loop.create_future()
        for connection in list(self.open):
            connection.close()
        try:
            await self._all_closed
        finally:
            self._all_closed = None
