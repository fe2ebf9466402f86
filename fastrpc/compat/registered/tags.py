"""The tags of a component that report changes in place: ``tool.tags.add("slow")``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class Tags(set[str]):
    """A set that calls `changed` when something has been added to it or removed."""

    def __init__(self, tags: Iterable[str] = (), changed: Callable[[], object] | None = None) -> None:
        super().__init__(tags or ())
        self._changed = changed

    def __reduce__(self) -> Any:
        return set, (list(self),)  # a copy belongs to no component


def _telling(name: str) -> Any:
    method = getattr(set, name)

    def change(self: Tags, *values: Any) -> Any:
        found = method(self, *values)
        if self._changed is not None:
            self._changed()
        return found

    return change


for _name in ("add", "clear", "discard", "pop", "remove", "update", "difference_update", "__ior__"):
    setattr(Tags, _name, _telling(_name))
