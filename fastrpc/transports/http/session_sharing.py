"""Keeps a sealed session whole among the workers of one server, each of which serves the session's requests.

A request is served by the worker at which it arrives. What concerns the session as a whole goes to the other
workers, by the sockets of `session_router`:

| what | goes to |
|---|---|
| `STATE`: the log level and the subscriptions, when they have changed | all |
| `MESSAGE`: a response or a notification of the client | those that have the session: one has asked |
| `LINE`: a message of the server that belongs to no request | the owner: it has the standalone stream |
| `ADOPTED`: a worker has begun to serve the session | those that have it: they send it their state |
| `ENDED`: the client has ended the session | all |

The owner is the worker that the checksum of the id names (`session_ids`). It alone notifies the client of
changes. A request that sets `STATE` is answered when the others know it; all else comes a moment later than
the answer. Between machines nothing is shared.
"""

from __future__ import annotations

from functools import partial

from fastrpc import diagnostics
from fastrpc._core.message import Message
from fastrpc.errors import ProtocolError
from fastrpc.transports.http.session_ids import belongs_here, worker_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any

    from fastrpc.transports.http.interfaces import Mapped
    from fastrpc.transports.http.sessions import HttpSession, Sessions

SHARED = "fastrpc.session"
"""The type of a frame with something about a session."""
STATE, MESSAGE, LINE, ADOPTED, ENDED = "state", "message", "line", "adopted", "ended"
FORWARDED = ("notifications/cancelled", "notifications/progress", "notifications/roots/list_changed")
"""Notifications that concern requests, or what is stored of the client, in other workers."""


class SessionSharing:
    """The sealed sessions of one worker, of `count`. `send` sends a frame to another worker, and calls a
    function when that worker has taken it, or will not."""

    def __init__(
        self,
        sessions: Sessions,
        number: int,
        count: int,
        send: Callable[[int, Mapped, Callable[[], object] | None], object],
        loop: AbstractEventLoop,
    ) -> None:
        self._sessions = sessions
        self._number = number
        self._count = count
        self._send = send
        self._loop = loop

    def bind(self, session: HttpSession, *, is_adopted: bool) -> None:
        """Share a session from now on, of which the other workers may know more if it `is_adopted`."""
        state = session.dispatcher.session
        state.on_change = partial(self._send_state, session)
        if not belongs_here(session.id.encode()):
            state.hears_changes = False
            session.pass_line = partial(self._send_line, session)
        if is_adopted:
            self._send_to_all(ADOPTED, session)

    def message(self, session: HttpSession, kind: str, body: bytes) -> None:
        """Share a message that the client has posted, if another worker may need it."""
        message = Message()
        message.read(body)
        if kind != "batch":
            self._send_message(session, message, body)
            return
        element = Message()
        for text in message.elements():
            element.read(text)
            self._send_message(session, element, bytes(text))

    def _send_message(self, session: HttpSession, message: Message, text: bytes) -> None:
        if message.kind == "response" or (message.kind == "notification" and message.method in FORWARDED):
            self._send_to_all(MESSAGE, session, text)

    def ended(self, session: HttpSession) -> None:
        """The client has ended a session."""
        self._send_to_all(ENDED, session)

    def _send_state(self, session: HttpSession, to: int | None = None) -> None:
        state = session.dispatcher.session
        data = {"level": state.log_level, "subscriptions": state.subscriptions}
        if to is not None:
            self._send_one(to, STATE, session, data)
            return
        delivery = session.delivery = self._loop.create_future()
        left = self._count - 1

        def taken() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                delivery.set_result(None)
                if session.delivery is delivery:
                    session.delivery = None

        self._send_to_all(STATE, session, data, taken)

    def _send_line(self, session: HttpSession, line: bytes) -> None:
        self._send_one(worker_of(session.id.encode(), self._count) or 0, LINE, session, line)

    def _send_to_all(
        self, what: str, session: HttpSession, data: Any = None, on_taken: Callable[[], object] | None = None
    ) -> None:
        for other in range(self._count):
            if other != self._number:
                self._send_one(other, what, session, data, on_taken)

    def _send_one(
        self,
        to: int,
        what: str,
        session: HttpSession,
        data: Any,
        on_taken: Callable[[], object] | None = None,
    ) -> None:
        about = {"id": session.id, "principal": session.principal, "from": self._number}
        self._send(to, {"type": SHARED, "what": what, **about, "data": data}, on_taken)

    # --- what other workers send --------------------------------------------------------------------------

    def take(self, frame: Mapped) -> None:
        """Handle what another worker has sent."""
        what, id, principal, data = frame["what"], frame["id"], frame["principal"], frame["data"]
        session = self._sessions.find(id, principal)
        if what == ENDED:
            self._sessions.refuse(id)
            if session is not None:
                self._sessions.end(session)
            return
        if session is None and what in (STATE, LINE):
            session = self._adopted(id, principal)
        if session is None:
            return
        state = session.dispatcher.session
        if what == STATE:
            self._take_state(session, data)
        elif what == LINE:
            session.standalone.put(data)
        elif what == MESSAGE:
            exchange = session.exchange()
            exchange.receive(data)
            session.put_back(exchange)
        elif what == ADOPTED and (state.log_level is not None or state.subscriptions):
            self._send_state(session, frame["from"])

    def _adopted(self, id: str, principal: str) -> HttpSession | None:
        try:
            return self._sessions.adopt(id, principal, self._loop)
        except ProtocolError as error:
            diagnostics.write("info", f"a session of another worker cannot be continued: {error}")
            return None

    def _take_state(self, session: HttpSession, data: Mapped) -> None:
        state = session.dispatcher.session
        on_change, state.on_change = state.on_change, None
        try:
            state.set_log_level(data["level"])
            for uri in [uri for uri in state.subscriptions if uri not in data["subscriptions"]]:
                state.unsubscribe(uri)
            for uri, asked in data["subscriptions"].items():
                state.subscribe(uri, asked)
        except ProtocolError as error:
            diagnostics.write("info", f"a subscription of a session at another worker is not kept: {error}")
        finally:
            state.on_change = on_change
