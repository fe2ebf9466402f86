"""Limits the memory that the server uses to store clients' data: for each session, each principal, and all.

A `Quota` counts bytes, estimated by `size_of`; what does not fit is refused before it is stored. Tool calls
do not use quotas, only data that outlives a request does: a session's ``clientInfo``, or the URI of a
subscribed resource. Importing this module imports nothing.
"""

from __future__ import annotations

from sys import getsizeof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SESSION_BYTES = 1024 * 1024
"""Bytes that one session, or one stream of changes, may store."""

CALLER_BYTES = 16 * 1024 * 1024
"""Bytes that all sessions and streams of one principal may store, in one process."""

ALL_BYTES = 128 * 1024 * 1024
"""Bytes that all principals together may store, in one process."""

ENTRY_BYTES = 96
"""Bytes of a place in a set or dict, besides its key."""


class Quota:
    """A limit on bytes. `outer` limits several quotas together, this one among them."""

    __slots__ = ("__weakref__", "limit", "make_room", "outer", "used")

    def __init__(self, limit: int, outer: Quota | None = None) -> None:
        self.limit = limit
        self.used = 0
        self.outer = outer
        self.make_room: Callable[[], bool] | None = None
        """Called when an inner quota needs more than is free: releases something, or returns False."""

    def take(self, size: int) -> bool:
        """Count `size` more bytes. Return False, and count nothing, if they do not fit."""
        if self.used + size > self.limit:
            return False
        outer = self.outer
        while outer is not None and not outer.fits(size):
            if outer.make_room is None or not outer.make_room():
                return False
        self._add(size)
        return True

    def fits(self, size: int) -> bool:
        """Whether `size` more bytes fit, here and in the outer quota."""
        return self.used + size <= self.limit and (self.outer is None or self.outer.fits(size))

    def release(self, size: int) -> None:
        """Count `size` bytes less."""
        self._add(-size)

    def close(self) -> None:
        """Release everything; nothing can be taken afterwards."""
        self.release(self.used)
        self.limit = 0

    def _add(self, size: int) -> None:
        self.used += size
        if self.outer is not None:
            self.outer._add(size)


class Share:
    """The bytes of a quota that one text takes while it is read, beyond the `free` bytes of each text.

    They are released at the end of a `with`, or when the share is no longer referenced. The code that reads
    the text refers to the share, as does the code that processes it.
    """

    __slots__ = ("_free", "_quota", "_taken")

    def __init__(self, quota: Quota, free: int) -> None:
        self._quota = quota
        self._free = free
        self._taken = 0

    def covers(self, size: int) -> bool:
        """Whether a text of `size` bytes fits now; takes nothing."""
        return self._quota.fits(max(0, size - self._free - self._taken))

    def resize(self, size: int) -> bool:
        """Cover a text of `size` bytes, if it fits; else nothing changes."""
        more = max(0, size - self._free) - self._taken
        if more > 0:
            if not self._quota.take(more):
                return False
        elif more:
            self._quota.release(-more)
        self._taken += more
        return True

    def __enter__(self) -> Share:
        return self

    def __exit__(self, *exception: object) -> None:
        """Release the bytes now: the traceback of a stored exception would refer to the share."""
        self.resize(0)

    def __del__(self) -> None:
        self._quota.release(self._taken)


class Quotas:
    """The quotas of a process's principals, each stored while it counts anything."""

    def __init__(self) -> None:
        from weakref import WeakValueDictionary

        self._all = Quota(ALL_BYTES)
        self._callers: WeakValueDictionary[str, Quota] = WeakValueDictionary()

    @property
    def used(self) -> int:
        """The bytes that are stored for all principals."""
        return self._all.used

    def of(self, principal: str) -> Quota:
        """Return the quota of a principal. It is dropped when it is no longer referenced."""
        quota = self._callers.get(principal)
        if quota is None:
            quota = self._callers[principal] = Quota(CALLER_BYTES, self._all)
        return quota


def size_of(value: Any, most: int) -> int:
    """Return the estimated memory, in bytes, of a JSON value; a number above `most` if it needs more.

    Stops as soon as `most` is exceeded.
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
