"""``fastrpc serve --http`` and ``app.run(http=…)``: serves with given settings until a signal ends it.

This module listens, and announces the address. One process serves by itself (`process`); several are started
and managed by `workers`, imported only then.
"""

from __future__ import annotations

import os

from fastrpc.diagnostics import write_line
from fastrpc.transports.http.process import serve, serve_in_loop
from fastrpc.transports.http.settings import HttpSettings
from fastrpc.transports.http.sockets import listen, place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from fastrpc.transports.http.process import HttpServable
    from fastrpc.transports.shutdown import Shutdown


def run(make: Callable[[], HttpServable], settings: HttpSettings) -> None:
    """Serve the server that `make` returns until a signal ends it.

    Raises UsageError; SystemExit, if workers fail.
    """
    with _Listening(settings) as listening:
        if settings.workers == 1:
            runtime = serve(make(), settings, listening.sockets[0], lambda: announce(listening.url))
        else:
            from fastrpc.transports.http.workers import Workers

            shown = f"{listening.url} ({settings.workers} workers)"
            Workers(make, settings, listening.sockets, lambda: announce(shown)).run()
            return
    runtime.leave_threads_behind()


async def run_in_loop(
    server: HttpServable,
    settings: HttpSettings,
    shutdown: Shutdown,
    sockets: list[socket.socket] | None = None,
) -> None:
    """Serve in the running event loop until the `shutdown` begins, on `sockets` if they are given.

    Raises UsageError.
    """
    with _Listening(settings, sockets) as listening:
        await serve_in_loop(server, settings, listening.sockets[0], lambda: announce(listening.url), shutdown)


class _Listening:
    """Within ``with``, the sockets that listen for each worker, and the URL."""

    def __init__(self, settings: HttpSettings, sockets: list[socket.socket] | None = None) -> None:
        self._path = settings.address.path
        self.sockets = listen(settings.address, settings.workers) if sockets is None else [sockets]
        self._place = None if self._path is None else place_of(self._path)
        self.url = _url(settings, self.sockets[0])
        if settings.application.get("auth_servers"):
            settings.application.setdefault("resource", self.url)

    def __enter__(self) -> _Listening:
        return self

    def __exit__(self, *exception: object) -> None:
        for found in {found for each in self.sockets for found in each}:
            found.close()
        if self._path is not None and place_of(self._path) == self._place:  # not the next server's socket
            os.unlink(self._path)


def _url(settings: HttpSettings, sockets: list[socket.socket]) -> str:
    port = 0 if settings.address.path is not None else sockets[0].getsockname()[1]
    return settings.address.url(port, tls=settings.tls is not None, path=settings.path)


def announce(url: str) -> None:
    """Announce on stderr, for a person or a program, that the server listens."""
    write_line(f"fastrpc: serving at {url}")
