"""`ToolTransform`: tools that are renamed, or have other arguments (`ToolTransformConfig`)."""

from __future__ import annotations

from fastrpc.compat.transforms.base import Transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fastrpc.compat.components.tools import Tool, ToolTransformConfig
    from fastrpc.compat.components.versions import VersionSpec


class ToolTransform(Transform):
    """Changes tools by their names: `transforms` has a `ToolTransformConfig` for each.

    Raises ValueError for two tools of one name.
    """

    def __init__(self, transforms: Mapping[str, ToolTransformConfig]) -> None:
        self._transforms = dict(transforms)
        self._originals: dict[str, str] = {}
        for original, change in self._transforms.items():
            shown = change.name or original
            if shown in self._originals:
                both = f"{self._originals[shown]!r} and {original!r}"
                raise ValueError(f"ToolTransform: {both} would both be called {shown!r}")
            self._originals[shown] = original

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return [self._changed(tool) for tool in tools]

    async def get_tool(self, name: str, call_next: Any, *, version: VersionSpec | None = None) -> Tool | None:
        found = await call_next(self._originals.get(name, name), version=version)
        changed = None if found is None else self._changed(found)
        return changed if changed is not None and changed.name == name else None

    def _changed(self, tool: Tool) -> Tool:
        change = self._transforms.get(tool.name)
        return tool if change is None else change.apply(tool)

    def __repr__(self) -> str:
        return f"ToolTransform({list(self._transforms)!r})"
