"""`Middleware`, the base class of a program's own, and the `MiddlewareContext` that its methods receive.

A method that is not overridden is never called by the server (`overridden`): the base class's own only pass
the request on, for those that call ``super()``.
"""

from __future__ import annotations

from functools import partial
from time import time

from fastrpc.compat.field_types import FieldType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import datetime
    from typing import Any, Generic, TypeVar

    T = TypeVar("T")
    R_co = TypeVar("R_co", covariant=True)
    Hook = Callable[["MiddlewareContext[Any]", "CallNext[Any, Any]"], Awaitable[Any]]

    class _GenericContext(Generic[T]):
        pass

    class _GenericNext(Generic[T, R_co]):
        pass

else:

    class _GenericContext:
        __slots__ = ()

        def __class_getitem__(cls, parameters):
            return cls

    _GenericNext = _GenericContext

HOOK_OF = {
    "initialize": "on_initialize",
    "server/discover": "on_discover",
    "tools/call": "on_call_tool",
    "resources/read": "on_read_resource",
    "prompts/get": "on_get_prompt",
    "tools/list": "on_list_tools",
    "resources/list": "on_list_resources",
    "resources/templates/list": "on_list_resource_templates",
    "prompts/list": "on_list_prompts",
}
"""The methods that middleware sees, and the hook of each."""


class CallNext(_GenericNext["T", "R_co"]):
    """The type of `call_next`: a coroutine function of a context."""

    if TYPE_CHECKING:

        def __call__(self, context: MiddlewareContext[T]) -> Awaitable[R_co]: ...


class MiddlewareContext(FieldType, _GenericContext["T"]):
    """One message, as middleware sees it.

    `message` has its params, or is the whole request of a list and of ``initialize``; `fastmcp_context` is
    the `Context` of the request, `method` its method, `timestamp` when it came. It is not changed but copied.
    """

    __slots__ = ("_time", "fastmcp_context", "message", "method", "source", "type")

    def __init__(
        self,
        message: T,
        *,
        fastmcp_context: Any = None,
        source: str = "client",
        type: str = "request",
        method: str | None = None,
        timestamp: datetime | None = None,
    ) -> None:
        self.message = message
        self.fastmcp_context = fastmcp_context
        self.source = source
        self.type = type
        self.method = method
        self._time: Any = time() if timestamp is None else timestamp

    @property
    def timestamp(self) -> datetime:
        if isinstance(self._time, float):
            from datetime import datetime, timezone

            self._time = datetime.fromtimestamp(self._time, timezone.utc)
        found: datetime = self._time
        return found

    def copy(self, **changes: Any) -> MiddlewareContext[T]:
        """Return a copy with other values of some attributes."""
        given = {
            "message": self.message,
            "fastmcp_context": self.fastmcp_context,
            "source": self.source,
            "type": self.type,
            "method": self.method,
            "timestamp": self._time,
            **changes,
        }
        return MiddlewareContext(**given)

    def __repr__(self) -> str:
        return f"MiddlewareContext({self.method!r}, {self.message!r})"


class Middleware:
    """The base class of middleware: override the hooks of what is to be seen.

    Each hook is a coroutine function of the context and `call_next`, and returns what ``await
    call_next(context)`` returns, or another result. `on_message` is around `on_request`, that around the hook
    of the method.
    """

    async def __call__(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await chained(hooks_of(self, context.method, context.type), call_next)(context)

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle a request or notification of any method."""
        return await call_next(context)

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle a request of any method."""
        return await call_next(context)

    async def on_notification(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle a notification of the client."""
        return await call_next(context)

    async def on_initialize(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle ``initialize``."""
        return await call_next(context)

    async def on_discover(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle ``server/discover`` (2026-07-28)."""
        return await call_next(context)

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle ``tools/call``."""
        return await call_next(context)

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle ``resources/read``."""
        return await call_next(context)

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle ``prompts/get``."""
        return await call_next(context)

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle ``tools/list``; the result is a list of tools."""
        return await call_next(context)

    async def on_list_resources(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle ``resources/list``; the result is a list of resources."""
        return await call_next(context)

    async def on_list_resource_templates(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> Any:
        """Handle ``resources/templates/list``; the result is a list of templates."""
        return await call_next(context)

    async def on_list_prompts(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle ``prompts/list``; the result is a list of prompts."""
        return await call_next(context)


def hooks_of(middleware: Any, method: str | None, kind: str = "request") -> list[Hook]:
    """Return the hooks that a middleware has for a method, the outermost first; `kind` is ``request`` or
    ``notification``. An object that is called itself is its only hook."""
    if not isinstance(middleware, Middleware):
        return [middleware] if callable(middleware) else []
    names = ("on_message", f"on_{kind}", HOOK_OF.get(method or "", "on_message"))
    return [getattr(middleware, name) for name in dict.fromkeys(names) if is_overridden(middleware, name)]


def is_overridden(middleware: Middleware, name: str) -> bool:
    return name in vars(middleware) or getattr(type(middleware), name) is not getattr(Middleware, name)


def chained(hooks: Iterable[Hook], end: Any) -> Any:
    """Return a coroutine function of a context that calls the hooks, the first one outermost, and `end`."""
    for hook in reversed([*hooks]):
        end = partial(_call, hook, end)
    return end


def _call(hook: Hook, call_next: Any, context: MiddlewareContext[Any]) -> Awaitable[Any]:
    return hook(context, call_next)
