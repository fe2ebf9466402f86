"""Accepts the connections of a TLS port, and bounds the number of handshakes under way.

If the event loop accepts them itself, a connection is not visible before its handshake is complete: many that
send nothing could use up all descriptors of the process. Here, when too many are under way, the oldest one of
the address with the most is closed for a new one. Costs one task for each handshake.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastrpc.transports.http.connections import ByAddress, address_of

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Hashable

HANDSHAKE_SECONDS = 10.0
"""Seconds that a handshake may take."""

ACCEPTS = 64
"""Connections that are accepted before other callbacks of the loop have their turn."""

PAUSE_SECONDS = 0.1
"""Seconds to wait after the system could not accept one, for lack of descriptors or memory."""


@dataclass(slots=True, eq=False)
class Handshake:
    """A connection whose handshake is under way. `begun`: the event loop has started it."""

    address: Hashable
    connection: socket.socket
    begun: bool = False
    task: asyncio.Task[None] | None = None


@dataclass(eq=False, repr=False)
class TlsListener:
    """Accepts connections from a listening socket; `make` returns the protocol for one whose handshake
    succeeds. At most `most` handshakes are under way. Begins at once.
    """

    listener: socket.socket
    context: ssl.SSLContext
    make: Callable[[], asyncio.Protocol]
    most: int

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._handshakes: ByAddress[Handshake] = ByAddress()
        self._pause: asyncio.TimerHandle | None = None
        self._loop.add_reader(self.listener, self._accept)

    def under_way(self) -> list[socket.socket]:
        """Return the connections whose handshakes are under way."""
        return [handshake.connection for handshake in self._handshakes]

    def close(self) -> None:
        """Stop accepting, and close the connections whose handshakes are under way."""
        if self._pause is None:
            self._loop.remove_reader(self.listener)
        else:
            self._pause.cancel()
        while self._give_up_oldest():
            pass

    def _accept(self) -> None:
        for _ in range(ACCEPTS):
            try:
                connection, client = self.listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._loop.remove_reader(self.listener)
                self._pause = self._loop.call_later(PAUSE_SECONDS, self._go_on)
                return
            connection.setblocking(False)
            if len(self._handshakes) >= self.most:
                self._give_up_oldest()
            handshake = Handshake(address_of(client if isinstance(client, tuple) else None), connection)
            self._handshakes.add(handshake)
            handshake.task = self._loop.create_task(self._shake_hands(handshake))

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self.listener, self._accept)

    def _give_up_oldest(self) -> bool:
        """Close the connection of the oldest handshake; False if there is none."""
        oldest = self._handshakes.oldest()
        if oldest is None:
            return False
        self._handshakes.discard(oldest)
        if not oldest.begun:  # and its task will never start
            oldest.connection.close()
        if oldest.task is not None:
            oldest.task.cancel()
        return True

    async def _shake_hands(self, handshake: Handshake) -> None:
        handshake.begun = True
        try:
            await self._loop.connect_accepted_socket(
                self.make, handshake.connection, ssl=self.context, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except (OSError, asyncio.TimeoutError, asyncio.CancelledError):
            handshake.connection.close()  # not TLS, or the client has disconnected, or a timeout
        finally:
            self._handshakes.discard(handshake)
