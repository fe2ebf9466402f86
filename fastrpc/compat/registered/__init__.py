"""Components as the program sees them that has registered them: what is set on them changes what clients see
and call.

The originals hand out the objects themselves. A copy is a component by itself. `RegisteredTool` is the object
of a tool, `Registered` those of resources, templates and prompts.
"""

from __future__ import annotations

from copy import copy, deepcopy

from fastrpc.compat.components.visibility import REGISTRIES
from fastrpc.compat.registered.tags import Tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OF_THE_SERVER = ("_server", "_declared")
"""Attributes that a copy does not have."""


class LiveComponent:
    """What a server has as a component, of a kind of `REGISTRIES`."""

    _kind = ""
    _plain: Any
    """The class of its copies."""
    _server: Any = None

    def _write(self, name: str, value: Any) -> None:
        """Change what is served as an attribute has been changed."""
        raise NotImplementedError

    def _tags_changed(self) -> None:
        self.tags = self.__dict__["tags"]

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "tags" and not isinstance(value, Tags):
            value = Tags(value, self._tags_changed)
        super().__setattr__(name, value)
        if self._server is not None and not name.startswith("_"):
            self._write(name, value)
            self._registry().changed()

    def _registry(self) -> Any:
        return getattr(self._server.registries, REGISTRIES[self._kind])

    def _serve_instead(self, former: Any, changed: Any) -> None:
        """Serve another definition, in the place of the former."""
        registry = self._registry()
        entries = [changed if entry is former else entry for entry in registry]
        registry.replace([entry.key for entry in registry], entries)

    def __copy__(self) -> Any:
        found: Any = self._plain.__new__(self._plain)
        found.__dict__.update(
            {name: value for name, value in vars(self).items() if name not in OF_THE_SERVER}
        )
        found.tags = set(self.__dict__["tags"])
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return deepcopy(copy(self), memo)
