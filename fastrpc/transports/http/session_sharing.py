"""Keeps a sealed session whole among the processes that serve its requests: workers of one server, and other
hosts with the same store (`runtime.shared`).

A request is served by the process at which it arrives. What concerns the session as a whole goes to the other
workers by the sockets of `session_router`, and to other hosts by the store (`stored_sessions`):

| what | goes to the workers | between hosts |
|---|---|---|
| `STATE`: what the client has changed of the log level and the subscriptions | all | a row |
| `MESSAGE`: a response or a notification of the client | those that have the session (1) | a row |
| `LINE`: a message of the server that belongs to no request | the owner: it has the stream | a row (2) |
| `ADOPTED`: a worker has begun to serve the session | all: each sends `KNOWN` | a row is read |
| `ENDED`: the client has ended the session | all | a row |

(1) one of them has asked; (2) while no client reads that stream here. Only the owner adopts a session because
of a `STATE`. `KNOWN` only adds what the client has not taken back since; a worker serves no request of a
session that it has adopted before each of the others has sent it, or has ended. The owner is the worker that
the checksum of the id names (`session_ids`). It alone, on each host, notifies the client of changes of which
all workers hear, and watches what the client has subscribed to. If it learns of a subscription by `KNOWN`,
the client may have missed updates meanwhile, and is notified of one. A request that sets `STATE` is answered
when the workers know it, and the row is written or the store is away; all else comes a moment later than the
answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from fastrpc import diagnostics, tracebacks
from fastrpc._core.message import Message
from fastrpc.errors import FAILURES, Overloaded, ProtocolError
from fastrpc.protocol.session_changes import (
    CommonState,
    SessionChange,
    change_between,
    make_change,
    state_of,
)
from fastrpc.transports.http.session_ids import worker_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable
    from typing import Any

    from fastrpc.transports.http.interfaces import Mapped
    from fastrpc.transports.http.sessions import HttpSession, Sessions
    from fastrpc.transports.http.stored_sessions import StoredSessions
    from fastrpc.transports.interfaces import ServedRuntime

SHARED = "fastrpc.session"
"""The type of a frame with something about a session."""
STATE, KNOWN, MESSAGE, LINE, ADOPTED, ENDED = "state", "known", "message", "line", "adopted", "ended"
KNOWN_SECONDS = 10.0
"""How long after it has adopted a session a worker expects `KNOWN`: it comes much sooner, or never."""
STORE = -1
"""The place of the store among the workers that have not sent what they know yet."""
MOST_UNDELIVERED = 1024 * 1024
"""Bytes of what the clients of one principal have set and other processes have not taken yet. One change is
always taken."""
MOST_NOTED = 1000
"""URIs that the client of one session has unsubscribed from meanwhile."""
FORWARDED = ("notifications/cancelled", "notifications/progress", "notifications/roots/list_changed")
"""Notifications that concern requests, or what is stored of the client, in other processes."""


@dataclass(eq=False, repr=False)
class SessionSharing:
    """The sealed sessions of one worker, of `count`. `send` sends a frame to another worker, and calls a
    function with True when that worker has taken it, with False when it will not."""

    sessions: Sessions
    loop: AbstractEventLoop
    number: int = 0
    count: int = 1
    send: Callable[[int, Mapped, Callable[[bool], object] | None], object] = lambda *frame: None
    _store: StoredSessions | None = field(default=None, init=False)
    _undelivered: dict[str, int] = field(default_factory=dict, init=False)
    """The bytes of changes, of each principal, that other processes have not taken yet."""

    def use(self, runtime: ServedRuntime) -> None:
        """Share sessions with other hosts too, by the store of a server's runtime."""
        if self._store is None:
            from fastrpc.transports.http.stored_sessions import StoredSessions

            self._store = StoredSessions(self, self.sessions, runtime, self.loop)

    def bind(self, session: HttpSession, *, is_adopted: bool) -> None:
        """Share a session from now on, of which the other workers may know more if it `is_adopted`."""
        state = session.dispatcher.session
        state.on_change = partial(self._changed, session)
        if not self._is_owner(session.id):
            state.hears_changes = False
            session.pass_line = partial(self._send_line, session)
        if self._store is not None:
            self._store.bind(session)
        if is_adopted:
            session.hears_until = self.loop.time() + KNOWN_SECONDS
            if state.hears_changes and session.dispatcher.runtime.has_upstreams:
                session.dispatcher.runtime.upstreams.connect(state.client_capabilities)
            self._ask_others(session)

    def _ask_others(self, session: HttpSession) -> None:
        """Ask the other workers what they know of a session that has just been adopted. Its requests wait."""
        others = [other for other in range(self.count) if other != self.number]
        if not others:
            return
        session.unheard = {*others}
        session.arrival = self.loop.create_future()
        for other in others:

            def sent(is_taken: bool, other: int = other) -> None:
                if not is_taken:
                    session.hear_from(other)

            self._send_one(other, ADOPTED, session.id, session.principal, None, sent)

    def ask_again(self, other: int) -> None:
        """Another worker has sent something that did not come: ask it what it knows of the sessions here."""
        for session in self.sessions:
            if session.is_sealed:
                self._send_one(other, ADOPTED, session.id, session.principal, None)

    async def stored(self, id: str) -> CommonState | None:
        """Return what other hosts have stored of a session; None if that is not known."""
        return None if self._store is None else await self._store.read(id)

    def take_stored(self, session: HttpSession, state: CommonState) -> None:
        """Begin to serve a session in the state that other hosts have stored."""
        session.missed |= bool(state.subscriptions)
        self.become(session, state)

    def message(self, session: HttpSession, kind: str, method: str, body: bytes) -> None:
        """Share a message that the client has posted, if another process may need it."""
        if kind != "batch":
            self._send_message(session, kind, method, body)
            return
        message, element = Message(), Message()
        message.read(body)
        for text in message.elements():
            element.read(text)
            self._send_message(session, element.kind, element.method, bytes(text))

    def _send_message(self, session: HttpSession, kind: str, method: str | None, text: bytes) -> None:
        if kind == "response" or (kind == "notification" and method in FORWARDED):
            self._send_to_all(MESSAGE, session.id, session.principal, text)
            if self._store is not None:
                self._store.post(session, MESSAGE, text)

    def ended(self, id: str, principal: str) -> Future[None] | None:
        """The client has ended a session. Return what is done when that is stored, or cannot be."""
        self._send_to_all(ENDED, id, principal)
        return None if self._store is None else self._store.end(id)

    def _changed(
        self,
        session: HttpSession,
        log_level: str | None,
        subscribed: dict[str, str],
        unsubscribed: tuple[str, ...],
    ) -> None:
        """The client has set the state of a session here. All others hear of it even if it is nothing new:
        this process may not know yet what they do. Raises Overloaded if they have not taken too much else of
        this principal."""
        change = SessionChange(log_level, subscribed, unsubscribed)
        size = self._count_undelivered(session, change)
        self._note(session, change)
        waiting = self.count - 1 + (self._store is not None)
        session.undelivered += waiting
        if not waiting:
            self._delivered(session.principal, size)
        if session.delivery is None and session.undelivered:
            session.delivery = self.loop.create_future()

        def taken(is_taken: bool = True) -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                self._delivered(session.principal, size)
            session.undelivered -= 1
            if not session.undelivered:
                delivery, session.delivery = session.delivery, None
                if delivery is not None and not delivery.done():
                    delivery.set_result(None)

        self._send_to_all(STATE, session.id, session.principal, change, taken)
        if self._store is not None:
            self._store.write(session, change, taken)

    def _count_undelivered(self, session: HttpSession, change: SessionChange) -> int:
        """Count the size of a change that other processes have to take, and return it. Raises Overloaded."""
        unsaved, before = session.unsaved, self._undelivered.get(session.principal, 0)
        size = len(session.id) + change.size
        if before and before + size > MOST_UNDELIVERED:
            raise Overloaded(
                "Server busy: what this client has set before is still on its way to all workers"
            )
        if unsaved is not None and unsaved.size + size > MOST_UNDELIVERED:
            raise Overloaded("Server busy: what this client has set before cannot be stored yet")
        self._undelivered[session.principal] = before + size
        return size

    def _delivered(self, principal: str, size: int) -> None:
        left = self._undelivered.get(principal, 0) - size
        if left > 0:
            self._undelivered[principal] = left
        else:
            self._undelivered.pop(principal, None)

    def _send_line(self, session: HttpSession, line: bytes) -> None:
        owner = worker_of(session.id.encode(), self.count) or 0
        self._send_one(owner, LINE, session.id, session.principal, line)

    def _send_to_all(
        self,
        what: str,
        id: str,
        principal: str,
        data: Any = None,
        on_taken: Callable[[bool], object] | None = None,
    ) -> None:
        for other in range(self.count):
            if other != self.number:
                self._send_one(other, what, id, principal, data, on_taken)

    def _send_one(
        self,
        to: int,
        what: str,
        id: str,
        principal: str,
        data: Any,
        on_taken: Callable[[bool], object] | None = None,
    ) -> None:
        about = {"id": id, "principal": principal, "from": self.number}
        self.send(to, {"type": SHARED, "what": what, **about, "data": data}, on_taken)

    # --- what other processes send ------------------------------------------------------------------------

    def take(self, frame: Mapped) -> None:
        """Handle what another worker has sent."""
        what, id, principal, data = frame["what"], frame["id"], frame["principal"], frame["data"]
        session = self.sessions.find(id, principal)
        if what == ENDED:
            self.sessions.refuse(id)
            if session is not None:
                self.sessions.end(session)
            return
        if session is None and what in (STATE, LINE) and self._is_owner(id):
            session = self._adopted(id, principal)
        if what == ADOPTED:
            known = CommonState() if session is None else state_of(session.dispatcher.session)
            self._send_one(frame["from"], KNOWN, id, principal, change_between(CommonState(), known))
        if session is None:
            return
        if what == STATE:
            change = SessionChange(*data)
            self._note(session, change)
            self._make(session, change)
        elif what == KNOWN:
            self._add(session, SessionChange(*data))
            session.hear_from(frame["from"])
        elif what == LINE:
            session.put_standalone(data)
        elif what == MESSAGE:
            self.receive(session, data)

    def receive(self, session: HttpSession, text: bytes) -> None:
        """Handle a message that the client has posted at another process."""
        exchange = session.exchange()
        exchange.receive(text)
        session.put_back(exchange)

    def _adopted(self, id: str, principal: str) -> HttpSession | None:
        try:
            session = self.sessions.adopt(id, principal, self.loop)
        except ProtocolError as error:
            diagnostics.write("info", f"a session of another worker cannot be continued: {error}")
            return None
        if session is not None and self._store is not None:
            session.unheard.add(STORE)
            self._store.refresh(session, partial(session.hear_from, STORE))
        return session

    def become(self, session: HttpSession, state: CommonState) -> SessionChange:
        """Have a session in the state that is common to all processes; return what has changed here."""
        if state.ended:
            self.sessions.refuse(session.id)
            self.sessions.end(session)
            return SessionChange(None, {}, ())
        change = change_between(state_of(session.dispatcher.session), state)
        self._make(session, change)
        return change

    def _is_owner(self, id: str) -> bool:
        return worker_of(id.encode(), self.count) == self.number

    def _add(self, session: HttpSession, known: SessionChange) -> None:
        """Take what another worker has known when this one adopted a session: the client may have set the log
        level here since."""
        level = known.log_level if session.dispatcher.session.log_level is None else None
        noted = session.unsubscribed
        subscribed = {uri: asked for uri, asked in known.subscribed.items() if hash(uri) not in noted}
        before = set(session.dispatcher.session.subscriptions)
        self._make(session, SessionChange(level, subscribed, ()))
        if session.dispatcher.session.hears_changes:
            for uri in [uri for uri in session.dispatcher.session.subscriptions if uri not in before]:
                session.dispatcher.changes.resource_updated(uri)

    def _note(self, session: HttpSession, change: SessionChange) -> None:
        """Note what the client has unsubscribed from, while `KNOWN` may come from a worker that did not know
        that."""
        noted = session.unsubscribed
        if self.loop.time() > session.hears_until:
            noted.clear()
            return
        for uri in change.subscribed:
            noted.pop(hash(uri), None)
        noted.update(dict.fromkeys(map(hash, change.unsubscribed)))
        while len(noted) > MOST_NOTED:
            del noted[next(iter(noted))]

    def _make(self, session: HttpSession, change: SessionChange) -> None:
        """Change the state of a session as its client has at another process."""
        changes, state = session.dispatcher.changes, session.dispatcher.session
        before = {uri: state.subscriptions.get(uri) for uri in (*change.unsubscribed, *change.subscribed)}
        try:
            make_change(state, change)
        except ProtocolError as error:
            diagnostics.write("info", f"a subscription of a session at another worker is not kept: {error}")
        now = state.subscriptions
        changes.unwatch([asked for uri, asked in before.items() if asked is not None and uri not in now])
        for uri in [uri for uri, asked in before.items() if asked is None and uri in now]:
            try:
                changes.watch_resources([now[uri]])
            except FAILURES as error:  # of a provider; the client has been answered
                tracebacks.report(f"a provider does not watch {uri:.200}", error)
