"""Handlers of an SDK server's inner one, ``@mcp._mcp_server.list_tools()``, as the last middleware.

A handler of a list returns its entries, that of ``call_tool`` takes the name and the arguments, and returns
what one of the low-level server returns: content, a dict, or a tuple of both.
"""

from __future__ import annotations

from fastrpc.compat.calls.typed_content import typed_block
from fastrpc.compat.middleware.base import Middleware
from fastrpc.compat.values import ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MEMBERS = ("tools", "resources", "resource_templates", "resourceTemplates", "prompts")


def handler_of(hook: str, function: Any) -> Middleware:
    """Return middleware whose `hook` calls a handler."""

    async def listed(context: Any, call_next: Any) -> Any:
        return await listed_by(function, context.message)

    async def called(context: Any, call_next: Any) -> Any:
        message = context.message
        return tool_result(await function(message.name, message.arguments or {}))

    handlers: Any = Middleware()
    setattr(handlers, hook, called if hook == "on_call_tool" else listed)
    found: Middleware = handlers
    return found


async def listed_by(function: Any, message: Any) -> Any:
    """Return the entries that a handler of a list returns, by themselves or in a result."""
    takes_request = bool(function.__code__.co_argcount - hasattr(function, "__self__"))
    found = await (function(message) if takes_request else function())
    given = (getattr(found, name, None) for name in MEMBERS)
    return next((entries for entries in given if entries is not None), found)


def tool_result(value: Any) -> Any:
    """Return what a handler of ``call_tool`` has returned, as a result for the chain."""
    if isinstance(value, dict):
        return ToolResult(structured_content=value, content=None)
    if isinstance(value, tuple):
        return ToolResult(_blocks(value[0]), structured_content=value[1])
    if hasattr(value, "content") and hasattr(value, "model_dump"):
        return value
    return ToolResult(_blocks(value))


def _blocks(content: Any) -> list[Any]:
    return [typed_block(part) if isinstance(part, dict) else part for part in content]
