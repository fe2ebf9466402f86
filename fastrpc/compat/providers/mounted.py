"""`FastMCPProvider`: the components of another server, called within its middleware, guards and lifespan."""

from __future__ import annotations

from copy import copy

from fastrpc.compat.components.objects import prompt_arguments
from fastrpc.compat.composition.chain import ComposedChain
from fastrpc.compat.providers.base import Provider, TransformedProvider
from fastrpc.compat.transforms.namespace import Namespace
from fastrpc.content import Contents, Received

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fastrpc.compat.components.versions import VersionSpec


def mounted(server: Any, prefix: str) -> Provider:
    """Return a mounted server as a provider."""
    found = FastMCPProvider(server)
    return TransformedProvider(found, Namespace(prefix)) if prefix else found


class FastMCPProvider(Provider):
    """The components of a `server`."""

    def __init__(self, server: Any) -> None:
        super().__init__()
        self.server = server

    def _chain(self) -> ComposedChain:
        own = self.server._wrapper
        if isinstance(own, ComposedChain):
            return own
        return ComposedChain(self.server, self.server.__dict__.get("_middleware") or [])

    async def _listed(self, kind: str) -> list[Any]:
        chain = self._chain()
        return [_passed_on(chain, kind, each) for each in await chain.objects(kind)]

    async def _found(self, kind: str, key: str, version: VersionSpec | None) -> Any:
        chain = self._chain()
        found = await chain.find(kind, key, version)
        return None if found is None else _passed_on(chain, kind, found)

    async def _list_tools(self) -> Sequence[Any]:
        return await self._listed("tool")

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Any:
        return await self._found("tool", name, version)

    async def _list_resources(self) -> Sequence[Any]:
        return await self._listed("resource")

    async def _get_resource(self, uri: str, version: VersionSpec | None = None) -> Any:
        return await self._found("resource", uri, version)

    async def _list_resource_templates(self) -> Sequence[Any]:
        return await self._listed("template")

    async def _get_resource_template(self, uri: str, version: VersionSpec | None = None) -> Any:
        return await self._found("template", uri, version)

    async def _list_prompts(self) -> Sequence[Any]:
        return await self._listed("prompt")

    async def _get_prompt(self, name: str, version: VersionSpec | None = None) -> Any:
        return await self._found("prompt", name, version)

    def __repr__(self) -> str:
        return f"FastMCPProvider({self.server.name!r})"


def _passed_on(chain: ComposedChain, kind: str, component: Any) -> Any:
    """Return a copy of a component that is called by its name on its own server."""
    passing: Any = _passing(type(component), kind)
    found: Any = passing.__new__(passing)
    found.__dict__.update(component.__dict__)
    for name in ("entry", "_served", "_definition"):
        found.__dict__.pop(name, None)
    found.__dict__.update(_chain=chain, _own_key=component.key)
    if kind == "prompt":
        found.arguments = prompt_arguments(component.descriptor())
    if kind != "tool":
        found.fn = None  # the component's own: to call it here would pass by its server
    return found


_classes: dict[tuple[type, str], type] = {}


def _passing(kind: type, of: str) -> type:
    """Return a subclass of a component's class whose calls go to its server."""
    if issubclass(kind, Passing):
        return kind
    if (kind, of) not in _classes:
        _classes[kind, of] = type(kind.__name__, (_PASSING[of], kind), {})
    return _classes[kind, of]


class Passing:
    """What is called on another server."""

    _chain: ComposedChain
    _own_key: str


class _PassingTool(Passing):
    async def run(self, arguments: dict[str, Any]) -> Any:
        return await self._chain.call_named("tool", self._own_key, arguments)


class _PassingPrompt(Passing):
    async def render(self, arguments: dict[str, Any] | None = None) -> Any:
        return await self._chain.call_named("prompt", self._own_key, arguments)


class _PassingResource(Passing):
    async def read(self) -> Any:
        return _moved(await self._chain.call_named("resource", self._own_key, None), self._own_key)

    def function(self) -> Any:
        return self.read


class _PassingTemplate(Passing):
    async def read(self, arguments: dict[str, Any]) -> Any:
        from fastrpc.protocol.uri_template import Template

        uri = Template(self._own_key).expand(arguments)
        return _moved(await self._chain.call_named("resource", uri, None), uri)


_PASSING: dict[str, type] = {
    "tool": _PassingTool,
    "prompt": _PassingPrompt,
    "resource": _PassingResource,
    "template": _PassingTemplate,
}


def _moved(value: Any, uri: str) -> Any:
    """Return what another server has read, without its URI there: the resource has another one here."""
    if not isinstance(value, list) or not all(isinstance(part, Contents) for part in value):
        return value
    parts = [copy(part) for part in value]
    for part in parts:
        part.uri = None if part.uri == uri else part.uri
    return Received(parts, value.rest) if isinstance(value, Received) else parts
