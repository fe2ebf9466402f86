"""The sealed sessions of one process in the store that hosts share (`runtime.shared`).

What a client changes is written through; who begins to serve a session reads it, and again when another
process notifies of a change. So no request of a session that is here waits for the store, but the one that
changes the state, `store.WAIT_SECONDS` at most. What cannot be written because the store is away is written
when it is back; then everything is read again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from weakref import WeakValueDictionary

from fastrpc._core.message import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Any

    from fastrpc.protocol.session_changes import CommonState, SessionChange
    from fastrpc.transports.http.interfaces import SharesSessions
    from fastrpc.transports.http.sessions import HttpSession, Sessions
    from fastrpc.transports.interfaces import ServedRuntime

WAIT_SECONDS = 1.0
"""How long a request waits for the store at most."""
NONCE = 16
"""Characters at the begin of an id that name a session: no other has the same."""
MOST_ENDED = 10_000
"""Sessions that clients have ended while the store was away, and that are written later."""
LINE = "line"
RAISED_EVERYWHERE = (
    "notifications/resources/updated",
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
)
"""Notifications of which each host notifies its clients by itself. So it does of what an upstream server at a
URL sends to each of them (`SessionState.is_heard_elsewhere`)."""


class StoredSessions:
    """The sessions of one process, by the first `NONCE` characters of their ids. Used in the event loop."""

    def __init__(
        self,
        sharing: SharesSessions,
        sessions: Sessions,
        runtime: ServedRuntime,
        loop: AbstractEventLoop,
    ) -> None:
        self._sharing = sharing
        self._sessions = sessions
        self._announcements = runtime.announcements
        self._announcements.recent = {}
        self._store = runtime.shared
        self._loop = loop
        self._bound: WeakValueDictionary[str, HttpSession] = WeakValueDictionary()
        self._writing: dict[str, int] = {}  # how many changes of a session are being written
        self._unsaved_ends: dict[str, None] = {}
        self._store.listeners.append(_Hearer(self, loop))

    def bind(self, session: HttpSession) -> None:
        """Hear of a session from now on."""
        self._bound[session.id[:NONCE]] = session
        session.take_line = partial(self.take_line, session)
        session.on_listener = partial(self.listened, session)

    def _session(self, nonce: str) -> HttpSession | None:
        session = self._bound.get(nonce)
        return None if session is None or session.closed else session

    async def read(self, id: str) -> CommonState | None:
        """Return what the store has of a session; None if it is away."""
        reading: Future[CommonState] = self._store.read_session(id[:NONCE])
        await self._a_moment(reading)
        if not reading.done() or reading.exception() is not None:
            return None
        return reading.result()

    async def _a_moment(self, future: Future[Any]) -> None:
        """Wait for a future of the store, `WAIT_SECONDS` at most."""
        done = asyncio.Event()
        self._then(future, done.set)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(done.wait(), WAIT_SECONDS)

    def _then(self, future: Future[Any], function: Callable[[], object]) -> None:
        """Call a function in the event loop when a future of the store is done."""
        future.add_done_callback(lambda _: call_in(self._loop, function))

    # --- what this process writes -------------------------------------------------------------------------

    def write(self, session: HttpSession, change: SessionChange, on_done: Callable[[], object]) -> None:
        """Write what has changed of a session. `on_done` is called when it is written, or cannot be soon."""
        nonce = session.id[:NONCE]
        if session.unsaved is not None:
            change, session.unsaved = session.unsaved.followed_by(change), None
        waiting = [on_done]

        def done() -> None:
            if waiting:
                waiting.pop()()

        self._loop.call_later(WAIT_SECONDS, done)
        self._write(nonce, change, done)

    def _write(self, nonce: str, change: SessionChange, on_done: Callable[[], object]) -> None:
        self._writing[nonce] = self._writing.get(nonce, 0) + 1
        writing: Future[CommonState] = self._store.change_session(nonce, change)

        def written() -> None:
            self._writing[nonce] -= 1
            if not self._writing[nonce]:
                del self._writing[nonce]
            if writing.exception() is not None:
                self._keep(nonce, change)
            else:
                self._take_state(nonce, writing.result())
            on_done()

        self._then(writing, written)

    def _keep(self, nonce: str, change: SessionChange) -> None:
        """Keep what could not be written."""
        session = self._session(nonce)
        if session is not None:
            before = session.unsaved
            session.unsaved = change if before is None else before.followed_by(change)

    def end(self, id: str) -> asyncio.Future[None]:
        """Write that the client has ended a session. The result is done when it is written, or cannot be."""
        return asyncio.ensure_future(self._end(id[:NONCE]))

    async def _end(self, nonce: str) -> None:
        writing: Future[None] = self._store.end_session(nonce)
        self._then(writing, lambda: self._ended(nonce, writing))
        await self._a_moment(writing)

    def _ended(self, nonce: str, writing: Future[None]) -> None:
        if writing.exception() is not None and len(self._unsaved_ends) < MOST_ENDED:
            self._unsaved_ends[nonce] = None

    def post(self, session: HttpSession, kind: str, text: bytes) -> None:
        """Send a message to the other hosts that have the session."""
        self._store.post(session.id[:NONCE], kind, text)

    def take_line(self, session: HttpSession, line: bytes) -> None:
        """Handle a message that belongs to no request while no client reads the standalone stream here."""
        message = Message()
        message.read(line)
        if message.method in RAISED_EVERYWHERE or session.dispatcher.session.is_heard_elsewhere:
            if not session.missed:  # else the client hears of all when it listens here again
                session.standalone.put(line)
            return
        self.post(session, LINE, line)
        if not session.listens_elsewhere:
            session.standalone.put(line)

    def listened(self, session: HttpSession) -> None:
        """The client has opened the standalone stream here. If that may have been open at another host,
        notify it of everything as changed."""
        self._store.listened(session.id[:NONCE])
        session.listens_elsewhere = False
        if session.missed:
            session.missed = False
            changes = session.dispatcher.changes
            for uri in changes.subscribed():
                changes.resource_updated(uri)
            for kind in ("tool", "resource", "prompt"):
                changes.list_changed(kind)

    def leave_stream(self, nonce: str) -> None:
        """The client has opened its standalone stream at another host, where it hears what it would here."""
        session = self._session(nonce)
        if session is not None:
            session.missed = session.listens_elsewhere = True
            if session.standalone.reader is None:
                session.standalone.forget()

    # --- what other processes have written ----------------------------------------------------------------

    def refresh(self, session: HttpSession, on_read: Callable[[], object]) -> None:
        """Read what the store has of a session; `on_read` is called then, or when that is not known."""
        self.read_again(session.id[:NONCE], on_read)

    def read_again(self, nonce: str, on_read: Callable[[], object] = lambda: None) -> None:
        """Read what the store has of a session, if it is here."""
        if self._session(nonce) is not None:
            reading: Future[CommonState] = self._store.read_session(nonce)

            def read() -> None:
                if reading.exception() is None:
                    self._take_state(nonce, reading.result())
                on_read()

            self._then(reading, read)

    def _take_state(self, nonce: str, state: CommonState) -> None:
        """Have a session in the state that is stored, unless a change of it is being written: then what that
        returns is taken."""
        session = self._session(nonce)
        if session is None or nonce in self._writing:
            return
        if session.unsaved is not None:
            state = state.with_change(session.unsaved)
        learned = self._sharing.become(session, state).subscribed
        if session.dispatcher.session.hears_changes:
            for uri in learned:
                if self._announcements.was_updated(uri):  # it has subscribed elsewhere a moment before
                    session.dispatcher.changes.resource_updated(uri)

    def refuse(self, nonce: str) -> None:
        """The client has ended a session at another host."""
        self._sessions.refuse(nonce)
        session = self._session(nonce)
        if session is not None:
            self._sessions.end(session)

    def receive(self, nonce: str, number: int) -> None:
        """Another host has stored a message of a session."""
        if self._session(nonce) is None:
            return
        reading: Future[tuple[str, bytes] | None] = self._store.posted(nonce, number)

        def read() -> None:
            session = self._session(nonce)
            found = None if reading.exception() is not None else reading.result()
            if session is None or found is None:
                return
            kind, text = found
            if kind == LINE and session.standalone.reader is not None:
                session.standalone.put(text)
            elif kind != LINE:
                self._sharing.receive(session, text)

        self._then(reading, read)

    def is_back(self) -> None:
        """The store is back: write what could not be written, then read everything again."""
        here = {nonce: session for nonce, session in list(self._bound.items()) if not session.closed}
        for nonce, session in here.items():
            if session.unsaved is not None:
                change, session.unsaved = session.unsaved, None
                self._write(nonce, change, lambda: None)
        ends, self._unsaved_ends = list(self._unsaved_ends), {}
        for nonce in ends:
            ending: Future[None] = self._store.end_session(nonce)
            self._then(ending, partial(self._ended, nonce, ending))
        if here:
            reading: Future[dict[str, CommonState]] = self._store.read_sessions(list(here))

            def read() -> None:
                if reading.exception() is None:
                    for nonce, state in reading.result().items():
                        self._take_state(nonce, state)

            self._then(reading, read)


class _Hearer:
    """Takes what other processes notify of, on other threads, into the event loop."""

    def __init__(self, sessions: StoredSessions, loop: AbstractEventLoop) -> None:
        self._sessions = sessions
        self._loop = loop

    def session_changed(self, id: str) -> None:
        call_in(self._loop, partial(self._sessions.read_again, id))

    def session_ended(self, id: str) -> None:
        call_in(self._loop, partial(self._sessions.refuse, id))

    def session_listened(self, id: str) -> None:
        call_in(self._loop, partial(self._sessions.leave_stream, id))

    def message_posted(self, id: str, number: int) -> None:
        call_in(self._loop, partial(self._sessions.receive, id, number))

    def store_is_back(self) -> None:
        call_in(self._loop, self._sessions.is_back)


def call_in(loop: AbstractEventLoop, function: Callable[[], object]) -> None:
    """Call a function in an event loop, unless that is closed. Thread-safe."""
    with suppress(RuntimeError):  # the server has been left
        loop.call_soon_threadsafe(function)
