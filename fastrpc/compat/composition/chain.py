"""What a server is made of besides its registries: providers, transforms, several versions of a component,
what a session sees.

`ComposedChain` is in the place of the server's middleware chain then: each list is made of all of them anew,
and each call looks its target up there. A server without any of them has no such chain and pays nothing; one
that mounts such a server has one too.
"""

from __future__ import annotations

from types import SimpleNamespace

from fastrpc import diagnostics, running_call
from fastrpc.compat.apps.renderer import pages_last
from fastrpc.compat.components.versions import deduplicated, highest, wanted
from fastrpc.compat.components.visibility import REGISTRIES
from fastrpc.compat.composition.calls import COMPOSED
from fastrpc.compat.composition.nested_calls import context_for
from fastrpc.compat.composition.session_visibility import rules_of
from fastrpc.compat.context import Context
from fastrpc.compat.errors import tool_error
from fastrpc.compat.interception.calls import CALL_OF, KINDS
from fastrpc.compat.interception.chain import MiddlewareChain
from fastrpc.compat.interception.listed import ListedComponent
from fastrpc.compat.registered.entries import served
from fastrpc.compat.transforms.base import looked_up, transformed
from fastrpc.context import Context as PlainContext
from fastrpc.definitions.tool import known_tool
from fastrpc.errors import FAILURES, ProtocolError, ResourceNotFound, UnknownName
from fastrpc.protocol.versions import known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc.compat.components.versions import VersionSpec
    from fastrpc.engine.request import Request

METHODS = {
    "tool": ("list_tools", "get_tool"),
    "resource": ("list_resources", "get_resource"),
    "template": ("list_resource_templates", "get_resource_template"),
    "prompt": ("list_prompts", "get_prompt"),
}
"""The methods of providers and transforms for each kind of component."""

LISTS = {
    "tools/list": "tool",
    "resources/list": "resource",
    "resources/templates/list": "template",
    "prompts/list": "prompt",
}

OF_COMPONENTS = ("completion/complete", "resources/subscribe")
"""Requests, neither calls nor lists, about components that may be in no registry."""

SHAPES = {"resource": "Resource", "template": "ResourceTemplate", "prompt": "Prompt"}
"""What MCP calls an entry of each other list."""


def report_failure(method: str, provider: Any, error: BaseException) -> None:
    """Log that a provider has failed; the others are used."""
    diagnostics.write("warning", f"{method}: {provider!r:.80} failed: {error!r:.200}")


def _shown(kind: str, component: Any, version: str) -> dict[str, Any]:
    entry = component.descriptor()
    return known_tool(entry, version) if kind == "tool" else known(SHAPES[kind], entry, version)


class Composed:
    """The providers, the transforms and the other versions of one server's components."""

    def __init__(self) -> None:
        self.providers: list[Any] = []
        self.transforms: list[Any] = []
        self.variants: list[tuple[str, Any, Any]] = []
        """The kind, the entry and the checks of each version that another one has replaced."""
        self.has_session_rules = False
        self.orders: dict[str, list[str]] = {}
        """By kind: the keys in the order in which their first version was added."""

    def add_variant(self, registry: Any, key: str, checks: Any) -> None:
        """Keep the version of a component that another one replaces in a registry, with its checks."""
        self.variants.append((registry.kind, registry.get(key), checks))
        known = self.orders.setdefault(registry.kind, [])
        known += [entry.key for entry in registry if entry.key not in known]

    def in_order(self, kind: str, components: list[Any]) -> list[Any]:
        known = self.orders.get(kind)
        if known is None:
            return components
        places = {key: at for at, key in enumerate(known)}
        return sorted(components, key=lambda each: places.get(each.key, len(places)))


class ComposedChain(MiddlewareChain):
    """The middleware of a server around what its providers and transforms show."""

    declares_everything = True
    calls = COMPOSED

    def __init__(self, server: Any, middleware: list[Any]) -> None:
        super().__init__(server, middleware)
        self._state: Composed = getattr(server, "_composed", None) or Composed()

    def wraps_calls(self, method: str) -> bool:
        return method in CALL_OF

    def wraps_requests(self, method: str) -> bool:
        return method in LISTS or method in OF_COMPONENTS or super().wraps_requests(method)

    def of_host(self, server: Any) -> MiddlewareChain:
        return ComposedChain(server, [])

    def _seen(self, kind: str, *given: Any) -> Any:
        found = self.calls[kind](self.server, *given)
        found.chain = self
        return found

    # --- what there is ----------------------------------------------------------------------------------

    def _mounts_here(self) -> list[Any]:
        """Return the mounted servers that are composed, as providers."""
        namespaces = self.server.__dict__.get("_namespaces", {})
        return [
            self.server._mounted_provider(server, namespaces[id(server)])
            for server in self.server._mounts
            if id(server) in namespaces and isinstance(server._wrapper, ComposedChain)
        ]

    def _sources(self) -> list[Any]:
        return [*self._mounts_here(), *self._state.providers]

    def _is_static(self, entry: Any) -> bool:
        """Whether an entry of a registry is shown as it is: not one of a composed server's."""
        return not any(isinstance(server._wrapper, ComposedChain) for server, _ in entry.origin)

    def _static(self, kind: str) -> list[Any]:
        """Return the entries of the server's own registry."""
        self.server.load_tools()
        registry = getattr(self.server.registries, REGISTRIES[kind])
        return [entry for entry in registry if self._is_static(entry)]

    def _hidden(self, kind: str) -> list[Any]:
        visibility = getattr(self.server, "_visibility", None)
        return [] if visibility is None else visibility.hidden(kind)

    async def objects(self, kind: str, static: Sequence[Any] | None = None) -> list[Any]:
        """Return all components of a kind that are offered, each version of them. `static`: those of the
        registries, where they have passed the hooks of servers that they were mounted from."""
        found = [served(self.server, kind, each) for each in static or ()]
        if static is None:
            found = [served(self.server, kind, entry) for entry in self._static(kind)]
        for entry in self._hidden(kind):
            found.append(served(self.server, kind, entry).model_copy(update={"enabled": False}))
        found += self._variants(kind)
        found = self._state.in_order(kind, found)
        method = METHODS[kind][0]
        for provider in self._sources():
            try:
                found += await getattr(provider, method)()
            except FAILURES as error:
                report_failure(method, provider, error)
        if kind == "resource":
            found = pages_last(found)
        shown = await transformed(self._state.transforms, method, found)
        return [each for each in shown if self._offers(kind, each) and self._shows(kind, each)]

    def _variants(self, kind: str) -> list[Any]:
        """Return the versions that others have replaced."""
        found = []
        for each, entry, checks in self._state.variants:
            if each == kind:
                variant = served(self.server, kind, entry)
                variant.auth = checks
                found.append(variant)
        return found

    async def find_called(self, kind: str, key: str, version: VersionSpec | None) -> tuple[str, Any]:
        """Return what a client's call of this name calls, and its kind; None if there is no such thing.
        Raises AuthorizationError."""
        found = await self.find(kind, key, version)
        if found is None and kind == "resource":
            kind = "template"
            found = await self.find(kind, key, version)
        if found is None and kind == "tool" and key.startswith("__"):
            found = await self._at_address(key)
        if found is not None and not await self._may(kind, found):
            found = None
        return kind, found

    async def _at_address(self, address: str) -> Any:
        """Return the tool that an interface calls by its address, None if there is none."""
        from fastrpc.compat.apps.addresses import hash_in, is_called_by_apps

        wanted_hash = hash_in(address)
        if wanted_hash is None:
            return None
        tool = (await self.tools_by_hash()).get(wanted_hash)
        return tool if tool is not None and is_called_by_apps(tool) else None

    async def tools_by_hash(self) -> dict[str, Any]:
        """Return the tools of apps (`FastMCPApp`) by the hash that their addresses contain."""
        from fastrpc.compat.apps.addresses import own_meta

        hashes = ((own_meta(tool).get("tool_hash"), tool) for tool in await self.objects("tool"))
        return {found: tool for found, tool in hashes if isinstance(found, str)}

    async def find(self, kind: str, key: str, version: VersionSpec | None = None) -> Any:
        """Return the component of a name, by default its highest version; None if none is offered."""
        method = METHODS[kind][1]

        async def within(key: str, *, version: VersionSpec | None = None) -> Any:
            candidates = wanted(self._own(kind, key), version)
            for provider in self._sources():
                try:
                    found = await getattr(provider, method)(key, version)
                except FAILURES as error:
                    if not isinstance(error, (UnknownName, ResourceNotFound)):
                        report_failure(method, provider, error)
                    continue
                if found is not None:
                    candidates.append(found)
            return highest(candidates)

        found = await looked_up(self._state.transforms, method, within, key, version)
        return found if found is not None and self._offers(kind, found) else None

    def _own(self, kind: str, key: str) -> list[Any]:
        """Return the server's own components of a name."""
        if kind in ("resource", "template"):
            from fastrpc.protocol.uri_template import normal

            key = normal(key)
        self.server.load_tools()
        registry: Any = getattr(self.server.registries, REGISTRIES[kind])
        hidden = self._hidden(kind)
        variants = self._variants(kind)
        if kind == "template":
            every = [*(entry for entry in registry if self._is_static(entry)), *hidden]
            entries = [entry for entry in every if entry.match_normal(key) is not None]
            found = [served(self.server, kind, entry) for entry in entries]
            found += [each for each in variants if each.entry.match_normal(key) is not None]
            found.sort(key=lambda each: each.entry.template.rank, reverse=True)
        else:
            own = registry.get(key)
            entries = [own] if own is not None and self._is_static(own) else []
            entries += [entry for entry in hidden if entry.key == key]
            found = [served(self.server, kind, entry) for entry in entries]
            found += [each for each in variants if each.entry.key == key]
        for each in found:
            if any(each.entry is entry for entry in hidden):
                each.enabled = False
        return found

    # --- what is offered ----------------------------------------------------------------------------------

    def _offers(self, kind: str, component: Any) -> bool:
        visibility = getattr(self.server, "_visibility", None)
        if visibility is not None and getattr(component, "entry", None) is None:
            component = visibility.marked(kind, component)
        if self._state.has_session_rules:
            for rule in rules_of(self.server):
                component = rule.marked(kind, component)
        return component.enabled is not False

    def _checks(self, kind: str, component: Any) -> list[Any]:
        """Return the checks of a component; a guard makes only those of what a registry has."""
        own = getattr(component, "auth", None)
        if own is None:
            return []
        from fastrpc.compat.auth.checks import checks_of

        return checks_of(own)

    def _authorization(self, kind: str, component: Any) -> tuple[list[Any], Any]:
        checks = self._checks(kind, component)
        if not checks or self.server._is_exempt():
            return [], None
        from fastrpc.compat.auth.access import get_access_token
        from fastrpc.compat.auth.checks import AuthContext
        from fastrpc.compat.auth.checks import ComponentToCheck as CheckedComponent

        seen = CheckedComponent(kind, component)
        seen.tags = set(component.tags or ())
        return checks, AuthContext(get_access_token(), seen)

    def _shows(self, kind: str, component: Any) -> bool:
        """Whether the caller of the running request sees a component in lists."""
        checks, context = self._authorization(kind, component)
        if not checks:
            return True
        from fastrpc.compat.auth.decisions import is_visible

        return is_visible(checks, context)

    async def _may(self, kind: str, component: Any) -> bool:
        """Whether the caller of the running request may use a component. Raises AuthorizationError."""
        checks, context = self._authorization(kind, component)
        if not checks:
            return True
        from fastrpc.compat.auth.checks import run_auth_checks

        return await run_auth_checks(checks, context)

    # --- requests -----------------------------------------------------------------------------------------

    async def request(self, request: Request, call: CallInfo, proceed: Callable[[], Awaitable[Any]]) -> Any:
        with running_call.running(call.context):
            if request.method in OF_COMPONENTS:
                from fastrpc.compat.composition.requests import ANSWERED

                return await ANSWERED[request.method](self, request, call)
            return await super().request(request, call, proceed)

    def _is_hooked(self, wrapper: Any, method: str) -> bool:
        return not isinstance(wrapper, ComposedChain) and super()._is_hooked(wrapper, method)

    async def _components(
        self, request: Request, call: CallInfo, entries: list[Any], depth: int
    ) -> list[ListedComponent]:
        kind = LISTS.get(request.method)
        if kind is None:
            return await super()._components(request, call, entries, depth)
        shown = [entry for entry in entries if self._is_static(entry)]
        static = await super()._components(request, call, shown, depth)
        found = await self.objects(kind, static)
        version = request.version
        return [ListedComponent(_shown(kind, each, version), each) for each in deduplicated(found)]

    # --- calls from outside of a request ------------------------------------------------------------------

    async def call_for_tool(self, kind: str, key: str, arguments: dict[str, Any] | None) -> Any:
        """Do what `call_named` does, for a tool that passes a call on. Raises ToolError for an unknown name,
        and for arguments that do not fit."""
        try:
            return await self.call_named(kind, key, arguments)
        except ProtocolError as error:
            raise tool_error(error.message) from None

    async def call_named(self, kind: str, key: str, arguments: dict[str, Any] | None) -> Any:
        """Return the value of a call that a running call makes here, within this server's middleware."""
        running = running_call.current() or PlainContext()
        context = context_for(running, self.server)
        method, target = KINDS[kind].method, KINDS[kind].target
        params = {target: key, "arguments": arguments}
        request = SimpleNamespace(method=method, params=params, version=context.protocol_version)
        call: Any = SimpleNamespace(
            context=context, kind=kind, name=key, arguments=arguments or {}, principal=context.principal
        )

        async def nothing() -> Any:
            raise UnknownName(f"Unknown {kind}: {key}")

        seen = self._seen(kind, call, None, request, nothing)
        return await self._run(seen, self.hooks(method), Context(context, self.server))
