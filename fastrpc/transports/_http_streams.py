"""Streams of events that outlive the connection that reads them (HTML: server-sent events; MCP: resumability).

A `Stream` keeps what was said on it, within limits, and hands it to one reader at a time, from the event
behind the one that the reader has seen. What no reader takes is kept until the oldest has to go.
"""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

EVENTS_KEPT = 1000
BYTES_KEPT = 4 * 1024 * 1024


class Stream:
    """Messages with their numbers, from 1 up. `ended`: there will be no more."""

    def __init__(self, number: int, loop: AbstractEventLoop) -> None:
        self.number = number
        self.ended = False
        self.last = 0
        self._loop = loop
        self._events: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._waiter: Future[None] | None = None
        self._reader = 0

    def put(self, line: bytes) -> None:
        """Add a message."""
        self.last += 1
        self._events.append((self.last, line))
        self._bytes += len(line)
        while len(self._events) > EVENTS_KEPT or (self._bytes > BYTES_KEPT and len(self._events) > 1):
            self._bytes -= len(self._events.popleft()[1])
        self._wake()

    def end(self) -> None:
        self.ended = True
        self._wake()

    def take_over(self) -> int:
        """Become the reader: the one before it, if it still waits, gets no more."""
        self._reader += 1
        self._wake()
        return self._reader

    @property
    def unread(self) -> bool:
        return bool(self._events)

    async def after(self, seen: int, reader: int) -> list[tuple[int, bytes]] | None:
        """Wait for messages behind number `seen`, and return them; None when there will be none for this reader."""
        while reader == self._reader:
            found = [event for event in self._events if event[0] > seen]
            if found:
                return found
            if self.ended:
                return None
            self._waiter = self._loop.create_future()
            await self._waiter
        return None

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def event(line: bytes, id: str | None = None) -> bytes:
    """Return a message as a server-sent event."""
    data = b"event: message\ndata: " + line.rstrip(b"\n") + b"\n\n"
    return data if id is None else b"id: " + id.encode() + b"\n" + data


KEEP_ALIVE = b": keep-alive\n\n"


def priming(id: str, retry_ms: int) -> bytes:
    """Return the empty event that gives a client an id to resume from (MCP 2025-11-25)."""
    return f"retry: {retry_ms}\nid: {id}\ndata: \n\n".encode()
