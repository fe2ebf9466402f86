"""The tools of the official SDK's 1.x `FastMCP` whose calls need nothing of the low-level server.

Such a call is the original's ``Tool.run``: its argument model, its function, its conversion of the result.
What the low-level handler adds is repeated here: the check of the output schema, and the result for an
exception. A subclass that has its own ``call_tool``, another handler of ``tools/call``, and functions of
these classes that somebody has replaced have their calls handed over.
"""

from __future__ import annotations

import sys
from weakref import WeakKeyDictionary, ref

from fastrpc.compat.lowlevel.own_methods import current
from fastrpc.compat.lowlevel.schema import SchemaCheck
from fastrpc.compat.lowlevel.values import error_of, is_url_elicitation, tool_result
from fastrpc.errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PARTS = (
    ("mcp.server.fastmcp.server", "FastMCP", "call_tool"),
    ("mcp.server.fastmcp.tools.base", "Tool", "run"),
    ("mcp.server.fastmcp.tools.tool_manager", "ToolManager", "call_tool"),
    ("mcp.server.fastmcp.tools.tool_manager", "ToolManager", "get_tool"),
)
"""The functions that a call consists of: the module, the class and the name of each."""

_known: dict[tuple[str, str, str], Any] = {}
"""Those functions, as they were when the module was loaded."""

_made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""By low-level server: the FastMCP that it belongs to, and the handler of ``tools/call`` that this has
set."""


def change_fastmcp(module: Any) -> bool:
    """Have each FastMCP noted with its low-level server."""
    for part in _PARTS:
        _known[part] = _part(part)
    set_up = module.FastMCP._setup_handlers

    def _setup_handlers(self: Any) -> None:
        set_up(self)
        low_level = self._mcp_server
        handler = low_level.request_handlers.get(sys.modules["mcp.types"].CallToolRequest)
        _made[low_level] = ref(self), handler

    module.FastMCP._setup_handlers = _setup_handlers
    return True


def _part(part: tuple[str, str, str]) -> Any:
    module, owner, name = part
    return getattr(getattr(sys.modules.get(module), owner, None), name, None)


def plain_calls(original: Any) -> bool:
    """Have the compiled connection call the tools that have been added since the last time; return whether
    there are any."""
    made = _made.get(original.server)
    fastmcp = None if made is None else made[0]()
    if made is None or fastmcp is None or not _is_untouched(original, fastmcp, made[1]):
        return False
    names = [name for name in fastmcp._tool_manager._tools if name not in original.planned]
    if names:
        original.add_tools([(name, _call_of(original, fastmcp, name)) for name in names])
    return bool(names)


def _is_untouched(original: Any, fastmcp: Any, handler: Any) -> bool:
    """Whether calls are made by the SDK's own functions alone."""
    request = sys.modules["mcp.types"].CallToolRequest
    own = (
        type(fastmcp).call_tool is _known[_PARTS[0]]
        and original.server.request_handlers.get(request) is handler
    )
    manager = sys.modules["mcp.server.fastmcp.tools.tool_manager"].ToolManager
    return (
        own and type(fastmcp._tool_manager) is manager and all(_part(part) is _known[part] for part in _PARTS)
    )


def _call_of(original: Any, fastmcp: Any, name: str) -> Any:
    """Return the function that calls a tool: it takes the arguments and fastrpc's Context."""
    plain_type = sys.modules["mcp.server.fastmcp.tools.base"].Tool
    checks: dict[int, Any] = {}

    def check_of(schema: Any) -> SchemaCheck | None:
        found = checks.get(id(schema))
        if found is None and schema is not None:
            found = schema, SchemaCheck(schema)  # the schema is kept, so that its id stays its own
            checks[id(schema)] = found
        return None if found is None else found[1]

    async def call(arguments: dict[str, Any], context: Any) -> Any:
        current.set(context)
        tool = fastmcp._tool_manager._tools.get(name)
        if type(tool) is not plain_type:
            return await original.answer_call(name, arguments, context)
        try:
            inner = None if tool.context_kwarg is None else fastmcp.get_context()
            result = await tool.run(arguments, context=inner, convert_result=True)
        except Exception as error:
            if is_url_elicitation(error):
                raise error_of(error, context.protocol_version) from error
            raise ToolError(str(error)) from error
        return tool_result(result, check_of(tool.fn_metadata.output_schema))

    return call
