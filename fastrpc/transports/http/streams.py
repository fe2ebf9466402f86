"""Streams of events that outlive the connection that reads them (server-sent events; MCP: resumability).

A `Stream` keeps what was said on it and hands it to one reader at a time, from the event behind the one that
the reader has seen. What is kept is bounded twice: by a `Store` of the session, and by one that all
sessions share; the oldest has to go. A reader that comes takes the place of the one before it.
"""

from __future__ import annotations

from collections import deque

from fastrpc.transports.http.exchange import Waiter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

SESSION_EVENTS = 2000
SESSION_BYTES = 4 * 1024 * 1024
ALL_BYTES = 256 * 1024 * 1024
ALL_EVENTS = 1_000_000
PART_BYTES = 64 * 1024
"""Events are sent together up to this; beyond it the client has to take some first."""


class Event:
    """A message on a stream; `line` is None once it has had to go."""

    __slots__ = ("line", "number", "stream")

    def __init__(self, stream: Stream, number: int, line: bytes) -> None:
        self.stream = stream
        self.number = number
        self.line: bytes | None = line


class Store:
    """Bounds what streams keep: the oldest event of all goes first. `outer` bounds several stores."""

    def __init__(self, events: int, size: int, outer: Store | None = None) -> None:
        self.bytes = 0
        self._most_events = events
        self._most_bytes = size
        self._outer = outer
        self._events: deque[Event] = deque()
        self._live = 0

    def add(self, event: Event) -> None:
        self._count(event, 1)
        stores: list[Store] = [self] if self._outer is None else [self, self._outer]
        for store in stores:
            store._events.append(event)
            store._shrink()

    def remove(self, event: Event) -> None:
        """An event goes, whatever for."""
        self._count(event, -1)
        event.line = None

    def _count(self, event: Event, sign: int) -> None:
        self.bytes += sign * len(event.line or b"")
        self._live += sign
        if self._outer is not None:
            self._outer._count(event, sign)

    def _shrink(self) -> None:
        events = self._events
        while self._live > self._most_events or (self.bytes > self._most_bytes and self._live > 1):
            event = events.popleft()
            if event.line is not None:
                event.stream.drop(event)
        while events and events[0].line is None:
            events.popleft()
        if len(events) > 2 * self._live + 64:  # what has gone in the middle
            self._events = deque(event for event in events if event.line is not None)


class Stream:
    """Messages with their numbers, from 1 up. `ended`: there will be no more."""

    def __init__(self, number: int, loop: AbstractEventLoop, store: Store) -> None:
        self.number = number
        self.ended = False
        self.last = 0
        self.sent = 0
        """The last event that was sent to any reader."""
        self.reader: Reader | None = None
        self.waiter = Waiter(loop)
        self._store = store
        self._events: deque[Event] = deque()
        self.farewell = b""
        self._discarded = False

    def put(self, line: bytes) -> None:
        """Add a message."""
        self.last += 1
        event = Event(self, self.last, line)
        self._events.append(event)
        self._store.add(event)
        self.waiter.wake()

    def end(self, farewell: bytes = b"") -> None:
        """There will be no more messages; `farewell` is what a reader is sent last."""
        self.ended = True
        self.farewell = farewell or self.farewell
        self.waiter.wake()

    def drop(self, event: Event) -> None:
        """The store has no room for an event any more."""
        if self._events and self._events[0] is event:
            self._events.popleft()
        else:
            self._events.remove(event)
        self._store.remove(event)

    def forget(self) -> None:
        """Drop all that is kept."""
        while self._events:
            self.drop(self._events[0])

    def discard(self) -> None:
        """End, and keep nothing but what a reader that is there still has to get."""
        self._discarded = True
        self.end()
        if self.reader is None:
            self.forget()

    def leave(self, reader: Reader) -> None:
        """A reader's connection is over."""
        if self.reader is reader:
            self.reader = None
            if self._discarded:
                self.forget()

    def pause(self) -> None:
        """Send the reader away: it is to come back later (MCP 2025-11-25: polling)."""
        if self.reader is not None:
            self.reader.leaving = True
        self.waiter.wake()

    def read_behind(self, seen: int) -> Reader:
        """Return a new reader for what is behind event number `seen`; the one before it gets no more."""
        self.reader = Reader(self, seen)
        self.waiter.wake()
        return self.reader

    def part_behind(self, seen: int) -> tuple[bytes, int]:
        """Return events behind number `seen` as they are sent, and the number of the last of them."""
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
    """One connection's place in a stream. `leaving`: it gets what is there, and no more."""

    def __init__(self, stream: Stream, seen: int) -> None:
        self.stream = stream
        self.waiter = stream.waiter
        self.leaving = False
        self.seen = seen
        self._said_farewell = False

    def take(self) -> bytes | None:
        """Return what is to be sent next, b"" if that is still to come, None at the end."""
        stream = self.stream
        if stream.reader is not self:
            return None
        data, self.seen = stream.part_behind(self.seen)
        if data:
            return data
        if stream.ended and stream.farewell and not self._said_farewell:
            self._said_farewell = True
            return stream.farewell
        return None if stream.ended or self.leaving else b""

    def leave(self) -> None:
        """The connection is over."""
        self.stream.leave(self)


def event_of(line: bytes, id: str | None = None) -> bytes:
    """Return a message as a server-sent event."""
    data = b"event: message\ndata: %b\n\n" % line.rstrip(b"\n")
    return data if id is None else b"id: %b\n%b" % (id.encode(), data)


KEEP_ALIVE = b": keep-alive\n\n"


def priming(id: str, retry_ms: int) -> bytes:
    """Return the empty event that gives a client an id to resume from (MCP 2025-11-25)."""
    return f"retry: {retry_ms}\nid: {id}\ndata: \n\n".encode()
