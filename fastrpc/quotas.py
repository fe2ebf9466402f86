"""How much memory clients may have a server keep for them: each session, each caller, and all together.

A `Quota` counts bytes, as estimated by `size_of`; what does not fit is refused before it is kept. Nothing of
this runs while a tool is called: only where something is to stay, such as a session's ``clientInfo`` or the
address of a resource to which it has subscribed. Importing this module imports nothing.
"""

from __future__ import annotations

from sys import getsizeof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SESSION_BYTES = 1024 * 1024
"""What one session, or one stream of changes, may have kept."""

CALLER_BYTES = 16 * 1024 * 1024
"""What all sessions and streams of one caller may have kept, in one process."""

ALL_BYTES = 128 * 1024 * 1024
"""What those of all callers may have kept, in one process."""

ENTRY_BYTES = 96
"""What a place in a set or dict costs, besides its key."""


class Quota:
    """Bytes that may be kept; `outer` bounds several quotas, this one among them."""

    __slots__ = ("__weakref__", "limit", "make_room", "outer", "used")

    def __init__(self, limit: int, outer: Quota | None = None) -> None:
        self.limit = limit
        self.used = 0
        self.outer = outer
        self.make_room: Callable[[], bool] | None = None
        """Called when a quota inside of this one asks for more than there is: gives something up, or returns
        False."""

    def take(self, size: int) -> bool:
        """Count `size` more bytes; False, and nothing has happened, if they do not fit."""
        if self.used + size > self.limit:
            return False
        outer = self.outer
        while outer is not None and not outer.fits(size):
            if outer.make_room is None or not outer.make_room():
                return False
        self._add(size)
        return True

    def fits(self, size: int) -> bool:
        """Whether there is room for `size` more bytes, here and in what is around this."""
        return self.used + size <= self.limit and (self.outer is None or self.outer.fits(size))

    def release(self, size: int) -> None:
        """`size` bytes are kept no longer."""
        self._add(-size)

    def close(self) -> None:
        """Nothing is kept any more, and nothing will be."""
        self.release(self.used)
        self.limit = 0

    def _add(self, size: int) -> None:
        self.used += size
        if self.outer is not None:
            self.outer._add(size)


class Quotas:
    """The quotas of one process's callers, as long as something is kept for them."""

    def __init__(self) -> None:
        from weakref import WeakValueDictionary

        self._all = Quota(ALL_BYTES)
        self._callers: WeakValueDictionary[str, Quota] = WeakValueDictionary()

    @property
    def used(self) -> int:
        """How many bytes are kept for all callers."""
        return self._all.used

    def of(self, principal: str) -> Quota:
        """Return the quota of a caller. It is forgotten when nobody holds it any more."""
        quota = self._callers.get(principal)
        if quota is None:
            quota = self._callers[principal] = Quota(CALLER_BYTES, self._all)
        return quota


def size_of(value: Any, most: int) -> int:
    """Return about how many bytes of memory a JSON value takes; some number above `most` if it takes more.

    No more is looked at than it takes to find that out.
    """
    size = 0
    waiting = [value]
    while waiting and size <= most:
        each = waiting.pop()
        size += getsizeof(each) + 8
        if isinstance(each, dict):
            if size <= most:
                waiting += each.keys()
                waiting += each.values()
        elif isinstance(each, list) and size <= most:
            waiting += each
    return size
