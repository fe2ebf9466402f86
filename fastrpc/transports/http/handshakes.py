"""TLS handshakes: bounded in number and time, so that connections that never become any shut nobody out.

A loop's own server speaks TLS with whoever connects, and the limits of connections (`limits`) see one only
when that is over: those that say nothing would take all the files that the process may open. Here connections
are accepted by hand. When too many are still at their handshake, the oldest of the source that has most of
them is closed for the next. Costs a task for each connection, until TLS is spoken. Certificates and versions
are the context's (`settings`); what comes afterwards is the protocol's.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable
    from typing import Any

    from fastrpc.transports.http.limits import Limits

HANDSHAKE_SECONDS = 10.0
ACCEPTED_AT_ONCE = 64
"""Before those that have come are read from: whoever has sent its greeting is not still silent."""
RETRY_SECONDS = 0.1
SPARE_DESCRIPTORS = 64


def fit(limits: Limits) -> int:
    """Return how many handshakes there may be, besides as many connections; lower those limits if need be."""
    import resource

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft != resource.RLIM_INFINITY:
        limits.connections = max(1, min(limits.connections, (soft - SPARE_DESCRIPTORS) // 3))
    return limits.connections


class Handshakes:
    """Those of one server. `make` returns the protocol of a connection; `most` is how many there may be."""

    def __init__(self, tls: ssl.SSLContext, make: Callable[[], asyncio.Protocol], most: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._tls = tls
        self._make = make
        self._most = most
        self._count = 0
        self._of: dict[str, dict[_Handshake, None]] = {}
        """By their source, the oldest first."""
        self._listeners: list[socket.socket] = []

    def listen(self, listener: socket.socket) -> None:
        """Accept the connections of a socket that listens and does not block."""
        self._listeners.append(listener)
        self._loop.add_reader(listener.fileno(), self._accept, listener)

    def close(self) -> None:
        """Accept nothing more, and end the handshakes that are not over."""
        for listener in self._listeners:
            self._loop.remove_reader(listener.fileno())
        self._listeners.clear()
        for handshakes in list(self._of.values()):
            for handshake in list(handshakes):
                handshake.task.cancel()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no descriptor, no memory: it waits in the kernel meanwhile
                self._loop.remove_reader(listener.fileno())
                self._loop.call_later(RETRY_SECONDS, self._go_on, listener)
                return
            connection.setblocking(False)
            self._begin(connection, _source_of(address))

    def _go_on(self, listener: socket.socket) -> None:
        if listener in self._listeners:
            self._loop.add_reader(listener.fileno(), self._accept, listener)

    def _begin(self, connection: socket.socket, source: str) -> None:
        if self._count >= self._most:
            self._give_way()
        handshake = _Handshake(connection, source)
        handshake.task = self._loop.create_task(self._shake(handshake))
        handshake.task.add_done_callback(lambda task: self._over(handshake))
        self._of.setdefault(source, {})[handshake] = None
        self._count += 1

    def _give_way(self) -> None:
        """End the oldest handshake of the source that has most."""
        most = max(self._of, key=lambda source: len(self._of[source]))
        handshake = next(iter(self._of[most]))
        self._forget(handshake)
        handshake.task.cancel()

    async def _shake(self, handshake: _Handshake) -> None:
        handshake.begun = True
        try:
            await self._loop.connect_accepted_socket(
                self._make, handshake.connection, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except OSError:
            pass  # broken, too late, or gone: the loop has closed it

    def _over(self, handshake: _Handshake) -> None:
        self._forget(handshake)
        if not handshake.begun:
            handshake.connection.close()

    def _forget(self, handshake: _Handshake) -> None:
        handshakes = self._of.get(handshake.source, {})
        if handshake not in handshakes:
            return
        del handshakes[handshake]
        self._count -= 1
        if not handshakes:
            del self._of[handshake.source]


class _Handshake:
    """A connection on which TLS is not spoken yet."""

    __slots__ = ("begun", "connection", "source", "task")

    def __init__(self, connection: socket.socket, source: str) -> None:
        self.connection = connection
        self.source = source
        self.begun = False
        self.task: asyncio.Task[None]


def _source_of(address: Any) -> str:
    """Return who connects: an address, or the network of one that has 64 bits for itself (IPv6)."""
    if not isinstance(address, tuple):
        return ""  # a Unix socket
    host = str(address[0])
    if ":" not in host:
        return host
    from ipaddress import IPv6Address

    found = IPv6Address(host.partition("%")[0])
    mapped = found.ipv4_mapped
    return str(mapped) if mapped else str(int(found) >> 64)
