"""Tools whose function runs elsewhere: in a process of the server (`run="process"`), or on an Executor.

Such a tool has a coroutine function that hands the call over, and the signature of the function itself. A
function for a process is never pickled: the process loads the function's module, and finds the tool by the
name of the function and its own (`declared`). The processes are left to `runner` (`fastrpc.tool_processes`).
"""

from __future__ import annotations

import sys

from fastrpc.definitions.handler import is_unbound_method
from fastrpc.errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from fastrpc.errors import DefinitionError
    from fastrpc.options import Place
    from fastrpc.schema import Signature

    class OffloadableTool(Protocol):
        """The part of `fastrpc.definitions.tool.Tool` that is read or set here."""

        name: str
        function: Callable[..., Any]
        run: Place
        is_async: bool
        max_memory: int | None

        @property
        def signature(self) -> Signature: ...
        def error(self, problem: str) -> DefinitionError: ...

    class Runner(Protocol):
        """Calls the functions of tools in processes of this server."""

        async def call(self, tool: Any, arguments: dict[str, Any], context: Any) -> Any:
            """Call a tool's function with arguments by name; return its result. Raises what it raises."""

        async def leave(self) -> None:
            """End the processes that wait for calls."""


LEAST_MEMORY = 64 * 1024 * 1024
"""Bytes. An interpreter needs most of them by itself."""

declared: dict[tuple[str, str], Any] | None = None
"""In a process that runs such functions: the tools that its modules define, by the names of function and
tool. None: this process is a server, or loads one."""

runner: Runner | None = None
"""Set by the first call plan of a tool that runs in a process."""


def is_executor(run: object) -> bool:
    """Whether ``run=`` is a `concurrent.futures.Executor`, or has the methods of one."""
    return callable(getattr(run, "submit", None)) and callable(getattr(run, "shutdown", None))


def offload(tool: OffloadableTool) -> None:
    """Give a tool the coroutine function that hands its calls over. Raises DefinitionError."""
    if tool.is_async:
        raise tool.error(f"run={tool.run!r:.60} is for synchronous functions; leave it out")
    function = tool.function
    if tool.run == "process":
        _check_process(tool)
        if declared is not None:
            declared[function.__qualname__, tool.name] = tool
            tool.run = "inline"
            return
        tool.function = named_as(function, _in_process(tool))
    elif is_unbound_method(function):
        return  # the mark of a class: its tools are made of the methods of an object
    else:
        tool.function = named_as(function, _on_executor(tool, function))
    tool.is_async = True


def check_memory(tool: OffloadableTool) -> None:
    """Raise DefinitionError for a `max_memory` that limits nothing."""
    most = tool.max_memory
    if most is None:
        return
    if isinstance(most, bool) or not isinstance(most, int) or most < LEAST_MEMORY:
        raise tool.error(f"max_memory={most!r:.60} is not a number of bytes from {LEAST_MEMORY:,} up")
    if tool.run != "process":
        raise tool.error('max_memory= is for tools with run="process"')


def _check_process(tool: OffloadableTool) -> None:
    """Raise DefinitionError for a function that another process cannot find by its name."""
    function = tool.function
    names = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    cure = 'for run="process" define a function at the top of a module'
    if not hasattr(function, "__code__") or hasattr(function, "__self__") or is_unbound_method(function):
        raise tool.error(f"is not a plain function; {cure}")
    if "<locals>" in names or "<lambda>" in names:
        raise tool.error(f"is defined within a function, where no other process finds it; {cure}")
    if module is None or not (getattr(module, "__spec__", None) or getattr(module, "__file__", None)):
        raise tool.error(f"its module has no file that another process could load; {cure}")


def _in_process(tool: OffloadableTool) -> Callable[..., Any]:
    async def call(*values: Any, **named: Any) -> Any:
        if runner is None:
            raise ToolError(f"{tool.name} runs in a process of a server: call it through one")
        arguments, context = _arguments_of(tool, values, named)
        return await runner.call(tool, arguments, context)

    return call


def _on_executor(tool: OffloadableTool, function: Callable[..., Any]) -> Callable[..., Any]:
    executor: Any = tool.run

    async def call(*values: Any, **named: Any) -> Any:
        from asyncio import wrap_future

        return await wrap_future(executor.submit(function, *values, **named))

    return call


def named_as(function: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` with the names and the signature of `function`."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        if hasattr(function, name):
            setattr(call, name, getattr(function, name))
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


def _arguments_of(
    tool: OffloadableTool, values: tuple[Any, ...], named: dict[str, Any]
) -> tuple[dict[str, Any], object]:
    """Return the arguments of a call by the names that clients use, and its Context, if there is one."""
    signature = tool.signature
    positional, others = list(values), dict(named)
    context: object = None
    if signature.context_index >= 0:
        context = positional.pop(signature.context_index)
    elif signature.context_parameter is not None:
        context = others.pop(signature.context_parameter)
    found: dict[str, Any] = {}
    for parameter in signature.parameters:
        if positional:
            found[parameter.name] = positional.pop(0)
        elif parameter.keyword in others:
            found[parameter.name] = others.pop(parameter.keyword)
    return found | others, context
