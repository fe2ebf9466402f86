"""Decides what happens with each message that the connection did not answer by itself.

One dispatcher serves one connection: it keeps the session's state and the requests in flight, looks
methods up in one table, and is the one place where an error becomes an answer. What all connections
of a server share is in `Service`; how a tool runs, in `Call`. No I/O.
"""

from __future__ import annotations

from _thread import get_ident

from fastrpc import log
from fastrpc._core.encode import dumps
from fastrpc._core.message import Message
from fastrpc.calls import RUNNING, Call, complaint_of
from fastrpc.context import Context
from fastrpc.errors import (
    ArgumentError,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    ProtocolError,
)
from fastrpc.methods import METHODS, NOTIFICATIONS
from fastrpc.results import error_object
from fastrpc.session import BATCHES, CLIENT_KEY, MODERN, NEW, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fastrpc._core.connection import Connection
    from fastrpc._core.plan import Plan
    from fastrpc.service import Service


class Batch:
    """The answers that one JSON-RPC batch still owes; sent as one array when the last has come."""

    __slots__ = ("answers", "owed")

    def __init__(self) -> None:
        self.owed = 1  # the reading of the batch itself
        self.answers: list[bytes] = []


class Request:
    """One request: what the client asked, and whom to answer."""

    __slots__ = ("batch", "call", "dispatcher", "id", "key", "method", "params", "version")

    def __init__(self, dispatcher: Dispatcher, message: Message, batch: Batch | None) -> None:
        self.dispatcher = dispatcher
        self.id: bytes = message.id or b"null"
        self.key = key_of(self.id)
        self.method: str = message.method or ""
        self.params: dict[str, Any] = message.params or {}
        self.batch = batch
        self.version = ""
        self.call: Call | None = None

    @property
    def progress_token(self) -> str | int | None:
        """The token under which the client wants to hear of progress (MCP, utilities: progress)."""
        token = (self.params.get("_meta") or {}).get("progressToken")
        return token if type(token) in (str, int) else None

    def context(self) -> Context:
        """Return what a tool that serves this request is handed."""
        token = self.progress_token
        report = None if token is None else lambda report: self.dispatcher.report(self, token, report)
        if self.version == MODERN:
            client = (self.params.get("_meta") or {}).get(CLIENT_KEY)
        else:
            client = self.dispatcher.session.client_info
        return Context(id_value(self.id), self.version, client, report)


class Dispatcher:
    """Serves one connection. The connection calls what is public here; see each method."""

    def __init__(self, service: Service, connection: Connection) -> None:
        self.service = service
        self.connection = connection
        self.session = Session()
        self.in_flight: dict[bytes, Any] = connection.in_flight
        self.on_idle: Callable[[], object] | None = None
        """Called when the last call in flight has ended."""
        connection.dispatcher = self
        service.dispatchers.add(self)

    # --- what the connection calls ------------------------------------------------------------------

    def dispatch(self, message: Message) -> None:
        """Take a message that the connection did not answer. Never raises."""
        self._take(message, None)

    def line_too_long(self) -> None:
        self._answer_error(b"null", ParseError("Parse error: a line longer than the limit"), None)

    def call_ended(self, id: bytes, tool: Any, result: Any, modern: bool) -> None:
        """An inline call has returned something that is more than a plain text."""
        self._answer(id, self._encode(tool, result, self._version_of(modern)), None)

    def call_failed(self, id: bytes, tool: Any, error: BaseException, modern: bool) -> None:
        """An inline call has raised."""
        version = self._version_of(modern)
        self._answer(id, self.service.results.failure(complaint_of(tool, error), version), None)

    def quiet(self) -> bool:
        """The client has paused for the first time: get ready, and say whether the loop will be needed."""
        self.connection.take_plans(self.service.plans)
        return self.session.state != NEW and self.service.needs_loop()

    # --- messages -------------------------------------------------------------------------------------

    def _take(self, message: Message, batch: Batch | None) -> None:
        kind = message.kind
        if kind == "request":
            self._take_request(message, batch)
        elif kind == "notification":
            self._take_notification(message)
        elif kind == "batch":
            self._take_batch(message, batch)
        elif kind == "broken":
            self._answer_error(b"null", ParseError(f"Parse error: {message.error}"), batch)
        elif kind == "invalid":
            error: ProtocolError = InvalidRequest(f"Invalid request: {message.error}")
            if message.error_code == InvalidParams.code:
                error = InvalidParams(f"Invalid params: {message.error}")
            self._answer_error(message.id or b"null", error, batch)

    def _take_request(self, message: Message, batch: Batch | None) -> None:
        request = Request(self, message, batch)
        try:
            result = self._serve(request)
        except ProtocolError as error:
            self._answer_error(request.id, error, batch)
            return
        except Exception as error:
            log.write("error", f"{request.method} failed inside fastrpc", error)
            self._answer_error(request.id, InternalError("Internal error; see the server's log"), batch)
            return
        if result is not None:
            self._answer(request.id, result, batch)
        elif batch is not None:
            batch.owed += 1

    def _serve(self, request: Request) -> bytes | None:
        """Return a request's result, or None if it comes later."""
        if request.key in self.in_flight:
            raise InvalidRequest("id: a request with this id is in flight")
        request.version = self.session.version_of(request.method, request.params)
        method = METHODS.get(request.method)
        if method is None or request.version not in method.versions:
            raise MethodNotFound(f"Method not found: {request.method:.128}{nearest(request.method, METHODS)}")
        if request.method == "initialize" and request.batch is not None:
            raise InvalidRequest("initialize: not allowed in a batch")
        return method.serve(self, request)

    def _take_notification(self, message: Message) -> None:
        """Notifications are never answered, whatever is wrong with them (JSON-RPC 2.0, section 4.1)."""
        serve = NOTIFICATIONS.get(message.method or "")
        if serve is not None:
            serve(self, message.params or {})

    def _take_batch(self, message: Message, outer: Batch | None) -> None:
        """A batch is read element by element; its answers go out together (MCP 2025-03-26)."""
        if outer is not None or self.session.version not in BATCHES:
            error = InvalidRequest("Invalid request: batches are part of protocol version 2025-03-26 only")
            self._answer_error(b"null", error, outer)
            return
        batch = Batch()
        element = Message()
        for text in message.elements():
            element.read(text)
            self._take(element, batch)
        self._settle(batch)

    def _settle(self, batch: Batch) -> None:
        """One thing that a batch waited for has come."""
        batch.owed -= 1
        if batch.owed == 0 and batch.answers:
            self.connection.output.line(b"[" + b",".join(batch.answers) + b"]")
            self.connection.wrote()

    # --- answers --------------------------------------------------------------------------------------

    def _answer(self, id: bytes, result: bytes, batch: Batch | None) -> None:
        if batch is not None:
            batch.answers.append(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, result))
            return
        self.connection.output.answer(id, result)
        self.connection.wrote()

    def _answer_error(self, id: bytes, error: ProtocolError, batch: Batch | None) -> None:
        body = error_object(error.code, error.message, error.data)
        answer = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, body)
        if batch is not None:
            batch.answers.append(answer)
            return
        self.connection.output.line(answer)
        self.connection.wrote()

    def _encode(self, tool: Any, result: Any, version: str) -> bytes:
        """Return the JSON of a tool's result, or of its failure to be one."""
        results = self.service.results
        try:
            return results.of(tool, result, version)
        except Exception as error:
            return results.failure(complaint_of(tool, error), version)

    def _version_of(self, modern: bool) -> str:
        return MODERN if modern else self.session.version or ""

    # --- tools ------------------------------------------------------------------------------------------

    def call_tool(self, request: Request) -> bytes | None:
        """Serve a ``tools/call``: answer at once, or put it in flight and return None."""
        params = request.params
        name = params.get("name")
        if not isinstance(name, str):
            raise InvalidParams("name: expected a string" if "name" in params else "name: missing")
        arguments = params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise InvalidParams("arguments: expected an object")
        plan = self._plan(name)
        try:
            bound = plan.tool.signature.bind(arguments)
        except ArgumentError as error:
            return self.service.results.failure(str(error), request.version)
        call = Call(self, request, plan, bound)
        if plan.inline and not plan.tool.is_async:
            return self._call_inline(call)
        self.service.admit(call)
        self.in_flight[request.key] = request
        return None

    def _plan(self, name: str) -> Plan:
        plans = self.service.plans
        if self.connection.plans is not plans:
            self.connection.take_plans(plans)
        plan = plans.get(name)
        if plan is None:
            raise InvalidParams(f"Unknown tool: {name:.128}{nearest(name, plans)}")
        return plan

    def _call_inline(self, call: Call) -> bytes:
        tool, version = call.plan.tool, call.request.version
        try:
            result = call.run_inline()
        except BaseException as error:
            return self.service.results.failure(complaint_of(tool, error), version)
        return self._encode(tool, result, version)

    # --- what calls say -------------------------------------------------------------------------------

    def call_returned(self, call: Call, result: Any) -> None:
        request = call.request
        if type(result) is str and request.batch is None:
            try:
                self.connection.answer_text(request.id, result, request.version == MODERN)
            except UnicodeEncodeError:
                pass  # said by the long way
            else:
                self._forget(request)
                return
        self._answer_late(request, self._encode(call.plan.tool, result, request.version))

    def call_raised(self, call: Call, error: BaseException) -> None:
        complaint = complaint_of(call.plan.tool, error)
        self._answer_late(call.request, self.service.results.failure(complaint, call.request.version))

    def call_dropped(self, call: Call) -> None:
        """A cancelled request is not answered; a batch does not wait for it."""
        self._forget(call.request)

    def _answer_late(self, request: Request, result: bytes) -> None:
        self._answer(request.id, result, request.batch)
        self._forget(request)

    def _forget(self, request: Request) -> None:
        del self.in_flight[request.key]
        if request.batch is not None:
            self._settle(request.batch)
        if not self.in_flight and self.on_idle is not None:
            self.on_idle()

    def report(self, request: Request, token: str | int, report: dict[str, Any]) -> None:
        """Send a progress notification for a call that runs; from whatever thread."""
        call = request.call
        line = b'{"jsonrpc":"2.0","method":"notifications/progress","params":%b}' % dumps(
            {"progressToken": token, **report}
        )

        def send() -> None:
            if call is not None and call.state == RUNNING:
                self.connection.output.line(line)
                self.connection.wrote()

        if call is None or call.thread == get_ident() or call.loop is None:
            send()
        else:
            call.loop.call_soon_threadsafe(send)

    def cancel(self, key: bytes) -> None:
        """Stop the request with this key, if it is in flight (MCP, utilities: cancellation)."""
        request = self.in_flight.get(key)
        if request is not None and request.call is not None:
            request.call.cancel()

    def cancel_all(self) -> None:
        """Stop everything in flight; nothing of it is answered."""
        for key in list(self.in_flight):
            self.cancel(key)

    def close(self) -> None:
        """The connection is over: stop what is in flight and be forgotten."""
        self.cancel_all()
        self.service.dispatchers.discard(self)


def key_of(id: bytes) -> bytes:
    """Return the text by which an id is looked up: two spellings of one string are one id."""
    return dumps(id_value(id)) if b"\\" in id else id


def id_value(id: bytes) -> str | int:
    """Return an id as a Python value, from its JSON text."""
    if id[:1] != b'"':
        return int(id)
    if b"\\" not in id:
        return id[1:-1].decode()
    import json

    value: str = json.loads(id)
    return value


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at the names that resemble `name`, or nothing."""
    from difflib import get_close_matches

    matches = get_close_matches(name[:128], list(known), n=3)
    return f" (did you mean {', '.join(matches)}?)" if matches else ""
