"""Sends the messages and the response of a request that waits: one JSON body, or an event stream.

The response is one JSON body if it comes first. If a message precedes it, or it takes long, an event stream
with status 200 is sent, with comments that keep the connection open.
"""

from __future__ import annotations

from fastrpc.transports.http.exchange import ANSWER, ENDS, MESSAGE, PAUSED, SILENT, STOPPED
from fastrpc.transports.http.request import stateless_status
from fastrpc.transports.http.streams import KEEP_ALIVE, event_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.transports.http.exchange import Exchange, ExchangePool
    from fastrpc.transports.http.guard import AccessRules
    from fastrpc.transports.http.request import HttpRequest
    from fastrpc.transports.http.sessions import HttpSession
    from fastrpc.transports.http.streams import Reader


class ResponseSender:
    """Sends the responses of one application; `guard` checks the tokens of its listeners.

    `keep_alive_seconds` is the time between the comments of an event stream.
    """

    def __init__(self, exchanges: ExchangePool, guard: AccessRules, keep_alive_seconds: float) -> None:
        self.keep_alive_seconds = keep_alive_seconds
        self.stream_seconds = keep_alive_seconds
        """How long a response may take before an event stream begins."""
        self.json_only = False
        """Whether messages before a response are dropped, so that it is always one JSON body."""
        self._exchanges = exchanges
        self._guard = guard

    async def send(
        self,
        request: HttpRequest,
        exchange: Exchange,
        *,
        id: bytes | None = None,
        cancel: bool = True,
        seconds: float | None = None,
    ) -> None:
        """Send the messages and the response of a request. With `cancel` a disconnect cancels the request.

        `id` is that of a stateless request, whose errors have a status; others have 200. `seconds` is the
        time until the first keep-alive comment; None: `stream_seconds`.
        """
        self._exchanges.begin(exchange, request.share)
        over = False
        request.watch(exchange.waiter.wake)
        try:
            over = await self._send_messages(request, exchange, id, seconds)
        finally:
            if over:
                self._exchanges.put_back(exchange)
            elif cancel:
                self._exchanges.running.discard(exchange)
                exchange.close()
            else:
                exchange.hand_over(lambda kind, line: self._ended_without_client(exchange, kind))

    def _ended_without_client(self, exchange: Exchange, kind: str) -> None:
        """Handle an item of a call whose client has disconnected: it is dropped."""
        if kind in ENDS:
            self._exchanges.put_back(exchange)

    async def _send_messages(
        self,
        request: HttpRequest,
        exchange: Exchange,
        id: bytes | None,
        seconds: float | None,
    ) -> bool:
        """Send the items of an exchange up to the response; False if the client has disconnected."""
        while True:
            if request.gone:  # the caller decides about the remaining items, the response included
                return False
            connection = exchange.connection
            if connection.listening and not await request.is_still_admitted(
                self._guard, connection.principal
            ):
                await request.more(b"", last=True)
                return False
            item = exchange.next()
            if item is None:
                woken = await exchange.waiter.wait(self.stream_seconds if seconds is None else seconds)
                seconds = None
                if not woken:
                    if not request.status:
                        await request.begin()
                    await request.more(KEEP_ALIVE)
                continue
            kind, line = item
            if self.json_only and kind == MESSAGE:
                continue
            if not request.status:
                if kind == SILENT:
                    await request.answer(202)
                    return True
                if kind in (ANSWER, STOPPED):
                    status = 200 if id is None else 503 if kind == STOPPED else stateless_status(line, id)
                    await request.answer(status, line)
                    return True
                await request.begin()
            if line:
                await request.more(event_of(line))
            if kind in ENDS:
                await request.more(b"", last=True)
                return True

    async def send_in_session(
        self, request: HttpRequest, session: HttpSession, exchange: Exchange, seconds: float | None = None
    ) -> None:
        """Send the messages and the response of a request in a session. A disconnect does not cancel it: the
        client may resume the stream. `seconds`: to the first keep-alive comment; None: `stream_seconds`.
        """
        session.running.add(exchange)
        self._exchanges.begin_in_session(exchange, request.share)
        request.watch(exchange.waiter.wake)
        try:
            answer = await self._wait_for_response(request, session, exchange, seconds)
        except BaseException:  # the ASGI server aborts the request; the call goes on
            session.stream_of(exchange).leave()
            raise
        if answer is not None:
            session.put_back(exchange)
            kind, line = answer
            # The request of a cancelled call had been accepted: its error is a JSON-RPC one. 404 and 503 are
            # for later requests (MCP 2025-11-25, transports: session management); clients give up on them.
            await request.answer(202 if kind == SILENT else 200, line)
            return
        reader = session.stream_of(exchange)
        if request.gone:
            reader.leave()
            return
        request.on_gone = reader.waiter.wake
        await self.send_stream(request, session, reader)

    async def _wait_for_response(
        self, request: HttpRequest, session: HttpSession, exchange: Exchange, seconds: float | None
    ) -> tuple[str, bytes] | None:
        """Wait for the response; None if a message precedes it, it takes long, or the client disconnects."""
        while True:
            item = exchange.peek()
            if item is None:
                if request.gone or not await exchange.waiter.wait(
                    self.stream_seconds if seconds is None else seconds
                ):
                    return None
                seconds = None
            elif item[0] in (ANSWER, STOPPED, SILENT):
                return exchange.next()
            elif (item[0] == PAUSED and not session.primed) or (item[0] == MESSAGE and self.json_only):
                exchange.next()
            else:
                return None

    async def send_stream(
        self, request: HttpRequest, session: HttpSession, reader: Reader, *, listens: bool = False
    ) -> None:
        """Send the events of a stream until it ends, the client disconnects, or a new reader takes over.
        `listens`: until its token is not valid any more, too."""
        try:
            await request.begin()
            first = session.priming(reader)
            if first:
                await request.more(first)
            while not request.gone:
                ends = listens and not await request.is_still_admitted(self._guard, session.principal)
                data = None if ends else reader.take()
                if data is None:
                    await request.more(b"", last=True)
                    return
                if data:
                    await request.more(data)
                elif not await reader.waiter.wait(self.keep_alive_seconds):
                    await request.more(KEEP_ALIVE)
        finally:
            reader.leave()
