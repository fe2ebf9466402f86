"""tools/list and tools/call (MCP: tools)."""

from __future__ import annotations

from fastrpc.errors import InvalidParams
from fastrpc.session import MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.dispatcher import Dispatcher, Request


def list_tools(dispatcher: Dispatcher, request: Request) -> bytes:
    """Return a page of the tools, in the order in which they were added."""
    cursor = request.params.get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise InvalidParams("cursor: expected a string")
    result = dispatcher.service.tool_list(request.version, cursor)
    if cursor is None:
        dispatcher.connection.take_list(result, request.version == MODERN)
    return result


def call_tool(dispatcher: Dispatcher, request: Request) -> bytes | None:
    """Call a tool. Its failures are results; only a malformed request is an error."""
    return dispatcher.call_tool(request)
