"""The fast path for common requests over HTTP: a stateless call or list, or a request in a session.

If the head is cached (`heads`), only the body remains: the compiled parser reads it and compares it with the
head, and the response is written before an ASGI scope exists: 1 to 2 µs a call besides the sockets.

Plain calls of all callers share a connection (`shared`), which answers at once: behind a guard, too, as long
as its gate allows a call by its caller, its tool, its rates and budgets alone. Other calls (a coroutine, a
function with a Context, one that runs on a thread, one that the guard has to look at, a list that depends on
its caller) get a connection of their own; if such a call waits, there is a `PendingResponse`.

Two rules: it serves fewer requests than the regular path, with the same bytes, and leaves a request that it
is not sure of to that path before it has had any effect. And nothing is executed twice: a request that the
fast path has begun is answered here, or taken over by the regular path in its current state.
"""

from __future__ import annotations

from contextvars import copy_context
from time import monotonic

from fastrpc import diagnostics, forks
from fastrpc._core import http_body
from fastrpc.errors import FAILURES, InternalError
from fastrpc.transports.http import refusals
from fastrpc.transports.http.access_token import Presented
from fastrpc.transports.http.heads import LIST, Heads
from fastrpc.transports.http.pending_response import PendingResponse
from fastrpc.transports.http.request import DATA_END, error_line, retry_after, stateless_status
from fastrpc.transports.http.shared import CallerPlans, SharedConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.heads import Head
    from fastrpc.transports.http.interfaces import Client
    from fastrpc.transports.http.sessions import HttpSession

    Headers = list[tuple[bytes, bytes]]

MAX_BYPASSES = 100
"""The number of requests with a head, or in a session, that do not use the shared connection after a call
that it could not serve: one at first, then twice as many each time, up to these."""

MOST_CALLERS = 4096

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
        self._callers: dict[str, CallerPlans] = {}  # by principal, until the tools change
        self._heads = Heads(app)
        self._known = self._heads.known
        self._headers: Headers = []
        self._begin = b""

    def head(self, text: bytes) -> Head | None:
        """Return the head for its bytes, without the final empty line; None if it takes the regular path."""
        head = self._known.get(text)
        if head is not None:
            if head.valid_until is None or not head.is_expired:
                return head
            del self._known[text]
        if self._shared.connection.bound_plans is None and not self._take_plans():
            return None
        return self._heads.add(text)

    def _take_plans(self) -> bool:
        """The tools have changed, of all callers or of one: clear the cache of heads. Return False if plans
        cannot be made."""
        self._heads.forget()
        self._callers.clear()
        try:
            for shared in (*self._shared_in_sessions.values(), self._shared):
                shared.take_plans()
        except FAILURES as error:
            diagnostics.write("error", "the plans of the tools cannot be made", error)
            return False
        return True

    def _bind_to_principal(self, shared: SharedConnection, head: Head) -> Head | None:
        """Lend a connection to the principal of a head, and return the head: checked anew, if the tools have
        changed since it was. None: its request takes the regular path now."""
        if shared.connection.bound_plans is None:
            again = self.head(head.text) if self._take_plans() else None
            if again is None or again.principal != head.principal:
                return None
            head = again
        shared.bind_to_principal(head.caller_plans or self._caller_plans(head))
        return head

    def _caller_plans(self, head: Head) -> CallerPlans:
        """Return what a connection is lent by to the principal of a head, for the first time."""
        found = self._callers.get(head.principal)
        if found is None:
            runtime = self._shared.dispatcher.runtime
            found = CallerPlans(head.principal, runtime.plans_for(head.principal))
            if not found.plans:  # a filter has failed, perhaps, and works again soon
                return found
            if len(self._callers) >= MOST_CALLERS:
                self._callers.clear()
            self._callers[head.principal] = found
        head.caller_plans = found
        return found

    def _drop_caller_plans(self, head: Head) -> None:
        """The shared connection has not served a call: its principal may have another class now."""
        if self._shared.dispatcher.runtime.classifies_calls:
            self._callers.pop(head.principal, None)
            head.caller_plans = None

    def let_go(self) -> None:
        """Stop answering, in a child process that the running tool may have forked."""
        for shared in (self._shared, *self._shared_in_sessions.values()):
            shared.let_go()

    # --- stateless requests -------------------------------------------------------------------------------

    def answer(
        self, head: Head, body: bytes, headers: Headers, client: Client = None
    ) -> bytes | PendingResponse | None:
        """Return the HTTP response to a request, with `headers` in it, or a pending one; None, without any
        effect, if the request takes the regular path. `client` is the client's address, for the log.

        Context variables that a tool sets are reset after its call, as on the regular path, where each
        request has a task of its own.
        """
        if head.access_token is None:
            return self._answer(head, body, headers, client)
        with Presented(head.access_token):
            return self._answer(head, body, headers, client)

    def _answer(
        self, head: Head, body: bytes, headers: Headers, client: Client
    ) -> bytes | PendingResponse | None:
        if self._app.stopping:
            return None
        if head.session:
            session = self._app.sessions.find(head.session, head.principal)
            return None if session is None else self._answer_in_session(head, session, body, headers)
        shared = self._shared
        if shared.busy:
            return None
        if shared.connection.bound_plans is not head.caller_plans:
            current = self._bind_to_principal(shared, head)
            if current is None:
                return None
            head = current
        if head.bypasses_left:
            head.bypasses_left -= 1
            return self._answer_unshared(head, body, headers, client)
        shared.busy = True
        shared.declined = False
        try:
            accepted = copy_context().run(
                http_body.receive_named, shared.connection, body, head.method, head.name
            )
        except FAILURES as error:
            return self._internal_error(error, body, headers, shared)
        finally:
            shared.busy = False
        if not accepted or shared.declined:
            if shared.is_forked_child:
                forks.leave()
            if not accepted or (head.method == LIST and shared.dispatcher.runtime.has_upstreams):
                return None
            head.bypasses_left = head.bypass_backoff = min(2 * head.bypass_backoff, MAX_BYPASSES) or 1
            self._drop_caller_plans(head)
            return self._answer_unshared(head, body, headers, client)
        answer: bytes = shared.connection.output.take()
        if shared.id is not None:
            id, shared.id = shared.id, None
            if not answer:
                return None
            return self.response(stateless_status(answer, id), answer, headers, head.path, client)
        if headers is not self._headers:  # uvicorn makes new ones each second, with another Date
            self._take_headers(headers)
        return b"%b%d%b%b" % (self._begin, len(answer) - 1, JSON, answer[:-1])

    def _answer_unshared(
        self, head: Head, body: bytes, headers: Headers, client: Client
    ) -> bytes | PendingResponse | None:
        """As `answer`, by a connection that serves only this request."""
        exchange = self._app.exchange(head.principal)
        try:
            answer = copy_context().run(exchange.receive_expected, body, head.method, head.name)
        except FAILURES as error:
            exchange.close()
            return self._internal_error(error, body, headers)
        if answer is None:
            return self.make_pending(self._app, exchange, None, head.path, self._loop)
        status = 200
        if len(answer) > SHORT or ERROR in answer:
            status = stateless_status(answer, exchange.connection.message.id or b"null")
        self._app.put_back(exchange)
        return self.response(status, answer, headers, head.path, client) if answer else None

    # --- requests in sessions -----------------------------------------------------------------------------

    def _answer_in_session(
        self, head: Head, session: HttpSession, body: bytes, headers: Headers
    ) -> bytes | PendingResponse | None:
        """As `answer`, in a session (up to 2025-11-25), where every response has status 200."""
        dispatcher = session.dispatcher
        shared = self._shared_in_sessions.get(dispatcher.session.version) or self._share(session)
        if not shared.busy and shared.connection.bound_plans is not head.caller_plans:
            current = self._bind_to_principal(shared, head)
            if current is None:
                return None
            head = current
        if session.bypasses_left or shared.busy:
            session.bypasses_left = max(0, session.bypasses_left - 1)
            return self._answer_unshared_in_session(head, session, body, headers)
        # Two requests in flight must not have one id.
        shared.connection.in_flight = dispatcher.requests.in_flight
        shared.busy = True
        shared.declined = False
        try:
            accepted = copy_context().run(http_body.receive_in_session, shared.connection, body)
        except FAILURES as error:
            return self._internal_error(error, body, headers, shared)
        finally:
            shared.busy = False
        if not accepted:
            return None
        if shared.declined:
            if shared.is_forked_child:
                forks.leave()
            session.bypasses_left = session.bypass_backoff = (
                min(2 * session.bypass_backoff, MAX_BYPASSES) or 1
            )
            self._drop_caller_plans(head)
            return self._answer_unshared_in_session(head, session, body, headers)
        shared.id = None
        session.used = monotonic()
        answer: bytes = shared.connection.output.take()
        if headers is not self._headers:
            self._take_headers(headers)
        return b"%b%d%b%b" % (self._begin, len(answer) - 1, JSON, answer[:-1])

    def _answer_unshared_in_session(
        self, head: Head, session: HttpSession, body: bytes, headers: Headers
    ) -> bytes | PendingResponse | None:
        """As `answer`, by a connection of the session that serves only this request."""
        exchange = session.exchange()
        try:
            answer = copy_context().run(exchange.receive_expected, body, b"", b"")
        except FAILURES as error:
            exchange.close()
            return self._internal_error(error, body, headers)
        if answer is None:
            return self.make_pending(self._app, exchange, session, head.path, self._loop)
        session.put_back(exchange)
        return self.response(200, answer, headers, head.path, None) if answer else None

    def _share(self, session: HttpSession) -> SharedConnection:
        """Create the connection that sessions of this protocol version share."""
        version = session.version
        shared = self._shared_in_sessions[version] = SharedConnection(self._app, self._loop, version)
        shared.take_plans()
        return shared

    # --- HTTP responses -----------------------------------------------------------------------------------

    def response(self, status: int, answer: bytes, headers: Headers, path: str, client: Client) -> bytes:
        """Return an HTTP response, and log a refusal as the regular path does."""
        body = answer.rstrip(b"\n")
        if status != 200:
            if status >= 400:
                refusals.note(status, body, method="POST", path=path, client=client)
            return response(status, body, headers)
        if body.endswith(DATA_END) and (more := retry_after(body)):
            return response(status, body, [*headers, *more])
        if headers is not self._headers:
            self._take_headers(headers)
        return b"%b%d%b%b" % (self._begin, len(body), JSON, body)

    def _take_headers(self, headers: Headers) -> None:
        self._headers = headers
        self._begin = OK + _lines_of(headers) + b"content-length: "

    def _internal_error(
        self, error: BaseException, body: bytes, headers: Headers, shared: SharedConnection | None = None
    ) -> bytes:
        """fastrpc itself has failed, perhaps after the call: respond as the regular path does, with the
        request's id."""
        from fastrpc import tracebacks
        from fastrpc._core.message import Message

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
    from http import HTTPStatus

    line = b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode())
    length = b"content-length: %d" % len(body)
    end = b"\r\nconnection: close" if close else b""
    return line + _lines_of(headers) + length + end + JSON + body


def _lines_of(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])
