"""Coroutines around the requests of a server: calls of tools, resources and prompts, lists, the handshake.

A `RequestWrapper` (`fastrpc.engine.ports`) says which requests it wraps. A wrapped call has a `WrappedCall`
in the slot `around` of its plan, within that server's guards and around its hooks; a mounted handler has one
for each server that wraps it, that of the served one outermost. Any other wrapped request, and a call whose
name or arguments are refused before there is a plan to follow, is served by `serve`, as a call without a
handler. A request that is not wrapped costs nothing more. The wrapper decides what the coroutines do.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns

from fastrpc import tracebacks
from fastrpc._core.plan import Plan
from fastrpc.context import Context
from fastrpc.definitions.handler import Handler
from fastrpc.engine.request import RECORDED
from fastrpc.errors import InternalError, InvalidParams, ProtocolError, ResourceNotFound, ToolError
from fastrpc.protocol.pagination import cursor_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc._core.task import CallTask
    from fastrpc.engine.interfaces import DispatcherProtocol
    from fastrpc.engine.ports import ListMethodProtocol, MethodProtocol, RequestWrapper
    from fastrpc.engine.request import Request


class SyncInvoker:
    """Calls a synchronous function for a coroutine: on a worker thread, or inline where it is known to be
    quick (`Plan.record_duration`)."""

    __slots__ = ("_plan",)

    def __init__(self, handler: Handler) -> None:
        self._plan = Plan(
            handler,
            handler.name,
            handler.function,
            None,
            inline=handler.run == "inline",
            adaptive=handler.run == "auto" and handler.timeout_seconds is None,
        )

    async def call(self, call: CallInfo, function: Callable[[], Any]) -> Any:
        if self._plan.inline:
            return self._timed(function)
        return await call.context._reach().in_thread(partial(self._timed, function))

    def _timed(self, function: Callable[[], Any]) -> Any:
        began = perf_counter_ns()
        try:
            return function()
        finally:
            self._plan.record_duration(perf_counter_ns() - began)


async def enter(handler: Handler, inner: Any, invoker: SyncInvoker, call: CallInfo) -> Any:
    """Call what is within a layer: the next one, which knows the call by its own name, or the function."""
    function: Callable[[], Any] = call.invoke
    if inner is not None:
        if call.kind != "resource":
            call.name = inner.name
        function = partial(inner, call)
    if handler.is_async or (inner is not None and inner.is_async):
        return await function()
    return await invoker.call(call, function)


class WrappedCall:
    """Calls a handler within a server's wrapper. `name` is the handler's in that server; `inner` is what that
    server, and those that it was mounted from, have around it besides; `outermost` is False where the
    server is mounted in one whose wrapper is called first."""

    __slots__ = ("_invoker", "_run", "handler", "inner", "name", "outermost")

    is_async = True

    def __init__(self, handler: Handler, name: str, wrapper: RequestWrapper, inner: Any) -> None:
        self.handler = handler
        self.name = name
        self.inner = inner
        self.outermost = True
        layer = inner
        while layer is not None:
            if isinstance(layer, WrappedCall):
                layer.outermost = False
            layer = layer.inner
        self._run = wrapper.call
        self._invoker = SyncInvoker(handler)

    def __call__(self, call: CallInfo) -> Any:
        return self._run(call, self)

    def proceed(self, call: CallInfo) -> Any:
        """Return an awaitable of what is within the wrapper."""
        return enter(self.handler, self.inner, self._invoker, call)


async def call_within(call: CallInfo, plan: Plan, name: str, bound: list[Any]) -> Any:
    """Call another handler in the place of the one of a running call, within its own guards and hooks but not
    within the wrapper that asks for it. Raises what the guard or the handler raises."""
    from fastrpc._core.call_info import CallInfo
    from fastrpc.engine.guards import allow

    info = CallInfo(plan, name, call.principal, bound, call.context)
    await allow(plan.guard, info)
    return await proceed_within(plan, info)


def proceed_within(plan: Plan, call: CallInfo) -> Any:
    """Return an awaitable of what is within the wrapper of the server that has made a plan; of all that is
    around the function, if that server has none."""
    layer: Any = plan.around
    while layer is not None and not isinstance(layer, WrappedCall):
        layer = layer.inner
    if layer is None:
        return enter(plan.tool, plan.around, SyncInvoker(plan.tool), call)
    return layer.proceed(call)


# --- requests without a plan of their own -----------------------------------------------------------------


class WrappedRequest(Handler):
    """What the call of such a request has as its handler."""

    __slots__ = ("description",)
    kind = "request"
    mime_type = ttl = cache_scope = None

    def __init__(self, method: str) -> None:
        super().__init__(_no_function, name=method)
        self.description: str | None = None


async def _no_function() -> None:
    """The function of such a handler: what is around it serves the request."""


def serve(dispatcher: DispatcherProtocol, request: Request, method: MethodProtocol) -> bytes | None:
    """Serve a request of a server that has a wrapper. Raises ProtocolError."""
    runtime = dispatcher.runtime
    wrapper = runtime.wrapper
    assert wrapper is not None
    if request.method in RECORDED:
        try:
            return method.serve(dispatcher, request)
        except (InvalidParams, ResourceNotFound) as error:
            if not request.target or not wrapper.wraps_calls(request.method):
                raise
            encoder = runtime.features.encoder_of(request.method)
            return _begin(dispatcher, request, partial(_refuse, error), encoder)
    if not wrapper.wraps_requests(request.method):
        return method.serve(dispatcher, request)
    if method.lists is None:
        return _begin(dispatcher, request, partial(_serve_plainly, dispatcher, request, method), PLAIN)
    return _begin(dispatcher, request, partial(method.lists.entries, request), ListEncoder(method.lists))


def _begin(
    dispatcher: DispatcherProtocol, request: Request, proceed: Callable[[], Any], encoder: Any
) -> bytes | None:
    """Begin a call that has the wrapper around what would serve the request."""
    wrapper = dispatcher.runtime.wrapper
    assert wrapper is not None

    def around(call: CallInfo) -> Any:
        return wrapper.request(request, call, proceed)

    plan = Plan(
        WrappedRequest(request.method),
        request.method,
        _no_function,
        None,
        inline=False,
        adaptive=False,
        is_async=True,
        context_kind=Context,
        kind="completion",  # of which no record is written
        target=request.method,
        encoder=encoder,
        around=around,
    )
    return dispatcher.begin(request, plan, [])


async def _refuse(error: ProtocolError) -> Any:
    raise error


async def _serve_plainly(
    dispatcher: DispatcherProtocol, request: Request, method: MethodProtocol
) -> bytes | None:
    return method.serve(dispatcher, request)


# --- notifications ----------------------------------------------------------------------------------------


def notify(dispatcher: DispatcherProtocol, method: str, params: dict[str, Any]) -> None:
    """Show the wrapper a notification, in the event loop; it has been handled, and nothing waits."""
    wrapper = dispatcher.runtime.wrapper
    if wrapper is not None and wrapper.wraps_notifications():
        dispatcher.connection.call_in_loop(partial(_show, wrapper, dispatcher, method, params))


def _show(
    wrapper: RequestWrapper, dispatcher: DispatcherProtocol, method: str, params: dict[str, Any]
) -> None:
    import asyncio

    from fastrpc._core.task import task_of

    def shown(task: CallTask) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            tracebacks.report(f"{method}: its wrapper failed", error)

    task_of(wrapper.notification(dispatcher, method, params), asyncio.get_running_loop(), shown).begin()


# --- encoders ---------------------------------------------------------------------------------------------


def _failure_of(handler: Handler, error: BaseException) -> InternalError:
    """Return the error for a failed request that has no result for failures."""
    if isinstance(error, ToolError):
        return InternalError(str(error))
    tracebacks.report(handler, error)
    return InternalError(f"{handler.name} failed; see the server's log")


class PlainEncoder:
    """Passes on the result that a method has made."""

    is_text = False

    @staticmethod
    def encode(request: Request, handler: Handler, value: bytes) -> bytes:
        return value

    @staticmethod
    def failure(request: Request, handler: Handler, error: BaseException) -> bytes:
        raise _failure_of(handler, error)


PLAIN = PlainEncoder()


class ListEncoder:
    """Makes a page of the entries that a wrapper has returned: objects with a `key`, and a `descriptor` for
    each version."""

    is_text = False

    def __init__(self, lists: ListMethodProtocol) -> None:
        self._lists = lists

    def encode(self, request: Request, handler: Handler, value: list[Any]) -> bytes:
        cursor = cursor_of(request.params)
        return request.dispatcher.runtime.pages.of_entries(self._lists.member, value, cursor, request.version)

    @staticmethod
    def failure(request: Request, handler: Handler, error: BaseException) -> bytes:
        raise _failure_of(handler, error)
