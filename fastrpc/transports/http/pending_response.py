"""A request that the fast path has begun, and whose response is pending because its call waits.

Usually one response follows, and is written when the call ends. In all other cases (a message before the
response, a long wait, a pipelined request, the server's shutdown) the ASGI application takes the request over
in its current state. Costs one object a request that waits.
"""

from __future__ import annotations

from fastrpc import tracebacks
from fastrpc.transports.http.exchange import ANSWER, STOPPED
from fastrpc.transports.http.request import stateless_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.exchange import Exchange
    from fastrpc.transports.http.request import HttpRequest
    from fastrpc.transports.http.sessions import HttpSession


class PendingResponse:
    """A request in flight. `session` is the one that it belongs to, None for one of 2026-07-28; `path` is the
    request's.

    Until the application takes it over (`serve`), `answer` or `client_gone` has to be called.
    """

    __slots__ = ("_app", "_exchange", "_id", "_loop", "_session", "_since", "path")

    def __init__(
        self,
        app: HttpApp,
        exchange: Exchange,
        session: HttpSession | None,
        path: str,
        loop: AbstractEventLoop,
    ) -> None:
        self.path = path
        self._app = app
        self._exchange = exchange
        self._session = session
        self._loop = loop
        self._since = loop.time()
        self._id: bytes = exchange.connection.message.id or b"null"
        if session is None:
            app.exchanges.begin(exchange)
        else:
            session.running.add(exchange)
            app.exchanges.begin_in_session(exchange)

    @property
    def waits(self) -> bool:
        """Whether the call is in flight and has sent no message yet."""
        return self._exchange.in_flight and self._exchange.peek() is None

    @property
    def seconds(self) -> float:
        """The time left before a keep-alive comment has to be sent (``stream_seconds``)."""
        return max(0.0, self._app.responses.stream_seconds - (self._loop.time() - self._since))

    def on_message(self, function: Callable[[], object] | None) -> None:
        """Set the function that is called for each message; None: the exchange's waiter is woken."""
        self._exchange.wake = function or self._exchange.waiter.wake

    def answer(self) -> tuple[int, bytes] | None:
        """End the request and return the response's status and body; None if a message precedes it."""
        exchange, session = self._exchange, self._session
        item = exchange.peek()
        if item is None or item[0] not in (ANSWER, STOPPED):
            return None
        kind, line = item
        exchange.next()
        self.on_message(None)
        try:
            (self._app.exchanges if session is None else session).put_back(exchange)
        except Exception as error:  # the answer is there
            tracebacks.report("an exchange could not be kept", error)
        if session is not None:
            return 200, line
        return 503 if kind == STOPPED else stateless_status(line, self._id), line

    def client_gone(self) -> None:
        """The client has disconnected. In a session the call goes on: the client may resume its stream."""
        self.on_message(None)
        if self._session is not None:
            self._session.stream_of(self._exchange).leave()
        else:
            self._app.exchanges.running.discard(self._exchange)
            self._exchange.close()

    async def serve(self, request: HttpRequest) -> None:
        """Respond to the request through the ASGI application, which has taken it over."""
        request.is_unread = False
        app, session, exchange = self._app, self._session, self._exchange
        if session is None:
            await app.responses.send(request, exchange, id=self._id, seconds=self.seconds)
        else:
            await app.responses.send_in_session(request, session, exchange, self.seconds)
