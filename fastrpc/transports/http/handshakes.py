"""Accepts the connections of a TLS port, and bounds how many handshakes are under way.

An event loop that accepts them itself shows nothing of a connection before its handshake is done: many that
send nothing could hold all files that the process may open. Here, when too many are under way, the oldest of
the address that has the most is given up for a new one. Costs one task for each handshake.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastrpc.transports.http.connections import ByAddress, address_of

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Hashable

HANDSHAKE_SECONDS = 10.0
"""What a handshake may take."""

ACCEPTS = 64
"""So many connections are accepted before others have their turn."""

PAUSE_SECONDS = 0.1
"""After the system could not accept one, for want of files or memory."""


class Handshake:
    """A connection whose handshake is under way. `begun` once the event loop has it."""

    __slots__ = ("address", "begun", "connection", "task")

    def __init__(self, address: Hashable, connection: socket.socket) -> None:
        self.address = address
        self.connection = connection
        self.begun = False
        self.task: asyncio.Task[None] | None = None


class TlsListener:
    """Accepts connections from a socket that listens; `make` returns the protocol of one whose handshake
    succeeds. At most `most` handshakes are under way. Begins at once.
    """

    def __init__(
        self,
        listener: socket.socket,
        context: ssl.SSLContext,
        make: Callable[[], asyncio.Protocol],
        most: int,
    ) -> None:
        self._listener = listener
        self._context = context
        self._make = make
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._handshakes: ByAddress[Handshake] = ByAddress()
        self._pause: asyncio.TimerHandle | None = None
        self._loop.add_reader(listener, self._accept)

    def under_way(self) -> list[socket.socket]:
        """Return the connections whose handshakes are under way."""
        return [handshake.connection for handshake in self._handshakes]

    def close(self) -> None:
        """Accept no more, and give up the handshakes that are under way."""
        if self._pause is None:
            self._loop.remove_reader(self._listener)
        else:
            self._pause.cancel()
        while self._give_up_oldest():
            pass

    def _accept(self) -> None:
        for _ in range(ACCEPTS):
            try:
                connection, client = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._loop.remove_reader(self._listener)
                self._pause = self._loop.call_later(PAUSE_SECONDS, self._go_on)
                return
            connection.setblocking(False)
            if len(self._handshakes) >= self._most:
                self._give_up_oldest()
            handshake = Handshake(address_of(client if isinstance(client, tuple) else None), connection)
            self._handshakes.add(handshake)
            handshake.task = self._loop.create_task(self._shake_hands(handshake))

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener, self._accept)

    def _give_up_oldest(self) -> bool:
        """Close the connection of the oldest handshake; False if there is none."""
        oldest = self._handshakes.oldest()
        if oldest is None:
            return False
        self._handshakes.discard(oldest)
        if not oldest.begun:  # nor will its task ever begin
            oldest.connection.close()
        if oldest.task is not None:
            oldest.task.cancel()
        return True

    async def _shake_hands(self, handshake: Handshake) -> None:
        handshake.begun = True
        try:
            await self._loop.connect_accepted_socket(
                self._make, handshake.connection, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except (OSError, asyncio.TimeoutError, asyncio.CancelledError):
            handshake.connection.close()  # it was no TLS, the client has gone, or it has taken too long
        finally:
            self._handshakes.discard(handshake)
