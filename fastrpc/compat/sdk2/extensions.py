"""Extensions of a server of the official SDK 2.x: ``MCPServer("name", extensions=[…])``.

An extension declares its name and settings, and may add tools, resources and methods, and a
coroutine around calls of tools. A server without extensions pays nothing.
"""

from __future__ import annotations

from fastrpc import methods as own_methods
from fastrpc.compat.errors import McpError
from fastrpc.content import checked_extensions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

MISSING_CAPABILITY = -32021
"""The code of an error that names capabilities the client must declare (MCP 2026-07-28)."""


class ToolBinding:
    """A function that an extension adds as a tool; `kwargs` are options of ``add_tool``."""

    def __init__(
        self,
        fn: Callable[..., Any],
        meta: dict[str, Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        self.fn = fn
        self.meta = meta
        self.kwargs = kwargs or {}


class ResourceBinding:
    """A resource object that an extension adds."""

    def __init__(self, resource: Any) -> None:
        self.resource = resource


class MethodBinding:
    """A method that an extension adds, in all `protocol_versions` if they are None: ``handler(ctx, params)``
    gets a `params_type`. Raises ValueError for a method of the protocol itself."""

    def __init__(
        self,
        method: str,
        params_type: Any,
        handler: Callable[[Any, Any], Awaitable[Any]],
        protocol_versions: frozenset[str] | None = None,
    ) -> None:
        if method in own_methods.METHODS:
            raise ValueError(f"method: {method!r} is one of the protocol's own; wrap it by a middleware")
        if protocol_versions is not None and not protocol_versions:
            raise ValueError(f"protocol_versions: {method!r} would be served in none; None means all")
        self.method = method
        self.params_type = params_type
        self.handler = handler
        self.protocol_versions = protocol_versions


class Extension:
    """An extension, by its `identifier`; subclasses override what they need."""

    identifier: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "identifier" in cls.__dict__:
            checked_extensions({cls.identifier: {}})

    def settings(self) -> dict[str, Any]:
        """Return what is declared to clients."""
        return {}

    def tools(self) -> Sequence[ToolBinding]:
        """Return the tools that it adds."""
        return ()

    def resources(self) -> Sequence[ResourceBinding]:
        """Return the resources that it adds."""
        return ()

    def methods(self) -> Sequence[MethodBinding]:
        """Return the methods that it adds."""
        return ()

    async def intercept_tool_call(
        self, params: Any, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """Return the result of a call of a tool: what ``call_next(ctx)`` returns, or another."""
        return await call_next(ctx)


def declared(extensions: Sequence[Extension]) -> dict[str, Any]:
    """Return the capability for extensions. Raises ValueError for a name that is none or is there twice."""
    found: dict[str, Any] = {}
    for extension in extensions:
        name = getattr(extension, "identifier", None)
        if not isinstance(name, str):
            raise ValueError(f"extensions: {type(extension).__name__} has no identifier")
        if name in found:
            raise ValueError(f"extensions: {name} is there twice")
        found[name] = extension.settings()
    checked_extensions(found)
    return found


def client_settings(ctx: Any, identifier: str) -> dict[str, Any] | None:
    """Return what the client has declared of an extension, {} for no settings; None if it has not."""
    capabilities = getattr(ctx, "client_capabilities", None) or ctx.session.client_capabilities
    extensions = getattr(capabilities, "extensions", None)
    found = extensions.get(identifier) if extensions else None
    return found if isinstance(found, dict) else None


def require_client_extension(ctx: Any, identifier: str) -> None:
    """Raise McpError unless the client has declared an extension."""
    if client_settings(ctx, identifier) is None:
        raise McpError(
            MISSING_CAPABILITY,
            f"Client has not declared the extension {identifier}",
            {"requiredCapabilities": {"extensions": {identifier: {}}}},
        )
