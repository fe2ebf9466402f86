"""The middleware of one server around its requests: what `fastrpc.engine.wrappers` calls.

A request that no middleware of the server has a hook for is not wrapped. A call costs its hooks, and what
they read. A mounted server's middleware is within that of the server that it is mounted in, by its own names.
"""

from __future__ import annotations

from json import loads

from fastrpc.compat import errors, models
from fastrpc.compat.context import Context
from fastrpc.compat.interception.calls import CALL_OF, KINDS
from fastrpc.compat.interception.listed import ListedComponent, component_of
from fastrpc.compat.interception.messages import request_message
from fastrpc.compat.middleware.base import (
    HOOK_OF,
    Middleware,
    MiddlewareContext,
    chained,
    hooks_of,
    is_overridden,
)
from fastrpc.context import Context as PlainContext
from fastrpc.errors import FAILURES, ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc.compat.middleware.base import Hook
    from fastrpc.engine.request import Request
    from fastrpc.engine.wrappers import WrappedCall

HANDSHAKES = {"initialize": "InitializeResult", "server/discover": "DiscoverResult"}
"""The requests of the lifecycle that middleware sees, and the classes of their results."""


PREFIXED = ("tools/list", "prompts/list")


class MiddlewareRefusal(ProtocolError):
    """A request is refused with an error of any code."""

    def __init__(self, code: int, message: str, data: object) -> None:
        super().__init__(message, data)
        self.code = code


class MiddlewareChain:
    """The middleware of a server. `middleware` is its list, the outermost first."""

    declares_everything = False
    """Whether there may be resources and prompts that no registry has."""

    calls: Mapping[str, Any] = KINDS
    """By kind: the class of a call as middleware sees it."""

    def __init__(self, server: Any, middleware: list[Any]) -> None:
        self.server = server
        self._middleware = middleware
        self._hooks: dict[str, list[Hook]] = {}

    def hooks(self, method: str) -> list[Hook]:
        """Return the hooks for a method, the outermost first."""
        found = self._hooks.get(method)
        if found is None:
            found = [hook for each in self._middleware for hook in _own(each, method)]
            kind = CALL_OF.get(method)
            if kind is not None:
                found = [_typed(hook, kind.seen) for hook in found]
            self._hooks[method] = found
        return found

    def wraps_calls(self, method: str) -> bool:
        return method in CALL_OF and bool(self.hooks(method))

    def wraps_requests(self, method: str) -> bool:
        if method not in HOOK_OF:
            return False
        if self.hooks(method):
            return True
        return method not in HANDSHAKES and any(True for _ in self._mounted(method))

    def wraps_notifications(self) -> bool:
        return bool(self._notification_hooks())

    def _notification_hooks(self) -> list[Hook]:
        return [hook for each in self._middleware for hook in _own(each, "", "notification")]

    async def notification(self, dispatcher: object, method: str, params: dict[str, Any]) -> None:
        async def end(context: MiddlewareContext[Any]) -> None:
            return None

        context: MiddlewareContext[Any] = MiddlewareContext(
            params,
            fastmcp_context=Context(PlainContext(), self.server),
            method=method,
            type="notification",
        )
        await chained(self._notification_hooks(), end)(context)

    def of_host(self, server: Any) -> MiddlewareChain:
        return MiddlewareChain(server, [])

    def _mounted(self, method: str) -> Any:
        """The wrappers of the servers that are mounted here and have one for a method."""
        for server in self.server.runtime.mounts:
            wrapper = server.runtime.wrapper
            if self._is_hooked(wrapper, method):
                yield wrapper

    def _is_hooked(self, wrapper: Any, method: str) -> bool:
        """Whether what a mounted server's wrapper shows of a list is asked for here."""
        return wrapper is not None and bool(wrapper.wraps_requests(method))

    def _seen(self, kind: str, *given: Any) -> Any:
        """Return a call of a kind as middleware sees it."""
        return self.calls[kind](self.server, *given)

    # --- calls ----------------------------------------------------------------------------------------

    async def call(self, call: CallInfo, within: WrappedCall) -> Any:
        """Return the value of a call."""
        seen = self._seen(call.kind, call, within)
        return await self._run(seen, self.hooks(seen.method), Context(call.context, self.server))

    async def _run(self, seen: Any, hooks: list[Hook], context: Context) -> Any:
        """Call the hooks around a call; return the value that goes on."""
        message = MiddlewareContext(seen.message, fastmcp_context=context, method=seen.method)
        try:
            result = await chained(hooks, seen.end)(message)
        except FAILURES as error:
            refusal = refusal_of(error) if seen.is_outermost else None
            if refusal is None:
                raise
            if seen.kind == "tool" and not self._refuses_calls():
                raise errors.tool_error(refusal.message) from error
            raise refusal from error
        return result.value

    def _refuses_calls(self) -> bool:
        dialect = getattr(self.server, "dialect", None)
        return dialect is None or bool(dialect.refuses_calls)

    # --- requests -------------------------------------------------------------------------------------

    async def request(self, request: Request, call: CallInfo, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Return what a request that is no wrapped call is answered with."""
        method = request.method
        try:
            if method in HANDSHAKES:
                return await self._handshake(request, call, proceed)
            kind = CALL_OF.get(method)
            if kind is not None:
                seen = self._seen(kind.kind, call, None, request, proceed)
                return await self._run(seen, self.hooks(method), Context(call.context, self.server))
            return await self.listed(request, call, proceed, 0)
        except FAILURES as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            raise refusal from error

    async def _handshake(
        self, request: Request, call: CallInfo, proceed: Callable[[], Awaitable[Any]]
    ) -> bytes:
        answered = b""

        async def end(context: MiddlewareContext[Any]) -> Any:
            nonlocal answered
            answered = await proceed()
            return models.typed(HANDSHAKES[request.method], loads(answered))

        context = self._context(request, call)
        result = await chained(self.hooks(request.method), end)(context)
        if result is None:
            return answered
        from fastrpc.json_encoding import to_json

        return to_json(models.dumped(result))

    def _context(self, request: Request, call: CallInfo) -> MiddlewareContext[Any]:
        return MiddlewareContext(
            request_message(request.method, request.params),
            fastmcp_context=Context(call.context, self.server),
            method=request.method,
        )

    # --- lists ----------------------------------------------------------------------------------------

    async def listed(
        self, request: Request, call: CallInfo, entries: Callable[[], Awaitable[list[Any]]], depth: int
    ) -> list[ListedComponent]:
        """Return the components that the hooks for a list leave of `entries`, whose names are those of a
        server that is `depth` mounts below the one that is served."""

        async def end(context: MiddlewareContext[Any]) -> list[ListedComponent]:
            return await self._components(request, call, await entries(), depth)

        found = await chained(self.hooks(request.method), end)(self._context(request, call))
        return [component_of(each, request.version) for each in found]

    async def _components(
        self, request: Request, call: CallInfo, entries: list[Any], depth: int
    ) -> list[ListedComponent]:
        """Return the entries as components; those of mounted servers pass through the hooks there."""
        found: list[ListedComponent] = []
        groups: dict[Any, tuple[int, list[Any]]] = {}
        for entry in entries:
            origin = getattr(entry, "origin", ())
            server = origin[depth][0] if len(origin) > depth else None
            wrapper = None if server is None else server.runtime.wrapper
            if not self._is_hooked(wrapper, request.method):
                component = ListedComponent(dict(entry.descriptor(request.version)), entry)
                component.name = _name_at(entry, depth)
                found.append(component)
            else:
                groups.setdefault(server, (len(found), []))[1].append(entry)
        for server in self.server.runtime.mounts:  # whose hooks may add entries where there are none
            if self._is_hooked(server.runtime.wrapper, request.method):
                groups.setdefault(server, (len(found), []))
        for server, (at, mounted) in reversed(groups.items()):
            found[at:at] = await self._from_mount(request, call, server, mounted, depth)
        return found

    async def _from_mount(
        self, request: Request, call: CallInfo, server: Any, entries: list[Any], depth: int
    ) -> list[ListedComponent]:
        """Return what the hooks of a mounted server leave of its entries, by their names here."""

        async def own() -> list[Any]:
            return entries

        wrapper: MiddlewareChain = server.runtime.wrapper
        found = await wrapper.listed(request, call, own, depth + 1)
        if request.method in PREFIXED:
            prefix = self._prefix_of(server)
            for component in found:
                component.name = prefix + component.name
        return found

    def _prefix_of(self, server: Any) -> str:
        """Return what is before the names of a mounted server's tools and prompts here."""
        for registry in (self.server.registries.tools, self.server.registries.prompts):
            for entry in registry:
                if entry.origin and entry.origin[0][0] is server:
                    return str(entry.name.removesuffix(entry.origin[0][1]))
        return ""


def _name_at(entry: Any, depth: int) -> str:
    """Return the name of an entry in the server that is so many mounts below the one that is served."""
    name: str = entry.name if depth == 0 else entry.origin[depth - 1][1]
    return name


def _own(middleware: Any, method: str, kind: str = "request") -> list[Hook]:
    """Return the hooks that a server calls for one middleware."""
    if isinstance(middleware, Middleware) and is_overridden(middleware, "__call__"):
        return [middleware]
    return hooks_of(middleware, method, kind)


def _typed(hook: Hook, seen: Callable[[Any], Any]) -> Hook:
    """Return a hook whose result is what an outer one expects."""

    async def run(context: MiddlewareContext[Any], call_next: Any) -> Any:
        return seen(await hook(context, call_next))

    return run


def refusal_of(error: BaseException) -> MiddlewareRefusal | None:
    """Return the JSON-RPC error for an error of the official SDK, or one like it, that has a code; None for
    any other."""
    if isinstance(error, ProtocolError):
        return None
    inner = error if isinstance(error, errors.McpError) else getattr(error, "error", None)
    code = getattr(inner, "code", None)
    if not isinstance(code, int):
        return None
    return MiddlewareRefusal(code, str(getattr(inner, "message", error)), getattr(inner, "data", None))
