"""Transforms that leave components out: `VersionFilter`, and `Visibility`, which marks them."""

from __future__ import annotations

from fastrpc.compat.components.versions import VersionSpec
from fastrpc.compat.components.visibility import are_met
from fastrpc.compat.transforms.base import Transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

KINDS = ("tool", "resource", "template", "prompt")


class EachTransform(Transform):
    """A transform that does the same with components of all kinds: `each` returns one, changed, or None."""

    def each(self, kind: str, component: Any) -> Any:
        """Return what is shown of a component; None: nothing."""
        raise NotImplementedError

    def narrowed(self, version: VersionSpec | None) -> VersionSpec | None:
        """Return which versions are looked for."""
        return version

    def _listed(self, kind: str, components: Sequence[Any]) -> list[Any]:
        shown = [self.each(kind, component) for component in components]
        return [component for component in shown if component is not None]

    async def _found(self, kind: str, name: str, call_next: Any, version: VersionSpec | None) -> Any:
        found = await call_next(name, version=self.narrowed(version))
        return None if found is None else self.each(kind, found)

    async def list_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        return self._listed("tool", tools)

    async def get_tool(self, name: str, call_next: Any, *, version: VersionSpec | None = None) -> Any:
        return await self._found("tool", name, call_next, version)

    async def list_resources(self, resources: Sequence[Any]) -> Sequence[Any]:
        return self._listed("resource", resources)

    async def get_resource(self, uri: str, call_next: Any, *, version: VersionSpec | None = None) -> Any:
        return await self._found("resource", uri, call_next, version)

    async def list_resource_templates(self, templates: Sequence[Any]) -> Sequence[Any]:
        return self._listed("template", templates)

    async def get_resource_template(
        self, uri: str, call_next: Any, *, version: VersionSpec | None = None
    ) -> Any:
        return await self._found("template", uri, call_next, version)

    async def list_prompts(self, prompts: Sequence[Any]) -> Sequence[Any]:
        return self._listed("prompt", prompts)

    async def get_prompt(self, name: str, call_next: Any, *, version: VersionSpec | None = None) -> Any:
        return await self._found("prompt", name, call_next, version)


class VersionFilter(EachTransform):
    """Leaves out versions below `version_gte`, and from `version_lt` on; with ``include_unversioned=False``
    components without a version, too. Raises ValueError without a bound."""

    def __init__(
        self,
        *,
        version_gte: str | None = None,
        version_lt: str | None = None,
        include_unversioned: bool = True,
    ) -> None:
        if version_gte is None and version_lt is None:
            raise ValueError("VersionFilter: give version_gte= or version_lt=")
        self.version_gte = version_gte
        self.version_lt = version_lt
        self.include_unversioned = include_unversioned
        self._spec = VersionSpec(gte=version_gte, lt=version_lt)

    def each(self, kind: str, component: Any) -> Any:
        is_shown = self._spec.matches(component.version, match_none=self.include_unversioned)
        return component if is_shown else None

    def narrowed(self, version: VersionSpec | None) -> VersionSpec:
        return self._spec.intersect(version)


class Visibility(EachTransform):
    """Marks the components that match as offered, or not: by `names`, `keys`, `tags`, `components` (kinds),
    `version`, or all with `match_all`. The last mark decides. Nothing matches without a criterion."""

    def __init__(
        self,
        enabled: bool,
        *,
        names: Iterable[str] | None = None,
        keys: Iterable[str] | None = None,
        version: VersionSpec | None = None,
        tags: Iterable[str] | None = None,
        components: Iterable[str] | None = None,
        match_all: bool = False,
    ) -> None:
        self._enabled = enabled
        criteria = {"names": names, "keys": keys, "tags": tags, "components": components}
        self._criteria = {name: set(value) for name, value in criteria.items() if value is not None}
        self._version = version
        self._matches_all = match_all

    def each(self, kind: str, component: Any) -> Any:
        return self.marked(kind, component)

    def marked(self, kind: str, component: Any) -> Any:
        """Return the component, or a marked copy if it matches."""
        if not self._matches(kind, component):
            return component
        return component.model_copy(update={"enabled": self._enabled})

    def _matches(self, kind: str, component: Any) -> bool:
        if self._matches_all:
            return True
        if self._version is not None and not self._version.matches(component.version, match_none=False):
            return False
        if not self._criteria:
            return self._version is not None
        return are_met(self._criteria, kind, component, component.tags or (), component.version)

    def __repr__(self) -> str:
        return f"Visibility({self._enabled!r})"


def is_enabled(component: Any) -> bool:
    """Return whether a component is offered."""
    return bool(component.enabled)
