"""The orderly end of a process that serves HTTP: uvicorn's server with signals and shutdown of our own.

The first signal: no new connections or requests, those who listen are told, calls in flight may end within the
grace time, the rest is answered with an error. The second: the grace time is over. The third: the system's own way.
uvicorn would wait for streams that never end, and hand the signal on at the end: the exit code would not be 0.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from fastrpc.transports.http.app import HttpApp

LAST_SECONDS = 1.0
"""How long what is said last may take to go out."""
TICK_SECONDS = 1.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StoppingServer(uvicorn.Server):
    """uvicorn's server for one application. `on_ready` is called when connections are taken."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: HttpApp,
        *,
        drain_seconds: float,
        on_ready: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(config)
        self._app = app
        self._drain_seconds = drain_seconds
        self._on_ready = on_ready
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._hurry = asyncio.Event()

    def end(self) -> None:
        """Begin the end, or hurry it if it has begun. To be called in the loop."""
        if self._ended.is_set():
            self._hurry.set()
            self._release_signals()
        self._ended.set()

    def end_soon(self) -> None:
        """Begin the end, from whatever thread or signal handler."""
        self._loop.call_soon_threadsafe(self.end)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        self._handled = threading.current_thread() is threading.main_thread()
        if self._handled:
            for number in SIGNALS:
                self._loop.add_signal_handler(number, self.end)
        try:
            yield
        finally:
            self._release_signals()

    def _release_signals(self) -> None:
        if self._handled:
            self._handled = False
            for number in SIGNALS:
                self._loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._on_ready is not None:
            self._on_ready()

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
        while (
            (state.connections or state.tasks) and self._loop.time() < deadline and not self._hurry.is_set()
        ):
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
