"""tools/list and tools/call (MCP: tools)."""

from __future__ import annotations

from fastrpc.engine.call import complaint_of, outcome_of_value
from fastrpc.errors import ArgumentError, InvalidParams, UnknownName, excerpt
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.definitions.tool import Tool
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request


def list_tools(dispatcher: Dispatcher, request: Request) -> bytes:
    """Return a page of the tools that the principal sees, in the order in which they were added."""
    from fastrpc.protocol.pagination import cursor_of

    runtime = dispatcher.runtime
    runtime.load()
    current = runtime.monitors.poll(dispatcher)
    cursor = cursor_of(request.params)
    tools = runtime.registries.tools
    result = runtime.pages.of_registry("tools", tools, request.version, cursor, dispatcher.principal)
    if cursor is None and current and not runtime.filters.is_filtered:  # the connection answers from now on
        dispatcher.connection.take_list(result, request.version == STATELESS)
    return result


async def listed_tools(request: Request) -> list[Any]:
    """Return the tools that the principal sees."""
    runtime = request.dispatcher.runtime
    runtime.load()
    runtime.monitors.poll(request.dispatcher)
    return runtime.filters.entries_for(request.dispatcher.principal, runtime.registries.tools)


def call_tool(dispatcher: Dispatcher, request: Request) -> bytes | None:
    """Call a tool. Its failures are results; only a malformed request is an error."""
    params = request.params
    name = params.get("name")
    if not isinstance(name, str):
        raise InvalidParams("name: expected a string" if "name" in params else "name: missing")
    arguments = params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise InvalidParams("arguments: expected an object")
    plan = dispatcher.take_plans().get(name)
    if plan is None:
        raise _unknown_tool(dispatcher, name)
    if plan.makes_tasks and dispatcher.makes_tasks:
        from fastrpc.methods import tasks

        if tasks.makes_task(request, plan.tool):
            tasks.call(dispatcher, request, plan.tool)
            return None
    try:
        bound = plan.tool.signature.bind(arguments)
    except ArgumentError as error:
        if plan.around is None or plan.guard is not None:
            request.outcome = error.outcome
            return dispatcher.runtime.results.failure(str(error), request.version)
        bound = arguments  # a hook may correct them; not after a guard, which would not see the result
    return dispatcher.begin(request, plan, bound)


def _unknown_tool(dispatcher: Dispatcher, name: str) -> UnknownName:
    """Return the error for a tool that does not exist for the principal; the connection keeps it."""
    from fastrpc.engine.known_answers import remember_unknown

    runtime = dispatcher.runtime
    hint = runtime.filters.hint_for(dispatcher.principal, runtime.registries.tools, name)
    error = UnknownName(f"Unknown tool: {excerpt(name)}{hint}")
    remember_unknown(dispatcher, name, error)
    return error


class ToolResultEncoder:
    """Encodes the value of a tool, or its failure: both are results."""

    is_text = True

    @staticmethod
    def encode(request: Request, tool: Tool, value: Any) -> bytes:
        encoded: bytes = request.dispatcher.runtime.results.of(tool, value, request.version)
        request.outcome = outcome_of_value(value)
        return encoded

    @staticmethod
    def failure(request: Request, tool: Tool, error: BaseException) -> bytes:
        return request.dispatcher.runtime.results.failure(complaint_of(tool, error), request.version)
