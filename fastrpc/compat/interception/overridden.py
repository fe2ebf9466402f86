"""Methods of a server that a program overrides: its requests are answered through them, as in the original.

``class Own(FastMCP): async def list_tools(self)``, or ``server.call_tool = guarded`` with the official SDK,
``async def _list_tools_mcp(self)`` with FastMCP: the method answers the client, and the server's own one,
which it may call, does what the server would have done. Costs nothing for a server whose methods are its own.
"""

from __future__ import annotations

from contextvars import ContextVar

from fastrpc import running_call
from fastrpc.compat.interception.messages import CallParams
from fastrpc.compat.interception.sdk_handlers import listed_by, tool_result
from fastrpc.compat.middleware.base import Middleware

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_answered: ContextVar[tuple[Any, str, Any, Any] | None] = ContextVar("fastrpc_overridden", default=None)


def answers_through(server: Any, method: str) -> Middleware:
    """Return middleware that answers requests through a method of the server."""
    answered = method.removeprefix("_").removesuffix("_mcp")

    async def answer(context: Any, call_next: Any) -> Any:
        token = _answered.set((server, method, context, call_next))
        try:
            with running_call.running(context.fastmcp_context.inner):
                return await answer_of(context.message)
        finally:
            _answered.reset(token)

    async def answer_of(message: Any) -> Any:
        function = getattr(server, method)
        if answered == "call_tool":
            return tool_result(await function(message.name, message.arguments or {}))
        if answered == "get_prompt":
            return await function(message.name, message.arguments or {})
        if answered == "read_resource":
            found = await function(str(message.uri))
            return list(found) if method == "read_resource" else found
        return await listed_by(function, message)

    middleware: Any = Middleware()
    setattr(middleware, f"on_{answered}", answer)
    found: Middleware = middleware
    return found


def is_within(server: Any, method: str) -> bool:
    """Whether the running request is answered through this method of the server."""
    found = _answered.get()
    return found is not None and found[0] is server and found[1] == method


async def proceed(**params: Any) -> Any:
    """Return what the server itself answers the running request with, for these params."""
    found = _answered.get()
    assert found is not None
    _, _, context, call_next = found
    token = _answered.set(None)
    try:
        return await call_next(context.copy(message=CallParams(params)))
    finally:
        _answered.reset(token)
