"""Hooks: functions that see the calls of tools, may change them, refuse them, and mend what fails.

``@app.before`` gets each call before it runs: it may change its arguments, or refuse by raising.
``@app.after`` gets the result too, and may return another. ``@app.on_error`` gets what was raised, and may
return a result instead, or another error. `hooked` makes the tool that a call plan is compiled from: a tool
that no hook matches is left as it is and pays nothing. Who may call a tool is not judged here.
"""

from __future__ import annotations

from copy import copy

from fastrpc.catalogue.handlers import is_async, name_of
from fastrpc.errors import FAILURES, DefinitionError
from fastrpc.schema import Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fastrpc.context import Context
    from fastrpc.registry import Tool

PARAMETERS = {"before": "(call)", "after": "(call, result)", "on_error": "(call, error)"}
_VARIADIC = 0x04


class ToolCall:
    """One call of a tool, as hooks see it.

    `tool` is its name, `arguments` what the client sent, by name, before it is checked; `context` the
    call's `Context`.
    """

    __slots__ = ("arguments", "context", "tool")

    def __init__(self, tool: str, arguments: dict[str, Any], context: Context) -> None:
        self.tool = tool
        self.arguments = arguments
        self.context = context

    def __repr__(self) -> str:
        return f"ToolCall({self.tool!r}, {self.arguments!r})"


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
            raise DefinitionError(f"{when}: {name_of(function)}: tools={tools!r:.60} is no pattern of names")
        if not _takes(function, PARAMETERS[when].count(",") + 1):
            raise DefinitionError(f"{when}: {name_of(function)} is called with {PARAMETERS[when]}")
        self.when = when
        self.function = function
        self.tools = tools
        self.is_async = is_async(function)

    def matches(self, name: str) -> bool:
        if self.tools == "*":
            return True
        from fnmatch import fnmatchcase

        return fnmatchcase(name, self.tools)


def _takes(function: Any, count: int) -> bool:
    """Whether a function can be called with so many values; yes where that is hard to tell."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        return True
    own = 1 if hasattr(function, "__self__") else 0
    most = code.co_argcount - own
    least = most - len(function.__defaults__ or ())
    return least <= count and (count <= most or bool(code.co_flags & _VARIADIC))


def hooked(tool: Tool, hooks: Sequence[Hook]) -> Tool:
    """Return a tool with those hooks around it that match its name; itself if there are none.

    A mounted tool has the hooks of its own server around it first, by the names it has there.
    """
    names = [tool.name, *(name for _, name in tool.origin)]
    layers = [hooks, *(server.service.hooks for server, _ in tool.origin)]
    found = tool
    for name, layer in zip(reversed(names), reversed(layers), strict=True):
        matching = [hook for hook in layer if hook.matches(name)]
        if matching:
            found = _wrapped(found, name, matching)
    return found


def _wrapped(tool: Tool, name: str, hooks: list[Hook]) -> Tool:
    found = copy(tool)
    found._signature = _HookedSignature(tool, name, hooks)
    found.is_async = tool.is_async or any(hook.is_async for hook in hooks)
    return found


class _HookedSignature(Signature):
    """The signature of a tool with hooks around it. Arguments are bound behind the hooks that may change
    them: what `bind` returns is the client's object as it came."""

    __slots__ = ("after", "before", "name", "on_error", "run", "tool")

    def __init__(self, tool: Tool, name: str, hooks: list[Hook]) -> None:
        inner = tool.signature
        for slot in Signature.__slots__:
            setattr(self, slot, getattr(inner, slot))
        self.vectorizable = False
        self.context_parameter = "context"  # each call has one
        self.tool = tool
        self.name = name
        self.before, self.after, self.on_error = (
            [hook for hook in hooks if hook.when == when] for when in PARAMETERS
        )
        waits = tool.is_async or any(hook.is_async for hook in hooks)
        self.run = self._run_async if waits else self._run

    def bind(self, arguments: dict[str, Any]) -> list[Any]:
        return [arguments]

    def call(self, function: Callable[..., Any], values: list[Any], context: Any = None) -> Any:
        return self.run(ToolCall(self.name, values[0], context))

    def _enter(self, call: ToolCall) -> Any:
        """Bind the arguments as they are now, and call the tool."""
        signature = self.tool.signature
        return signature.call(self.tool.function, signature.bind(call.arguments), call.context)

    # --- everything synchronous -----------------------------------------------------------------------

    def _run(self, call: ToolCall) -> Any:
        try:
            for hook in self.before:
                hook.function(call)
            result = self._enter(call)
            for hook in self.after:
                changed = hook.function(call, result)
                result = result if changed is None else changed
            return result
        except FAILURES as error:
            return self._mend(call, error)

    def _mend(self, call: ToolCall, error: BaseException) -> Any:
        """Ask the hooks for errors, until one has a result. Raises the error that is left."""
        for hook in self.on_error:
            try:
                answer = hook.function(call, error)
            except FAILURES as other:
                error = other
                continue
            if isinstance(answer, BaseException):
                error = answer
            elif answer is not None:
                return answer
        raise error

    # --- something waits ------------------------------------------------------------------------------

    async def _run_async(self, call: ToolCall) -> Any:
        try:
            for hook in self.before:
                await _told(hook, call)
            if self.tool.is_async:
                result = await self._enter(call)
            elif self.tool.run == "inline":
                result = self._enter(call)
            else:
                result = await call.context._reach().in_thread(lambda: self._enter(call))
            for hook in self.after:
                changed = await _told(hook, call, result)
                result = result if changed is None else changed
            return result
        except FAILURES as error:
            return await self._mend_async(call, error)

    async def _mend_async(self, call: ToolCall, error: BaseException) -> Any:
        for hook in self.on_error:
            try:
                answer = await _told(hook, call, error)
            except FAILURES as other:
                error = other
                continue
            if isinstance(answer, BaseException):
                error = answer
            elif answer is not None:
                return answer
        raise error


async def _told(hook: Hook, *values: Any) -> Any:
    answer = hook.function(*values)
    return await answer if hook.is_async else answer
