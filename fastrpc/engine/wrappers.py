"""Coroutines around the calls of a server's tools, resources and prompts.

A `RequestWrapper` (`fastrpc.engine.ports`) says which requests it wraps. A wrapped call has a `WrappedCall`
in the slot `around` of its plan, within that server's guards and around its hooks; a mounted handler has one
for each server that wraps it, that of the served one outermost. Other requests are wrapped by
`fastrpc.engine.wrapped_requests`. The wrapper decides what the coroutines do.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns

from fastrpc._core.plan import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc.definitions.handler import Handler
    from fastrpc.engine.ports import RequestWrapper


class SyncInvoker:
    """Calls a synchronous function for a coroutine: on a worker thread, or inline if it is quick."""

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
