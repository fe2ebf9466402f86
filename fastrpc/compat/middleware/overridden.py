"""Methods of an SDK server that a program overrides: its requests are answered through them, as in the SDK.

``class Own(FastMCP): async def list_tools(self)``, or ``server.call_tool = guarded``: the method answers the
client, and the server's own one, which it may call, does what the server would have done. Costs nothing for
a server whose methods are its own.
"""

from __future__ import annotations

from contextvars import ContextVar

from fastrpc.compat.middleware.base import Middleware
from fastrpc.compat.middleware.inner_handlers import tool_result
from fastrpc.compat.middleware.messages import CallParams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_answered: ContextVar[tuple[Any, str, Any, Any] | None] = ContextVar("fastrpc_overridden", default=None)


def answers_through(server: Any, method: str) -> Middleware:
    """Return middleware that answers requests through a method of the server."""

    async def answer(context: Any, call_next: Any) -> Any:
        token = _answered.set((server, method, context, call_next))
        try:
            message = context.message
            if method == "call_tool":
                return tool_result(await server.call_tool(message.name, message.arguments or {}))
            if method == "read_resource":
                return list(await server.read_resource(str(message.uri)))
            return await getattr(server, method)()
        finally:
            _answered.reset(token)

    middleware: Any = Middleware()
    setattr(middleware, f"on_{method}", answer)
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
