"""Hooks: functions that see the calls of tools, may change or refuse them, and handle errors.

``@app.before`` gets each call before it runs, a `CallInfo`: it may change its arguments, which are bound
again then, or refuse by raising. ``@app.after`` gets the result too, and may return another.
``@app.on_error`` gets the exception, and may return a result instead, or another error. If the arguments are
invalid, the hooks get them as the client sent them. `around` makes the value of the plan's slot of that name:
a tool that no hook matches pays nothing. Whether a call is allowed is decided by `Server.guard`, before any
hook runs.
"""

from __future__ import annotations

from fastrpc.definitions.handler import is_async, name_of
from fastrpc.engine.wrappers import SyncInvoker, WrappedCall, enter
from fastrpc.errors import FAILURES, DefinitionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from fastrpc._core.call_info import CallInfo, HookChain
    from fastrpc.definitions.handler import Handler
    from fastrpc.definitions.tool import Tool
    from fastrpc.engine.shared_state import SharedState

    Around: TypeAlias = "HookChain | AsyncHooks | WrappedCall"

PARAMETERS = {"before": "(call)", "after": "(call, result)", "on_error": "(call, error)"}
_VARIADIC = 0x04


class Hook:
    """A function, when it is called (``before``, ``after``, ``on_error``), and for which tools.

    `tools` is a pattern of names as the shell has them: ``*``, ``db_*``, ``[ab]*``. Raises
    DefinitionError.
    """

    __slots__ = ("function", "is_async", "tools", "when")

    def __init__(self, when: str, function: Callable[..., Any], tools: str = "*") -> None:
        if not callable(function):
            raise DefinitionError(f"{when}: {function!r:.60} is not callable; decorate a function")
        if not isinstance(tools, str):
            raise DefinitionError(
                f"{when}: {name_of(function)}: tools={tools!r:.60} is not a pattern of names"
            )
        if not _takes(function, PARAMETERS[when].count(",") + 1):
            raise DefinitionError(f"{when}: {name_of(function)} is called with {PARAMETERS[when]}")
        self.when = when
        self.function = function
        self.tools = tools
        self.is_async = is_async(function)

    def matches(self, name: str) -> bool:
        if self.tools == "*":
            return True
        from fastrpc.globs import matches

        return matches(name, self.tools)


def _takes(function: Any, count: int) -> bool:
    """Whether a function accepts `count` positional arguments; True if its signature is not known."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        return True
    own = 1 if hasattr(function, "__self__") else 0
    most = code.co_argcount - own
    least = most - len(function.__defaults__ or ())
    return least <= count and (count <= most or bool(code.co_flags & _VARIADIC))


def around(handler: Handler, state: SharedState, method: str) -> Around | None:
    """Return what calls a handler within the wrapper of the server and, if it is a tool, its hooks; None if
    there is nothing around it. `method` is the one that calls it.

    A mounted handler has what is around it on its own server within that, by the names it has there.
    """
    found: Around | None = None
    for name, each in reversed(state.mount_path_of(handler)):
        hooks = each.hooks if method == "tools/call" else ()
        matching = [hook for hook in hooks if hook.matches(name)]
        if matching:
            tool: Any = handler
            found = _chain_of(tool, name, matching, found)
        if each.wrapper is not None and each.wrapper.wraps_calls(method):
            found = WrappedCall(handler, name, each.wrapper, found)
    return found


def _chain_of(tool: Tool, name: str, hooks: list[Hook], inner: Around | None) -> HookChain | AsyncHooks:
    if tool.is_async or any(hook.is_async for hook in hooks) or (inner is not None and inner.is_async):
        return AsyncHooks(tool, name, hooks, inner)
    from fastrpc._core.call_info import HookChain

    before, after, on_error = (
        tuple(hook.function for hook in hooks if hook.when == when) for when in PARAMETERS
    )
    return HookChain(name, before, after, on_error, inner)


class AsyncHooks:
    """Calls a tool's function between its hooks where one of them, or the tool, is a coroutine function.

    `inner` are the hooks of the server that the tool was mounted from; None: there are none.
    """

    __slots__ = ("_invoker", "after", "before", "inner", "name", "on_error", "tool")

    is_async = True

    def __init__(self, tool: Tool, name: str, hooks: list[Hook], inner: Any) -> None:
        self.tool = tool
        self.name = name
        self.inner = inner
        self._invoker = SyncInvoker(tool)
        self.before, self.after, self.on_error = (
            [hook for hook in hooks if hook.when == when] for when in PARAMETERS
        )

    async def __call__(self, call: CallInfo) -> Any:
        try:
            for hook in self.before:
                await _answer(hook, call)
            result = await enter(self.tool, self.inner, self._invoker, call)
            for hook in self.after:
                call.name = self.name
                changed = await _answer(hook, call, result)
                if changed is not None:
                    result = changed
            return result
        except FAILURES as error:
            return await self._mend(call, error)

    async def _mend(self, call: CallInfo, error: BaseException) -> Any:
        """Call the hooks for errors, until one returns a result. Raises the remaining error."""
        call.name = self.name
        for hook in self.on_error:
            try:
                answer = await _answer(hook, call, error)
            except FAILURES as other:
                error = other
                continue
            if isinstance(answer, BaseException):
                error = answer
            elif answer is not None:
                return answer
        raise error


async def _answer(hook: Hook, *values: Any) -> Any:
    answer = hook.function(*values)
    return await answer if hook.is_async else answer


def __getattr__(name: str) -> Any:
    if name == "ToolCall":
        from warnings import warn

        from fastrpc._core.call_info import CallInfo

        warn("fastrpc.engine.interceptors.ToolCall is fastrpc.CallInfo now", DeprecationWarning, stacklevel=2)
        return CallInfo
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
