"""Which connections one process serves, and which of them is closed when all places are taken and one comes.

First the oldest that has not sent a whole request yet, of the address that has the most of these; then one
that waits between two requests, the longest idle first; then one that has begun a request and does not go on.
A request that is being served keeps its connection. Behind a reverse proxy all connections have one address:
age alone decides there. Accepting a connection costs constant time, closing one for it too, but for a look at
all of them at most once in a tick of the clock, or as often as many can be closed by it.
"""

from __future__ import annotations

import socket
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from asyncio import WriteTransport
    from collections.abc import Hashable, Iterator
    from typing import Any, Protocol

    from fastrpc.transports.http.limits import Limits

    class Addressed(Protocol):
        """What comes from an address (`address_of`)."""

        @property
        def address(self) -> Hashable: ...

    class Connection(Addressed, Protocol):
        """What is known here of a connection; it is `protocol.Protocol` that serves it."""

        @property
        def transport(self) -> WriteTransport: ...

        @property
        def has_sent_request(self) -> bool:
            """Whether a whole request has come by now."""

        @property
        def standing(self) -> int | None:
            """How readily it gives way: IDLE, BEGUN or UNREAD; None: a request is served."""

        @property
        def since(self) -> float:
            """When it came to where it stands, by the clock of the limits."""

        def give_way(self) -> None:
            """End at once, for a connection that has just come."""

        def look(self, now: float) -> None:
            """Close the connection if it takes too long, for whatever it is at."""


Item = TypeVar("Item", bound="Addressed")

IDLE, BEGUN, UNREAD = range(3)
"""How readily a connection that has sent a whole request gives way: it waits between two requests; a head has
begun to come; its client does not read."""

FEW = 64
"""So many connections may have just been accepted without being closed for the next one: their requests are
still in the kernel when many come at once."""

WORTHWHILE = 8
"""A look at all connections is worth its time when one in so many can be closed by it."""


class Connections:
    """The connections of one process. `limits.connections` are served; `limits.lingering` more have had their
    last answer and are still read for a moment.
    """

    def __init__(self, limits: Limits, now: float) -> None:
        self.now = now
        """The clock of the limits, in seconds."""
        self._limits = limits
        self._all: set[Connection] = set()
        self._served: set[Connection] = set()
        self._lingering: dict[Connection, None] = {}
        self._incomplete: ByAddress[Connection] = ByAddress()
        """Some may have sent a whole request since: see `_oldest_incomplete`."""
        self._waiting: list[tuple[Connection, int, float]] = []
        """What `_look` has found, with how and since when it waits; the first to go is the last."""
        self._looked = -1.0
        self._found = 0

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: Connection) -> bool:
        """Take a connection that was accepted; False if it cannot be served, and is to be refused."""
        self._all.add(connection)
        if len(self._served) >= self._limits.connections:
            other = self._oldest_incomplete() or self._next_waiting(connection.address)
            if other is None:
                return False
            self.remove(other)
            self._all.add(other)  # until it is closed
            other.give_way()
        self._served.add(connection)
        self._incomplete.add(connection)
        return True

    def remove(self, connection: Connection) -> None:
        """A connection is closed."""
        self._all.discard(connection)
        self._served.discard(connection)
        self._lingering.pop(connection, None)
        self._incomplete.discard(connection)

    def linger(self, connection: Connection) -> None:
        """A connection has had its last answer: its place is free. The oldest of these is closed now if there
        are too many."""
        self.remove(connection)
        self._all.add(connection)
        self._lingering[connection] = None
        if len(self._lingering) > self._limits.lingering:
            oldest = next(iter(self._lingering))
            del self._lingering[oldest]
            oldest.transport.abort()

    def _oldest_incomplete(self) -> Connection | None:
        """Return the oldest connection without a whole request, of the address with the most of them."""
        incomplete = self._incomplete
        while (oldest := incomplete.oldest()) is not None:
            if oldest.has_sent_request:
                incomplete.discard(oldest)
            elif len(incomplete) > min(FEW, self._limits.connections // 8) or oldest.since < self.now:
                return oldest
            else:
                return None
        return None

    def _next_waiting(self, address: Hashable) -> Connection | None:
        """Return the next connection that waits for its client, if it still does, for one from an address."""
        while True:
            while self._waiting:
                connection, standing, since = self._waiting.pop()
                still_waits = (connection.standing, connection.since) == (standing, since)
                if still_waits and connection in self._served:
                    return connection
            if self._looked == self.now and self._found * WORTHWHILE < len(self._served):
                return None
            self._look(address)
            if self._found == 0:
                return None

    def _look(self, address: Hashable) -> None:
        """Find the connections that may be closed for others, of which one comes from an address."""
        counts: dict[Hashable, int] = {address: 0}
        for connection in self._served:
            counts[connection.address] = counts.get(connection.address, 0) + 1
        share = max(1, self._limits.connections // len(counts))
        latest = self.now - self._limits.give_way_seconds
        found = []
        for connection in self._served:
            standing = connection.standing
            if standing is None or not connection.has_sent_request:
                continue
            modest = counts[connection.address] <= share  # an address with more than its share goes first
            if modest and (standing == UNREAD or (standing == IDLE and connection.since > latest)):
                continue
            found.append((standing, modest, connection.since, connection))
        found.sort(key=lambda each: each[:3], reverse=True)
        self._waiting = [(connection, standing, since) for standing, _, since, connection in found]
        self._looked = self.now
        self._found = len(found)


class ByAddress(Generic[Item]):
    """Connections by the address they come from, the oldest of each first. Each step takes constant time."""

    def __init__(self) -> None:
        self._of: dict[Hashable, dict[Item, None]] = {}
        self._with: dict[int, dict[Hashable, None]] = {}  # the addresses that have so many
        self._most = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(self._of.values())

    def add(self, connection: Item) -> None:
        own = self._of.setdefault(connection.address, {})
        own[connection] = None
        self._count += 1
        self._move(connection.address, len(own) - 1, len(own))
        self._most = max(self._most, len(own))

    def discard(self, connection: Item) -> None:
        """Take a connection out, if it is there."""
        own = self._of.get(connection.address)
        if own is None or connection not in own:
            return
        del own[connection]
        self._count -= 1
        if not own:
            del self._of[connection.address]
        self._move(connection.address, len(own) + 1, len(own))
        if self._most not in self._with:
            self._most -= 1

    def oldest(self) -> Item | None:
        """Return the oldest connection of an address that has the most, None if there is none at all."""
        if not self._count:
            return None
        return next(iter(self._of[next(iter(self._with[self._most]))]))

    def _move(self, address: Hashable, before: int, after: int) -> None:
        if before:
            having = self._with[before]
            del having[address]
            if not having:
                del self._with[before]
        if after:
            self._with.setdefault(after, {})[address] = None


def address_of(client: tuple[Any, ...] | None) -> Hashable:
    """Return what stands for everybody at one address: of IPv6 the first 64 bits, all of which one customer
    has; of a Unix socket nothing."""
    if client is None:
        return ""
    host: str = client[0]
    if ":" not in host:
        return host
    try:
        return socket.inet_pton(socket.AF_INET6, host.partition("%")[0])[:8]
    except OSError:
        return host
