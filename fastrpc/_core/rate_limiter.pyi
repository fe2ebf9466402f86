"""Rate limits: so many requests in any stretch of time, over memory that forked processes share."""

from typing import Any

LEASE: int
"""What `LeasedLimit.take` returns when nothing is left of the lease."""

class RateTable:
    """The state of many limits. Processes that are forked later share it. Raises ValueError for a number of
    cells that is no power of two from 64 on."""

    def __init__(self, cells: int = 16_384) -> None: ...
    def limit(self, key: str, window_ns: int, count: int) -> RateLimit:
        """Return the limit of a key: at most `count` requests in any `window_ns`. Raises ValueError for a
        window below 1,000 ns, and a count below 1 or beyond 31 bits."""
    def leased(self, key: str, share: Any) -> LeasedLimit:
        """Return the leased limit of a key, which allows nothing until a lease is added. `share` is for the
        code that leases."""

class RateLimit:
    """The limit of one key."""

    def take(self) -> int:
        """Take one request: return 0, or the nanoseconds until one is allowed; nothing is taken then."""

    def give_back(self) -> int:
        """Give back what was taken last, for a request that is not made after all."""

class LeasedLimit(RateLimit):
    """The limit of one key that servers share: this one has what it has leased from a store, which has
    counted it already. Processes that share the table share the lease."""

    share: Any

    def take(self) -> int:
        """Take one request: return 0, or `LEASE` if nothing is left of the lease."""
    def add(self, count: int, began: int, lasts_ns: int) -> bool:
        """Add a lease of so many requests, which lasts from `began` (`now_ns`); return False if the table is
        full. If some are left of another lease, all end with the one that ends first."""
    def end(self) -> int:
        """End the lease, over or not; return how many requests were left of it."""

def now_ns() -> int:
    """Return the time by which leases last."""
