"""`Transform`, the base class, and `CatalogTransform`, for those that show other components in the place of
the real ones. Each of a transform's methods is a coroutine; those that are not overridden change nothing."""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial

from fastrpc.compat.apps.addresses import is_for_models
from fastrpc.compat.components.versions import deduplicated
from fastrpc.definitions.addresses import UNCHANGED, Addresses, AddressesInTurn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from fastrpc.compat.components.objects import Prompt, Resource, ResourceTemplate
    from fastrpc.compat.components.tools import Tool
    from fastrpc.compat.components.versions import VersionSpec
    from fastrpc.compat.context import Context

    GetToolNext = Callable[..., Awaitable[Tool | None]]
    """Finds the tool that a transform changes: called with a name, and ``version=``."""
    GetResourceNext = Callable[..., Awaitable[Resource | None]]
    """Finds the resource that a transform changes: called with a URI, and ``version=``."""
    GetResourceTemplateNext = Callable[..., Awaitable[ResourceTemplate | None]]
    """Finds the template that a transform changes: called with a URI, and ``version=``."""
    GetPromptNext = Callable[..., Awaitable[Prompt | None]]
    """Finds the prompt that a transform changes: called with a name, and ``version=``."""
else:
    GetToolNext = GetResourceNext = GetResourceTemplateNext = GetPromptNext = object


async def transformed(transforms: Sequence[Any], method: str, components: Sequence[Any]) -> Sequence[Any]:
    """Return what transforms, the innermost first, show of a list; `method` is their ``list_…``."""
    for transform in transforms:
        components = await getattr(transform, method)(components)
    return components


async def looked_up(
    transforms: Sequence[Any], method: str, within: Any, key: str, version: VersionSpec | None
) -> Any:
    """Return what transforms, the innermost first, find for a name; `method` is their ``get_…``, and
    ``within(key, version=version)`` finds the component that they change."""
    call_next = within
    for transform in transforms:
        call_next = partial(getattr(transform, method), call_next=call_next)
    return await call_next(key, version=version)


class AddressesThrough(Addresses):
    """The addresses of a server within the transforms of providers and servers, the innermost first."""

    __slots__ = ("_stages",)

    def __init__(self, stages: Sequence[Any]) -> None:
        self._stages = stages

    def _steps(self) -> list[Addresses]:
        """Return what the transforms, which may have been added since, do to addresses."""
        every = [transform for stage in self._stages for transform in stage.transforms]
        return [getattr(transform, "addresses", UNCHANGED) for transform in every]

    def here(self, uri: str) -> str:
        return AddressesInTurn(self._steps()).here(uri)

    def there(self, uri: str) -> str | None:
        return AddressesInTurn(self._steps()).there(uri)


class Transform:
    """Changes components: ``list_…`` gets all and returns others; ``get_…`` gets a name, and finds the
    component within by ``await call_next(name, version=version)``."""

    addresses: Addresses = UNCHANGED
    """What it does to the URIs of resources, for notifications of their changes."""

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the tools to show in place of those given."""
        return tools

    async def get_tool(
        self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None
    ) -> Tool | None:
        """Return the tool that clients know by a name; None if there is none."""
        return await call_next(name, version=version)

    async def list_resources(self, resources: Sequence[Resource]) -> Sequence[Resource]:
        """Return the resources to show in place of those given."""
        return resources

    async def get_resource(
        self, uri: str, call_next: GetResourceNext, *, version: VersionSpec | None = None
    ) -> Resource | None:
        """Return the resource that clients know by a URI; None if there is none."""
        return await call_next(uri, version=version)

    async def list_resource_templates(
        self, templates: Sequence[ResourceTemplate]
    ) -> Sequence[ResourceTemplate]:
        """Return the templates to show in place of those given."""
        return templates

    async def get_resource_template(
        self, uri: str, call_next: GetResourceTemplateNext, *, version: VersionSpec | None = None
    ) -> ResourceTemplate | None:
        """Return the template that clients know by a URI; None if there is none."""
        return await call_next(uri, version=version)

    async def list_prompts(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        """Return the prompts to show in place of those given."""
        return prompts

    async def get_prompt(
        self, name: str, call_next: GetPromptNext, *, version: VersionSpec | None = None
    ) -> Prompt | None:
        """Return the prompt that clients know by a name; None if there is none."""
        return await call_next(name, version=version)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class CatalogTransform(Transform):
    """A transform whose ``transform_…`` methods show other components, and whose ``get_…_catalog`` methods
    return the real ones."""

    def __init__(self) -> None:
        self._passes: ContextVar[bool] = ContextVar("fastrpc_catalog", default=False)

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return tools if self._passes.get() else await self.transform_tools(tools)

    async def list_resources(self, resources: Sequence[Resource]) -> Sequence[Resource]:
        return resources if self._passes.get() else await self.transform_resources(resources)

    async def list_resource_templates(
        self, templates: Sequence[ResourceTemplate]
    ) -> Sequence[ResourceTemplate]:
        return templates if self._passes.get() else await self.transform_resource_templates(templates)

    async def list_prompts(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return prompts if self._passes.get() else await self.transform_prompts(prompts)

    async def transform_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the tools to show in place of the real ones."""
        return tools

    async def transform_resources(self, resources: Sequence[Resource]) -> Sequence[Resource]:
        """Return the resources to show in place of the real ones."""
        return resources

    async def transform_resource_templates(
        self, templates: Sequence[ResourceTemplate]
    ) -> Sequence[ResourceTemplate]:
        """Return the templates to show in place of the real ones."""
        return templates

    async def transform_prompts(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        """Return the prompts to show in place of the real ones."""
        return prompts

    async def get_tool_catalog(self, ctx: Context, *, run_middleware: bool = True) -> Sequence[Tool]:
        """Return the server's real tools, of several versions the highest; not those that are for user
        interfaces alone: what is made of the list reaches a model as text, past the host that keeps them
        apart."""
        return deduplicated(filter(is_for_models, await self._real(ctx.fastmcp.list_tools)))

    async def get_resource_catalog(self, ctx: Context, *, run_middleware: bool = True) -> Sequence[Resource]:
        """Return the server's real resources."""
        return await self._real(ctx.fastmcp.list_resources)

    async def get_resource_template_catalog(
        self, ctx: Context, *, run_middleware: bool = True
    ) -> Sequence[ResourceTemplate]:
        """Return the server's real templates."""
        return await self._real(ctx.fastmcp.list_resource_templates)

    async def get_prompt_catalog(self, ctx: Context, *, run_middleware: bool = True) -> Sequence[Prompt]:
        """Return the server's real prompts."""
        return await self._real(ctx.fastmcp.list_prompts)

    async def _real(self, listing: Callable[[], Awaitable[Sequence[Any]]]) -> Sequence[Any]:
        token = self._passes.set(True)
        try:
            return await listing()
        finally:
            self._passes.reset(token)
