"""How far a list of another server is followed, page by page (MCP, utilities: pagination).

A server may name next pages endlessly, name the same page again, or send pages of any size. A list therefore
ends at a repeated cursor, or at a limit of pages, bytes or seconds. The pages received until then are used,
and the end is logged. Costs nothing for a list of one page.
"""

from __future__ import annotations

from time import monotonic

from fastrpc import diagnostics
from fastrpc.quotas import size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from typing import Any

MOST_PAGES = 1000
MOST_BYTES = 64 * 1024 * 1024
"""Memory, as estimated by `fastrpc.quotas`, of all pages of a list that has several."""


class FollowedPages:
    """The pages of a list: of `method` of `peer`, which the log names, in at most `seconds` (0: any time)."""

    def __init__(self, method: str, peer: str, seconds: float = 0) -> None:
        self._seconds = seconds
        self._took = 0.0
        self._method = method
        self._peer = peer
        self._pages = 0
        self._size = 0
        self._cursors: set[int] = set()

    async def read_by(
        self, request: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the result of each page, which ``request(method, params)`` returns. Raises what it raises."""
        params: dict[str, Any] | None = {}
        while params is not None:
            began = monotonic()
            result = await request(self._method, params)
            took = monotonic() - began
            yield result
            params = self.next(result, took)

    def next(self, result: dict[str, Any], took: float = 0) -> dict[str, Any] | None:
        """Return the params of the next request after a result that took so many seconds; None at the end."""
        cursor = result.get("nextCursor")
        if not cursor:  # some servers end with an empty one
            return None
        self._pages += 1
        self._took += took
        self._size += size_of(result, MOST_BYTES)
        if not isinstance(cursor, str):
            return self._end("nextCursor is not a string")
        seen = hash(cursor)  # what it says may be long
        if seen in self._cursors:
            return self._end("a cursor is repeated")
        self._cursors.add(seen)
        if self._pages >= MOST_PAGES:
            return self._end(f"it has more than {MOST_PAGES:,} pages")
        if self._size > MOST_BYTES:
            return self._end(f"it takes more than {MOST_BYTES // (1024 * 1024)} MiB of memory")
        if self._took > self._seconds > 0:
            return self._end(f"it takes longer than {self._seconds:g} s")
        return {"cursor": cursor}

    def _end(self, why: str) -> dict[str, Any] | None:
        diagnostics.write(
            "warning", f"{self._peer}: {self._method} is read only up to page {self._pages:,}: {why}"
        )
        return None
