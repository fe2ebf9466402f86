"""HTTP+SSE, the transport of 2024-11-05: a GET opens a stream, messages are posted to another URL.

The first event has that URL, which contains a random session id. All responses are sent on the stream, and
the session ends with it. A client that does not read is disconnected when too many bytes wait for it.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from fastrpc.errors import InternalError, ParseError
from fastrpc.transports.http.exchange import ANSWER, Exchange
from fastrpc.transports.http.guard import Refused
from fastrpc.transports.http.request import Stalled
from fastrpc.transports.http.session_ids import new_hex_id
from fastrpc.transports.http.streams import KEEP_ALIVE, event_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from fastrpc._core.message import Message
    from fastrpc.quotas import Quota
    from fastrpc.transports.http.exchange import ExchangePool
    from fastrpc.transports.http.guard import AccessRules
    from fastrpc.transports.http.request import HttpRequest

    class SseHost(Protocol):
        """The application to which the endpoint belongs."""

        max_body: int
        bodies: Quota
        exchanges: ExchangePool
        guard: AccessRules
        keep_alive_seconds: float

        def check_open(self) -> None: ...
        def read(self, body: bytes) -> Message: ...


class SseSession:
    """One stream and its connection. `request`: the last one of it, whose token has to be valid for
    anything to be sent; a client whose token expires posts with another one."""

    def __init__(self, request: HttpRequest, exchange: Exchange) -> None:
        self.id = new_hex_id()
        self.request = request
        self.principal = request.principal
        self.exchange = exchange
        self.ended = False

    def receive(self, body: bytes) -> None:
        """Serve a message; what answers it goes to the stream."""
        answer = self.exchange.receive(body)
        if answer is not None:
            self.exchange.put(ANSWER, answer)

    def end(self) -> None:
        """End the stream after the queued messages are sent."""
        self.exchange.interrupt(InternalError("The server has ended"))
        self.ended = True
        self.exchange.waiter.wake()


class SseEndpoint:
    """The sessions of one server's HTTP+SSE; `app` makes their exchanges and knows the limits."""

    def __init__(self, app: SseHost, *, per_caller: int, in_all: int) -> None:
        self._app = app
        self._per_caller = per_caller
        self._in_all = in_all
        self._sessions: dict[str, SseSession] = {}
        self.on_opened: Callable[[SseSession], object] = lambda session: None
        self.on_closed: Callable[[SseSession], object] = lambda session: None

    @property
    def busy(self) -> bool:
        """Whether a call of any session is in flight, or a batch being read."""
        return any(session.exchange.dispatcher.requests.busy for session in self._sessions.values())

    def end_all(self) -> None:
        for session in self._sessions.values():
            session.end()

    async def open(self, request: HttpRequest, address: str) -> None:
        """Serve the stream of a new session, whose messages are posted to `address`."""
        if request.method != "GET":
            raise Refused(405, f"{request.method:.40}: expected GET", headers=[(b"allow", b"GET")])
        if not request.accepts("text/event-stream"):
            raise Refused(406, "Accept: expected text/event-stream")
        own = sum(session.principal == request.principal for session in self._sessions.values())
        if own >= self._per_caller or len(self._sessions) >= self._in_all:
            raise Refused(429, "Too many sessions are open", headers=[(b"retry-after", b"60")])
        session = SseSession(request, self._app.exchanges.new())
        self._sessions[session.id] = session
        self.on_opened(session)
        dispatcher = session.exchange.dispatcher
        dispatcher.principal = request.principal
        dispatcher.session.quota.outer = dispatcher.runtime.quotas.of(request.principal)
        request.watch(session.exchange.waiter.wake)
        try:
            await request.begin()
            place = f"{request.root}{address}?session_id={session.id}"
            await request.more(f"event: endpoint\ndata: {place}\n\n".encode())
            await self._send(request, session)
        finally:
            del self._sessions[session.id]
            self.on_closed(session)
            session.exchange.close()

    async def _send(self, request: HttpRequest, session: SseSession) -> None:
        exchange = session.exchange
        while not request.gone:
            if exchange.overflowed:
                raise Stalled
            is_admitted = await session.request.is_still_admitted(self._app.guard, session.principal)
            item = exchange.next() if is_admitted else None
            if item is not None:
                if item[1]:
                    await request.more(event_of(item[1]))
            elif session.ended or not is_admitted:
                await request.more(b"", last=True)
                return
            elif not await exchange.waiter.wait(self._app.keep_alive_seconds):
                await request.more(KEEP_ALIVE)

    def _session_of(self, request: HttpRequest, id: str) -> SseSession:
        """Return a session of this principal. Raises Refused for any other id."""
        session = self._sessions.get(id)
        if session is None or session.principal != request.principal or session.exchange.overflowed:
            raise Refused(404, "session_id: there is no such session", code=-32001)
        return session

    async def post(self, request: HttpRequest) -> None:
        """Handle a message; its response is sent on the session's stream."""
        if request.method != "POST":
            raise Refused(405, f"{request.method:.40}: expected POST", headers=[(b"allow", b"POST")])
        given = parse_qs(request.query.decode("latin-1")).get("session_id", [])
        if len(given) != 1:
            raise Refused(400, "session_id: expected once in the address, as the stream's first event has it")
        self._session_of(request, given[0])
        request.check_form()
        body = await request.body(self._app.max_body, self._app.bodies)
        self._app.check_open()
        session = self._session_of(request, given[0])  # it may have ended meanwhile
        message = self._app.read(body)
        request.note_message(message, body)
        if message.kind == "broken":
            raise ParseError(f"Parse error: {message.error}")
        session.request = request
        session.receive(body)
        await request.answer(202)
