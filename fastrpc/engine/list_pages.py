"""Makes the results of list requests: a page of the entries that a principal sees, encoded as JSON.

The first page of each list is encoded once for each version, and again after a registry has changed
(`forget`). Where filters decide what is seen, it is encoded once for each class of callers
(`fastrpc.engine.list_filter`).
"""

from __future__ import annotations

from fastrpc.json_encoding import to_json
from fastrpc.protocol.pagination import page_of
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fastrpc.definitions.registry import Registry
    from fastrpc.engine.results import Results
    from fastrpc.engine.visibility import VisibilityFilters


class ListPages:
    """The pages of one server's lists."""

    def __init__(self, server: Any, filters: VisibilityFilters, results: Results) -> None:
        self.server = server
        self.size: int = server.page_size
        """Entries of a page."""
        self.ttl_ms: int = server.ttl_ms
        self.cache_scope: str = server.cache_scope
        self._filters = filters
        self._results = results
        self._tools = server.registries.tools
        self._first: dict[str, bytes] = {}
        """The first page of each list in each version, as a caller without filters sees it."""

    def forget(self) -> None:
        """Encode the pages anew: entries have changed."""
        self._first.clear()

    def of_registry(
        self, member: str, registry: Registry[Any], version: str, cursor: str | None, principal: str
    ) -> bytes:
        """Return a page of a list, as a principal sees it, as the JSON of its result, whose name for the
        entries is `member`. Raises InvalidParams for an unknown cursor, InternalError if a filter fails."""
        name = f"{member} {version}"
        view = self._filters.view_of(principal)
        if cursor is None:
            encoded: bytes | None = (self._first if view is None else view.pages).get(name)
            if encoded is not None:
                return encoded
        entries = list(registry) if view is None else view.entries(registry)
        page = self.of_entries(member, entries, cursor, version)
        if cursor is None and view is None:
            self._first[name] = page
        elif cursor is None and view is not None:
            view.keep_page(name, page)
        return page

    def of_entries(self, member: str, entries: Sequence[Any], cursor: str | None, version: str) -> bytes:
        """Return the page of entries that a cursor names, None the first, as the JSON of its result. Raises
        InvalidParams for an unknown cursor."""
        start, end, following = page_of([entry.key for entry in entries], cursor, self.size)
        return self.result(member, entries[start:end], following, version)

    def result(self, member: str, entries: Sequence[Any], following: str | None, version: str) -> bytes:
        """Return the JSON of a list's result: entries, and the cursor of the next page, None at the end."""
        rest: dict[str, Any] = {} if following is None else {"nextCursor": following}
        rest |= self.caching(version, member)
        if "cacheScope" in rest and self._filters.is_filtered:
            rest["cacheScope"] = "private"
        if member == "tools" and (published := self._tools.published):
            from fastrpc.engine.listing import renamed

            entries = renamed(entries, published)
        try:
            text = to_json({member: [entry.descriptor(version) for entry in entries], **rest})
        except Exception:
            from fastrpc.engine.listing import writable

            text = to_json({member: writable(entries, version), **rest})
        return text[:-1] + self._results.ending(version)

    def caching(self, version: str, what: str = "") -> dict[str, Any]:
        """Return the hints that a version's cacheable results carry (MCP 2026-07-28: caching): of a list,
        which `what` is the member with the entries of, or of the server's description."""
        return {"ttlMs": self.ttl_ms, "cacheScope": self.cache_scope} if version == STATELESS else {}
