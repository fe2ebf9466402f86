"""What only servers of the official SDK 2.x have: extensions, caching hints, a bus of changes, middleware.

Also which rules the variables of a resource's address have to keep, and the key of what clients carry. A
server that uses none of it pays nothing, but for that check in templates.
"""

from __future__ import annotations

from fastrpc.compat.dialect import SDK_2
from fastrpc.engine.list_pages import ListPages
from fastrpc.engine.runtime import Runtime, made_once
from fastrpc.errors import DefinitionError
from fastrpc.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fastrpc.compat.dialect import Dialect
    from fastrpc.compat.lowlevel.own_methods import OwnMethods
    from fastrpc.signed_texts import TextKeys

OPTIONS = ("cache_hints", "extensions", "subscriptions")


class SdkParts(Server):
    """The methods of a compat server for these options."""

    dialect: Dialect

    def _take_sdk_options(self, options: dict[str, Any]) -> None:
        """Take the options out of `options`, and put in those of `fastrpc.Server`. Raises ValueError,
        TypeError and DefinitionError."""
        self._bus: Any = None
        self._hints: dict[str, dict[str, Any]] | None = None
        security = options.pop("request_state_security", None)
        self._signing_keys: TextKeys | None = getattr(security, "signing_keys", None)
        self._resource_security: Any = options.pop("resource_security", ...)
        self._own_methods: OwnMethods | None = None
        self._extensions: Sequence[Any] = ()
        if self.dialect is not SDK_2:
            return
        given = {name: options.pop(name) for name in OPTIONS if name in options}
        from fastrpc.compat.sdk2.cache_hints import members_of

        self._hints = members_of(given.get("cache_hints"))
        bus = given.get("subscriptions")
        self._bus = bus if hasattr(bus, "publish") else None
        if given.get("extensions"):
            from fastrpc.compat.sdk2.extensions import declared

            self._extensions = list(given["extensions"])
            options["extensions"] = declared(self._extensions)

    def _begin_sdk_parts(self) -> None:
        """Add what the extensions bring, and listen to the bus."""
        if self._bus is not None:
            from fastrpc.compat.sdk2.subscription_events import listen_to

            listen_to(self._bus, self)
        if self._extensions:
            self._add_extensions()

    def _add_extensions(self) -> None:
        from fastrpc.compat.sdk2.extensions import Extension

        server: Any = self
        wrapping = []
        for extension in self._extensions:
            for tool in extension.tools():
                server.add_tool(tool.fn, meta=tool.meta, **tool.kwargs)
            for binding in extension.resources():
                server.add_resource(binding.resource)
            for method in extension.methods():
                self._add_method(method)
            if type(extension).intercept_tool_call is not Extension.intercept_tool_call:
                wrapping.append(extension)
        self._interceptors = wrapping
        if wrapping:
            self._take_sdk_middleware()

    def _add_method(self, binding: Any) -> None:
        """Serve a method of an extension. Raises DefinitionError for one that another extension serves."""
        from fastrpc.compat.lowlevel.context import RequestContext
        from fastrpc.compat.lowlevel.own_methods import OwnMethods, current, params_of
        from fastrpc.compat.lowlevel.values import result_of

        if self._own_methods is None:
            self._own_methods = OwnMethods()
        if binding.method in self._own_methods.METHODS:
            raise DefinitionError(f"extensions: {binding.method} is served by another extension")

        async def handle(params: dict[str, Any]) -> dict[str, Any]:
            context = RequestContext(current.get(), self)
            return result_of(await binding.handler(context, params_of(binding.params_type, params)))

        self._own_methods.handle(binding.method, handle, binding.protocol_versions)

    # --- resources ------------------------------------------------------------------------------------

    def _screening(self, security: Any) -> Any:
        """Return what says which values the variables of a template may have: its own rules (None: anything
        goes, but in the SDK), or the server's."""
        from fastrpc.compat.components.resource_security import DEFAULT_RESOURCE_SECURITY, InheritSecurity

        means_default = (..., None) if self.dialect is SDK_2 else (...,)
        if security not in means_default and not isinstance(security, InheritSecurity):
            return security
        if self._resource_security not in means_default:
            return self._resource_security
        return DEFAULT_RESOURCE_SECURITY if self.dialect.screens_templates else None

    def _cached(self, options: Any) -> Any:
        """Return the options of a resource, with the server's caching hints."""
        hint = (self._hints or {}).get("resources/read")
        if hint is not None:
            options.setdefault("ttl", hint["ttlMs"] / 1000)
            options.setdefault("cache_scope", hint["cacheScope"])
        return options

    # --- middleware -----------------------------------------------------------------------------------

    def _take_sdk_middleware(self) -> None:
        """Have the middleware, and what extensions have around calls, called from now on."""
        from fastrpc.compat.sdk2.middleware import WireChain

        server: Any = self
        self._wrapper = WireChain(self, server.middleware, getattr(self, "_interceptors", ()))
        if server.middleware:
            self._gate_streams()
        self._plan_anew()

    def _gate_streams(self) -> None:
        """Have streams of changes opened within the middleware."""
        from fastrpc.compat.lowlevel.own_methods import OwnMethods
        from fastrpc.compat.sdk2.middleware import gated_streams

        if self._own_methods is None:
            self._own_methods = OwnMethods()
        name = "subscriptions/listen"
        self._own_methods.METHODS[name] = gated_streams(self._own_methods.METHODS[name], self)

    @property
    def runtime(self) -> Runtime:
        found = self._runtime
        if found is None:
            from fastrpc import methods

            features: Any = self._own_methods or methods
            found = self._runtime = CompatRuntime(self, features)
            found.signing_keys = self._signing_keys
            self._set_around(found)
        elif self._own_methods is not None:
            found.features = self._own_methods
        return found


class CompatPages(ListPages):
    """The pages of a compat server's lists, with its caching hints."""

    def caching(self, version: str, what: str = "") -> dict[str, Any]:
        hints = self.server._hints
        if hints is None:
            return super().caching(version, what)
        from fastrpc.compat.sdk2.cache_hints import caching

        return caching(hints, version, what)


class CompatRuntime(Runtime):
    """The runtime of a compat server."""

    @made_once
    def pages(self) -> ListPages:
        return CompatPages(self.server, self.filters, self.results)
