"""How a call that the dispatcher begins runs: inline, as a coroutine, or on a worker thread.

Most calls are served by the compiled connection alone. This is for calls of batches, on threads, in a queue,
and of those whose guard decides later. How a call ends (time limit, cancellation, once for its client) is
`InFlightCall` (`fastrpc._core.context`). Starting a coroutine or a thread needs the event loop, for which the
first such call may have to wait. Request ids are left to the dispatcher.
"""

from __future__ import annotations

from _contextvars import copy_context
from time import perf_counter_ns

from fastrpc import forks
from fastrpc._core.call_info import CallInfo
from fastrpc._core.context import InFlightCall
from fastrpc._core.recorder import ticks
from fastrpc.content import ToolResult
from fastrpc.engine.messages import ENDED, RUNNING, WAITING
from fastrpc.errors import ArgumentError, FastrpcError, InternalError, Overloaded, ToolError
from fastrpc.json_encoding import UnencodableResult, to_json
from fastrpc.tool_style import PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc._core.plan import Plan
    from fastrpc._core.task import CallTask
    from fastrpc.context import Context
    from fastrpc.engine.request import Request
    from fastrpc.tool_style import ToolStyle

SLOW_NANOSECONDS = 1_000_000_000
"""What is recorded as the duration of a call that must not run inline."""


class InputRequired(BaseException):
    """The handler cannot continue before its client has answered (MCP 2026-07-28: InputRequiredResult).

    Raised through the handler's code, which runs again from its start with the answers; a BaseException, so
    that ``except Exception`` does not catch it. `input_requests` are the input requests by key.
    """

    def __init__(self, input_requests: dict[str, dict[str, Any]]) -> None:
        super().__init__(f"waiting for {', '.join(input_requests)}")
        self.input_requests = input_requests


class BecomesTask(BaseException):
    """A guard has not decided yet, and the client may wait for a task. The call ends, whose function has not
    begun, and its request is answered by a task, which makes the call again (`fastrpc.methods.tasks`)."""


def input_requests_of(error: BaseException) -> dict[str, dict[str, Any]] | None:
    """Return the input requests that an exception carries, those of a TaskGroup together; None: a failure."""
    if isinstance(error, InputRequired):
        return error.input_requests
    members = getattr(error, "exceptions", None)  # of a BaseExceptionGroup, which 3.10 does not have
    if isinstance(error, Exception) or not members:
        return None
    found: dict[str, dict[str, Any]] = {}
    for member in members:
        input_requests = input_requests_of(member)
        if input_requests is None:
            return None
        found.update(input_requests)
    return found


class Exited(Exception):
    """Raised in the place of the SystemExit or KeyboardInterrupt of a coroutine, which would end the event
    loop. `error` is the exception itself."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(error))
        self.error = error


async def contained(function: Callable[[], Any]) -> Any:
    """Await what a function returns, in a task. Raises Exited in the place of what would end the loop."""
    generation = forks.generation
    try:
        result = await function()
    except BaseException as error:
        if generation != forks.generation:
            forks.leave(error)
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            raise Exited(error) from None
        raise
    if generation != forks.generation:
        forks.leave()
    return result


class Call(InFlightCall):
    """One call of a handler that the dispatcher begins: of a tool, a resource, a prompt or a completion.

    It has two ends, usually at the same time: for the client it is over when it is answered or cancelled, for
    the server when its function has returned, which a thread may do later.
    """

    __slots__ = ("arguments", "dispatcher", "known_info", "variables")

    def __init__(
        self,
        request: Request,
        plan: Plan,
        arguments: list[Any] | dict[str, Any],
        context: Context | None = None,
    ) -> None:
        self.take(plan, context, request, WAITING)
        self.dispatcher = request.dispatcher
        self.arguments = arguments
        self.variables = copy_context()
        """The context variables of the request: the call may begin in another's turn, or on a thread."""
        self.known_info: CallInfo | None = None
        """What the guard has seen of the call."""
        if context is None and plan.needs_context:
            from fastrpc.engine.outbound_channel import context_of

            self.context = context_of(request)

    @property
    def info(self) -> CallInfo:
        """The call, as its guard and its hooks see it."""
        if self.known_info is None:
            principal, target = self.dispatcher.principal, self.request.called
            self.known_info = CallInfo(self.plan, target, principal, self.arguments, self.context)
            self.known_info.decided = self.dispatcher.connection.stated
        return self.known_info

    def invoke(self) -> Any:
        """Call the function, unless the call has ended; the result may be a coroutine."""
        return None if self.state == ENDED else self.call_function()

    def call_function(self) -> Any:
        plan = self.plan
        if plan.around is not None:
            return plan.around(self.info)
        handler = plan.tool
        return handler.signature.call(handler.function, self.arguments, self.context)

    # --- the beginning ------------------------------------------------------------------------------

    def run_inline(self) -> Any:
        """Call the function on this thread, now, and return what it returns."""
        self.state = RUNNING
        began = perf_counter_ns()
        try:
            return self.invoke()
        finally:
            self.left()
            self.plan.record_duration(perf_counter_ns() - began)

    def defer(self, decision: Awaitable[Any]) -> None:
        """Wait in flight for the decision of the guard. Raises Overloaded."""
        dispatcher = self.dispatcher
        try:
            dispatcher.runtime.admission.count_in()
        except Overloaded:
            _drop(decision)
            raise
        dispatcher.requests.put(self.request)
        dispatcher.connection.call_in_loop(lambda: self.await_decision(decision))

    def await_decision(self, decision: Awaitable[Any]) -> None:
        """Have the guard decide, on the event loop's thread, and begin then; the call is in flight."""
        if self.state == ENDED:  # cancelled meanwhile
            self.dispatcher.runtime.calls.count -= 1
            _drop(decision)
        else:
            self._begin_task(decision, self._decided)

    def _begin_task(self, awaitable: Awaitable[Any], done: Callable[[CallTask], None]) -> CallTask:
        """Run the first step of an awaitable now: it becomes a task of the loop if it waits."""
        import asyncio

        from fastrpc._core.task import task_of

        self.task = task = task_of(awaitable, asyncio.get_running_loop(), done)
        task.begin()
        return task

    def _decided(self, task: CallTask) -> None:
        """The guard has allowed the call, or refused it."""
        from fastrpc.engine.guards import check_decision

        runtime = self.dispatcher.runtime
        self.task = None
        error = task.call_error()
        if error is None:
            try:
                check_decision(task.value)
                if self.info.bound_values() is not None:
                    self.arguments = self.info.current_values()  # which a person may have changed
            except BaseException as refusal:
                error = refusal
        if self.state == ENDED or error is not None:
            runtime.calls.count -= 1
            if error is not None:
                self.request.outcome = self.request.outcome or "refused"
                self.end(None, error)
            return
        self.allowed()
        runtime.admission.place(CallWithResultMeta(self) if hasattr(self.request, "result_meta") else self)

    def allowed(self) -> None:
        """The guard has allowed the call: note for its record when that was, and what it states of it."""
        if self.dispatcher.runtime.recorder is not None:
            self.request.allowed = ticks()
            self.request.take_decided(self.info.decided)

    def start(self) -> None:
        """Begin, on the event loop's thread, unless the call has ended meanwhile."""
        import asyncio

        runtime, plan = self.dispatcher.runtime, self.plan
        if self.state == ENDED:
            runtime.admission.release(self)
            return
        self.state = RUNNING
        loop = asyncio.get_running_loop()
        self.limit(loop, 0)
        if plan.is_async:
            self.variables.run(self.step)
        elif plan.inline:  # it has waited for a lifespan
            self.variables.run(self.run_late)
        else:
            runtime.thread_pool.run(loop, lambda: self.variables.run(self.invoke), self.thread_done)

    def step(self) -> None:
        """Call the coroutine function, and run its first step."""
        try:
            coroutine = self.call_function()
        except BaseException as error:
            self.function_ended(None, error)
            return
        self._begin_task(coroutine, self.task_done)
        forks.leave_if_forked(self.dispatcher.connection.generation)  # no loop goes on in a child that waits

    def run_late(self) -> None:
        """Call the function on this thread, now, though the request has been put in flight."""
        began = perf_counter_ns()
        try:
            result, error = self.invoke(), None
        except BaseException as failure:
            result, error = None, failure
        self.thread_done(result, error, perf_counter_ns() - began)

    # --- the ends -------------------------------------------------------------------------------------

    def task_done(self, task: CallTask) -> None:
        error = task.call_error()
        self.function_ended(task.value if error is None else None, error)

    def thread_done(self, result: Any, error: BaseException | None, nanoseconds: int) -> None:
        if type(result) is not str and error is None and hasattr(type(result), "__await__"):
            self.plan.record_duration(SLOW_NANOSECONDS)  # inline, nothing could await it
            self.await_result(result)
            return
        self.plan.record_duration(nanoseconds)
        self.function_ended(result, error)

    def await_result(self, result: Awaitable[Any]) -> None:
        """Await what a synchronous function has returned: the call goes on until that has ended."""
        task = self._begin_task(result, self.task_done)
        if self.state == ENDED and not task.done():  # cancelled, or out of time, meanwhile
            task.cancel()

    def function_ended(self, result: Any, error: BaseException | None) -> None:
        """The function has returned or raised: free its place, and answer unless that has been done."""
        dispatcher = self.dispatcher
        forks.leave_if_forked(dispatcher.connection.generation, error)
        dispatcher.runtime.admission.release(self)
        self.end(result, error)

    def end(self, result: Any, error: BaseException | None) -> None:
        """Have the dispatcher answer. What that raises concerns this call alone."""
        self.send_rest()
        if not self.leave():
            return
        responses = self.dispatcher.responses
        before = responses.connection.output.total
        try:
            if error is None:
                self.answer(result)
            else:
                responses.call_raised(self, error)
        except Exception as failure:
            from fastrpc.engine import failed_lines

            failed_lines.end(responses, self.request, before, failure)

    def answer(self, result: Any) -> None:
        """Have the dispatcher answer with a result."""
        self.dispatcher.responses.call_returned(self, result)

    def drop(self) -> None:
        """Have the dispatcher record the cancelled call."""
        if self.leave():
            self.dispatcher.responses.call_dropped(self)


class CallWithResultMeta(Call):
    """Takes the place of a call that has not begun and whose guard adds members for its caller to the
    ``_meta`` of its result, which is encoded once more. Errors are sent without them."""

    __slots__ = ()

    def __init__(self, call: Call) -> None:
        super().__init__(call.request, call.plan, call.arguments, call.context)
        self.variables = call.variables

    def answer(self, result: Any) -> None:
        from json import loads

        request = self.request
        request.returned = ticks()
        try:
            members = loads(self.plan.encoder.encode(request, self.plan.tool, result))
            members["_meta"] = {**members.get("_meta", {}), **request.result_meta}
            encoded = to_json(members)
        except BaseException as error:
            self.dispatcher.responses.call_raised(self, error)
        else:
            self.dispatcher.responses.call_encoded(self, encoded)


def call_deferred(plan: Plan, info: CallInfo, decision: Awaitable[Any], began: int) -> None:
    """Begin a call of the connection, which came at the tick `began`; its guard decides later."""
    from fastrpc.engine.guards import check_awaitable

    channel: Any = info.context._channel
    call = Call(channel.request, plan, info.bound_values() or [], info.context)
    call.known_info = info
    call.request.began = began
    try:
        check_awaitable(decision)
        call.defer(decision)
    except Overloaded as error:
        call.dispatcher.responses.refuse(call.request, error)
    except BaseException as error:
        call.dispatcher.requests.put(call.request)
        call.request.outcome = "refused"
        call.end(None, error)


def _drop(decision: Any) -> None:
    """Close the coroutine of a guard's decision that is not awaited: the call has been refused or cancelled.
    A future stays as it is: other calls may wait for it."""
    if hasattr(decision, "send"):
        decision.close()


def outcome_of(error: BaseException) -> str:
    """Return the outcome in the record of a call that has failed with an error."""
    if isinstance(error, FastrpcError):
        return error.outcome
    return "tool_error" if input_requests_of(error) is None else "input_required"


def outcome_of_value(value: Any) -> str:
    """Return the outcome in the record of a tool's call that has returned a value."""
    return "tool_error" if isinstance(value, ToolResult) and value.is_error else "ok"


def complaint_of(handler: Any, error: BaseException) -> str:
    """Return the message for the client of a failure; log the traceback unless it is a refusal."""
    style: ToolStyle = getattr(handler, "style", PLAIN)
    if isinstance(error, (ArgumentError, ToolError, UnencodableResult)):
        return (style.refusal_prefix(handler.name) or "") + str(error)
    from fastrpc import tracebacks
    from fastrpc.redaction import masked

    tracebacks.report(handler, error)
    return style.failure_text(handler.name, error, masked(str(error)))


def own_fault(method: str, error: BaseException) -> InternalError:
    """Return the error for a failure inside fastrpc, and log the traceback."""
    from fastrpc import tracebacks

    tracebacks.report(f"{method} failed inside fastrpc", error)
    return InternalError("Internal error; see the server's log")
