"""Decides what happens with each message that the connection did not answer by itself.

One dispatcher serves one connection: it keeps the session's state and the requests in flight, looks
methods up in one table, and is the one place where an error becomes an answer. What all connections
of a server share is in `Runtime`; how a tool runs, in `Call`. No I/O.
"""

from __future__ import annotations

from fastrpc import forks
from fastrpc._core.encoder import TEXT_FORM
from fastrpc._core.recorder import ticks
from fastrpc.engine.call import Call, input_requests_of, outcome_of, own_fault
from fastrpc.engine.known_answers import remember_unknown
from fastrpc.engine.messages import CALLED_BY, RECORDED, id_value, key_of
from fastrpc.engine.outbound import OutboundMessages, tell
from fastrpc.engine.request import Request
from fastrpc.engine.results import error_object
from fastrpc.errors import (
    FastrpcError,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    Overloaded,
    ParseError,
    ProtocolError,
    UnknownName,
    excerpt,
    suggestion,
)
from fastrpc.protocol.lifecycle import READY, SessionState
from fastrpc.protocol.versions import STATELESS, STRUCTURED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc._core.connection import Connection
    from fastrpc._core.message import Message
    from fastrpc._core.plan import Plan
    from fastrpc.context import Context
    from fastrpc.engine.batches import Batch
    from fastrpc.engine.ports import MethodProtocol, PendingRequests
    from fastrpc.engine.runtime import Runtime


class Dispatcher(OutboundMessages):
    """Serves one connection. The connection calls what is public here; see each method.

    A session may have several connections (MCP: Streamable HTTP has one for each POST): the dispatchers of
    the others are given the `main` one, which hears of what belongs to no request, and share what it knows.
    """

    request_type = Request
    makes_tasks = True
    """Whether calls may become tasks; not those that tasks make (`fastrpc.tasks.self_call`)."""

    def __init__(self, runtime: Runtime, connection: Connection, main: Dispatcher | None = None) -> None:
        super().__init__(runtime, connection)
        self.runtime: Runtime = runtime
        self._main = main
        self.session: SessionState = SessionState() if main is None else main.session
        if main is not None:
            connection.in_flight = main.in_flight
            connection.principal = main.principal
        connection.calls = runtime.calls
        connection.counted = runtime.counter is not None
        self.in_flight: dict[bytes, Any] = connection.in_flight
        self.outcome: str | None = None  # of the last request, unless ok; for who sets it to None before each
        self.on_idle: Callable[[], object] | None = None
        """Called when nothing is being worked on any more: see `busy`."""
        self.on_dropped: Callable[[], object] | None = None
        """Called when a call has been cancelled, which is not answered."""
        self.on_paused: Callable[[], object] | None = None
        """Called when a call wants its client to come back later for the rest (MCP 2025-11-25: polling)."""
        self.on_batch_read: Callable[[], object] | None = None
        """Called when a batch has been read that took more than one turn."""
        self.batches: set[Batch] = set() if main is None else main.batches
        """The session's batches that are still being read."""
        self.listening: dict[bytes, Any] = connection.listening
        """Requests whose answer is a stream of changes (MCP 2026-07-28: subscriptions/listen), by key."""
        self.changed_lists: dict[str, None] = {}
        """Names of lists that have changed, of which the client has not been notified yet."""
        self._pending: PendingRequests | None = None
        connection.dispatcher = self
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

    # --- what the connection calls ------------------------------------------------------------------

    def line_too_long(self) -> None:
        self.answer_error(b"null", ParseError("Parse error: a line longer than the limit"), None)

    def line_failed(self, line: bytes, before: int, error: BaseException, batch: Batch | None = None) -> None:
        """Handling a message has raised, which nothing is meant to: see `failed_lines.answer`."""
        from fastrpc.engine import failed_lines

        failed_lines.answer(self, line, before, error, batch)

    def call_ended(self, id: bytes, plan: Plan, result: Any, stateless: bool) -> str:
        """A call has returned something that is more than a plain value; return its outcome."""
        request = self._request_of_plan(id, plan, stateless)
        try:
            encoded = self._encoded(request, plan, result)
        except BaseException as error:
            return self._answer_failure(id, request, plan, error)
        self.outcome = outcome = request.outcome or "ok"
        self._answer(id, encoded, None)
        return outcome

    def binding_failed(self, error: BaseException) -> ProtocolError:
        """The conversion of an argument by its type has failed; return the error for the client."""
        self.leave_if_forked(error)
        return own_fault("tools/call", error)

    def call_failed(
        self, id: bytes, plan: Plan, error: BaseException, stateless: bool, context: Context | None = None
    ) -> str:
        """An inline call has raised; a `context` is given if it was used. Return the call's outcome."""
        self.leave_if_forked(error)
        request = self._request_of_plan(id, plan, stateless) if context is None else _request_of(context)
        return self._answer_failure(id, request, plan, error)

    def _answer_failure(self, id: bytes, request: Request, plan: Plan, error: BaseException) -> str:
        """Answer a call of the connection's with the result, or the error, that tells of a failure."""
        try:
            result = self._failure(request, plan, error)
        except ProtocolError as problem:
            self.outcome = request.outcome
            self.answer_error(id, problem, None)
            return request.outcome
        except BaseException as problem:  # str(error) has raised
            self.outcome = InternalError.outcome
            self.answer_error(id, own_fault(request.method, problem), None)
            return InternalError.outcome
        self.outcome = request.outcome
        self._answer(id, result, None)
        return request.outcome

    def _request_of_plan(self, id: bytes, plan: Plan, stateless: bool) -> Request:
        """Return a request for a call that the connection has made by itself, as encoders need it."""
        member = "uri" if plan.kind == "resource" else "name"
        request = Request(self, id, CALLED_BY[plan.kind], {member: plan.target}, None)
        request.version = self._version_of(stateless)
        return request

    key_of = staticmethod(key_of)
    """Returns the key of an id with escapes, among the requests in flight."""

    @staticmethod
    def load_coroutines() -> None:
        """Import what the connection begins coroutines with: the first one is about to be called."""
        import fastrpc._core.pending  # noqa: F401

    def call_deferred(
        self, id: bytes, plan: Plan, info: CallInfo, decision: Awaitable[Any], stateless: bool, began: int
    ) -> None:
        """The guard decides later about a call that the connection would have made."""
        from fastrpc.engine.guards import check_awaitable

        call = Call(_request_of(info.context), plan, info.bound_values() or [], info.context)
        call.known_info = info
        call.request.began = began
        try:
            check_awaitable(decision)
            self._defer(call, decision)
        except Overloaded as error:
            self._refuse(call.request, error)
        except BaseException as error:
            self._put_in_flight(call.request)
            call.request.outcome = "refused"
            call.end(None, error)

    def call_bound(
        self, message: Message, plan: Plan, arguments: Any, stateless: bool, began: int, **options: bool
    ) -> None:
        """Make a call that came at the tick `began` and may not begin on the connection: on a thread, for
        instance. Its arguments are bound. `options` are those of `begin`."""
        request = self.request_type.of(self, message, None)
        request.version = self._version_of(stateless)
        request.began = began
        self._handle(request, lambda request: self.begin(request, plan, arguments, **options))

    def open_call(self, context: Context, line: bytes) -> None:
        """Fill in the context of a call that the connection makes, which has been asked for more."""
        from fastrpc._core.message import Message
        from fastrpc.engine.outbound_channel import fill

        message = Message()
        message.read(line)
        request = self.request_type.of(self, message, None)
        request.version = self.session.version_of(request.method, request.params)
        call = context._call_for(request)
        fill(context, request)
        if context.ended:
            call.leave()

    def on_client_idle(self) -> bool:
        """The client has paused: get ready, and say whether the loop will be needed."""
        self.take_plans()
        self.runtime.get_ready()
        if any(plan.needs_context for plan in self.runtime.plans.tools.values()):
            from fastrpc.engine import outbound_channel  # noqa: F401  # which the first such call would import
        return self.runtime.needs_loop()

    def adopt_version(self, version: str) -> None:
        """Serve requests of a version without a handshake, for clients of which nothing is known: each
        request may be another's.
        """
        self.session.lasting = False
        self.session.agree({"protocolVersion": version})
        self.session.ready()
        self.apply_session_state()

    def apply_session_state(self) -> None:
        """Take over what the session has agreed on and what there is to call.

        Only a session's main dispatcher hears of changes.
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

    def has_current_plans(self) -> bool:
        """Whether the connection calls what exists for its principal now, who may have another class."""
        return self.runtime.plans.are_tools_of(self.connection.principal, self.connection.plans)

    # --- messages -------------------------------------------------------------------------------------

    def dispatch(self, message: Message, batch: Batch | None = None) -> None:
        """Take a message that the connection did not answer, or one of a batch. Never raises."""
        kind = message.kind
        if kind == "request":
            self._take_request(message, batch)
        elif kind == "notification":
            self._take_notification(message)
        elif kind == "response":
            self._take_response(message)
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
        """Answer what is no message. If it was to answer a question of ours, that has failed."""
        self.answer_error(message.id or b"null", error, batch)
        if message.answered_id is not None and self.main._pending is not None:
            self.main._pending.refused(id_value(message.answered_id), str(error))

    def _take_request(self, message: Message, batch: Batch | None) -> None:
        request = self.request_type.of(self, message, batch)
        if self.runtime.recorder is not None:
            request.began = ticks()
        if batch is None or self._is_wanted(request, batch):
            self._handle(request)

    def _handle(self, request: Request, serve: Callable[[Request], bytes | None] | None = None) -> None:
        """Serve a request, and answer it unless it is answered later."""
        try:
            if self.runtime.counter is not None and serve is None:
                result = self.runtime.counter.serve(request, self._serve)
            else:
                result = self._serve(request) if serve is None else serve(request)
        except ProtocolError as error:
            self._refuse(request, error)
        except BaseException as error:  # of what users write, too: a type's own reading of an argument
            self.leave_if_forked(error)
            self._refuse(request, own_fault(request.method, error))
        else:
            if result is not None:
                self.answer(request, result)

    def _serve(self, request: Request) -> bytes | None:
        """Return a request's result, or None if it comes later."""
        if request.key in self.in_flight or request.key in self.listening:
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
            raise self._no_method(request, method)
        if request.method == "initialize" and request.batch is not None:
            raise InvalidRequest("initialize: not allowed in a batch")
        if self.runtime.wrapper is None:
            return method.serve(self, request)
        from fastrpc.engine import wrapped_requests

        return wrapped_requests.serve(self, request, method)

    def _no_method(self, request: Request, method: MethodProtocol | None) -> MethodNotFound:
        """Say why there is no such method: for this server, this version, or at all."""
        version, runtime = request.version, self.runtime
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
            why = f" (this server has no {method.needs.removeprefix('has_')})"
        return MethodNotFound(f"Method not found: {excerpt(request.method)}{why}")

    def _take_notification(self, message: Message) -> None:
        """Notifications are never answered, whatever is wrong with them (JSON-RPC 2.0, section 4.1)."""
        serve = self.runtime.features.NOTIFICATIONS.get(message.method or "")
        if serve is not None:
            serve(self, message.params or {})
        elif self.runtime.has_upstreams and self.loop is not None:
            self.runtime.upstreams.take_notification(message.method or "", message.params or {})
        if self.runtime.wrapper is not None:
            from fastrpc.engine import wrapped_requests

            wrapped_requests.notify(self, message.method or "", message.params or {})

    def _take_response(self, message: Message) -> None:
        """The client has answered a question of ours; an answer to nothing is dropped."""
        if self.main._pending is not None:
            self.main._pending.answered(message.value)

    def _is_wanted(self, request: Request, batch: Batch) -> bool:
        """Whether a request of a batch is to be served: not if it was cancelled, or the batch stopped."""
        if batch.refusal is not None:
            self.answer_error(request.id, batch.refusal, batch)
            return False
        return not batch.is_cancelled(request.key)

    def batch_read(self, batch: Batch, late: bool) -> None:
        """A batch has been read to its end, `late` if that took more than one turn."""
        self.batches.discard(batch)
        self._settle(batch)
        if late and self.on_batch_read is not None:
            tell(self.on_batch_read)
        self._look_whether_idle()

    def _settle(self, batch: Batch) -> None:
        """One thing that a batch waited for has come."""
        batch.owed -= 1
        if batch.owed == 0 and batch.answers:
            self.connection.output.line(b"[" + b",".join(batch.answers) + b"]")
            self.connection.wrote()

    # --- answers --------------------------------------------------------------------------------------

    def answer(self, request: Request, result: bytes) -> None:
        """Answer a request with its result, as JSON text."""
        before = self._written(request.batch)
        if request.outcome and request.outcome != "ok":
            self.outcome = request.outcome
        self._answer(request.id, result, request.batch)
        self._record(request, before)

    def _refuse(self, request: Request, error: ProtocolError) -> None:
        """Answer a request with an error."""
        before = self._written(request.batch)
        self.outcome = request.outcome = request.outcome or error.outcome
        self.answer_error(request.id, error, request.batch)
        self._record(request, before)

    def _record(self, request: Request, before: int) -> None:
        """Record a call that is over for its client; so many bytes had been written before its answer."""
        recorder = self.runtime.recorder
        if recorder is not None and request.method in RECORDED:
            returned = request.returned or (ticks() if request.allowed else 0)
            size = self._written(request.batch) - before
            recorder.write(*request.record(self.principal, returned, size))

    def _written(self, batch: Batch | None) -> int:
        """Return how many bytes of answers have been written so far, those that a batch holds among them."""
        if batch is None or self.runtime.recorder is None:
            return self.connection.output.total
        return sum(map(len, batch.answers))

    def _answer(self, id: bytes, result: bytes, batch: Batch | None) -> None:
        if batch is not None:
            batch.answers.append(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, result))
            return
        self.connection.output.answer(id, result)
        self.connection.wrote()

    def answer_error(self, id: bytes, error: ProtocolError, batch: Batch | None) -> None:
        body = error_object(error.code, error.message, error.data)
        if batch is not None:
            batch.answers.append(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, body))
            return
        self.connection.output.error(id, body)
        self.connection.wrote()

    def _version_of(self, stateless: bool) -> str:
        return STATELESS if stateless else self.session.version or ""

    def plan_of_tool(self, name: str) -> Plan:
        """Return the plan of a tool. Raises InvalidParams for an unknown one."""
        plan = self.take_plans().get(name)
        if plan is None:
            hint = self.runtime.filters.hint_for(self.principal, self.runtime.registries.tools, name)
            error = UnknownName(f"Unknown tool: {excerpt(name)}{hint}")
            remember_unknown(self, name, error)
            raise error
        return plan

    # --- handlers -----------------------------------------------------------------------------------------

    def begin(
        self, request: Request, plan: Plan, arguments: list[Any] | dict[str, Any], *, is_allowed: bool = False
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
                    self._defer(call, decision)
                    return None
            except Overloaded:
                raise
            except BaseException as error:
                return self._refusal(call, error)
            call.allowed()
        if plan.inline and not plan.is_async and self.runtime.pending_lifespan(plan.tool) is None:
            return self._call_inline(call)
        self._put_in_flight(request)
        try:
            self.runtime.admission.admit(call)  # a coroutine that does not wait has ended after this
        except Overloaded:
            self._take_from_flight(request)
            raise
        return None

    def _refusal(self, call: Call, error: BaseException) -> bytes:
        """The guard has refused a call, or failed. Return its result, or raise the ProtocolError."""
        call.left()
        call.request.outcome = "refused"
        return self._failure(call.request, call.plan, error)

    def _defer(self, call: Call, decision: Awaitable[Any]) -> None:
        """Have a call wait in flight for the decision of its guard. Raises Overloaded."""
        self.runtime.admission.count_in()
        self._put_in_flight(call.request)
        self.connection.call_in_loop(lambda: call.await_decision(decision))

    def _call_inline(self, call: Call) -> bytes:
        request, plan = call.request, call.plan
        try:
            result = call.run_inline()
            if self.runtime.recorder is not None:
                request.returned = ticks()
            return self._encoded(request, plan, result)
        except BaseException as error:
            self.leave_if_forked(error)
            return self._failure(request, plan, error)

    @staticmethod
    def _encoded(request: Request, plan: Plan, result: Any) -> bytes:
        """Return the result that a value makes. Raises UnencodableResult, and ProtocolError."""
        encoded: bytes = plan.encoder.encode(request, plan.tool, result)
        return encoded

    def _failure(self, request: Request, plan: Plan, error: BaseException) -> bytes:
        """Return the result that tells of an error. Raises ProtocolError where it is to be none."""
        if isinstance(error, FastrpcError):
            error = error.answering(plan.tool.kind, self.runtime.server_of(plan.tool))
        request.outcome = request.outcome or outcome_of(error)
        if isinstance(error, ProtocolError):
            raise error
        input_requests = input_requests_of(error)
        if input_requests is not None:
            return self.runtime.features.input_required(request, input_requests)
        result: bytes = plan.encoder.failure(request, plan.tool, error)
        return result

    def defer(self, request: Request, held: Any) -> None:
        """Put a request in flight that is to be served later; `held` has a ``cancel()``, as calls have."""
        request.call = held
        self._put_in_flight(request)

    def _put_in_flight(self, request: Request) -> None:
        """Note that a request is answered later, by its batch too."""
        self.in_flight[request.key] = request
        if request.batch is not None:
            request.batch.owed += 1

    def _take_from_flight(self, request: Request) -> None:
        """It is answered now after all."""
        del self.in_flight[request.key]
        if request.batch is not None:
            request.batch.owed -= 1

    def resume(self, request: Request) -> None:
        """Serve a request that was put off."""
        del self.in_flight[request.key]
        request.call = None
        ready = self.session.state == READY
        self._handle(request)
        if ready and request.method == "initialize":  # which has agreed once more
            self.session.ready()
        self._over(request)

    # --- what calls say -------------------------------------------------------------------------------

    def call_returned(self, call: Call, result: Any) -> None:
        request, plan = call.request, call.plan
        if self.runtime.recorder is not None:
            request.returned = ticks()
        if type(result) is str and request.batch is None and plan.encoder.is_text and plan.form == TEXT_FORM:
            try:
                before = self._written(None)
                self.connection.answer_text(request.id, result, request.version == STATELESS)
            except UnicodeEncodeError:
                pass  # said by the long way
            else:
                self._record(request, before)
                self.forget(request)
                return
        self.answer_encoded(call, result)

    def answer_encoded(self, call: Call, result: Any) -> None:
        """Answer a call in flight with what its encoder makes of a result."""
        try:
            encoded = self._encoded(call.request, call.plan, result)
        except BaseException as error:
            self.call_raised(call, error)
        else:
            self.call_encoded(call, encoded)

    def call_encoded(self, call: Call, result: bytes) -> None:
        self.answer(call.request, result)
        self.forget(call.request)

    def call_raised(self, call: Call, error: BaseException) -> None:
        request = call.request
        try:
            result = self._failure(request, call.plan, error)
        except BaseException as problem:
            response_error = problem if isinstance(problem, ProtocolError) else None
            self._refuse(request, response_error or own_fault(request.method, problem))
        else:
            self.answer(request, result)
        self.forget(request)

    def call_dropped(self, call: Call) -> None:
        """A cancelled request is not answered; a batch does not wait for it."""
        self.outcome = call.request.outcome = call.request.outcome or "cancelled"
        self._record(call.request, self._written(call.request.batch))
        self.forget(call.request)
        self.dropped()

    def pending_over(self) -> None:
        """A call that the connection itself had in flight has ended."""
        self._look_whether_idle()

    def dropped(self) -> None:
        """A call has been cancelled that will not be answered."""
        if self.on_dropped is not None:
            tell(self.on_dropped)

    def forget(self, request: Request) -> None:
        del self.in_flight[request.key]
        self._over(request)

    def _over(self, request: Request) -> None:
        """A request has left those in flight: who waited for it?"""
        if request.batch is not None:
            self._settle(request.batch)
        self._look_whether_idle()

    @property
    def busy(self) -> bool:
        """Whether a request of the session is being worked on, or a batch read."""
        return bool(self.in_flight or self.batches)

    def _look_whether_idle(self) -> None:
        if self.on_idle is not None and not self.busy:
            tell(self.on_idle)

    @property
    def pending(self) -> Any:
        """What the server has asked this client and not been answered yet (`Features.pending_requests`)."""
        main = self.main
        if main._pending is None:
            main._pending = self.runtime.features.pending_requests()
        return main._pending

    # --- ends -----------------------------------------------------------------------------------------

    def leave_if_forked(self, error: BaseException | None) -> None:
        """End this process if it is a child that was forked in the call that has ended, or raised `error`."""
        generation = self.connection.generation
        if generation is not None and generation != forks.generation:
            forks.leave(error)

    def cancel(self, key: bytes, said: dict[str, Any] | None = None) -> None:
        """Stop the request with this key, if it is in flight (MCP, utilities: cancellation). `said`: what the
        client says of it, its reason."""
        request = self.in_flight.get(key)
        if request is not None and request.call is not None:
            request.call.cancel(said)
        for batch in self.batches:
            batch.cancel(key)
        self.stop_listening(key)

    def interrupt(self, request: Any) -> None:
        """Stop a request in flight that its transport answers with an error."""
        request.outcome = ProtocolError.outcome
        if request.call is not None:
            request.call.cancel()

    def cancel_all(self) -> None:
        """Stop everything in flight; nothing of it is answered, nor what batches still hold."""
        while self.batches:
            self.batches.pop().abandon()
        for key in list(self.in_flight):
            self.cancel(key)

    def close(self) -> None:
        """The connection is over: stop what is in flight and be forgotten."""
        self.cancel_all()
        for key in list(self.listening):
            self.stop_listening(key)
        self.session.quota.close()
        if self._pending is not None:
            self._pending.close()
        self.runtime.dispatchers.discard(self)
        if self._main is None:
            self.unwatch(self.session.subscriptions)
        if self.loop is not None:
            self.runtime.monitors.end(self.loop)


def _request_of(context: Context) -> Any:
    """Return the request of a context that has been filled in."""
    channel: Any = context._channel
    return channel.request
