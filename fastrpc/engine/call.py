"""How a call of a handler runs: inline, as a coroutine, or on a worker thread; and how it ends.

Most calls are served by the compiled connection alone. A call ends exactly once: by its result, its failure,
its time limit or its cancellation, whichever comes first; what comes later is dropped. Starting a coroutine
or a thread needs the event loop, for which the first such call may have to wait. Request ids are left to the
dispatcher.
"""

from __future__ import annotations

from _contextvars import copy_context
from _thread import get_ident
from time import perf_counter_ns

from fastrpc import forks
from fastrpc._core.call_info import CallInfo
from fastrpc._core.recorder import ticks
from fastrpc.content import ToolResult
from fastrpc.engine.request import ENDED, RUNNING, WAITING
from fastrpc.errors import ArgumentError, CallTimeout, FastrpcError, InternalError, ToolError
from fastrpc.json_encoding import UnencodableResult, to_json
from fastrpc.tool_style import PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc._core.plan import Plan
    from fastrpc._core.task import CallTask
    from fastrpc.context import Context
    from fastrpc.engine.interfaces import DispatcherProtocol
    from fastrpc.engine.request import Request
    from fastrpc.tool_style import ToolStyle

SLOW_NANOSECONDS = 1_000_000_000
"""Stands for the duration of a call that must not run inline."""


class InputRequired(BaseException):
    """The handler cannot continue before its client has answered (MCP 2026-07-28: InputRequiredResult).

    Raised through the handler's code, which runs again from its start with the answers; a BaseException, so
    that ``except Exception`` does not catch it. `input_requests` are the input requests by key.
    """

    def __init__(self, input_requests: dict[str, dict[str, Any]]) -> None:
        super().__init__(f"waiting for {', '.join(input_requests)}")
        self.input_requests = input_requests


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
    """Stands for the SystemExit or KeyboardInterrupt of a coroutine, which its task would let out of the
    event loop. `error` is the exception itself."""

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


class Call:
    """One call of a handler: of a tool, a resource, a prompt or a completion.

    It has two ends, usually at the same time: for the client it is over when it is answered or cancelled, for
    the server when its function has returned, which a thread may do later.
    """

    __slots__ = (
        "arguments",
        "context",
        "dispatcher",
        "known_info",
        "loop",
        "plan",
        "request",
        "state",
        "task",
        "thread",
        "timer",
        "variables",
    )

    def __init__(
        self,
        dispatcher: DispatcherProtocol,
        request: Request,
        plan: Plan,
        arguments: list[Any] | dict[str, Any],
        context: Context | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self.request = request
        self.plan = plan
        self.arguments = arguments
        self.context = context
        self.state = WAITING
        self.loop: AbstractEventLoop | None = None
        self.thread = 0
        self.task: CallTask | None = None
        self.timer: TimerHandle | None = None
        self.variables = copy_context()
        """The context variables of the request: the call may begin in another's turn, or on a thread."""
        request.call = self
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
        return self.known_info

    def invoke(self) -> Any:
        """Call the function, unless the call has ended; the result may be a coroutine."""
        return None if self.state == ENDED else self.call_function()

    def invoke_with_variables(self) -> Any:
        """Do so on a thread, with the context variables of the request."""
        return self.variables.run(self.invoke)

    def call_function(self) -> Any:
        if self.plan.around is not None:
            return self.plan.around(self.info)
        handler = self.plan.tool
        return handler.signature.call(handler.function, self.arguments, self.context)

    # --- the beginning ------------------------------------------------------------------------------

    def run_inline(self) -> Any:
        """Call the function on this thread, now, and return what it returns."""
        self.thread = get_ident()
        self.state = RUNNING
        began = perf_counter_ns()
        try:
            return self.invoke()
        finally:
            self.left()
            self.plan.record_duration(perf_counter_ns() - began)

    def left(self) -> None:
        """The function has returned or raised, on the thread that answers now."""
        self.send_rest()
        self.state = ENDED
        self.request.call = self.request.channel = None  # as in end()

    def await_decision(self, decision: Awaitable[Any]) -> None:
        """Have the guard decide, on the event loop's thread, and begin then; the call is in flight."""
        import asyncio

        from fastrpc._core.task import task_of

        if self.state == ENDED:  # cancelled meanwhile
            self.dispatcher.runtime.calls.count -= 1
            return
        self.thread = get_ident()
        self.task = task_of(decision, asyncio.get_running_loop(), self._decided)
        self.task.begin()

    def _decided(self, task: CallTask) -> None:
        """The guard has allowed the call, or refused it."""
        from fastrpc.engine.guards import check_decision

        runtime = self.dispatcher.runtime
        self.task = None
        error: BaseException | None = None
        try:
            check_decision(task.result())
            if self.info.bound_values() is not None:
                self.arguments = self.info.current_values()  # which a person may have changed
        except BaseException as refusal:
            error = ToolError("the call was cancelled") if task.cancelled() else refusal
        if self.state == ENDED or error is not None:
            runtime.calls.count -= 1
            if error is not None:
                self.request.outcome = self.request.outcome or "refused"
                self.failed(error)
            return
        if runtime.recorder is not None:
            self.request.allowed = ticks()
            self.request.take_decided(self.info.decided)
        runtime.admission.place(CallWithResultMeta(self) if hasattr(self.request, "result_meta") else self)

    def start(self) -> None:
        """Begin, on the event loop's thread, unless the call has ended meanwhile."""
        import asyncio

        if self.state == ENDED:
            self.dispatcher.runtime.admission.release(self)
            return
        self.state = RUNNING
        self.thread = get_ident()
        handler = self.plan.tool
        loop = self.loop = asyncio.get_running_loop()
        if handler.timeout_seconds is not None:
            self.timer = loop.call_later(handler.timeout_seconds, self.expire)
        if self.plan.is_async:
            self.variables.run(self.step, loop)
        elif self.plan.inline:  # it has waited for a lifespan
            self.variables.run(self.run_late)
        else:
            self.dispatcher.runtime.thread_pool.run(loop, self.invoke_with_variables, self.thread_done)

    def step(self, loop: AbstractEventLoop) -> None:
        """Run the coroutine's first step now: it becomes a task of the loop if it waits."""
        from fastrpc._core.task import task_of

        try:
            coroutine = self.call_function()
        except BaseException as error:
            self.function_ended(None, error)
            return
        self.task = task_of(coroutine, loop, self.task_done)
        self.task.begin()
        forks.leave_if_forked(self.dispatcher.connection.generation)  # no loop goes on in a child that waits

    def go_on(self, task: CallTask, loop: AbstractEventLoop, seconds: float) -> None:
        """Take over a coroutine that was begun so many seconds ago and waits."""
        self.state = RUNNING
        self.thread = get_ident()
        self.loop = loop
        self.task = task
        task.on_done = self.task_done
        limit = self.plan.tool.timeout_seconds
        if limit is not None:
            self.timer = loop.call_later(max(limit - seconds, 0), self.expire)

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
        if task.cancelled():
            self.function_ended(None, ToolError("the call was cancelled"))
        elif (error := task.exception()) is not None:
            self.function_ended(None, error)
        else:
            self.function_ended(task.result(), None)

    def thread_done(self, result: Any, error: BaseException | None, nanoseconds: int) -> None:
        if type(result) is not str and error is None and hasattr(type(result), "__await__"):
            self.plan.record_duration(SLOW_NANOSECONDS)  # inline, nothing could await it
            self.await_result(result)
            return
        self.plan.record_duration(nanoseconds)
        self.function_ended(result, error)

    def await_result(self, result: Awaitable[Any]) -> None:
        """Await what a synchronous function has returned: the call goes on until that has ended."""
        import asyncio

        from fastrpc._core.task import task_of

        self.task = task_of(result, asyncio.get_running_loop(), self.task_done)
        self.task.begin()
        if self.state == ENDED and not self.task.done():  # cancelled, or out of time, meanwhile
            self.task.cancel()

    def function_ended(self, result: Any, error: BaseException | None) -> None:
        """The function has returned or raised: free its place, and answer unless that has been done."""
        forks.leave_if_forked(self.dispatcher.connection.generation, error)
        self.dispatcher.runtime.admission.release(self)
        if error is not None:
            self.failed(error)
        else:
            self.returned(result)

    def returned(self, result: Any) -> None:
        self.send_rest()
        if self.end():
            self.answer(self.dispatcher.responses.call_returned, result)

    def failed(self, error: BaseException) -> None:
        self.send_rest()
        if self.end():
            self.answer(self.dispatcher.responses.call_raised, error)

    def answer(self, how: Callable[[Call, Any], object], value: Any) -> None:
        """Have the dispatcher answer. What that raises concerns this call alone."""
        before = self.dispatcher.connection.output.total
        try:
            how(self, value)
        except Exception as error:
            from fastrpc.engine import failed_lines

            failed_lines.end(self.dispatcher.responses, self.request, before, error)

    def send_rest(self) -> None:
        """Send what other threads have posted, and a progress report that is held back, before the answer:
        the last one must arrive."""
        if self.dispatcher.outbound.posted:
            self.dispatcher.outbound.run_posted()
        if self.request.channel is not None and self.state == RUNNING:
            self.request.channel.flush()

    def expire(self) -> None:
        """The time limit has passed: answer now, and stop the work as far as it can be stopped."""
        seconds = self.plan.tool.timeout_seconds
        self.failed(CallTimeout(f"{self.plan.name} did not end within {seconds:g} s and was stopped"))
        self.stop()

    def cancel(self, said: dict[str, Any] | None = None) -> None:
        """The client has cancelled, or is gone: stop the work and answer nothing."""
        self.request.cancellation = said
        if self.end():
            self.dispatcher.responses.call_dropped(self)
        self.stop()

    def stop(self) -> None:
        if self.context is not None:
            self.context.cancelled = True
        if self.task is not None and not self.task.done():
            self.task.cancel()

    def end(self) -> bool:
        """Mark the end for the client; False if the call has ended before."""
        if self.state == ENDED:
            return False
        if self.state == WAITING:
            self.dispatcher.runtime.admission.withdraw(self)
        self.state = ENDED
        # Else a reference cycle would keep call and arguments until a garbage collection.
        self.request.call = self.request.channel = None
        if self.timer is not None:
            self.timer.cancel()
        return True


class CallWithResultMeta(Call):
    """Takes the place of a call that has not begun and whose guard adds members for its caller to the
    ``_meta`` of its result, which is encoded once more. Errors are sent without them."""

    __slots__ = ()

    def __init__(self, call: Call) -> None:
        super().__init__(call.dispatcher, call.request, call.plan, call.arguments, call.context)
        self.variables = call.variables

    def returned(self, result: Any) -> None:
        self.send_rest()
        if not self.end():
            return
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
