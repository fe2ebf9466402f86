"""Which components of a server are offered: ``mcp.enable(…)`` and ``mcp.disable(…)`` of FastMCP 3 and 4.

A component that is not offered is taken out of its registry and kept here, so that calls and lists cost what
they cost without rules. The last rule that matches a component decides.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from fastrpc.definitions.registry import Registries

REGISTRIES = {"tool": "tools", "resource": "resources", "template": "templates", "prompt": "prompts"}
"""The registry of each kind of component."""
CRITERIA = ("names", "keys", "tags", "components", "version", "only")


class VisibilityRule:
    """One rule: whether what matches is offered. Raises TypeError for an unknown criterion."""

    def __init__(self, offers: bool, criteria: dict[str, Any]) -> None:
        for name in criteria:
            if name not in CRITERIA:
                raise TypeError(f"{name}: expected one of {', '.join(CRITERIA)}")
        self.offers = offers
        self.only = bool(criteria.get("only"))
        self.version: Any = criteria.get("version")
        self.criteria = {
            name: set(value)
            for name, value in criteria.items()
            if name not in ("only", "version") and value is not None
        }
        for name, given in criteria.items():
            if name not in ("only", "version") and isinstance(given, str):
                raise TypeError(f"{name}: expected a set of texts, got {given!r:.60}")

    def matches(self, kind: str, entry: Any) -> bool:
        """Whether it is about an entry of a registry, or a component object."""
        own = (entry.meta or {}).get("fastmcp") or {}
        tags = getattr(entry, "tags", None) or own.get("tags", ())
        version = getattr(entry, "version", None) or own.get("version")
        if self.version is not None and not self.version.matches(version, match_none=False):
            return False
        return are_met(self.criteria, kind, entry, tags, version)


def are_met(criteria: dict[str, set[str]], kind: str, thing: Any, tags: Iterable[str], version: Any) -> bool:
    """Whether an entry or a component object of these tags and this version meets all criteria: `names`,
    `keys`, `tags`, `components` (kinds)."""
    values = {
        "names": {thing.name, thing.key},
        "keys": {thing.key, f"{kind}:{thing.key}", f"{kind}:{thing.key}@{version or ''}"},
        "tags": set(tags),
        "components": {kind},
    }
    return all(values[name] & wanted for name, wanted in criteria.items())


class ComponentVisibility:
    """The rules of one server, and the entries that are not offered by them."""

    def __init__(self, registries: Registries) -> None:
        self._registries = registries
        self._rules: list[VisibilityRule] = []
        self._hidden: dict[str, dict[str, Any]] = {kind: {} for kind in REGISTRIES}
        self._is_applying = False

    def add(self, offers: bool, criteria: dict[str, Any]) -> None:
        """Add a rule, and apply all of them now and to what is added later. Raises TypeError."""
        rule = VisibilityRule(offers, criteria)
        if not self._rules:
            for attribute in REGISTRIES.values():
                getattr(self._registries, attribute).watchers.insert(0, self._changed)
        self._rules.append(rule)
        for kind in REGISTRIES:
            self._apply(kind)

    def hidden(self, kind: str) -> list[Any]:
        """Return the entries of a kind that are not offered."""
        return [*self._hidden[kind].values()]

    def marked(self, kind: str, component: Any) -> Any:
        """Return a component object, which no registry has; a marked copy if some rule is about it."""
        offers = self._decision(kind, component)
        return component if offers is None else component.model_copy(update={"enabled": offers})

    def _changed(self, kind: str) -> None:
        if not self._is_applying and kind in REGISTRIES:
            self._apply(kind)

    def _apply(self, kind: str) -> None:
        registry = getattr(self._registries, REGISTRIES[kind])
        hidden = self._hidden[kind]
        offered = {entry.key: entry for entry in registry}
        gone = [key for key, entry in offered.items() if not self._offers(kind, entry)]
        back = [entry for key, entry in hidden.items() if key not in offered and self._offers(kind, entry)]
        if not gone and not back:
            return
        hidden.update({key: offered[key] for key in gone})
        for entry in back:
            del hidden[entry.key]
        self._is_applying = True
        try:
            registry.replace(gone, back)
        finally:
            self._is_applying = False

    def _offers(self, kind: str, entry: Any) -> bool:
        return self._decision(kind, entry) is not False

    def _decision(self, kind: str, thing: Any) -> bool | None:
        """Whether an entry or a component object is offered; None if no rule is about it."""
        found = None
        for rule in self._rules:
            if rule.matches(kind, thing):
                found = rule.offers
            elif rule.only:
                found = not rule.offers
        return found
