"""The tools of `fastmcp` 4 whose calls need nothing but their function.

Such a tool is a synchronous `FunctionTool` of the server's own provider, without a Context, dependencies, a
time limit, authorization or tasks, and the only one of its name; the server has no middleware for calls, no
transforms, no other providers and no extensions. Its call is the original's ``FunctionTool.run`` within the
original's request context and Context. What it raises goes through the original's ``FastMCP.call_tool``,
which words the error. Every other call is handed over.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar

from fastrpc.compat.functions.worker_threads import keeps_to_threads
from fastrpc.compat.lowlevel.own_methods import current
from fastrpc.errors import ToolError
from fastrpc.protocol.versions import STATELESS
from fastrpc.swap.originals import sdk2
from fastrpc.swap.originals.results import result_of
from fastrpc.swap.originals.workers import ToolThreads, driven

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOW_LEVEL = ("FastMCPServerMiddleware", "RequestStateBoundary")
FOR_LISTS = ("DereferenceRefsMiddleware",)
"""Middleware of FastMCP's own that does nothing in calls of tools."""

_raising: ContextVar[Any] = ContextVar("fastrpc_raising_tool", default=None)
"""A server, and the tool that its ``get_tool`` returns: one that raises what a call has raised."""

_known: list[Any] = []


def change_server(module: Any) -> bool:
    """Have ``FastMCP.get_tool`` return the tool of `_raising`; return whether the release is a known one."""
    server = module.FastMCP
    if "mcp.server.runner" not in sys.modules or not hasattr(server, "_dispatch_component_middleware"):
        return False
    get_tool = server.get_tool

    async def get_tool_or_raising(self: Any, *values: Any, **named: Any) -> Any:
        raising = _raising.get()
        if raising is not None and raising[0] is self:
            return raising[1]
        return await get_tool(self, *values, **named)

    get_tool_or_raising.__doc__ = get_tool.__doc__
    server.get_tool = get_tool_or_raising
    _known[:] = _parts()
    sdk2.FINDERS.append(plain_calls)
    return True


def _parts() -> list[Any]:
    server = sys.modules["fastmcp.server.server"].FastMCP
    tool = sys.modules["fastmcp.tools.function_tool"].FunctionTool
    names = ("call_tool", "_on_call_tool", "get_tool", "_get_tool")
    return [*(getattr(server, name) for name in names), tool.run, tool._run]


def plain_calls(original: Any) -> bool:
    """Have the compiled connection call the tools that have been added since the last time; return whether
    there are any."""
    fastmcp = getattr(original.server, "_fastmcp_ref", lambda: None)()
    if fastmcp is None or not _is_plain_server(original, fastmcp):
        return False
    tool_type = sys.modules["fastmcp.tools.function_tool"].FunctionTool
    components = fastmcp._local_provider._components
    tools = [
        each for each in components.values() if type(each) is tool_type and each.name not in original.planned
    ]
    new = [each for each in tools if _is_single(components, each.name) and _is_plain(each)]
    if new:
        original.add_tools([(each.name, _call_of(original, fastmcp, each)) for each in new])
    return bool(new)


def _is_plain_server(original: Any, fastmcp: Any) -> bool:
    """Whether calls are made by FastMCP's own functions alone."""
    owner = type(fastmcp)
    own = all(getattr(owner, part.__name__, part) is part for part in _known[:2]) and _parts() == _known
    low_level = tuple(type(each).__name__ for each in original.server.middleware) == LOW_LEVEL
    entry = original.server.get_request_handler("tools/call")
    handed = getattr(getattr(entry, "handler", None), "__self__", None) is fastmcp
    return own and low_level and handed and _passes(fastmcp) and not sdk2.is_traced()


def _passes(fastmcp: Any) -> bool:
    """Whether nothing of a server changes the calls of its own tools."""
    local = fastmcp._local_provider
    return (
        all(type(each).__name__ in FOR_LISTS for each in fastmcp.middleware)
        and fastmcp.providers == [local]
        and not fastmcp._transforms
        and not local._transforms
        and not fastmcp._extensions
    )


def _is_plain(tool: Any) -> bool:
    functions = sys.modules["fastmcp.server.dependencies"]
    is_coroutine = sys.modules["fastmcp.utilities.async_utils"].is_coroutine_function
    limited = tool.timeout is not None or tool.auth is not None or tool.task_config.mode != "forbidden"
    return (
        not limited
        and not is_coroutine(tool.fn)
        and not sys.modules["inspect"].isasyncgenfunction(tool.fn)
        and functions.without_injected_parameters(tool.fn) is tool.fn
    )


def _is_single(components: dict[str, Any], name: str) -> bool:
    """Whether there is one tool of a name: not several versions of it."""
    tool_type = sys.modules["fastmcp.tools.base"].Tool
    named = [each for each in components.values() if isinstance(each, tool_type) and each.name == name]
    return len(named) == 1


class _RaisingTool:
    """A tool, as ``FastMCP.call_tool`` runs it, that raises what a call has raised."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def get_span_attributes(self) -> dict[str, Any]:
        return {}

    async def _run(self, arguments: object) -> Any:
        raise self._error


def _call_of(original: Any, fastmcp: Any, tool: Any) -> Any:
    """Return the function that calls a tool: it takes the arguments and fastrpc's Context."""
    name, fn, key = tool.name, tool.fn, tool.key
    local = fastmcp._local_provider
    components, counted = local._components, [0]
    inline = tool.model_copy(update={"run_in_thread": False})
    workers = ToolThreads(keeps_to_threads(fn)) if tool.run_in_thread else None
    bind = sys.modules["fastmcp.server.dependencies"].bind_request_context
    context_type = sys.modules["fastmcp.server.context"].Context
    sessions = sys.modules["fastmcp.server.transforms.visibility"].apply_session_transforms
    normalized = sys.modules["fastmcp.server.mixins.mcp_operations"]._normalize_call_tool_result

    def is_same() -> bool:
        """Whether the tool is still registered as it was, and still the only one of its name."""
        if len(components) != counted[0] and _is_single(components, name):
            counted[0] = len(components)
        return components.get(key) is tool and tool.fn is fn and len(components) == counted[0]

    async def call(arguments: dict[str, Any], context: Any) -> Any:
        current.set(context)
        if not is_same() or context.protocol_version == STATELESS or not _passes(fastmcp):
            return await original.answer_call(name, arguments, context)
        with bind(original.request_context(context, name, arguments)):
            async with context_type(fastmcp=fastmcp):
                if list(await sessions([tool])) != [tool]:
                    return await original.answer_call(name, arguments, context)
                try:
                    if workers is None:
                        found = driven(inline.run(arguments))
                    else:
                        found = await workers.run(lambda: driven(inline.run(arguments)))
                except Exception as error:
                    raise await worded(error, arguments) from error
                return result_of(normalized(found.to_mcp_result()))

    async def worded(error: Exception, arguments: dict[str, Any]) -> Exception:
        """Return the error for what a call has raised, as the original words it."""
        token = _raising.set((fastmcp, _RaisingTool(error)))
        try:
            await fastmcp.call_tool(name, arguments, run_middleware=False)
        except sys.modules["fastmcp.exceptions"].FastMCPError as found:
            return ToolError(str(found))
        except Exception as found:
            problem: Exception = original.error_of(found, current.get().protocol_version)
            return problem
        finally:
            _raising.reset(token)
        raise AssertionError("a tool that raises has returned")

    return call
