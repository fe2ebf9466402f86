"""The session wire (MCP up to 2025-11-25) over Streamable HTTP: POST, GET and DELETE.

A session begins with `initialize`. A client that uses none is served as far as a method needs none.
"""

from __future__ import annotations

import asyncio

from fastrpc.errors import InvalidRequest, ProtocolError
from fastrpc.protocol.versions import BATCHES, SESSION_VERSIONS
from fastrpc.transports.http.exchange import ENDS
from fastrpc.transports.http.guard import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from fastrpc.transports.http.exchange import Exchange, ExchangePool
    from fastrpc.transports.http.request import HttpRequest
    from fastrpc.transports.http.responses import ResponseSender
    from fastrpc.transports.http.sessions import HttpSession, Sessions

    Rest = Coroutine[Any, Any, None] | None  # what sends the answer of a call that waits, if it does

ASSUMED = "2025-03-26"
"""The version of a client that names none and has no session (MCP 2025-06-18, MCP-Protocol-Version)."""

ARRIVAL_SECONDS = 3.0
"""How long a request waits at most until the other workers have sent what they know of its session: one that
takes longer does not answer."""
RETRY = [(b"retry-after", b"60")]
NEED_A_SESSION = ("logging/setLevel", "resources/subscribe", "resources/unsubscribe")


class SessionWire:
    """Serves the requests of the session wire to one application."""

    def __init__(self, exchanges: ExchangePool, sessions: Sessions, responses: ResponseSender) -> None:
        self._exchanges = exchanges
        self._sessions = sessions
        self._responses = responses

    async def post(self, request: HttpRequest, body: bytes, kind: str, method: str) -> Rest:
        if method == "initialize" and kind == "request":
            await self._post_initialize(request, body)
            return None
        if b"mcp-session-id" in request.headers:
            return await self._post_in_session(request, body, kind, method)
        return await self.post_without_session(request, body, kind, method)

    async def _session_of(self, request: HttpRequest) -> HttpSession:
        """Return the session that a request names. Raises Refused: 400 without one, 404 if unknown."""
        given = _named_session(request)
        session = self._sessions.find(given, request.principal)
        if session is None:
            session = await self._continued(given, request.principal)
        if session.arrival is not None:
            await asyncio.wait({session.arrival}, timeout=ARRIVAL_SECONDS)
            session.has_arrived()
            if session.closed:
                raise no_session()
        check_version(request.header(b"mcp-protocol-version"))
        return session

    async def _continued(self, id: str, principal: str) -> HttpSession:
        """Return the session of a sealed id, which another process has begun. Raises Refused."""
        try:
            session = await self._sessions.continued(id, principal, asyncio.get_running_loop())
        except ProtocolError as error:
            raise Refused(429, error.message, error.code, RETRY) from None
        if session is None:
            raise no_session()
        self._exchanges.runtime = session.dispatcher.runtime
        return session

    async def _post_initialize(self, request: HttpRequest, body: bytes) -> None:
        session = self._sessions.open(request.principal, asyncio.get_running_loop())
        if session is None:
            raise Refused(429, "Too many sessions are open", headers=RETRY)
        self._exchanges.runtime = session.dispatcher.runtime
        exchange = session.exchange()
        answer = exchange.receive(body, request.entry)
        if answer is None:  # the proxy connects to its upstream server first
            answer = await self._answer_late(request, session, exchange)
        if not answer or session.version is None:
            self._sessions.end(session)
            exchange.close()  # or its buffers would stay until a garbage collection
            await request.answer(400, answer or b"")
            return
        session.put_back(exchange)
        self._sessions.seal(session)
        await request.answer(200, answer, [(b"mcp-session-id", session.id.encode())])

    async def _answer_late(
        self, request: HttpRequest, session: HttpSession, exchange: Exchange
    ) -> bytes | None:
        """Wait for the response to initialize; if the client disconnects, end the session and return None."""
        session.running.add(exchange)
        request.watch(exchange.waiter.wake)
        try:
            while not request.gone:
                item = exchange.next()
                if item is None:
                    await exchange.waiter.wait(self._responses.keep_alive_seconds)
                elif item[0] in ENDS:
                    return item[1]
        except BaseException:  # the ASGI server aborts the request
            self._sessions.end(session)
            raise
        return None

    async def _post_in_session(self, request: HttpRequest, body: bytes, kind: str, method: str) -> Rest:
        session = await self._session_of(request)
        if kind == "batch" and session.version not in BATCHES:
            raise InvalidRequest("Invalid request: batches are part of protocol version 2025-03-26 only")
        exchange = session.exchange()
        answer = exchange.receive(body, request.entry)
        if kind != "request" and session.is_sealed and self._sessions.sharing is not None:
            self._sessions.sharing.message(session, kind, method, body)
        if kind not in ("notification", "response") and answer is None and exchange.waits:
            return self._responses.send_in_session(request, session, exchange)
        session.put_back(exchange)
        if answer is None or kind in ("notification", "response"):
            await request.answer(202)
        else:
            await request.answer(200, answer)
        return None

    async def post_without_session(self, request: HttpRequest, body: bytes, kind: str, method: str) -> Rest:
        """Serve a client that uses no session, as far as the method needs none."""
        version = check_version(request.header(b"mcp-protocol-version")) or ASSUMED
        if kind == "notification":
            await request.answer(202)
            return None
        if kind == "response" or method in NEED_A_SESSION:
            await self._session_of(request)
        if kind == "batch" and version not in BATCHES:
            raise InvalidRequest("Invalid request: batches are part of protocol version 2025-03-26 only")
        exchange = self._exchanges.take(request.principal, version)
        answer = exchange.receive(body, request.entry)
        if answer is None and exchange.waits:
            return self._responses.send(request, exchange, cancel=False)
        self._exchanges.put_back(exchange)
        await request.answer(200 if answer else 202, answer or b"")
        return None

    async def delete(self, request: HttpRequest) -> None:
        """End a session; respond before the calls that this cancels do: the client may disconnect then."""
        id = _named_session(request)
        session = self._sessions.find(id, request.principal)
        if session is None and self._sessions.handshake_of(id, request.principal) is None:
            raise no_session()
        check_version(request.header(b"mcp-protocol-version"))
        known_to_all = self._sessions.end_for_client(id, request.principal)
        try:
            if known_to_all is not None:
                await known_to_all
            await request.answer(200)
        finally:
            if session is not None:
                session.close()

    async def get(self, request: HttpRequest) -> None:
        if not request.accepts("text/event-stream"):
            raise Refused(406, "Accept: expected text/event-stream")
        session = await self._session_of(request)
        last = request.header(b"last-event-id")
        reader = session.listen(last)
        if reader is None:
            raise Refused(400, "Last-Event-ID: there is nothing to resume after it")
        request.watch(reader.waiter.wake)
        if session.on_listener is not None and reader.stream is session.standalone:
            session.on_listener()
        await self._responses.send_stream(request, session, reader, listens=True)


def no_session() -> Refused:
    """Return the answer to a request that names a session which does not exist."""
    return Refused(404, "Mcp-Session-Id: there is no such session", code=-32001)


def _named_session(request: HttpRequest) -> str:
    """Return the id of the session that a request names. Raises Refused."""
    given: str | None = request.header(b"mcp-session-id")
    if given is None:
        raise Refused(400, "Mcp-Session-Id: the header is missing; a session begins with initialize")
    return given


def check_version(given: str | None) -> str | None:
    """Return the version of a request of the session wire. Raises Refused for an unsupported one."""
    if given is not None and given not in SESSION_VERSIONS:
        raise Refused(
            400, f"MCP-Protocol-Version: {given[:40]!r} is not served; {', '.join(SESSION_VERSIONS)}"
        )
    return given
