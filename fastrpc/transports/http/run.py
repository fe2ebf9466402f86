"""``fastrpc serve --http`` and ``app.run(http=…)``: from settings to a server that serves until a signal comes.

One process serves by itself; several are begun and looked after by `workers`. In the end the server's
lifespan is left and the programs of its tools are ended, as over standard input and output.
"""

from __future__ import annotations

import asyncio
import os
import sys

from fastrpc.transports.http.settings import Settings
from fastrpc.transports.http.sockets import listen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

PROCESS_GRACE_SECONDS = 0.3
UNWIND_SECONDS = 0.5


def run(make: Callable[[], Any], settings: Settings) -> None:
    """Serve the server that `make` returns until a signal comes. Raises UsageError; SystemExit, if workers fail."""
    sockets = listen(settings.address, settings.workers)
    url = _url(settings, sockets[0])
    if settings.application.get("auth_servers"):
        settings.application.setdefault("resource", url)
    try:
        if settings.workers == 1:
            serve(make(), settings, sockets[0], lambda: announce(url))
        else:
            from fastrpc.transports.http.workers import Workers

            shown = f"{url} ({settings.workers} workers)"
            Workers(make, settings, sockets, lambda: announce(shown)).run()
    finally:
        if settings.address.path is not None:
            os.unlink(settings.address.path)


def _url(settings: Settings, sockets: list[socket.socket]) -> str:
    port = 0 if settings.address.path is not None else sockets[0].getsockname()[1]
    return settings.address.url(port, tls=settings.tls is not None)


def announce(url: str) -> None:
    """Say on stderr, which a person or a program may be reading, that the server is there."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"fastrpc: serving at {url}\n")
            sys.stderr.flush()
        except OSError:
            pass


class Colleagues:
    """One worker's place among all: its number, how many there are, where they meet, and the pipe whose end is
    the end of the process that looks after them."""

    def __init__(self, number: int, count: int, folder: str, parent: int) -> None:
        self.number = number
        self.count = count
        self.folder = folder
        self.parent = parent


def serve(
    server: Any,
    settings: Settings,
    sockets: list[socket.socket],
    on_ready: Callable[[], object],
    colleagues: Colleagues | None = None,
) -> None:
    """Serve in this process until a signal comes. `server` is a `fastrpc.Server`."""
    service = server.service
    service.secret = settings.secret
    application = server.asgi(**settings.application)
    run_in_loop(_serve(application, service, settings, sockets, on_ready, colleagues))
    service.leave_threads_behind()


def run_in_loop(serving: Any) -> None:
    """Run a coroutine in an event loop of its own: uvloop's, where there is one."""
    from fastrpc.transports.stdio import new_loop

    loop = new_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(serving)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _serve(
    application: Any,
    service: Any,
    settings: Settings,
    sockets: list[socket.socket],
    on_ready: Callable[[], object],
    colleagues: Colleagues | None,
) -> None:
    from fastrpc.transports.http.server import HttpServer

    relay: Any = None
    app = application.here()
    if colleagues is not None:
        from fastrpc.transports.http.relay import Relay

        relay = Relay(app, colleagues.folder, colleagues.number, colleagues.count, service.tell_of_update)
        service.share_update = relay.tell
        await relay.begin()
    http = HttpServer(
        app,
        sockets,
        front=relay,
        drain_seconds=settings.drain_seconds,
        on_ready=on_ready,
        **_tls_options(settings),
    )
    if colleagues is not None:
        asyncio.get_running_loop().add_reader(colleagues.parent, _parent_has_gone, http, colleagues.parent)
    await http.serve()
    if relay is not None:
        await relay.close()
    await leave(service)


def _parent_has_gone(http: Any, pipe: int) -> None:
    """The process that looked after this worker has died: nobody would end it any more."""
    asyncio.get_running_loop().remove_reader(pipe)
    http.stop()


def _tls_options(settings: Settings) -> dict[str, Any]:
    context = settings.context()
    if context is None:
        return {}
    return {"ssl_context_factory": lambda config, default: context}


async def leave(service: Any) -> None:
    """Leave what was entered for calls, and end what is left of them. Bounded in time."""
    for dispatcher in list(service.dispatchers):
        dispatcher.close()
    await service.leave()
    rest = {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
    for task in rest:
        task.cancel()
    processes = sys.modules.get("fastrpc.processes")
    if processes is not None:
        rest.add(asyncio.ensure_future(processes.close(grace_seconds=PROCESS_GRACE_SECONDS)))
    if rest:
        await asyncio.wait(rest, timeout=UNWIND_SECONDS)
