"""Rate limits: so many requests in any stretch of time, over memory that forked processes share."""

class RateTable:
    """The state of many limits. Processes that are forked later share it. Raises ValueError for a number of
    cells that is no power of two from 64 on."""

    def __init__(self, cells: int = 16_384) -> None: ...
    def limit(self, key: str, window_ns: int, count: int) -> RateLimit:
        """Return the limit of a key: at most `count` requests in any `window_ns`. Raises ValueError for a
        window below 1,000 ns, and a count below 1 or beyond 31 bits."""

class RateLimit:
    """The limit of one key."""

    def take(self) -> int:
        """Take one request: return 0, or the nanoseconds until one is allowed; nothing is taken then."""

    def give_back(self) -> int:
        """Give back what was taken last, for a request that is not made after all."""
