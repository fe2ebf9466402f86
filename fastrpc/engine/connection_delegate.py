"""What the compiled connection leaves to Python of the calls that it begins by itself.

The connection binds, guards and calls by itself; it asks its delegate for results that are more than a plain
value, for failures, and for calls that wait, run on a thread or are decided about later.
"""

from __future__ import annotations

from fastrpc import forks
from fastrpc.engine.call import call_deferred, own_fault
from fastrpc.engine.messages import CALLED_BY, key_of
from fastrpc.engine.request import Request
from fastrpc.errors import InternalError, ProtocolError
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc._core.message import Message
    from fastrpc._core.plan import Plan
    from fastrpc.context import Context
    from fastrpc.engine.interfaces import DispatcherProtocol


class ConnectionDelegate:
    """Serves one connection. Methods get the id of the request, and whether it is one of the stateless wire.

    Only the connection refers to it, so that the dispatcher and its parts make no reference cycle.
    """

    __slots__ = ("dispatcher",)

    def __init__(self, dispatcher: DispatcherProtocol) -> None:
        self.dispatcher = dispatcher

    key_of = staticmethod(key_of)
    """Returns the key of an id with escapes, among the requests in flight."""

    # --- before calls -----------------------------------------------------------------------------------

    def on_client_idle(self) -> bool:
        """The client has paused: get ready, and say whether the loop will be needed."""
        self.dispatcher.take_plans()
        runtime = self.dispatcher.runtime
        runtime.get_ready()
        if any(plan.needs_context for plan in runtime.plans.tools.values()):
            from fastrpc.engine import outbound_channel  # noqa: F401  # which the first such call would import
        return runtime.needs_loop()

    def has_current_plans(self) -> bool:
        """Whether the connection calls what exists for its principal now, who may have another class."""
        connection = self.dispatcher.connection
        return self.dispatcher.runtime.plans.are_tools_of(connection.principal, connection.plans)

    @staticmethod
    def load_coroutines() -> None:
        """Import what the connection begins coroutines with: the first one is about to be called."""
        import fastrpc._core.pending  # noqa: F401

    # --- calls that go on -------------------------------------------------------------------------------

    call_deferred = staticmethod(call_deferred)
    """Begins a call about which the guard decides later."""

    def call_bound(
        self,
        message: Message,
        plan: Plan,
        arguments: Any,
        stateless: bool,
        began: int,
        is_allowed: bool = False,
    ) -> None:
        """Make a call that came at the tick `began` and may not begin on the connection: on a thread, for
        instance. Its arguments are bound; its guard may have allowed it already."""
        dispatcher = self.dispatcher
        request = dispatcher.request_type.of(dispatcher, message, None)
        request.version = self._version_of(stateless)
        request.began = began
        dispatcher.serve(request, lambda request: dispatcher.begin(request, plan, arguments, is_allowed))

    def open_call(self, context: Context, line: bytes) -> None:
        """Fill in the context of a call that the connection makes: the function has used it."""
        from fastrpc._core.message import Message
        from fastrpc.engine.outbound_channel import fill

        dispatcher = self.dispatcher
        message = Message()
        message.read(line)
        request = dispatcher.request_type.of(dispatcher, message, None)
        request.version = dispatcher.session.version_of(request.method, request.params)
        call = context._call_for(request)
        fill(context, request)
        if context.ended:
            call.leave()

    # --- ends of calls ----------------------------------------------------------------------------------

    def call_ended(self, id: bytes, plan: Plan, result: Any, stateless: bool) -> str:
        """Answer a call that has returned more than a plain value; return its outcome."""
        request = self._request_of_plan(id, plan, stateless)
        try:
            encoded = plan.encoder.encode(request, plan.tool, result)
        except BaseException as error:
            return self._answer_failure(id, request, plan, error)
        responses = self.dispatcher.responses
        responses.last_outcome = outcome = request.outcome or "ok"
        responses.put_result(id, encoded, None)
        return outcome

    def binding_failed(self, error: BaseException) -> ProtocolError:
        """The conversion of an argument by its type has failed; return the error for the client."""
        forks.leave_if_forked(self.dispatcher.connection.generation, error)
        return own_fault("tools/call", error)

    def call_failed(
        self, id: bytes, plan: Plan, error: BaseException, stateless: bool, context: Context | None = None
    ) -> str:
        """Answer an inline call that has raised; a `context` is given if it was used. Return the outcome."""
        forks.leave_if_forked(self.dispatcher.connection.generation, error)
        channel: Any = None if context is None else context._channel
        request = self._request_of_plan(id, plan, stateless) if channel is None else channel.request
        return self._answer_failure(id, request, plan, error)

    def _answer_failure(self, id: bytes, request: Request, plan: Plan, error: BaseException) -> str:
        """Answer with the result, or the error, that describes a failure; return the outcome."""
        responses = self.dispatcher.responses
        try:
            result = responses.failure(request, plan, error)
        except ProtocolError as problem:
            responses.last_outcome = request.outcome
            responses.put_error(id, problem)
            return request.outcome
        except BaseException as problem:  # str(error) has raised
            responses.last_outcome = InternalError.outcome
            responses.put_error(id, own_fault(request.method, problem))
            return InternalError.outcome
        responses.last_outcome = request.outcome
        responses.put_result(id, result, None)
        return request.outcome

    def _request_of_plan(self, id: bytes, plan: Plan, stateless: bool) -> Request:
        """Return a request for a call that the connection has made by itself, as encoders need it."""
        member = "uri" if plan.kind == "resource" else "name"
        request = Request(self.dispatcher, id, CALLED_BY[plan.kind], {member: plan.target}, None)
        request.version = self._version_of(stateless)
        return request

    def _version_of(self, stateless: bool) -> str:
        return STATELESS if stateless else self.dispatcher.session.version or ""
