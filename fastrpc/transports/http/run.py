"""``fastrpc serve --http`` and ``app.run(http=…)``: serves with given settings until a signal ends it.

This module listens, and announces the address. One process serves by itself (`process`); several are started
and managed by `workers`, imported only then.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from fastrpc.diagnostics import write_line
from fastrpc.regular_files import stamp_of
from fastrpc.transports.http.process import serve, serve_in_loop
from fastrpc.transports.http.settings import HttpSettings
from fastrpc.transports.http.sockets import listen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from fastrpc.transports.http.process import HttpServable
    from fastrpc.transports.shutdown import Shutdown


def run(make: Callable[[], HttpServable], settings: HttpSettings) -> None:
    """Serve what `make` returns until a signal ends it. Raises UsageError; SystemExit, if workers fail."""
    with _listening(settings) as (sockets, url):
        if settings.workers == 1:
            runtime = serve(make(), settings, sockets[0], lambda: announce(url, settings))
        else:
            from fastrpc.transports.http.workers import Workers

            shown = f"{url} ({settings.workers} workers)"
            Workers(make, settings, sockets, lambda: announce(url, settings, shown)).run()
            return
    runtime.leave_threads_behind()


async def run_in_loop(
    server: HttpServable,
    settings: HttpSettings,
    shutdown: Shutdown,
    sockets: list[socket.socket] | None = None,
) -> None:
    """Serve in the running event loop until the `shutdown` begins, on `sockets` if any. Raises UsageError."""
    with _listening(settings, sockets) as (listeners, url):
        await serve_in_loop(server, settings, listeners[0], lambda: announce(url, settings), shutdown)


@contextmanager
def _listening(
    settings: HttpSettings, sockets: list[socket.socket] | None = None
) -> Iterator[tuple[list[list[socket.socket]], str]]:
    """Within ``with``, the sockets that listen for each worker, and the URL."""
    address = settings.address
    listeners = listen(address, settings.workers) if sockets is None else [sockets]
    stamp = None if address.path is None else stamp_of(address.path)
    port = 0 if address.path is not None else listeners[0][0].getsockname()[1]
    url = address.url(port, tls=settings.tls is not None, path=settings.path)
    if settings.application.get("auth_servers"):
        settings.application.setdefault("resource", url)
    try:
        yield listeners, url
    finally:
        for found in {found for each in listeners for found in each}:
            found.close()
        if address.path is not None and stamp_of(address.path) == stamp:  # not the next server's socket
            os.unlink(address.path)


def announce(url: str, settings: HttpSettings, shown: str = "") -> None:
    """Announce on stderr, for a person or a program, that the server listens; `shown` is the URL with more
    about it."""
    write_line(f"fastrpc: serving at {shown or url}")
    if settings.on_listening is not None:
        settings.on_listening(url)
