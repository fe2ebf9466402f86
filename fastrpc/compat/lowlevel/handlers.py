"""``server.request_handlers`` and ``server.notification_handlers``: handlers by the class of the message.

As in the SDK's 1.x: ``server.request_handlers[types.CallToolRequest] = handler``, where ``handler(request)``
returns a ServerResult. A handler that is read back can be called the same way. The classes are those of the
installed ``mcp.types``, which the program has imported.
"""

from __future__ import annotations

from fastrpc.compat.models import typed
from fastrpc.compat.values import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from typing import Any, Protocol

    Handle = Callable[[dict[str, Any]], Awaitable[Any]]

    class LowLevelServer(Protocol):
        """The part of the server that the tables need."""

        handlers: dict[str, Handle]

        def handle_whole(self, method: str, handle: Handle) -> None:
            """Have a function serve a method: it takes the params, and returns the result."""

        def handle_notification(self, method: str, handle: Callable[..., Awaitable[None]]) -> None:
            """Have a function take a notification: params and the connection's dispatcher."""


RESULTS = {
    "completion/complete": "CompleteResult",
    "prompts/get": "GetPromptResult",
    "prompts/list": "ListPromptsResult",
    "resources/list": "ListResourcesResult",
    "resources/read": "ReadResourceResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "tools/call": "CallToolResult",
    "tools/list": "ListToolsResult",
}
"""The class of each method's result; that of any other is EmptyResult."""


def method_of(kind: Any) -> str:
    """Return the method of a class of messages. Raises TypeError for any other class."""
    field = getattr(kind, "model_fields", {}).get("method")
    values = getattr(getattr(field, "annotation", None), "__args__", ())
    if not values or not isinstance(values[0], str):
        raise TypeError(f"expected a class of requests or notifications of mcp.types, got {kind!r:.100}")
    return str(values[0])


class RequestHandlers:
    """The handlers of requests, by class."""

    def __init__(self, server: LowLevelServer) -> None:
        self._server = server
        self._classes: dict[str, Any] = {}

    def __setitem__(self, kind: Any, handler: Callable[[Any], Awaitable[Any]]) -> None:
        method = method_of(kind)
        self._classes[method] = kind

        async def handle(params: dict[str, Any]) -> Any:
            return await handler(kind.model_validate({"method": method, "params": params}))

        self._server.handle_whole(method, handle)

    def __contains__(self, kind: Any) -> bool:
        return method_of(kind) in self._server.handlers

    def __getitem__(self, kind: Any) -> Callable[[Any], Awaitable[Any]]:
        method = method_of(kind)
        handle = self._server.handlers.get(method)
        if handle is None:
            raise KeyError(kind)

        async def handler(request: Any) -> Any:
            params = None if request is None else request.params
            found = typed(RESULTS.get(method, "EmptyResult"), await handle(plain(params) or {}))
            union = typed_union()
            return found if union is None else union(found)

        return handler

    def get(self, kind: Any, default: Any = None) -> Any:
        try:
            return self[kind]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._classes.values()))


def typed_union() -> Any:
    """Return the SDK's ServerResult, which is a model in 1.x; None elsewhere."""
    import sys

    union = getattr(sys.modules.get("mcp.types"), "ServerResult", None)
    return union if isinstance(union, type) else None


class NotificationHandlers:
    """The handlers of notifications, by class."""

    def __init__(self, server: LowLevelServer) -> None:
        self._server = server

    def __setitem__(self, kind: Any, handler: Callable[[Any], Awaitable[None]]) -> None:
        method = method_of(kind)

        async def handle(params: dict[str, Any], dispatcher: object) -> None:
            await handler(kind.model_validate({"method": method, "params": params}))

        self._server.handle_notification(method, handle)
