"""Sessions of the versions up to 2025-11-25 over HTTP: ids, who may use them, streams, and their end.

An id is 256 random bits. A session belongs to whoever opened it: to anybody else it is unknown. One that is not
used for a while ends, so does the oldest idle one of a caller who has too many.
"""

from __future__ import annotations

import secrets
from time import monotonic

from fastrpc.transports._http_exchange import ANSWER, Exchange
from fastrpc.transports._http_streams import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any

STREAMS_KEPT = 64
EXCHANGES_KEPT = 16


class Session:
    """One session: its main dispatcher, the exchanges of its requests, and its streams.

    Stream 0 has what belongs to no request; each request whose answer is streamed has one of its own.
    """

    def __init__(self, principal: str, connect: Callable[..., Any], loop: AbstractEventLoop) -> None:
        self.id = secrets.token_urlsafe(32)
        self.principal = principal
        self.used = monotonic()
        self.open_requests = 0
        self._connect = connect
        self._loop = loop
        self._main = Exchange(connect(), loop)
        self.dispatcher = self._main.dispatcher
        self.streams: dict[int, Stream] = {0: Stream(0, loop)}
        self._main.take = lambda kind, line: self.streams[0].put(line)
        self._idle: list[Exchange] = []
        self._last_stream = 0

    @property
    def version(self) -> str | None:
        version: str | None = self.dispatcher.session.version
        return version

    def exchange(self) -> Exchange:
        """Return a connection for one request."""
        if self._idle:
            return self._idle.pop()
        dispatcher = self._connect(main=self.dispatcher)
        exchange = Exchange(dispatcher, self._loop)
        main = self.dispatcher.connection
        exchange.connection.open = main.open
        exchange.connection.structured = main.structured
        return exchange

    def first_exchange(self) -> Exchange:
        """Return a connection for the handshake, whose outcome is the session's."""
        return Exchange(self._connect(main=self.dispatcher), self._loop)

    def put_back(self, exchange: Exchange) -> None:
        """An exchange is over and may serve another request."""
        if len(self._idle) < EXCHANGES_KEPT:
            exchange.take = None
            self._idle.append(exchange)

    def settle_handshake(self, exchange: Exchange) -> None:
        """The handshake is done: what it said of the session holds for every connection of it."""
        main = self.dispatcher.connection
        main.open, main.structured = exchange.connection.open, exchange.connection.structured

    def stream_for(self, exchange: Exchange, said: list[tuple[str, bytes]]) -> Stream:
        """Make a stream of what an exchange has said and will say; it goes on though nobody reads it."""
        self._last_stream += 1
        stream = self.streams[self._last_stream] = Stream(self._last_stream, self._loop)

        def take(kind: str, line: bytes) -> None:
            if line:
                stream.put(line)
            if kind != "message":
                stream.end()
                self.open_requests -= 1
                self.put_back(exchange)

        self.open_requests += 1
        exchange.take = take
        for kind, line in said:
            take(kind, line)
        self._forget_old_streams()
        return stream

    def _forget_old_streams(self) -> None:
        ended = [number for number, stream in self.streams.items() if stream.ended]
        for number in ended[: max(0, len(self.streams) - STREAMS_KEPT)]:
            del self.streams[number]

    def stream_of(self, event_id: str) -> tuple[Stream, int] | None:
        """Return the stream and the number that an event's id names; None for one that is not ours."""
        number, _, seen = event_id.partition("-")
        if not (number.isdigit() and seen.isdigit() and len(event_id) < 40):
            return None
        stream = self.streams.get(int(number))
        return None if stream is None else (stream, int(seen))

    def close(self) -> None:
        """End the session: calls in flight are stopped, streams end."""
        self.dispatcher.close()
        for stream in self.streams.values():
            stream.end()


class Sessions:
    """The sessions of one server, in the order of their last use."""

    def __init__(
        self,
        connect: Callable[..., Any],
        *,
        idle_seconds: float = 1800.0,
        per_caller: int = 100,
        in_all: int = 10_000,
    ) -> None:
        self._connect = connect
        self._idle_seconds = idle_seconds
        self._per_caller = per_caller
        self._in_all = in_all
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, principal: str, loop: AbstractEventLoop) -> Session | None:
        """Return a new session; None when there is no room, not even by ending one that nobody uses."""
        self.end_idle()
        own = [session for session in self._sessions.values() if session.principal == principal]
        if len(own) >= self._per_caller or len(self._sessions) >= self._in_all:
            idle = [session for session in own if not session.open_requests]
            if not idle:
                return None
            self.end(idle[0])
        session = Session(principal, self._connect, loop)
        self._sessions[session.id] = session
        return session

    def find(self, id: str, principal: str) -> Session | None:
        """Return a session of this caller; another's is unknown to them."""
        session = self._sessions.get(id)
        if session is None or session.principal != principal:
            return None
        if self._is_idle(session):
            self.end(session)
            return None
        session.used = monotonic()
        del self._sessions[id]
        self._sessions[id] = session
        return session

    def end(self, session: Session) -> None:
        if self._sessions.pop(session.id, None) is not None:
            session.close()

    def end_idle(self) -> None:
        for session in list(self._sessions.values()):
            if not self._is_idle(session):
                return
            self.end(session)

    def end_all(self) -> None:
        for session in list(self._sessions.values()):
            self.end(session)

    def _is_idle(self, session: Session) -> bool:
        return not session.open_requests and monotonic() - session.used > self._idle_seconds
