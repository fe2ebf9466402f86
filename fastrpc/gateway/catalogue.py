"""The entries that a gateway lists: those of its servers, renamed, as far as the rules show them.

Entries are copies, in the order of the servers, and follow changes of the originals. If two have the same
name or URI, the earlier server's is listed and the other one is logged once. A call of a copy costs as much
as a call of the original. `fastrpc.gateway` manages the connections.
"""

from __future__ import annotations

from copy import copy

from fastrpc import diagnostics
from fastrpc.definitions.completion import key_of
from fastrpc.gateway.names import SCHEME, is_listable, listed_name
from fastrpc.protocol.uri_template import normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fastrpc.definitions.registry import Registries, Registry
    from fastrpc.gateway.member import GatewayMember

RENAMED = ("tool", "prompt")


class GatewayCatalogue:
    """Keeps the registries of a gateway equal to the features of its `members`. `shows` is called for each
    tool with the server's name, the tool's name, and its listed name."""

    def __init__(self, registries: Registries, shows: Callable[[str, str, str], bool]) -> None:
        self.members: Sequence[GatewayMember] = ()
        self._registries = registries
        self._shows = shows
        self._copies: dict[int, tuple[Any, Any]] = {}  # original and copy, by the original's identity
        self._owners: dict[tuple[str, str], GatewayMember] = {}
        self._log = diagnostics.Once("warning")

    def owner_of(self, kind: str, key: str) -> GatewayMember | None:
        """Return the member whose entry is listed with a name or URI, None if there is no such entry."""
        if kind == "resource":
            key = normal(key)
            if _is_own(key):
                return None
        found = self._owners.get((kind, key))
        if found is None and kind == "resource":
            for template in self._registries.templates:
                if template.match(key) is not None:
                    return self._owners.get((template.kind, template.key))
        return found

    def has_resource(self, uri: str) -> bool:
        """Whether there is a resource at a URI, including the gateway's status."""
        uri = normal(uri)
        is_own = any(uri.startswith(provider.prefix) for provider in self._registries.providers)
        return is_own or self.owner_of("resource", uri) is not None

    def tools_of(self, member: GatewayMember) -> list[str]:
        """Return the listed names of a server's tools."""
        return [name for (kind, name), owner in self._owners.items() if kind == "tool" and owner is member]

    def renew(self) -> None:
        """Update the registries from those of the members."""
        copies: dict[int, tuple[Any, Any]] = {}
        owners: dict[tuple[str, str], GatewayMember] = {}
        registries = [each for each in self._registries if each.kind != "provider"]  # proxies have none
        wanted = [(registry, self._wanted(registry, copies, owners)) for registry in registries]
        self._copies, self._owners = copies, owners
        for registry, entries in wanted:
            if [*map(id, registry)] != [*map(id, entries)]:
                registry.replace([entry.key for entry in registry], entries)

    def _wanted(
        self,
        registry: Registry[Any],
        copies: dict[int, tuple[Any, Any]],
        owners: dict[tuple[str, str], GatewayMember],
    ) -> list[Any]:
        found = []
        for member in self.members:
            if member.registries is None:
                continue
            for original in next(each for each in member.registries if each.kind == registry.kind):
                if registry.kind in RENAMED and not is_listable(original.name):
                    continue
                if registry.kind not in RENAMED and _is_own(original.key):
                    self._tell(member, "the gateway itself uses it", registry.kind, original.key)
                    continue
                kept = self._copies.get(id(original))
                shown = self._copy_of(original, member) if kept is None else kept[1]
                copies[id(original)] = original, shown
                if registry.kind == "tool" and not (
                    self._shows(member.name, original.name, shown.name) and member.offers(original.name)
                ):
                    continue
                key = normal(shown.key) if registry.kind == "resource" else shown.key
                place = registry.kind, key
                if place in owners:
                    self._tell(member, f"{owners[place].name} has one with this name, too", *place)
                    continue
                owners[place] = member
                found.append(shown)
        return found

    def _tell(self, member: GatewayMember, why: str, kind: str, key: str) -> None:
        if kind != "completion":
            self._log.write(f"{member.name}: the {kind} {key:.200} is left out: {why}")

    @staticmethod
    def _copy_of(original: Any, member: GatewayMember) -> Any:
        shown = copy(original)
        if shown.kind in RENAMED:
            shown.name = listed_name(member.prefix, original.name)
        elif shown.kind == "completion" and "{" not in shown.target:
            shown.target = listed_name(member.prefix, original.target)
            shown.name = key_of(shown.target, shown.argument)
        return shown


def _is_own(uri: str) -> bool:
    """Whether a URI or URI template has the gateway's scheme."""
    return uri[: len(SCHEME) + 1].lower() == f"{SCHEME}:"
