"""Versions of components: their order, and `VersionSpec`, which selects some.

A version is a text. Numbers with dots are compared by value (``1.10`` is above ``1.9``), with ``a``, ``b``,
``rc``, ``post`` and ``dev`` as Python's packages have them; any other text is above these, in alphabetical
order. A component without a version is below all. Pure functions.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Order = tuple[Any, ...]

_NUMBERED = re.compile(r"v*(\d+(?:\.\d+)*)(?:[.\-_]?(a|b|rc|post|dev)[.\-_]?(\d*))?", re.IGNORECASE)
_PHASES = {"dev": -4, "a": -3, "b": -2, "rc": -1, "post": 1}


def order(version: str | None) -> Order:
    """Return what orders versions."""
    if version is None:
        return (0,)
    found = _NUMBERED.fullmatch(version)
    if found is None:
        return 2, version
    numbers = [int(part) for part in found[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return 1, tuple(numbers), _PHASES.get((found[2] or "").lower(), 0), int(found[3] or 0)


class VersionSpec:
    """Selects versions: `eq`, this one; else those from `gte` on, and below `lt`."""

    __slots__ = ("eq", "gte", "lt")

    def __init__(self, gte: str | None = None, lt: str | None = None, eq: str | None = None) -> None:
        self.gte = gte
        self.lt = lt
        self.eq = eq

    def matches(self, version: str | None, *, match_none: bool = True) -> bool:
        """Whether a version is selected; `match_none`: whether a component without one is."""
        if version is None:
            return match_none
        place = order(version)
        if self.eq is not None:
            return place == order(self.eq)
        if self.gte is not None and place < order(self.gte):
            return False
        return self.lt is None or place < order(self.lt)

    def intersect(self, other: VersionSpec | None) -> VersionSpec:
        """Return what selects the versions that both select."""
        if other is None:
            return self
        for one, another in ((self, other), (other, self)):
            if one.eq is not None:
                return one if another.matches(one.eq) else VersionSpec(gte="0", lt="0")
        lowest = max((spec.gte for spec in (self, other) if spec.gte is not None), key=order, default=None)
        end = min((spec.lt for spec in (self, other) if spec.lt is not None), key=order, default=None)
        return VersionSpec(lowest, end)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VersionSpec):
            return NotImplemented
        return (self.gte, self.lt, self.eq) == (other.gte, other.lt, other.eq)

    def __hash__(self) -> int:
        return hash((self.gte, self.lt, self.eq))

    def __repr__(self) -> str:
        return f"VersionSpec(gte={self.gte!r}, lt={self.lt!r}, eq={self.eq!r})"


def highest(components: Iterable[Any]) -> Any:
    """Return the component with the highest version, of equal ones the first; None if there are none."""
    return max(components, key=lambda each: order(each.version), default=None)


def wanted(components: Iterable[Any], version: VersionSpec | None) -> list[Any]:
    """Return the components of a selected version; all of them without a selection."""
    return [each for each in components if version is None or version.matches(each.version)]


def deduplicated(components: Iterable[Any]) -> list[Any]:
    """Return of the components with one key that with the highest version; its ``meta`` names all."""
    groups: dict[str, list[Any]] = {}
    for each in components:
        groups.setdefault(each.key, []).append(each)
    found = []
    for group in groups.values():
        best = highest(group)
        versions = {each.version for each in group if each.version is not None}
        if versions:
            meta = dict(best.meta or {})
            listed = sorted(versions, key=order, reverse=True)
            meta["fastmcp"] = {**meta.get("fastmcp", {}), "versions": listed}
            best = best.model_copy(update={"meta": meta})
        found.append(best)
    return found
