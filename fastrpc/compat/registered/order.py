"""The order of a server's entries: some stay after those that are added later, as the originals list
them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def stay_last(server: Any, kind: str, keys: list[str]) -> None:
    """Have entries of a kind (``tool``, ``resource``, ``template``) stay after the others from now on."""
    server.__dict__.setdefault("_last", {}).setdefault(kind, []).extend(keys)


def put_last(server: Any, registry: Any) -> None:
    """Put them there, after an entry has been added to their registry."""
    keys = server.__dict__.get("_last", {}).get(registry.kind, ())
    entries = [registry.get(key) for key in keys if key in registry]
    if entries:
        registry.replace([entry.key for entry in entries], entries)
