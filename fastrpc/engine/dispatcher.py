"""Decides what happens with each message that the connection did not answer by itself.

One dispatcher serves one connection: it reads the messages, finds the method of each request and begins calls
of handlers. Its parts are the requests in flight, the writer of responses, what is sent besides, and the
notifications of changes. What all connections of a server share is in `Runtime`; how a handler runs, in
`Call`. No I/O.
"""

from __future__ import annotations

from _thread import get_ident

from fastrpc import forks
from fastrpc._core.recorder import ticks
from fastrpc.engine.call import Call, own_fault
from fastrpc.engine.change_notifications import ChangeNotifications
from fastrpc.engine.connection_delegate import ConnectionDelegate
from fastrpc.engine.messages import id_value
from fastrpc.engine.outbound import Outbound
from fastrpc.engine.request import Request
from fastrpc.engine.requests_in_flight import RequestsInFlight
from fastrpc.engine.responses import ResponseWriter
from fastrpc.errors import (
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    Overloaded,
    ParseError,
    ProtocolError,
    excerpt,
    suggestion,
)
from fastrpc.protocol.lifecycle import READY, SessionState
from fastrpc.protocol.versions import STRUCTURED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any

    from fastrpc._core.connection import Connection
    from fastrpc._core.message import Message
    from fastrpc._core.plan import Plan
    from fastrpc.engine.batches import Batch
    from fastrpc.engine.ports import HeldTask, MethodProtocol
    from fastrpc.engine.runtime import Runtime


class Dispatcher:
    """Serves one connection.

    A session may have several connections (MCP: Streamable HTTP has one for each POST): the dispatchers of
    the others are given the `main` one, which alone is notified of changes, and share its session state and
    its requests in flight.
    """

    request_type = Request
    requests_type = RequestsInFlight
    responses_type = ResponseWriter
    makes_tasks = True
    """Whether calls may become tasks; not those that tasks make (`fastrpc.tasks.self_call`)."""
    call_task: HeldTask | None = None
    """The task whose call this connection makes."""

    def __init__(self, runtime: Runtime, connection: Connection, main: Dispatcher | None = None) -> None:
        self.runtime: Runtime = runtime
        self.connection = connection
        self._main = main
        connection.calls = runtime.calls
        connection.counted = runtime.counter is not None
        if main is None:
            self.session = SessionState()
            self.requests = self.requests_type(connection, None)
        else:
            self.session = main.session
            self.requests = self.requests_type(connection, main.requests)
            connection.principal = main.principal
        self.outbound = Outbound(connection)
        self.responses = self.responses_type(runtime, connection, self.requests)
        self.changes = ChangeNotifications(runtime, connection, self.session, self.outbound)
        connection.dispatcher = self
        connection.delegate = ConnectionDelegate(self)
        if main is None:
            runtime.dispatchers.add(self)

    @property
    def main(self) -> Dispatcher:
        """The session's main dispatcher: this one, if it has no other."""
        return self._main or self

    @property
    def principal(self) -> str:
        """The authenticated principal, as the transport names it. A handle of one is not another's."""
        return self.connection.principal

    @principal.setter
    def principal(self, principal: str) -> None:
        if principal != self.connection.principal and self.runtime.filters.enforces_filters:
            self.connection.take_plans({})
        self.connection.principal = principal

    # --- the connection -------------------------------------------------------------------------------

    def loop_runs(self, loop: AbstractEventLoop) -> None:
        """The connection is served by this loop from now on."""
        self.connection.loop = loop
        self.outbound.thread = get_ident()
        self.changes.watch()

    def adopt_version(self, version: str) -> None:
        """Serve requests of a version without a handshake, for clients of which nothing is known: each
        request may be another's.
        """
        self.session.lasting = False
        self.session.agree({"protocolVersion": version})
        self.session.ready()
        self.apply_session_state()

    def adopt_session(self, params: dict[str, Any]) -> None:
        """Continue a session that another process has begun with these params of `initialize`. Raises
        InvalidParams and Overloaded as `initialize` does."""
        version = self.session.agree(params)
        self.session.offered = self.runtime.description.capabilities(version)
        self.session.ready()
        self.apply_session_state()

    def apply_session_state(self) -> None:
        """Have the connection use what the session has agreed on, and the plans that there are now.

        Only a session's main dispatcher is notified of changes.
        """
        connection = self.connection
        connection.open = self.session.version is not None
        connection.structured = self.session.version in STRUCTURED
        connection.resources.clear()  # the cached plans are of one version
        connection.prompts.clear()
        self.take_plans()

    def take_plans(self) -> dict[str, Plan]:
        """Have the connection call the tools that exist for its principal, or for all that share it, and
        return their plans: the connection may lose them at any moment, to a thread that changes the tools."""
        plans = self.runtime.plans.tools_of(None if self.connection.shared else self.principal)
        if self.connection.plans is not plans:
            self.connection.take_plans(plans)
        return plans

    def close(self) -> None:
        """The connection is over: stop what is in flight, and take the dispatcher out of the runtime's."""
        self.requests.cancel_all()
        for key in list(self.changes.listening):
            self.changes.stop_listening(key)
        self.session.quota.close()
        self.runtime.dispatchers.discard(self)
        if self._main is None:
            if self.session.client_requests is not None:
                self.session.client_requests.close()
            self.changes.unwatch(self.session.subscriptions.values())
        if self.connection.loop is not None:
            self.runtime.monitors.end(self.connection.loop)

    # --- messages -------------------------------------------------------------------------------------

    def dispatch(self, message: Message, batch: Batch | None = None) -> None:
        """Take a message that the connection did not answer, or one of a batch. Never raises."""
        kind = message.kind
        if kind == "request":
            self._take_request(message, batch)
        elif kind == "notification":
            self._take_notification(message)
        elif kind == "response":  # to a request of the server; one to no request is ignored
            if self.session.client_requests is not None:
                self.session.client_requests.answered(message.value)
        elif kind == "batch":
            from fastrpc.engine.batches import take_batch

            take_batch(self, message, batch)
        elif kind == "broken":
            self._refuse_message(message, ParseError(f"Parse error: {message.error}"), batch)
        elif kind == "invalid":
            error: ProtocolError = InvalidRequest(f"Invalid request: {message.error}")
            if message.error_code == InvalidParams.code:
                error = InvalidParams(f"Invalid params: {message.error}")
            self._refuse_message(message, error, batch)

    def _refuse_message(self, message: Message, error: ProtocolError, batch: Batch | None) -> None:
        """Answer what is no message. If it is a response to a request of the server, that has failed."""
        self.responses.put_error(message.id or b"null", error, batch)
        if message.answered_id is not None and self.session.client_requests is not None:
            self.session.client_requests.refused(id_value(message.answered_id), str(error))

    def _take_request(self, message: Message, batch: Batch | None) -> None:
        request = self.request_type.of(self, message, batch)
        if self.runtime.recorder is not None:
            request.began = ticks()
        if batch is None or batch.admits(request.id, request.key):
            self.serve(request)

    def serve(self, request: Request, serve: Callable[[Request], bytes | None] | None = None) -> None:
        """Serve a request by its method, or by `serve`, and answer it unless it is answered later."""
        try:
            if self.runtime.counter is not None and serve is None:
                result = self.runtime.counter.serve(request, self._serve_method)
            else:
                result = self._serve_method(request) if serve is None else serve(request)
        except ProtocolError as error:
            self.responses.refuse(request, error)
        except BaseException as error:  # of what users write, too: a type's own reading of an argument
            forks.leave_if_forked(self.connection.generation, error)
            self.responses.refuse(request, own_fault(request.method, error))
        else:
            if result is not None:
                self.responses.answer(request, result)

    def _serve_method(self, request: Request) -> bytes | None:
        """Return a request's result, or None if it comes later."""
        if request.key in self.requests.in_flight or request.key in self.changes.listening:
            raise InvalidRequest("id: a request with this id is in flight")
        request.version = self.session.version_of(request.method, request.params)
        method = self.runtime.features.METHODS.get(request.method)
        if self.runtime.has_upstreams and method is not None and self.runtime.upstreams.defers(self, request):
            return None
        if (
            method is None
            or request.version not in method.versions
            or (method.needs and not getattr(self.runtime.description, method.needs))
        ):
            raise _no_method(self.runtime, request, method)
        if request.method == "initialize" and request.batch is not None:
            raise InvalidRequest("initialize: not allowed in a batch")
        if self.runtime.wrapper is None:
            return method.serve(self, request)
        from fastrpc.engine import wrapped_requests

        return wrapped_requests.serve(self, request, method)

    def resume(self, request: Request) -> None:
        """Serve a request that was put off."""
        del self.requests.in_flight[request.key]
        request.call = None
        ready = self.session.state == READY
        self.serve(request)
        if ready and request.method == "initialize":  # which has agreed once more
            self.session.ready()
        self.requests.ended(request)

    def _take_notification(self, message: Message) -> None:
        """Notifications are never answered, whatever is wrong with them (JSON-RPC 2.0, section 4.1)."""
        serve = self.runtime.features.NOTIFICATIONS.get(message.method or "")
        if serve is not None:
            serve(self, message.params or {})
        elif self.runtime.has_upstreams and self.connection.loop is not None:
            self.runtime.upstreams.take_notification(message.method or "", message.params or {})
        if self.runtime.wrapper is not None:
            from fastrpc.engine import wrapped_requests

            wrapped_requests.notify(self, message.method or "", message.params or {})

    # --- calls ----------------------------------------------------------------------------------------

    def begin(
        self, request: Request, plan: Plan, arguments: list[Any] | dict[str, Any], is_allowed: bool = False
    ) -> bytes | None:
        """Call a handler: answer at once, or put the request in flight and return None.

        `arguments` are bound, or a dict that does not fit, for the hooks. `is_allowed`: by its guard.
        """
        call = Call(request, plan, arguments)
        if self.runtime.recorder is not None:
            request.bound = request.allowed = ticks()
        if plan.guard is not None:
            from fastrpc.engine.guards import ask

            try:
                decision = None if is_allowed else ask(plan.guard, call.info)
                if decision is not None:
                    call.defer(decision)
                    return None
            except Overloaded:
                raise
            except BaseException as error:
                return self._refusal(call, error)
            call.allowed()
        if plan.inline and not plan.is_async and self.runtime.pending_lifespan(plan.tool) is None:
            return self._call_inline(call)
        self.requests.put(request)
        try:
            self.runtime.admission.admit(call)  # a coroutine that does not wait has ended after this
        except Overloaded:
            self.requests.take_back(request)
            raise
        return None

    def _refusal(self, call: Call, error: BaseException) -> bytes:
        """The guard has refused a call, or failed. Return its result, or raise the ProtocolError."""
        call.left()
        call.request.outcome = "refused"
        return self.responses.failure(call.request, call.plan, error)

    def _call_inline(self, call: Call) -> bytes:
        request, plan = call.request, call.plan
        try:
            result = call.run_inline()
            if self.runtime.recorder is not None:
                request.returned = ticks()
            encoded: bytes = plan.encoder.encode(request, plan.tool, result)
            return encoded
        except BaseException as error:
            forks.leave_if_forked(self.connection.generation, error)
            return self.responses.failure(request, plan, error)


def _no_method(runtime: Runtime, request: Request, method: MethodProtocol | None) -> MethodNotFound:
    """Return the error for a method that this server, this version or MCP does not have."""
    version = request.version
    if method is None:
        served = [
            name
            for name, each in runtime.features.METHODS.items()
            if version in each.versions and (not each.needs or getattr(runtime.description, each.needs))
        ]
        why = suggestion(request.method, served)
    elif version not in method.versions:
        why = f" (protocol version {version} has no {request.method})"
    else:
        why = f" (this server has no {method.needs.removeprefix('has_').replace('_', ' ')})"
    return MethodNotFound(f"Method not found: {excerpt(request.method)}{why}")
