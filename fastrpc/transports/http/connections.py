"""The connections of one process, and which of them is evicted for a new one when there are too many.

First the oldest that has not sent a complete request yet, of the address with the most of these; then one
between two requests, the longest idle first; then one with an incomplete request. A connection whose request
is being served is never evicted. Behind a reverse proxy all connections have one address, and only their age
counts. Accepting and evicting cost constant time, except for a scan of all connections at most once in a tick
of the clock, or if it finds many to evict.
"""

from __future__ import annotations

import socket
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from asyncio import WriteTransport
    from collections.abc import Hashable, Iterator
    from typing import Any, Protocol

    from fastrpc.transports.http.limits import ConnectionLimits

    class Addressed(Protocol):
        """Anything with a client address (`address_of`)."""

        @property
        def address(self) -> Hashable: ...

    class TrackedConnection(Addressed, Protocol):
        """A connection, as this module uses it: see `BoundedConnection`."""

        @property
        def transport(self) -> WriteTransport: ...
        @property
        def has_sent_request(self) -> bool: ...
        @property
        def eviction_class(self) -> int | None: ...
        @property
        def since(self) -> float: ...
        def evict(self) -> None: ...
        def check_limits(self, now: float) -> None: ...


Item = TypeVar("Item", bound="Addressed")

IDLE, BEGUN, UNREAD = range(3)
"""The states in which a connection that has sent a complete request may be evicted, in this order: between
two requests; in a head; with a response that the client does not read."""

FEW = 64
"""The latest connections, this many, are not evicted: when many are accepted at once, their requests are
still in the kernel."""

WORTHWHILE = 8
"""A scan of all connections is worth its time if one in so many can be evicted."""


class ConnectionTable:
    """The connections of one process: `limits.connections`, and `limits.lingering` after their response."""

    def __init__(self, limits: ConnectionLimits, now: float) -> None:
        self.now = now
        """The clock of the limits, in seconds."""
        self._limits = limits
        self._all: set[TrackedConnection] = set()
        self._served: set[TrackedConnection] = set()
        self._lingering: dict[TrackedConnection, None] = {}
        self._incomplete: ByAddress[TrackedConnection] = ByAddress()
        """Some may have sent a complete request since: see `_oldest_incomplete`."""
        self._waiting: list[tuple[TrackedConnection, int, float]] = []
        """What `_find_evictable` has found, with state and time; the last is evicted first."""
        self._looked = -1.0
        self._found = 0

    def __iter__(self) -> Iterator[TrackedConnection]:
        return iter(list(self._all))

    def add(self, connection: TrackedConnection) -> bool:
        """Add an accepted connection; False if no other one can be evicted, and it is to be refused."""
        self._all.add(connection)
        if len(self._served) >= self._limits.connections:
            other = self._oldest_incomplete() or self._next_waiting(connection.address)
            if other is None:
                return False
            self.remove(other)
            self._all.add(other)  # until it is closed
            other.evict()
        self._served.add(connection)
        self._incomplete.add(connection)
        return True

    def remove(self, connection: TrackedConnection) -> None:
        """Remove a closed connection."""
        self._all.discard(connection)
        self._served.discard(connection)
        self._lingering.pop(connection, None)
        self._incomplete.discard(connection)

    def linger(self, connection: TrackedConnection) -> None:
        """Have a connection linger that has sent its last response; of too many the oldest is closed."""
        self.remove(connection)
        self._all.add(connection)
        self._lingering[connection] = None
        if len(self._lingering) > self._limits.lingering:
            oldest = next(iter(self._lingering))
            del self._lingering[oldest]
            oldest.transport.abort()

    def _oldest_incomplete(self) -> TrackedConnection | None:
        """Return the oldest connection without a complete request, of the address with the most of these."""
        incomplete = self._incomplete
        while (oldest := incomplete.oldest()) is not None:
            if oldest.has_sent_request:
                incomplete.discard(oldest)
            elif len(incomplete) > min(FEW, self._limits.connections // 8) or oldest.since < self.now:
                return oldest
            else:
                return None
        return None

    def _next_waiting(self, address: Hashable) -> TrackedConnection | None:
        """Return the next connection to evict for one from `address`, if its state has not changed."""
        while True:
            while self._waiting:
                connection, eviction_class, since = self._waiting.pop()
                still_waits = (connection.eviction_class, connection.since) == (eviction_class, since)
                if still_waits and connection in self._served:
                    return connection
            if self._looked == self.now and self._found * WORTHWHILE < len(self._served):
                return None
            self._find_evictable(address)
            if self._found == 0:
                return None

    def _find_evictable(self, address: Hashable) -> None:
        """Find the connections that may be evicted, for one from `address`."""
        counts: dict[Hashable, int] = {address: 0}
        for connection in self._served:
            counts[connection.address] = counts.get(connection.address, 0) + 1
        share = max(1, self._limits.connections // len(counts))
        latest = self.now - self._limits.eviction_seconds
        found = []
        for connection in self._served:
            eviction_class = connection.eviction_class
            if eviction_class is None or not connection.has_sent_request:
                continue
            modest = counts[connection.address] <= share  # an address with more than its share goes first
            if modest and (
                eviction_class == UNREAD or (eviction_class == IDLE and connection.since > latest)
            ):
                continue
            found.append((eviction_class, modest, connection.since, connection))
        found.sort(key=lambda each: each[:3], reverse=True)
        self._waiting = [
            (connection, eviction_class, since) for eviction_class, _, since, connection in found
        ]
        self._looked = self.now
        self._found = len(found)


class ByAddress(Generic[Item]):
    """Connections by the address they come from, the oldest of each first. Each step takes constant time."""

    def __init__(self) -> None:
        self._of: dict[Hashable, dict[Item, None]] = {}
        self._with: list[dict[Hashable, None]] = []  # [n]: the addresses that have more than n
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(self._of.values())

    def add(self, connection: Item) -> None:
        own = self._of.setdefault(connection.address, {})
        if len(own) == len(self._with):
            self._with.append({})
        self._with[len(own)][connection.address] = None
        own[connection] = None
        self._count += 1

    def discard(self, connection: Item) -> None:
        """Remove a connection, if it is there."""
        own = self._of.get(connection.address)
        if own is None or connection not in own:
            return
        del own[connection]
        self._count -= 1
        if not own:
            del self._of[connection.address]
        del self._with[len(own)][connection.address]
        if not self._with[-1]:
            self._with.pop()

    def oldest(self) -> Item | None:
        """Return the oldest connection of an address that has the most, None if there is none at all."""
        if not self._with:
            return None
        return next(iter(self._of[next(iter(self._with[-1]))]))


def address_of(client: tuple[Any, ...] | None) -> Hashable:
    """Return the address by which connections are counted: the first 64 bits of an IPv6 address, because one
    customer has all others; "" for a Unix socket."""
    if client is None:
        return ""
    host: str = client[0]
    if ":" not in host:
        return host
    try:
        return socket.inet_pton(socket.AF_INET6, host.partition("%")[0])[:8]
    except OSError:
        return host
