"""A request that was begun the straight way and whose answer is still to come: a call that waits.

One plain answer is what mostly comes, and it is written as it comes. Everything else (a message before the
answer, a long wait, a request behind this one, the end of the server) is the application's: it goes on with
the request where it stands, as if it had begun it. Costs one object a request that waits.
"""

from __future__ import annotations

from fastrpc.transports.http.exchange import ANSWER, STOPPED
from fastrpc.transports.http.request import modern_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.exchange import Exchange
    from fastrpc.transports.http.request import Request
    from fastrpc.transports.http.sessions import Session


class Begun:
    """A request in flight. `session` is the one that it belongs to, None for one of 2026-07-28; `path` is the
    one that it was sent to.

    Until the application goes on with it, `answer` or `client_gone` has to be called.
    """

    __slots__ = ("_app", "_exchange", "_id", "_loop", "_session", "_since", "path")

    def __init__(
        self, app: HttpApp, exchange: Exchange, session: Session | None, path: str, loop: AbstractEventLoop
    ) -> None:
        self.path = path
        self._app = app
        self._exchange = exchange
        self._session = session
        self._loop = loop
        self._since = loop.time()
        self._id: bytes = exchange.connection.message.id or b"null"
        app.begin(exchange, session)

    @property
    def waits(self) -> bool:
        """Whether nothing has been said yet, and something will be."""
        return self._exchange.owes and self._exchange.peek() is None

    @property
    def seconds(self) -> float:
        """How long it may still take before the client has to hear something (``keep_alive_seconds``)."""
        return max(0.0, self._app.keep_alive_seconds - (self._loop.time() - self._since))

    def on_said(self, function: Callable[[], object] | None) -> None:
        """Have a function called when something is said; None: the exchange's own reader is woken."""
        self._exchange.wake = function or self._exchange.waiter.wake

    def answer(self) -> tuple[int, bytes] | None:
        """Return the status and the body of the answer, if that was said, and end the request; else None."""
        exchange, session = self._exchange, self._session
        item = exchange.peek()
        if item is None or item[0] not in (ANSWER, STOPPED):
            return None
        kind, line = item
        exchange.next()
        self.on_said(None)
        if session is not None:
            session.put_back(exchange)
            return 200, line
        self._app.running.discard(exchange)
        self._app.put_back(exchange)
        return 503 if kind == STOPPED else modern_status(line, self._id), line

    def client_gone(self) -> None:
        """The connection is closed. In a session the call goes on: the client may come back."""
        self.on_said(None)
        if self._session is not None:
            self._session.stream_of(self._exchange).leave()
        else:
            self._app.running.discard(self._exchange)
            self._exchange.close()

    async def serve(self, request: Request) -> None:
        """Answer in the application's way, which has been given the request now."""
        request.body_is_read()
        app, session, exchange = self._app, self._session, self._exchange
        if session is None:
            await app.say_modern(request, exchange, self._id, self.seconds)
        else:
            await app.say_in_session(request, session, exchange, self.seconds)
