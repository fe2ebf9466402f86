"""`Provider`, the base class, and `AggregateProvider`, which is several of them.

A provider has ``_list_tools``, ``_get_tool`` and so on; what it is asked for is ``list_tools``, ``get_tool``,
with its transforms applied. Each request asks anew: what it costs is up to the provider.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import MappingProxyType

from fastrpc.compat.components.versions import highest, wanted
from fastrpc.compat.composition.chain import report_failure
from fastrpc.compat.transforms.base import looked_up, transformed
from fastrpc.compat.transforms.selecting import Visibility
from fastrpc.errors import FAILURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from typing import Any

    from typing_extensions import Self

    from fastrpc.compat.components.objects import Prompt, Resource, ResourceTemplate
    from fastrpc.compat.components.tools import Tool
    from fastrpc.compat.components.versions import VersionSpec
    from fastrpc.compat.transforms.base import Transform


class Provider:
    """The source of some components: override ``_list_…``, and ``_get_…`` where one can be found without
    listing all. `lifespan` is entered with the server's."""

    extensions: Mapping[str, Any] = MappingProxyType({})
    """The extensions of the protocol that a server offers with this provider, with their settings."""

    def __init__(self) -> None:
        self._transforms: list[Transform] = []

    # --- what subclasses have -----------------------------------------------------------------------------

    async def _list_tools(self) -> Sequence[Tool]:
        return []

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        found: Tool | None = _chosen(
            (each for each in await self._list_tools() if each.name == name), version
        )
        return found

    async def _list_resources(self) -> Sequence[Resource]:
        return []

    async def _get_resource(self, uri: str, version: VersionSpec | None = None) -> Resource | None:
        listed = await self._list_resources()
        found: Resource | None = _chosen((each for each in listed if each.uri == uri), version)
        return found

    async def _list_resource_templates(self) -> Sequence[ResourceTemplate]:
        return []

    async def _get_resource_template(
        self, uri: str, version: VersionSpec | None = None
    ) -> ResourceTemplate | None:
        listed = await self._list_resource_templates()
        fitting = (each for each in listed if each.matches(uri) is not None)
        found: ResourceTemplate | None = _chosen(fitting, version)
        return found

    async def _list_prompts(self) -> Sequence[Prompt]:
        return []

    async def _get_prompt(self, name: str, version: VersionSpec | None = None) -> Prompt | None:
        listed = await self._list_prompts()
        found: Prompt | None = _chosen((each for each in listed if each.name == name), version)
        return found

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """A context manager around the time in which the provider is served."""
        yield

    # --- transforms ---------------------------------------------------------------------------------------

    @property
    def transforms(self) -> list[Transform]:
        """The transforms, the innermost first."""
        return [*self._transforms]

    def add_transform(self, transform: Transform) -> None:
        """Add a transform around those that were added before."""
        self._transforms.append(transform)

    def wrap_transform(self, transform: Transform) -> Provider:
        """Return a provider of this one's components with a transform; this one stays as it is."""
        return TransformedProvider(self, transform)

    def enable(self, *, only: bool = False, **criteria: Any) -> Self:
        """Offer the components that match the criteria of `Visibility`; with ``only=True`` no others."""
        if only:
            self.add_transform(Visibility(False, match_all=True))
        self.add_transform(Visibility(True, **criteria))
        return self

    def disable(self, **criteria: Any) -> Self:
        """Offer the components that match no more."""
        self.add_transform(Visibility(False, **criteria))
        return self

    # --- what a server asks for ---------------------------------------------------------------------------

    async def list_tools(self) -> Sequence[Tool]:
        """Return the tools, as the transforms show them."""
        return await transformed(self.transforms, "list_tools", await self._list_tools())

    async def get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        """Return the tool of a name, as the transforms show it; None if there is none."""
        found: Tool | None = await self._looked_up("get_tool", self._get_tool, name, version)
        return found

    async def list_resources(self) -> Sequence[Resource]:
        """Return the resources, as the transforms show them."""
        return await transformed(self.transforms, "list_resources", await self._list_resources())

    async def get_resource(self, uri: str, version: VersionSpec | None = None) -> Resource | None:
        """Return the resource of a URI, as the transforms show it; None if there is none."""
        found: Resource | None = await self._looked_up("get_resource", self._get_resource, uri, version)
        return found

    async def list_resource_templates(self) -> Sequence[ResourceTemplate]:
        """Return the templates, as the transforms show them."""
        return await transformed(
            self.transforms, "list_resource_templates", await self._list_resource_templates()
        )

    async def get_resource_template(
        self, uri: str, version: VersionSpec | None = None
    ) -> ResourceTemplate | None:
        """Return the template of a URI, as the transforms show it; None if there is none."""
        method = self._get_resource_template
        found: ResourceTemplate | None = await self._looked_up("get_resource_template", method, uri, version)
        return found

    async def list_prompts(self) -> Sequence[Prompt]:
        """Return the prompts, as the transforms show them."""
        return await transformed(self.transforms, "list_prompts", await self._list_prompts())

    async def get_prompt(self, name: str, version: VersionSpec | None = None) -> Prompt | None:
        """Return the prompt of a name, as the transforms show it; None if there is none."""
        found: Prompt | None = await self._looked_up("get_prompt", self._get_prompt, name, version)
        return found

    async def _looked_up(self, method: str, get: Any, key: str, version: VersionSpec | None) -> Any:
        async def within(key: str, *, version: VersionSpec | None = None) -> Any:
            return await get(key, version)

        return await looked_up(self.transforms, method, within, key, version)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _chosen(components: Iterable[Any], version: VersionSpec | None) -> Any:
    """Return of components of one name that with the highest version, of those that are wanted."""
    return highest(wanted(components, version))


class AggregateProvider(Provider):
    """Several providers as one. The failure of one of them is logged, and the others are used."""

    def __init__(self, providers: Iterable[Provider] = ()) -> None:
        super().__init__()
        self.providers = [*providers]

    def add_provider(self, provider: Any, *, namespace: str = "") -> None:
        """Add a provider, or a server, its names in a namespace. Raises TypeError for anything else."""
        self.providers.append(provider_of(provider, namespace))

    async def _every(self, method: str, *given: Any) -> list[Any]:
        found = []
        for provider in self.providers:
            try:
                found.append(await getattr(provider, method)(*given))
            except FAILURES as error:
                report_failure(method, provider, error)
        return found

    async def _all(self, method: str) -> list[Any]:
        return [each for found in await self._every(method) for each in found]

    async def _first(self, method: str, key: str, version: VersionSpec | None) -> Any:
        return highest(each for each in await self._every(method, key, version) if each is not None)

    async def _list_tools(self) -> Sequence[Tool]:
        return await self._all("list_tools")

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Any:
        return await self._first("get_tool", name, version)

    async def _list_resources(self) -> Sequence[Resource]:
        return await self._all("list_resources")

    async def _get_resource(self, uri: str, version: VersionSpec | None = None) -> Any:
        return await self._first("get_resource", uri, version)

    async def _list_resource_templates(self) -> Sequence[ResourceTemplate]:
        return await self._all("list_resource_templates")

    async def _get_resource_template(self, uri: str, version: VersionSpec | None = None) -> Any:
        return await self._first("get_resource_template", uri, version)

    async def _list_prompts(self) -> Sequence[Prompt]:
        return await self._all("list_prompts")

    async def _get_prompt(self, name: str, version: VersionSpec | None = None) -> Any:
        return await self._first("get_prompt", name, version)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        from contextlib import AsyncExitStack

        async with AsyncExitStack() as stack:
            for provider in self.providers:
                await stack.enter_async_context(provider.lifespan())
            yield

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.providers!r})"


class TransformedProvider(AggregateProvider):
    """Another provider with one transform more."""

    def __init__(self, inner: Provider, transform: Transform) -> None:
        super().__init__([inner])
        self.add_transform(transform)


def provider_of(thing: Any, namespace: str = "") -> Provider:
    """Return a provider, or that of a server, with its names in a namespace. Raises TypeError."""
    if getattr(type(thing), "__fastrpc_server__", False):
        thing = thing._as_provider()
    if not hasattr(thing, "list_tools") or not hasattr(thing, "get_tool"):
        raise TypeError(f"expected a Provider, got {type(thing).__name__}")
    if namespace:
        from fastrpc.compat.transforms.namespace import Namespace

        thing = TransformedProvider(thing, Namespace(namespace))
    found: Provider = thing
    return found
