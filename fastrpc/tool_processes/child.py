"""The program of a process that runs tools: it loads a module, and serves the tools that the module declares
with `run="process"` over standard input and output, to the server that has started it.

A Context reports progress and logs; what else it offers needs the server or the client, and is refused. What
a function raises goes back as it is, in the ``_meta`` of the result (`RAISED`), so that the server treats it
as it treats the failure of its own functions.
"""

from __future__ import annotations

import sys

from fastrpc.context import Context
from fastrpc.definitions import offloaded
from fastrpc.errors import ArgumentError, ToolError, UsageError
from fastrpc.tool_processes.wire import RAISED, wire_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from fastrpc.definitions.tool import Tool
    from fastrpc.server import Server

TRACEBACK_LIMIT = 16_000
"""Characters."""
NOT_HERE = 'a tool with run="process" has no {}: its Context can report progress and log'


def main() -> None:
    """Serve until standard input ends. The arguments: ``module`` or ``file``, which one, and the limit of the
    process's memory in bytes, 0 for none."""
    kind, place, memory = sys.argv[1:]
    if int(memory):
        _limit_memory(int(memory))
    from fastrpc.server import Server
    from fastrpc.transports import stdio

    stdio.prepare()  # the module may print while it is imported
    try:
        tools = _declared_in(kind, place, Server)
    except UsageError as error:
        from fastrpc.diagnostics import write_line

        write_line(f"fastrpc: a process for tools cannot load its module: {error}")
        sys.exit(2)
    server = Server("tool process")
    for (function, _), tool in tools.items():
        tool.name = wire_name(function, tool.name)
        tool.task = None  # the server makes the tasks
        tool.description = tool.description or "its server describes it"
        if tool.signature.context_parameter is not None:
            tool.function = _with_local_context(tool)
        server.add_tool(tool)
    server.on_error(lambda call, error: _as_result(error, int(memory)))
    server.run()


def _limit_memory(size: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _declared_in(kind: str, place: str, server_type: type[Server]) -> dict[tuple[str, str], Tool]:
    """Load a module; return the tools for processes that it declares. Raises UsageError."""
    from fastrpc import loader

    offloaded.declared = {}
    run, server_type.run = server_type.run, _refuse_to_run  # type: ignore[method-assign]
    try:
        module: ModuleType = loader.load_module(place) if kind == "module" else loader.load_file(place)
    finally:
        server_type.run = run  # type: ignore[method-assign]
    found = offloaded.declared.items()
    return {names: tool for names, tool in found if tool.function.__module__ == module.__name__}


def _refuse_to_run(*_: object, **__: object) -> None:
    raise UsageError('the module serves when it is imported: write if __name__ == "__main__": app.run()')


class _LocalChannel:
    """The part of a call's outbound channel that a process has."""

    def __init__(self, channel: Any) -> None:
        self.token = channel.token
        self.progress = channel.progress
        self.log = channel.log

    def __getattr__(self, name: str) -> Any:
        raise ToolError(NOT_HERE.format(_OFFERED.get(name, name)))


_OFFERED = {"ask": "client to ask", "in_thread": "worker threads", "capabilities": "client_capabilities"}


def _with_local_context(tool: Tool) -> Callable[..., Any]:
    """Return the function of a tool, which gets a Context with a `_LocalChannel`."""
    function = tool.function

    def local(value: Any) -> Any:
        if type(value) is not Context:
            return value
        channel: Any = _LocalChannel(value._channel)
        return Context(value.request_id, value.protocol_version, value.client_info, channel)

    def call(*values: Any, **named: Any) -> Any:
        return function(*map(local, values), **{name: local(value) for name, value in named.items()})

    return offloaded.named_as(function, call)


def _as_result(error: BaseException, memory: int) -> Any:
    """Return the result that says what a function has raised."""
    from fastrpc.content import ToolResult
    from fastrpc.redaction import masked

    refused = isinstance(error, (ToolError, ArgumentError))
    text, trace = str(error), ""
    if isinstance(error, MemoryError) and memory:
        text, refused = f"the call needs more memory than max_memory allows ({memory:,} bytes)", True
    elif not refused:
        from traceback import format_exception

        trace = masked("".join(format_exception(error))[-TRACEBACK_LIMIT:])
    said = [type(error).__name__, text, refused, trace, isinstance(error, MemoryError)]
    return ToolResult(text, is_error=True, meta={RAISED: said})
