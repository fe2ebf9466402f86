"""The tools of the official SDK's 2.x `MCPServer` whose calls need nothing but their function.

Such a tool is synchronous, with neither a Context nor resolved parameters, on a server whose middleware is
the SDK's own. Its call is the original's ``Tool.run``, in a worker thread until it has proved to be fast
(`fastrpc.swap.originals.workers`). Every other call is handed over.
"""

from __future__ import annotations

import sys
from weakref import WeakKeyDictionary, ref

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

MIDDLEWARE = ("OpenTelemetryMiddleware", "RequestStateBoundary")

_known: list[Any] = []
"""The functions that a call consists of, as they were when the module was loaded."""

_made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""By low-level server: the MCPServer that it belongs to."""


def change_mcpserver(module: Any) -> bool:
    """Have each MCPServer noted with its low-level server."""
    _known[:] = _parts()
    initialize = module.MCPServer.__init__

    def __init__(self: Any, *values: Any, **options: Any) -> None:
        initialize(self, *values, **options)
        _made[self._lowlevel_server] = ref(self)

    __init__.__wrapped__ = initialize  # type: ignore[attr-defined]
    module.MCPServer.__init__ = __init__
    sdk2.FINDERS.append(plain_calls)
    return True


def _parts() -> list[Any]:
    server = sys.modules["mcp.server.mcpserver.server"].MCPServer
    tool = sys.modules["mcp.server.mcpserver.tools.base"].Tool
    manager = sys.modules["mcp.server.mcpserver.tools.tool_manager"].ToolManager
    return [server._handle_call_tool, server.call_tool, tool.run, manager.call_tool, manager.get_tool]


def plain_calls(original: Any) -> bool:
    """Have the compiled connection call the tools that have been added since the last time; return whether
    there are any."""
    made = _made.get(original.server)
    server = None if made is None else made()
    if server is None or not _is_untouched(original, server):
        return False
    plain_type = sys.modules["mcp.server.mcpserver.tools.base"].Tool
    tools = {
        name: tool
        for name, tool in server._tool_manager._tools.items()
        if name not in original.planned and type(tool) is plain_type and _is_plain(tool)
    }
    if tools:
        original.add_tools([(name, _call_of(original, server, tool)) for name, tool in tools.items()])
    return bool(tools)


def _is_plain(tool: Any) -> bool:
    return not tool.is_async and tool.context_kwarg is None and not tool.resolved_params


def _is_untouched(original: Any, server: Any) -> bool:
    """Whether calls are made by the SDK's own functions alone."""
    entry = original.server.get_request_handler("tools/call")
    handler = getattr(entry, "handler", None)
    own = (
        getattr(handler, "__self__", None) is server
        and getattr(type(server), "_handle_call_tool", None) is _known[0]
    )
    own = own and getattr(type(server), "call_tool", None) is _known[1] and "call_tool" not in vars(server)
    types = tuple(type(each).__name__ for each in original.server.middleware)
    return own and types == MIDDLEWARE and _parts() == _known and not sdk2.is_traced()


class _InlineMetadata:
    """A tool's metadata whose function is called at once, by the thread that asks."""

    def __init__(self, metadata: Any) -> None:
        self.validate_arguments = metadata.validate_arguments
        self.convert_result = metadata.convert_result

    async def call_fn(self, fn: Any, fn_is_async: bool, arguments: dict[str, Any], direct: Any = None) -> Any:
        """Call the function with validated arguments."""
        return fn(**(arguments | (direct or {})))


class _InlineTool:
    """A tool, as ``Tool.run`` reads it, whose function is called at once."""

    context_kwarg = None
    resolved_params = None
    is_async = False

    def __init__(self, tool: Any) -> None:
        self.fn = tool.fn
        self.name = tool.name
        self.fn_metadata = _InlineMetadata(tool.fn_metadata)


def _call_of(original: Any, server: Any, tool: Any) -> Any:
    """Return the function that calls a tool: it takes the arguments and fastrpc's Context."""
    name, run, metadata = tool.name, type(tool).run, tool.fn_metadata
    inline, workers = _InlineTool(tool), ToolThreads(keeps_to_threads(tool.fn))
    tools, middleware = server._tool_manager._tools, original.server.middleware
    mcp_error = sys.modules["mcp.shared.exceptions"].MCPError
    logger = sys.modules["mcp.server.mcpserver.server"].logger

    async def call(arguments: dict[str, Any], context: Any) -> Any:
        current.set(context)
        is_same = tools.get(name) is tool and tool.fn is inline.fn and tool.fn_metadata is metadata
        if not is_same or len(middleware) != len(MIDDLEWARE) or context.protocol_version == STATELESS:
            return await original.answer_call(name, arguments, context)
        try:
            result = await workers.run(lambda: driven(run(inline, arguments, None, convert_result=True)))
        except mcp_error as error:
            raise original.error_of(error, context.protocol_version) from error
        except Exception as error:
            logger.info("Tool %r failed: %r", name, str(error))
            raise ToolError(str(error)) from error
        return result_of(result)

    return call
