"""Streams of events that outlive the connection that reads them (server-sent events; MCP: resumability).

An `EventStream` stores its messages and passes them to one reader at a time, from the event after the last
one that the reader has received. Stores are bounded: by the session's `Store`, and by one that all sessions
share; the oldest event is dropped. A new reader replaces the previous one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from fastrpc.transports.http.exchange import Waiter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

SESSION_EVENTS = 2000
SESSION_BYTES = 4 * 1024 * 1024
ALL_BYTES = 256 * 1024 * 1024
ALL_EVENTS = 1_000_000
PART_BYTES = 64 * 1024
"""Bytes of events that are sent together; further ones wait until the client has read these."""


@dataclass(slots=True, eq=False)
class StreamEvent:
    """A message on a stream; `line` is None once it has been dropped."""

    stream: EventStream
    number: int
    line: bytes | None


class Store:
    """Bounds the events of several streams: the oldest is dropped first. `outer` bounds several stores."""

    def __init__(self, events: int, size: int, outer: Store | None = None) -> None:
        self.bytes = 0
        self._most_events = events
        self._most_bytes = size
        self._outer = outer
        self._events: deque[StreamEvent] = deque()
        self._live = 0

    def add(self, event: StreamEvent) -> None:
        self._count(event, 1)
        stores: list[Store] = [self] if self._outer is None else [self, self._outer]
        for store in stores:
            store._events.append(event)
            store._shrink()

    def remove(self, event: StreamEvent) -> None:
        """Remove an event, and count it no longer."""
        self._count(event, -1)
        event.line = None

    def _count(self, event: StreamEvent, sign: int) -> None:
        self.bytes += sign * len(event.line or b"")
        self._live += sign
        if self._outer is not None:
            self._outer._count(event, sign)

    def _shrink(self) -> None:
        events = self._events
        while self._live > self._most_events or (self.bytes > self._most_bytes and self._live > 1):
            event = events.popleft()
            if event.line is not None:
                event.stream.drop()
        while events and events[0].line is None:
            events.popleft()
        if len(events) > 2 * self._live + 64:  # those dropped in the middle
            self._events = deque(event for event in events if event.line is not None)


class EventStream:
    """Messages, numbered from 1. `ended`: no more will be added."""

    def __init__(self, number: int, loop: AbstractEventLoop, store: Store) -> None:
        self.number = number
        self.ended = False
        self.last = 0
        self.sent = 0
        """The number of the last event that was sent to a reader."""
        self.reader: Reader | None = None
        self.waiter = Waiter(loop)
        self._store = store
        self._events: deque[StreamEvent] = deque()
        self.farewell = b""
        self.discarded = False

    def put(self, line: bytes) -> None:
        """Add a message."""
        self.last += 1
        event = StreamEvent(self, self.last, line)
        self._events.append(event)
        self._store.add(event)
        self.waiter.wake()

    def end(self, farewell: bytes = b"") -> None:
        """End the stream; `farewell` are the last bytes for a reader."""
        self.ended = True
        self.farewell = farewell or self.farewell
        self.waiter.wake()

    def drop(self) -> None:
        """Drop the oldest event."""
        self._store.remove(self._events.popleft())

    def forget(self) -> None:
        """Drop all events."""
        while self._events:
            self.drop()

    def discard(self) -> None:
        """End the stream, and keep only the events that the current reader has not received."""
        self.discarded = True
        self.end()
        if self.reader is None:
            self.forget()

    def pause(self) -> None:
        """End the reader's connection; the client is to reconnect later (MCP 2025-11-25: polling)."""
        if self.reader is not None:
            self.reader.leaving = True
        self.waiter.wake()

    def read_after(self, seen: int) -> Reader:
        """Return a new reader, for the events after number `seen`; it replaces the previous one."""
        self.reader = Reader(self, seen)
        self.waiter.wake()
        return self.reader

    def part_after(self, seen: int) -> tuple[bytes, int]:
        """Return the encoded events after number `seen`, up to `PART_BYTES`, and the number of the last."""
        found = []
        size = 0
        for event in reversed(self._events):
            if event.number <= seen:
                break
            found.append(event)
        parts = []
        while found and size < PART_BYTES:
            event = found.pop()
            parts.append(event_of(event.line or b"", f"{self.number}-{event.number}"))
            size += len(parts[-1])
            seen = event.number
        self.sent = max(self.sent, seen)
        return b"".join(parts), seen


class Reader:
    """One connection's position in a stream. `leaving`: it receives the stored events, and no more."""

    def __init__(self, stream: EventStream, seen: int) -> None:
        self.stream = stream
        self.waiter = stream.waiter
        self.leaving = False
        self.seen = seen
        self._said_farewell = False

    def take(self) -> bytes | None:
        """Return the next bytes to send, b"" if there are none yet, None at the end."""
        stream = self.stream
        if stream.reader is not self:
            return None
        data, self.seen = stream.part_after(self.seen)
        if data:
            return data
        if stream.ended and stream.farewell and not self._said_farewell:
            self._said_farewell = True
            return stream.farewell
        return None if stream.ended or self.leaving else b""

    def leave(self) -> None:
        """The connection has closed."""
        stream = self.stream
        if stream.reader is self:
            stream.reader = None
            if stream.discarded:
                stream.forget()


def event_of(line: bytes, id: str | None = None) -> bytes:
    """Return a message as a server-sent event."""
    data = b"event: message\ndata: %b\n\n" % line.rstrip(b"\n")
    return data if id is None else b"id: %b\n%b" % (id.encode(), data)


KEEP_ALIVE = b": keep-alive\n\n"


def priming(id: str, retry_ms: int) -> bytes:
    """Return the empty event that gives a client an id to resume from (MCP 2025-11-25)."""
    return f"retry: {retry_ms}\nid: {id}\ndata: \n\n".encode()
