"""`Namespace`: a prefix before the names of tools and prompts, and in the URIs of resources."""

from __future__ import annotations

from fastrpc.compat.apps.renderer import renderer_at
from fastrpc.compat.transforms.base import Transform
from fastrpc.definitions.addresses import Addresses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fastrpc.compat.components.versions import VersionSpec


def address_in(namespace: str, uri: str) -> str:
    """Return a URI, or a template of URIs, with the namespace as the first part of its path. The pages that
    render interfaces are the same everywhere."""
    if renderer_at(uri) is not None:
        return uri
    scheme, mark, path = uri.partition("://")
    return f"{scheme}://{namespace}/{path}" if mark else uri


def address_outside(namespace: str, uri: str) -> str | None:
    """Return the URI without the namespace; None if it has none."""
    if renderer_at(uri) is not None:
        return uri
    scheme, mark, path = uri.partition("://")
    first, slash, rest = path.partition("/")
    return f"{scheme}://{rest}" if mark and slash and first == namespace else None


class AddressesIn(Addresses):
    """The addresses of a server that is mounted in a namespace."""

    __slots__ = ("_namespace",)

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def here(self, uri: str) -> str:
        return address_in(self._namespace, uri)

    def there(self, uri: str) -> str | None:
        return address_outside(self._namespace, uri)


class Namespace(Transform):
    """Tools and prompts are called ``prefix_name``, and resources have URIs like ``scheme://prefix/path``."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.addresses = AddressesIn(prefix)

    def _own_name(self, name: str) -> str | None:
        start = f"{self._prefix}_"
        return name[len(start) :] if name.startswith(start) else None

    def _named(self, components: Sequence[Any]) -> list[Any]:
        return [each.model_copy(update={"name": f"{self._prefix}_{each.name}"}) for each in components]

    async def _found(self, own: str | None, call_next: Any, version: Any, update: dict[str, Any]) -> Any:
        found = None if own is None else await call_next(own, version=version)
        return None if found is None else found.model_copy(update=update)

    async def list_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        return self._named(tools)

    async def get_tool(self, name: str, call_next: Any, *, version: VersionSpec | None = None) -> Any:
        return await self._found(self._own_name(name), call_next, version, {"name": name})

    async def list_prompts(self, prompts: Sequence[Any]) -> Sequence[Any]:
        return self._named(prompts)

    async def get_prompt(self, name: str, call_next: Any, *, version: VersionSpec | None = None) -> Any:
        return await self._found(self._own_name(name), call_next, version, {"name": name})

    async def list_resources(self, resources: Sequence[Any]) -> Sequence[Any]:
        return [each.model_copy(update={"uri": address_in(self._prefix, each.uri)}) for each in resources]

    async def get_resource(self, uri: str, call_next: Any, *, version: VersionSpec | None = None) -> Any:
        return await self._found(address_outside(self._prefix, uri), call_next, version, {"uri": uri})

    async def list_resource_templates(self, templates: Sequence[Any]) -> Sequence[Any]:
        return [self._template(each) for each in templates]

    async def get_resource_template(
        self, uri: str, call_next: Any, *, version: VersionSpec | None = None
    ) -> Any:
        own = address_outside(self._prefix, uri)
        found = None if own is None else await call_next(own, version=version)
        return None if found is None else self._template(found)

    def _template(self, template: Any) -> Any:
        return template.model_copy(update={"uri_template": address_in(self._prefix, template.uri_template)})

    def __repr__(self) -> str:
        return f"Namespace({self._prefix!r})"
