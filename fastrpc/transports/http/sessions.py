"""Sessions of the versions up to 2025-11-25 over HTTP: ids, principals, streams, and expiry.

An id is 256 random bits, or contains the handshake where processes share a key (`session_seals`): then a
process continues a session that another one has begun. A session belongs to the principal that opened it; for
any other it does not exist. A session ends when it has been idle for too long; if a principal has too many,
or too much stored in them, the one that was idle the longest ends. Everything that a session stores is
bounded, in number and in bytes (`fastrpc.quotas`).
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from functools import partial
from time import monotonic

from fastrpc.errors import InternalError, Overloaded
from fastrpc.protocol.versions import LATEST_SESSION_VERSION
from fastrpc.quotas import Quota
from fastrpc.signed_texts import keys_of
from fastrpc.transports.http import streams
from fastrpc.transports.http.exchange import ENDS, MESSAGE, PAUSED, Exchange
from fastrpc.transports.http.remembered import Bypass
from fastrpc.transports.http.session_ids import STREAM_STEP, first_stream, is_sealed, new_id
from fastrpc.transports.http.streams import EventStream, Reader, Store, priming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, TimerHandle
    from collections.abc import Awaitable, Callable, Iterator
    from typing import Any

    from fastrpc.protocol.session_changes import SessionChange
    from fastrpc.transports.http.interfaces import SharesSessions
    from fastrpc.transports.http.session_seals import SessionSeals
    from fastrpc.transports.interfaces import Connect, ServedRuntime

STREAMS_KEPT = 64
EXCHANGES_KEPT = 16
ALL_EXCHANGES_BYTES = 64 * 1024 * 1024
"""Idle exchanges of a session, and the memory of those of all sessions."""
STANDALONE_EVENTS = 1000
STANDALONE_BYTES = 1024 * 1024
RETRY_MS = 1000
LATER_MS = 5000
SWEEP_SECONDS = 30.0
EVENT_BITS = 48
"""Of the number before the first event of a sealed session's standalone stream: each process has others."""
REQUEST_ID_BITS = 48  # ids stay below 2**53, which all JSON parsers read exactly

PRIMED = (LATEST_SESSION_VERSION,)
"""Versions whose clients accept an event without data, with an id to resume from."""


class HttpSession:
    """One session: its main dispatcher, the exchanges of its requests, and its streams.

    Stream 0 is the standalone one, for messages that belong to no request (MCP: listening for messages by
    GET); each request whose response is streamed has another one.
    """

    def __init__(
        self,
        principal: str,
        connect: Connect,
        loop: AbstractEventLoop,
        outer: Store,
        all_idle: Quota,
        make_exchange: Callable[..., Exchange] = Exchange,
    ) -> None:
        self.id = new_id()
        self.is_sealed = False
        """Whether other processes can continue it."""
        self.principal = principal
        self.used = monotonic()
        self.closed = False
        self.retry_ms = RETRY_MS
        """When a client should reconnect whose stream has ended."""
        self.bypass = Bypass()
        self.running: set[Exchange] = set()
        """Those whose request is in flight, until `put_back`: the session is busy."""
        self._connect = connect
        self._loop = loop
        self._make_exchange = make_exchange
        self._main = make_exchange(connect(), loop)
        self.dispatcher = self._main.dispatcher
        self.dispatcher.principal = principal
        self.standalone = EventStream(0, loop, Store(STANDALONE_EVENTS, STANDALONE_BYTES, outer))
        self._store = Store(streams.SESSION_EVENTS, streams.SESSION_BYTES, outer)
        self._streams: dict[int, EventStream] = {0: self.standalone}
        self._main.hand_over(self._take_standalone)
        self._idle: list[Exchange] = []
        self._all_idle = all_idle
        self._last_stream = 0
        self._first_event = 0
        self._stream_step = 1
        self.pass_line: Callable[[bytes], object] | None = None
        """Receives the messages that belong to no request, where another worker has the standalone stream."""
        self.take_line: Callable[[bytes], object] | None = None
        """Receives them while no client reads the standalone stream here: it may be open at another host."""
        self.on_listener: Callable[[], object] | None = None
        """Called when the client has opened the standalone stream."""
        self.unsubscribed: dict[int, None] = {}
        """The hashes of URIs, which may be long, that the client has unsubscribed from while other processes
        may still send what they knew before: until `hears_until`, a time of the loop."""
        self.hears_until = 0.0
        self.unsaved: SessionChange | None = None
        """What could not be stored for other hosts yet."""
        self.missed = False
        """Whether the client may have heard of changes elsewhere, or of none, since it listened here."""
        self.listens_elsewhere = False
        """Whether the client has opened the standalone stream at another host since it did here."""
        self.delivery: Future[None] | None = None
        """Done when the other processes know the state that the client has set: no request is answered
        meanwhile."""
        self.undelivered = 0
        """How many deliveries of changes, to one process each, are not done."""
        self.unheard: set[int] = set()
        """The other workers that have not sent yet what they know of the session, which was adopted here."""
        self.arrival: Future[None] | None = None
        """Done when all of them have: no request is served before."""

    def become_sealed(self, id: str) -> None:
        """Take an id with which other processes can continue the session. From now on none of them gives a
        stream, or a request to the client, the number that another one gives."""
        self.id, self.is_sealed = id, True
        self._last_stream, self._stream_step = first_stream(), STREAM_STEP
        self._first_event = self.standalone.last = self.standalone.sent = secrets.randbits(EVENT_BITS)
        self.dispatcher.session.first_request_id = secrets.randbits(REQUEST_ID_BITS) + 1

    def hear_from(self, worker: int) -> None:
        """Another worker has sent what it knows of the session, or will not."""
        self.unheard.discard(worker)
        if not self.unheard:
            self.has_arrived()

    def has_arrived(self) -> None:
        """Serve the requests that wait."""
        arrival, self.arrival = self.arrival, None
        if arrival is not None and not arrival.done():
            arrival.set_result(None)

    @property
    def version(self) -> str | None:
        return self.dispatcher.session.version

    @property
    def primed(self) -> bool:
        return self.version in PRIMED

    @property
    def busy(self) -> bool:
        """Whether a request is in flight, or a client reads the standalone stream."""
        return bool(self.running) or self.standalone.reader is not None

    def exchange(self) -> Exchange:
        """Return an exchange for one request, for `running` or `put_back`."""
        if self._idle:
            exchange = self._idle.pop()
            self._all_idle.release(exchange.kept_bytes)
            exchange.hand_over(None)
        else:
            exchange = self._make_exchange(self._connect(main=self.dispatcher), self._loop)
            exchange.holder = self
        exchange.dispatcher.apply_session_state()
        return exchange

    def put_back(self, exchange: Exchange) -> None:
        """Reuse an exchange whose request is over; its later messages go to the standalone stream."""
        self.running.discard(exchange)
        self.used = monotonic()
        has_room = not self.closed and len(self._idle) < EXCHANGES_KEPT
        if exchange.reusable and has_room and self._all_idle.take(exchange.kept_bytes):
            exchange.hand_over(self._take_standalone)
            self._idle.append(exchange)
        else:
            exchange.close()

    def rest(self) -> None:
        """Close the idle exchanges, which only save time, until the session is used again."""
        while self._idle:
            exchange = self._idle.pop()
            self._all_idle.release(exchange.kept_bytes)
            exchange.close()

    def _take_standalone(self, kind: str, line: bytes) -> None:
        if kind == MESSAGE:
            (self.pass_line or self.put_standalone)(line)

    def put_standalone(self, line: bytes) -> None:
        """Send a message that belongs to no request."""
        if self.standalone.reader is None and self.take_line is not None:
            self.take_line(line)
        else:
            self.standalone.put(line)

    def stream_of(self, exchange: Exchange) -> Reader:
        """Make a stream of all items of an exchange, queued and later ones, and return its first reader.

        The stream continues without a reader: a client that disconnects has not cancelled.
        """
        self._last_stream += self._stream_step
        stream = self._streams[self._last_stream] = EventStream(self._last_stream, self._loop, self._store)
        reader = stream.read_after(0)

        def take(kind: str, line: bytes) -> None:
            if line:
                stream.put(line)
            if kind in ENDS:
                stream.end()
                self.put_back(exchange)
            elif kind == PAUSED and self.primed:
                stream.pause()

        exchange.hand_over(take)
        self._forget_old_streams()
        return reader

    def _forget_old_streams(self) -> None:
        ended = [stream for stream in self._streams.values() if stream.ended and stream.reader is None]
        for stream in ended[: max(0, len(self._streams) - STREAMS_KEPT)]:
            del self._streams[stream.number]
            stream.forget()

    def listen(self, last_event_id: str | None) -> Reader | None:
        """Return a reader of the standalone stream, or of the events after an id; None for an unknown id."""
        if last_event_id is None:
            return self._listen_anew()
        number, _, seen = last_event_id.partition("-")
        if not (number.isdecimal() and seen.isdecimal() and last_event_id.isascii() and len(seen) < 20):
            return None
        stream = self._streams.get(int(number[:20]))
        if stream is self.standalone and self.is_sealed and not self._first_event <= int(seen) <= stream.last:
            return self._listen_anew()  # it has heard that event from another process
        if stream is None or int(seen) > stream.last:
            return None
        return stream.read_after(int(seen))

    def _listen_anew(self) -> Reader:
        return self.standalone.read_after(self.standalone.sent)

    def priming(self, reader: Reader) -> bytes:
        """Return the first bytes for a reader."""
        return priming(f"{reader.stream.number}-{reader.seen}", self.retry_ms) if self.primed else b""

    def interrupt(self, reason: str) -> None:
        """Cancel the calls in flight, and answer each with an error."""
        for exchange in list(self.running):
            exchange.interrupt(InternalError(reason))

    def stop_listening(self) -> None:
        """The server shuts down: end the standalone stream with an event that asks to reconnect later."""
        last = f"0-{self.standalone.last}"
        self.standalone.end(priming(last, LATER_MS) if self.primed else b": the server ends\n\n")

    def close(self, reason: str = "The session has ended") -> None:
        """End the session: cancel the calls in flight, and end the streams."""
        self.closed = True
        self.has_arrived()
        self.interrupt(reason)
        self._main.close()
        # Reference cycles, and the next garbage collection may be far off.
        self.pass_line = self.take_line = self.on_listener = self.dispatcher.session.on_change = None
        self.rest()
        for stream in self._streams.values():
            stream.discard()


class Sessions:
    """The sessions of one server, and those of each principal ordered by their last use."""

    def __init__(
        self,
        connect: Connect,
        *,
        idle_seconds: float = 1800.0,
        per_caller: int = 1000,
        in_all: int = 10_000,
    ) -> None:
        self.make_exchange: Callable[..., Exchange] = Exchange
        self.retry_ms = RETRY_MS
        self._connect = connect
        self._idle_seconds = idle_seconds
        self._per_caller = per_caller
        self._in_all = in_all
        self._sessions: dict[str, HttpSession] = {}
        self._of_caller: dict[str, OrderedDict[str, HttpSession]] = {}
        self._store = Store(streams.ALL_EVENTS, streams.ALL_BYTES)
        self._idle_exchanges = Quota(ALL_EXCHANGES_BYTES)
        self._sweep: TimerHandle | None = None
        self._runtime: ServedRuntime | None = None  # the server's, once it is needed
        self._seals: SessionSeals | None = None
        self.sharing: SharesSessions | None = None
        """Shares sealed sessions with other processes, if there may be some."""
        self.make_sharing: Callable[[], SharesSessions]
        """Makes it for a process that has no other workers; the application sets it."""

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[HttpSession]:
        return iter(list(self._sessions.values()))

    def open(self, principal: str, loop: AbstractEventLoop, id: str | None = None) -> HttpSession | None:
        """Return a new session; None if there are too many, and the principal has no idle one to end.
        `id`: the sealed one that it has already."""
        if self._is_full(principal):
            self.end_idle()
        if self._is_full(principal) and not self._end_idle_one(principal):
            return None
        session = HttpSession(
            principal, self._connect, loop, self._store, self._idle_exchanges, self.make_exchange
        )
        if id is not None:
            session.become_sealed(id)
        session.retry_ms = self.retry_ms
        of_caller = session.dispatcher.runtime.quotas.of(principal)
        if of_caller.make_room is None:
            of_caller.make_room = partial(self._end_idle_one, principal, but_last=True)
        session.dispatcher.session.quota.outer = of_caller
        self._add(session)
        if self._sweep is None:
            self._sweep_later(loop)
        return session

    def _add(self, session: HttpSession) -> None:
        self._sessions[session.id] = session
        self._of_caller.setdefault(session.principal, OrderedDict())[session.id] = session

    def seal(self, session: HttpSession) -> None:
        """Replace the id of a session that has agreed by one with which other processes can continue it, if
        there are keys for that. `notifications/initialized` may then come to another process."""
        self._runtime = session.dispatcher.runtime
        seals = self._own_seals()
        id = None if seals is None else seals.sealed(session.principal, session.dispatcher.session)
        if id is not None and self.remove(session):  # else the server has ended it meanwhile
            session.become_sealed(id)
            self._add(session)
            session.dispatcher.session.ready()
            if self.sharing is not None:
                self.sharing.bind(session, is_adopted=False)

    def adopt(self, id: str, principal: str, loop: AbstractEventLoop) -> HttpSession | None:
        """Continue a sealed session that this process does not have; None for any other id.

        Raises Overloaded if there are too many sessions, or no memory for what the client has declared.
        """
        handshake = self.handshake_of(id, principal)
        if handshake is None:
            return None
        session = self.open(principal, loop, id)
        if session is None:
            raise Overloaded("Too many sessions are open")
        try:
            session.dispatcher.adopt_session(handshake)
        except BaseException:
            self.end(session)
            raise
        if self.sharing is not None:
            self.sharing.bind(session, is_adopted=True)
        return session

    async def continued(self, id: str, principal: str, loop: AbstractEventLoop) -> HttpSession | None:
        """Continue a sealed session as `adopt` does, in the state that other hosts have stored, if any."""
        if self.handshake_of(id, principal) is None:
            return None
        state = None if self.sharing is None else await self.sharing.stored(id)
        if state is not None and state.ended:
            self.refuse(id)
        session = self.find(id, principal) or self.adopt(id, principal, loop)  # found: it has come meanwhile
        if session is not None and state is not None and self.sharing is not None:
            self.sharing.take_stored(session, state)
        return session

    def handshake_of(self, id: str, principal: str) -> dict[str, Any] | None:
        """Return the params of `initialize` of a sealed session; None for any other id."""
        if not is_sealed(id):
            return None
        seals = self._own_seals()
        return None if seals is None else seals.handshake_of(id, principal)

    def _own_seals(self) -> SessionSeals | None:
        """Return what makes and reads sealed ids; None without shared keys."""
        if self._runtime is None:  # no session has begun here
            dispatcher = self._connect()
            self._runtime = dispatcher.runtime
            dispatcher.close()
        runtime = self._runtime
        keys = keys_of(runtime)
        if self._seals is None and keys.are_shared:
            from fastrpc.transports.http.session_seals import SessionSeals

            self._seals = SessionSeals(keys, str(runtime.description.info.get("name")))
            if runtime.shared is not None:
                self._share_between_hosts(runtime)
        return self._seals

    def _share_between_hosts(self, runtime: ServedRuntime) -> None:
        if self.sharing is None:
            self.sharing = self.make_sharing()
        self.sharing.use(runtime)

    def end_for_client(self, id: str, principal: str) -> Awaitable[object] | None:
        """Remove a session that its client ends, which the caller then closes if it is here, and do not
        continue it. Return what to wait for, a moment, until other processes do not either."""
        session = self._sessions.get(id)
        if session is not None:
            self.remove(session)
        if is_sealed(id):
            self.refuse(id)
            if self.sharing is not None:
                return self.sharing.ended(id, principal)
        return None

    def refuse(self, id: str) -> None:
        """Do not continue a sealed session that its client has ended."""
        seals = self._own_seals()
        if seals is not None:
            seals.refuse(id)

    def _end_idle_one(self, principal: str, *, but_last: bool = False) -> bool:
        """End the session of a principal that was idle the longest; False if there is none.

        `but_last` excludes the one that was used last: its request is the one that needs the memory.
        """
        own = list(self._of_caller.get(principal, {}).values())
        idle = next((session for session in own if not session.busy), None)
        if idle is None or (but_last and idle is own[-1]):
            return False
        self.end(idle)
        return True

    def _is_full(self, principal: str) -> bool:
        own = self._of_caller.get(principal, ())
        return len(own) >= self._per_caller or len(self._sessions) >= self._in_all

    def find(self, id: str, principal: str) -> HttpSession | None:
        """Return a session of this principal; None for any other id, those of other principals included."""
        session = self._sessions.get(id)
        if session is None or session.principal != principal:
            return None
        now = monotonic()
        if now - session.used > self._idle_seconds and not session.busy:
            self.end(session)
            return None
        session.used = now
        self._of_caller[principal].move_to_end(id)  # it is the last to go
        return session

    def end(self, session: HttpSession, reason: str = "The session has ended") -> None:
        if self.remove(session):
            session.close(reason)

    def remove(self, session: HttpSession) -> bool:
        """Remove a session, which the caller then closes. False if it has been removed before."""
        if self._sessions.pop(session.id, None) is None:
            return False
        own = self._of_caller[session.principal]
        del own[session.id]
        if not own:
            del self._of_caller[session.principal]
        return True

    def end_idle(self) -> None:
        """End the sessions that have been idle for too long; busy ones are marked as used now."""
        for session in list(self._sessions.values()):
            if session.busy:
                session.used = monotonic()
            elif monotonic() - session.used > self._idle_seconds:
                self.end(session)

    def _sweep_later(self, loop: AbstractEventLoop) -> None:
        self._sweep = loop.call_later(min(SWEEP_SECONDS, self._idle_seconds), self._swept, loop)

    def _swept(self, loop: AbstractEventLoop) -> None:
        self._sweep = None
        self.end_idle()
        for session in self._sessions.values():
            if monotonic() - session.used > SWEEP_SECONDS:
                session.rest()
        if self._sessions:
            self._sweep_later(loop)

    def stop_listening(self) -> None:
        for session in self._sessions.values():
            session.stop_listening()

    def end_all(self, reason: str) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for session in list(self._sessions.values()):
            self.end(session, reason)
