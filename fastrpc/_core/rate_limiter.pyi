"""Rate limits by the generic cell rate algorithm, over memory that forked processes share."""

class RateTable:
    """The state of many limits. Processes that are forked later share it. Raises ValueError for a number of
    cells that is no power of two from 64 on."""

    def __init__(self, cells: int = 65_536) -> None: ...
    def limit(self, key: str, interval_ns: int, burst: int) -> RateLimit:
        """Return the limit of a key: one request each `interval_ns`, up to `burst` of them at once. Raises
        ValueError for less than 1 of either."""

class RateLimit:
    """The limit of one key."""

    def take(self) -> int:
        """Take one request: return 0, or the nanoseconds until one is allowed; nothing is taken then."""

    def give_back(self) -> int:
        """Give back what was taken for a request that another limit has refused."""
