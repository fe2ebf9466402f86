"""The fast path for common requests over HTTP: a stateless call or list, or a request in a session.

If the head is remembered (`remembered`), only the body remains: the compiled parser reads it and compares it
with the head, and the response is written before an ASGI scope exists: 1 to 2 µs a call besides the sockets.
The states of a request, on both wires; REGULAR is the regular path, through the ASGI application:

    head ──► remembered? ──no──► checked (`heads`): may it take the fast path? ──no──► REGULAR
                  │ yes                       │ yes
                  ├◄──────────────────────────┘
                  ▼
             the server ends, the session is unknown, or the shared connection calls a tool ──► REGULAR
                  │
                  ▼
             the shared connection is bound to the principal, by plans made now ──another principal──► REGULAR
                  │
                  ├── `Bypass.left` ──► UNSHARED
                  ▼
    SHARED   is the body what the head, or the session, announces? ──no──► REGULAR
                  │ yes
                  ├── the call waits, needs a Context, a thread or the guard: `Bypass.start` ──► UNSHARED
                  ▼
             the response's bytes

    UNSHARED an `Exchange` of the application, or of the session ──not as announced──► REGULAR
                  ├── the call waits ──► `PendingResponse` ──► the response's bytes, or REGULAR in its state
                  ▼
             the response's bytes

The two wires differ in the connection (one for each version), in what the body must be, and in the HTTP
status: in a session it is always 200.

Two rules: the fast path serves fewer requests than the regular path, with the same bytes, and leaves a
request that it is not sure of to that path before it has had any effect. And nothing is executed twice: a
request that the fast path has begun is answered here, or taken over by the regular path in its current state.
"""

from __future__ import annotations

from contextvars import copy_context
from http import HTTPStatus
from time import monotonic

from fastrpc import diagnostics, forks, tracebacks
from fastrpc._core.http_body import receive_in_session, receive_named
from fastrpc._core.message import Message
from fastrpc.errors import FAILURES, InternalError
from fastrpc.transports.http import refusals
from fastrpc.transports.http.access_token import Presented
from fastrpc.transports.http.heads import LIST, HeadChecker
from fastrpc.transports.http.pending_response import PendingResponse
from fastrpc.transports.http.remembered import RememberedRequests
from fastrpc.transports.http.request import DATA_END, error_line, retry_after, stateless_status
from fastrpc.transports.http.shared import SharedConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.interfaces import Client
    from fastrpc.transports.http.remembered import Head, Headers
    from fastrpc.transports.http.sessions import HttpSession

ERROR, SHORT = b'"error":{"code":', 4096
"""What every error response contains; only short ones are searched for it."""

OK = b"HTTP/1.1 200 OK\r\n"
JSON = b"\r\ncontent-type: application/json\r\n\r\n"


class HotPath:
    """Answers the common requests to one server in one event loop, from all HTTP connections.

    `context` holds the context variables that requests begin with.
    """

    def __init__(self, app: HttpApp, loop: AbstractEventLoop) -> None:
        self.context = copy_context()
        self.make_pending: Callable[..., PendingResponse] = PendingResponse
        self._app = app
        self._loop = loop
        self._shared = SharedConnection(app, loop, None)
        self._shared_in_sessions: dict[str | None, SharedConnection] = {}  # by version
        self._remembered = RememberedRequests()
        self._heads = self._remembered.heads
        self._checker = HeadChecker(app, self._remembered)

    def head(self, text: bytes) -> Head | None:
        """Return the head for its bytes, without the final empty line; None if it takes the regular path."""
        head = self._heads.get(text)
        if head is not None:
            if head.valid_until is None or not head.is_expired:
                return head
            self._remembered.remove_head(text)
        if self._shared.connection.bound_plans is None and not self._take_plans():
            return None
        return self._checker.check(text)

    def answer(
        self, head: Head, body: bytes, headers: Headers, client: Client = None, presented: bool = False
    ) -> bytes | PendingResponse | None:
        """Return the HTTP response to a request, with `headers` in it, or a pending one; None, without any
        effect, if the request takes the regular path. The diagram of this module shows the steps.

        `client` is the client's address, for the log; `presented` is whether handlers can read the token
        (`access_token`). Context variables that a tool sets are reset after its call, as on the regular path,
        where each request has a separate task.
        """
        if head.access_token is not None and not presented:
            with Presented(head.access_token):
                return HotPath.answer(self, head, body, headers, client, True)
        if self._app.ending:
            return None
        session = None
        shared = self._shared
        if head.session:
            session = self._app.sessions.find(head.session, head.principal)
            if session is None or session.arrival is not None:
                return None
            shared = self._shared_in(session)
        if shared.busy:
            return None
        connection = shared.connection
        if connection.bound_plans is not head.caller_plans:
            current = self._bind_to_principal(shared, head)
            if current is None:
                return None
            head = current
        bypass = head.bypass if session is None else session.bypass
        if bypass.left:
            bypass.left -= 1
            return self._answer_unshared(head, session, body, headers, client)
        shared.busy = True
        shared.declined = False
        try:
            if session is None:
                taken = copy_context().run(receive_named, connection, body, head.method, head.name)
            else:
                # One id must not be in flight twice.
                connection.in_flight = session.dispatcher.requests.in_flight
                taken = copy_context().run(receive_in_session, connection, body)
        except FAILURES as error:
            return self._internal_error(error, body, headers, shared)
        finally:
            shared.busy = False
        if not taken:
            return None
        if shared.declined:
            return self._answer_declined(shared, head, session, body, headers, client)
        if session is not None:
            self._note_use(session, shared)
        answer: bytes = connection.output.take()
        if shared.id is not None:
            id, shared.id = shared.id, None
            status = stateless_status(answer, id) if session is None else 200
            return self.response(status, answer, headers, head.path, client) if answer else None
        remembered = self._remembered
        if headers is not remembered.headers:
            remembered.take_headers(headers, OK + _lines_of(headers) + b"content-length: ")
        return b"%b%d%b%b" % (remembered.response_start, len(answer) - 1, JSON, answer[:-1])

    def _note_use(self, session: HttpSession, shared: SharedConnection) -> None:
        """A shared connection has answered a request of a session."""
        session.used = monotonic()

    def _answer_declined(
        self,
        shared: SharedConnection,
        head: Head,
        session: HttpSession | None,
        body: bytes,
        headers: Headers,
        client: Client,
    ) -> bytes | PendingResponse | None:
        """Answer a request that the shared connection has read and left without any effect."""
        if shared.is_forked_child:
            forks.leave()
        runtime = shared.dispatcher.runtime
        if head.method == LIST and runtime.has_upstreams:
            return None
        (head if session is None else session).bypass.start()
        if runtime.filters.classifies_calls:  # the principal may have another class now
            self._remembered.forget_caller(head)
        return self._answer_unshared(head, session, body, headers, client)

    def _answer_unshared(
        self, head: Head, session: HttpSession | None, body: bytes, headers: Headers, client: Client
    ) -> bytes | PendingResponse | None:
        """Answer a request on a connection, of its session if it has one, that serves no other meanwhile."""
        exchange = self._app.exchanges.take(head.principal) if session is None else session.exchange()
        try:
            answer = copy_context().run(exchange.receive_expected, body, head.method, head.name)
        except FAILURES as error:
            exchange.close()
            return self._internal_error(error, body, headers)
        if answer is None:
            return self.make_pending(self._app, exchange, session, head.path, self._loop)
        status = 200
        if session is not None:
            session.put_back(exchange)
        else:
            if len(answer) > SHORT or ERROR in answer:
                status = stateless_status(answer, exchange.connection.message.id or b"null")
            self._app.exchanges.put_back(exchange)
        return self.response(status, answer, headers, head.path, client) if answer else None

    def _shared_in(self, session: HttpSession) -> SharedConnection:
        """Return the connection that sessions of this session's version share."""
        version = session.dispatcher.session.version
        shared = self._shared_in_sessions.get(version)
        if shared is None:
            shared = self._shared_in_sessions[version] = SharedConnection(self._app, self._loop, version)
            shared.take_plans()
        return shared

    def _bind_to_principal(self, shared: SharedConnection, head: Head) -> Head | None:
        """Bind a connection to the principal of a head, and return the head: checked anew, if the tools have
        changed since it was. None: its request takes the regular path now."""
        if shared.connection.bound_plans is None:
            again = self.head(head.text) if self._take_plans() else None
            if again is None or again.principal != head.principal:
                return None
            head = again
        plans_for = shared.dispatcher.runtime.plans.tools_of
        shared.bind_to_principal(head.caller_plans or self._remembered.caller_plans(head, plans_for))
        return head

    def _take_plans(self) -> bool:
        """Forget what depends on the tools, which have changed. Return False if plans cannot be made."""
        self._remembered.forget()
        try:
            for shared in (*self._shared_in_sessions.values(), self._shared):
                shared.take_plans()
        except FAILURES as error:
            diagnostics.write("error", "the plans of the tools cannot be made", error)
            return False
        return True

    def let_go(self) -> None:
        """Stop answering, in a child process that the running tool may have forked."""
        for shared in (self._shared, *self._shared_in_sessions.values()):
            shared.let_go()

    def response(self, status: int, answer: bytes, headers: Headers, path: str, client: Client) -> bytes:
        """Return an HTTP response, and log a refusal as the regular path does."""
        body = answer.rstrip(b"\n")
        if status != 200:
            if status >= 400:
                refusals.note(status, body, method="POST", path=path, client=client)
            return response(status, body, headers)
        if body.endswith(DATA_END) and (more := retry_after(body)):
            return response(status, body, [*headers, *more])
        remembered = self._remembered
        if headers is not remembered.headers:
            remembered.take_headers(headers, OK + _lines_of(headers) + b"content-length: ")
        return b"%b%d%b%b" % (remembered.response_start, len(body), JSON, body)

    def _internal_error(
        self, error: BaseException, body: bytes, headers: Headers, shared: SharedConnection | None = None
    ) -> bytes:
        """Respond as the regular path does where fastrpc itself has failed, perhaps after the call."""
        tracebacks.report("POST /mcp failed inside fastrpc", error)
        if shared is not None:
            shared.id = None
            shared.connection.output.take()
        message = Message()
        message.read(body)
        response_error = InternalError("Internal error; see the server's log")
        return response(500, error_line(response_error, message.id or b"null"), headers)


def response(status: int, body: bytes, headers: Headers, *, close: bool = False) -> bytes:
    """Return a complete HTTP response with a JSON body."""
    line = b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode())
    length = b"content-length: %d" % len(body)
    end = b"\r\nconnection: close" if close else b""
    return line + _lines_of(headers) + length + end + JSON + body


def _lines_of(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])
