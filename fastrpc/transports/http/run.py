"""``fastrpc serve --http`` and ``app.run(http=…)``: serves with given settings until a signal ends it.

This module listens, and announces the address. One process serves by itself (`process`); several are started
and managed by `workers`, imported only then.
"""

from __future__ import annotations

import os

from fastrpc.diagnostics import write_line
from fastrpc.transports.http.process import serve
from fastrpc.transports.http.settings import Settings
from fastrpc.transports.http.sockets import listen, place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from fastrpc.transports.http.process import HttpServable
    from fastrpc.transports.interfaces import Runtime


def run(make: Callable[[], HttpServable], settings: Settings) -> None:
    """Serve the server that `make` returns until a signal ends it.

    Raises UsageError; SystemExit, if workers fail.
    """
    sockets = listen(settings.address, settings.workers)
    path = settings.address.path
    place = None if path is None else place_of(path)
    url = _url(settings, sockets[0])
    if settings.application.get("auth_servers"):
        settings.application.setdefault("resource", url)
    runtime: Runtime | None = None
    try:
        if settings.workers == 1:
            runtime = serve(make(), settings, sockets[0], lambda: announce(url))
        else:
            from fastrpc.transports.http.workers import Workers

            shown = f"{url} ({settings.workers} workers)"
            Workers(make, settings, sockets, lambda: announce(shown)).run()
    finally:
        for found in {found for each in sockets for found in each}:
            found.close()
        if path is not None and place_of(path) == place:  # not the socket of the next server
            os.unlink(path)
    if runtime is not None:
        runtime.leave_threads_behind()


def _url(settings: Settings, sockets: list[socket.socket]) -> str:
    port = 0 if settings.address.path is not None else sockets[0].getsockname()[1]
    return settings.address.url(port, tls=settings.tls is not None)


def announce(url: str) -> None:
    """Announce on stderr, for a person or a program, that the server listens."""
    write_line(f"fastrpc: serving at {url}")
