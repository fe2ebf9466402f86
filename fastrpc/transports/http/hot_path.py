"""The straight way for the likely request over HTTP: a stateless call or list, or a request in a session.

A head that is known (`heads`) leaves the body, which goes to the compiled parser and is held against what the
head says of it; its answer is ready before anything else of HTTP exists: 1 to 2 µs a call beside what the
sockets cost.

Plain calls of all callers share a connection (`shared`), which answers at once. What it leaves alone (a
coroutine, a function with a Context, one that runs on a thread) gets a connection of its own; an answer that
is still to come is `PendingResponse`.

Two rules keep it honest. It knows fewer requests than the long way and answers them with the same bytes:
whatever is not sure goes the other way, untouched, before anything has happened. And nothing is done twice:
what has begun is answered here, or the long way goes on with it where it stands.
"""

from __future__ import annotations

from contextvars import copy_context
from time import monotonic

from fastrpc import diagnostics, forks
from fastrpc.errors import FAILURES, InternalError
from fastrpc.transports.http import refusals
from fastrpc.transports.http.heads import LIST, Heads
from fastrpc.transports.http.pending_response import PendingResponse
from fastrpc.transports.http.request import error_line, modern_status
from fastrpc.transports.http.shared import SharedConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any

    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.heads import Head
    from fastrpc.transports.http.sessions import Session

    Headers = list[tuple[bytes, bytes]]
    Client = tuple[str, int] | None

ALONE = 100
"""So many requests with a head, or in a session, get connections of their own before the shared one is asked
again."""

ERROR, SHORT = b'"error":{"code":', 4096
"""What every error has in it; a short answer is quickly searched for it."""

OK = b"HTTP/1.1 200 OK\r\n"
JSON = b"\r\ncontent-type: application/json\r\n\r\n"


class HotPath:
    """Answers likely requests of one server in one event loop, whatever connection they come by.

    `context` holds the context variables that requests begin with.
    """

    def __init__(self, app: HttpApp, loop: AbstractEventLoop) -> None:
        self.context = copy_context()
        self.make_begun: Callable[..., PendingResponse] = PendingResponse
        self._app = app
        self._loop = loop
        self._shared = SharedConnection(app, loop, None)
        self._shared_in_sessions: dict[str | None, SharedConnection] = {}  # by version
        self._plans: Any = None
        self._heads = Heads(app)
        self._known = self._heads.known
        self._headers: Headers = []
        self._begin = b""

    def head(self, text: bytes) -> Head | None:
        """Return what is known of a head, given without its last empty line; None if it goes the long way."""
        if self._shared.connection.plans is not self._plans and not self._take_plans():
            return None
        head = self._known.get(text)
        if head is None:
            return self._heads.meet(text)
        if head.valid_until is not None and head.is_over:
            del self._known[text]
            return self._heads.meet(text)
        return head

    def _take_plans(self) -> bool:
        """The tools have changed: every head is judged anew. False if they cannot be had."""
        self._heads.forget()
        self._plans = None
        try:
            self._shared.dispatcher.quiet()
            for shared in self._shared_in_sessions.values():
                shared.dispatcher.quiet()
        except FAILURES as error:
            diagnostics.write("error", "the tools cannot be planned", error)
            return False
        self._plans = self._shared.connection.plans
        return True

    def let_go(self) -> None:
        """Answer nothing any more, in a child process that the tool may have forked which is being called."""
        for shared in (self._shared, *self._shared_in_sessions.values()):
            shared.let_go()

    # --- stateless requests -------------------------------------------------------------------------------

    def answer(
        self, head: Head, body: bytes, headers: Headers, client: Client = None
    ) -> bytes | PendingResponse | None:
        """Return the answer to a request, with `headers` in it, or what has begun and is to be waited for;
        None for one that goes the long way. `client` is the address that it came from, for the log.

        Nothing has happened then. What a tool leaves in context variables is gone behind its call, as it is
        behind a request of the long way, which has a task of its own.
        """
        if self._app.stopping:
            return None
        if head.session:
            session = self._app.sessions.find(head.session, head.principal)
            return None if session is None else self._answer_in_session(head, session, body, headers)
        shared = self._shared
        if shared.busy:
            return None
        if head.alone:
            head.alone -= 1
            return self._answer_alone(head, body, headers, client)
        shared.busy = True
        shared.missed = False
        try:
            mine = copy_context().run(shared.connection.receive_named, body, head.method, head.name)
        except FAILURES as error:
            return self._failed(error, headers, shared)
        finally:
            shared.busy = False
        if not mine or shared.missed:
            if shared.left:
                forks.leave()
            if not mine or head.method == LIST:
                return None
            head.alone = ALONE
            return self._answer_alone(head, body, headers, client)
        answer: bytes = shared.connection.output.take()
        if shared.id is not None:
            id, shared.id = shared.id, None
            if not answer:
                return None
            return self.response(modern_status(answer, id), answer, headers, head.path, client)
        if headers is not self._headers:  # another second has begun, and Date with it
            self._take_headers(headers)
        return b"%b%d%b%b" % (self._begin, len(answer) - 1, JSON, answer[:-1])

    def _answer_alone(
        self, head: Head, body: bytes, headers: Headers, client: Client
    ) -> bytes | PendingResponse | None:
        """answer() by a connection that serves this request alone."""
        exchange = self._app.exchange(head.principal)
        try:
            answer = copy_context().run(exchange.receive_expected, body, head.method, head.name)
        except FAILURES as error:
            return self._failed(error, headers)
        if answer is None:
            return self.make_begun(self._app, exchange, None, head.path, self._loop)
        status = 200
        if len(answer) > SHORT or ERROR in answer:
            status = modern_status(answer, exchange.connection.message.id or b"null")
        self._app.put_back(exchange)
        return self.response(status, answer, headers, head.path, client) if answer else None

    # --- requests in sessions -----------------------------------------------------------------------------

    def _answer_in_session(
        self, head: Head, session: Session, body: bytes, headers: Headers
    ) -> bytes | PendingResponse | None:
        """answer() in a session of the versions up to 2025-11-25, where every answer has status 200."""
        dispatcher = session.dispatcher
        shared = self._shared_in_sessions.get(dispatcher.session.version) or self._share(session)
        if session.alone or shared.busy:
            session.alone = max(0, session.alone - 1)
            return self._answer_alone_in_session(head, session, body, headers)
        shared.connection.in_flight = dispatcher.in_flight  # no two requests in flight have one id
        shared.busy = True
        shared.missed = False
        try:
            mine = copy_context().run(shared.connection.receive_in_session, body)
        except FAILURES as error:
            return self._failed(error, headers, shared)
        finally:
            shared.busy = False
        if not mine:
            return None
        if shared.missed:
            if shared.left:
                forks.leave()
            session.alone = ALONE
            return self._answer_alone_in_session(head, session, body, headers)
        shared.id = None
        session.used = monotonic()
        answer: bytes = shared.connection.output.take()
        if headers is not self._headers:
            self._take_headers(headers)
        return b"%b%d%b%b" % (self._begin, len(answer) - 1, JSON, answer[:-1])

    def _answer_alone_in_session(
        self, head: Head, session: Session, body: bytes, headers: Headers
    ) -> bytes | PendingResponse | None:
        """answer() by a connection of the session that serves this request alone."""
        exchange = session.exchange()
        try:
            answer = copy_context().run(exchange.receive_expected, body, b"", b"")
        except FAILURES as error:
            return self._failed(error, headers)
        if answer is None:
            return self.make_begun(self._app, exchange, session, head.path, self._loop)
        session.put_back(exchange)
        return self.response(200, answer, headers, head.path, None) if answer else None

    def _share(self, session: Session) -> SharedConnection:
        """Return the connection that sessions of this one's version share, made now."""
        version = session.version
        shared = self._shared_in_sessions[version] = SharedConnection(self._app, self._loop, version)
        return shared

    # --- what HTTP says of an answer ----------------------------------------------------------------------

    def response(self, status: int, answer: bytes, headers: Headers, path: str, client: Client) -> bytes:
        """Return an answer with what HTTP says of it, and log it as the long way does."""
        body = answer.rstrip(b"\n")
        if status != 200:
            if status >= 400:
                refusals.note(status, body, method="POST", path=path, client=client)
            return response(status, body, headers)
        if headers is not self._headers:
            self._take_headers(headers)
        return b"%b%d%b%b" % (self._begin, len(body), JSON, body)

    def _take_headers(self, headers: Headers) -> None:
        self._headers = headers
        self._begin = OK + _lines_of(headers) + b"content-length: "

    def _failed(
        self, error: BaseException, headers: Headers, shared: SharedConnection | None = None
    ) -> bytes:
        """fastrpc itself has failed, perhaps behind the call: say what the long way says, and do no more."""
        from fastrpc import tracebacks

        tracebacks.report("POST /mcp failed inside fastrpc", error)
        if shared is not None:
            shared.id = None
            shared.connection.output.take()
        return response(500, error_line(InternalError("Internal error; see the server's log")), headers)


def response(status: int, body: bytes, headers: Headers, *, close: bool = False) -> bytes:
    """Return a whole answer of HTTP with a JSON body."""
    from http import HTTPStatus

    line = b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode())
    length = b"content-length: %d" % len(body)
    end = b"\r\nconnection: close" if close else b""
    return line + _lines_of(headers) + length + end + JSON + body


def _lines_of(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])
