"""`CacheHint` of the official SDK 2.x: for how long, and by whom, results of a method may be kept by clients.

``cache_hints={"tools/list": CacheHint(ttl_ms=60_000, scope="public")}`` of a server (MCP 2026-07-28,
caching). A method that is not named has what the SDK sends for it: 0 ms, ``private``.
"""

from __future__ import annotations

from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCOPES = ("public", "private")
METHODS = {
    "": "server/discover",
    "contents": "resources/read",
    "prompts": "prompts/list",
    "resourceTemplates": "resources/templates/list",
    "resources": "resources/list",
    "tools": "tools/list",
}
"""The method of each result that `ListPages.caching` is asked about."""
CACHEABLE_METHODS = frozenset(METHODS.values())
"""The methods whose results may carry a `CacheHint`."""


class CacheHint:
    """`ttl_ms` milliseconds; `scope`: by every client, or by the one that has asked. Raises ValueError."""

    __slots__ = ("scope", "ttl_ms")

    def __init__(self, ttl_ms: int = 0, scope: str = "private") -> None:
        if ttl_ms < 0:
            raise ValueError(f"ttl_ms must be >= 0, got {ttl_ms}")
        if scope not in SCOPES:
            raise ValueError(f"scope must be 'public' or 'private', got {scope!r:.80}")
        self.ttl_ms = ttl_ms
        self.scope = scope

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CacheHint) and (self.ttl_ms, self.scope) == (other.ttl_ms, other.scope)

    def __hash__(self) -> int:
        return hash((self.ttl_ms, self.scope))

    def __repr__(self) -> str:
        return f"CacheHint(ttl_ms={self.ttl_ms}, scope={self.scope!r})"


def caching(hints: dict[str, dict[str, Any]], version: str, what: str) -> dict[str, Any]:
    """Return the members of a result that `ListPages.caching` is asked about."""
    if version != STATELESS:
        return {}
    return dict(hints.get(METHODS[what]) or {"ttlMs": 0, "cacheScope": "private"})


def members_of(cache_hints: Any) -> dict[str, dict[str, Any]]:
    """Return, for each method that hints are given for, the members of its results. Raises ValueError for
    another method, and TypeError for what is no CacheHint."""
    unknown = sorted(repr(method) for method in cache_hints or () if method not in CACHEABLE_METHODS)
    if unknown:
        expected = ", ".join(sorted(CACHEABLE_METHODS))
        raise ValueError(f"cache_hints: expected some of {expected}; got {', '.join(unknown):.80}")
    found = {}
    for method, hint in (cache_hints or {}).items():
        if not isinstance(hint, CacheHint):
            raise TypeError(f"cache_hints: {method}: expected a CacheHint, got {type(hint).__name__}")
        found[method] = {"ttlMs": hint.ttl_ms, "cacheScope": hint.scope}
    return found
