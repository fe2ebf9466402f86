"""The orderly end of a process that serves HTTP: uvicorn's server with a begin, signals and end of our own.

The first signal: no new connections or requests, those who listen are told, calls in flight may end within
the grace time, the rest is answered with an error. The second: the grace time is over. The third: the
system's own way. uvicorn would wait for streams that never end, hand the signal on in the end (the exit code
would not be 0), and let a TLS handshake take a minute.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from fastrpc.transports.http.signals import heeded

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    from fastrpc.transports.http.handshakes import TlsListener

    class Stoppable(Protocol):
        """An application that ends in order."""

        async def stop(self, grace_seconds: float) -> None: ...


LAST_SECONDS = 1.0
"""How long what is said last may take to go out."""
TICK_SECONDS = 1.0


class StoppingServer(uvicorn.Server):
    """uvicorn's server for one application. `on_ready` is called when connections are taken.

    With `tls` there may be so many `handshakes` at once. With `led` another process says when it is enough
    (`hurry`): signals then begin the end and do no more. One to the whole group, as terminals and systemd
    send them, comes here and there, and is one signal.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        app: Stoppable,
        *,
        drain_seconds: float,
        tls: ssl.SSLContext | None = None,
        handshakes: int = 1,
        led: bool = False,
        on_ready: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(config)
        self._app = app
        self._led = led
        self._tls = tls
        self._handshakes = handshakes
        self._tls_listeners: list[TlsListener] = []
        self._drain_seconds = drain_seconds
        self._on_ready = on_ready
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._hurry = asyncio.Event()

    def end(self) -> None:
        """Begin the end, if it has not begun. To be called in the loop."""
        self._ended.set()

    def hurry(self) -> None:
        """End now: the grace time is over. To be called in the loop."""
        self._ended.set()
        self._hurry.set()

    def _take_signal(self) -> None:
        if self._ended.is_set() and not self._led:
            self.hurry()
            self._release_signals()
        self.end()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        self._handled = heeded() if threading.current_thread() is threading.main_thread() else []
        for number in self._handled:
            self._loop.add_signal_handler(number, self._take_signal)
        try:
            yield
        finally:
            self._release_signals()

    def _release_signals(self) -> None:
        handled, self._handled = self._handled, []
        for number in handled:
            self._loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.servers = [await self._listener_of(found) for found in sockets or ()]
        self.started = True
        if self._on_ready is not None:
            self._on_ready()

    async def _listener_of(self, listener: socket.socket) -> Any:
        """Accept connections from a socket; what is returned has a ``close()``."""
        if self._tls is not None:
            from fastrpc.transports.http.handshakes import TlsListener

            tls_listener = TlsListener(listener, self._tls, self._new_connection, self._handshakes)
            self._tls_listeners.append(tls_listener)
            return tls_listener
        return await self._loop.create_server(
            self._new_connection, sock=listener, backlog=self.config.backlog
        )

    def shaking_hands(self) -> list[socket.socket]:
        """Return the connections whose TLS handshakes are under way."""
        return [connection for listener in self._tls_listeners for connection in listener.under_way()]

    def _new_connection(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        connection: asyncio.Protocol = make(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            _loop=self._loop,
        )
        return connection

    async def main_loop(self) -> None:
        """Wait for the end; meanwhile uvicorn keeps the date of its answers."""
        while not self._ended.is_set():
            await self.on_tick(0)
            ended = asyncio.ensure_future(self._ended.wait())
            await asyncio.wait({ended}, timeout=TICK_SECONDS)
            ended.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for listener in sockets or ():
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()  # now if it is idle, else behind its answer
        await self._drain()
        state = self.server_state
        deadline = self._loop.time() + LAST_SECONDS
        while (state.connections or state.tasks) and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(state.connections):
            connection.transport.abort()
        for task in list(state.tasks):
            task.cancel()
        if state.tasks:
            await asyncio.wait(list(state.tasks), timeout=LAST_SECONDS)
        await self.lifespan.shutdown()

    async def _drain(self) -> None:
        """Have the application end what it does, in time."""
        ending = asyncio.ensure_future(self._app.stop(self._drain_seconds))
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait({ending, hurry}, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not ending.done():
            ending.cancel()
            await asyncio.wait({ending})
            await self._app.stop(0.0)
