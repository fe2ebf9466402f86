"""``fastrpc serve --http`` and ``app.run(http=…)``: from settings to a server, until a signal comes.

One process serves by itself; several are begun and looked after by `workers`. In the end the server's
lifespan is left and the programs of its tools are ended, as over standard input and output.
"""

from __future__ import annotations

import asyncio
import os
import sys

from fastrpc import forks
from fastrpc.log import say
from fastrpc.transports import loop
from fastrpc.transports.http.settings import Settings
from fastrpc.transports.http.signals import may_be_interrupted
from fastrpc.transports.http.sockets import listen, place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

PROCESS_GRACE_SECONDS = 0.3
UNWIND_SECONDS = 0.5


def run(make: Callable[[], Any], settings: Settings) -> None:
    """Serve the server that `make` returns until a signal comes.

    Raises UsageError; SystemExit, if workers fail.
    """
    sockets = listen(settings.address, settings.workers)
    path = settings.address.path
    place = None if path is None else place_of(path)
    url = _url(settings, sockets[0])
    if settings.application.get("auth_servers"):
        settings.application.setdefault("resource", url)
    service: Any = None
    try:
        if settings.workers == 1:
            service = serve(make(), settings, sockets[0], lambda: announce(url))
        else:
            from fastrpc.transports.http.workers import Workers

            shown = f"{url} ({settings.workers} workers)"
            Workers(make, settings, sockets, lambda: announce(shown)).run()
    finally:
        for found in {found for each in sockets for found in each}:
            found.close()
        if path is not None and place_of(path) == place:  # not the next server's, which has begun meanwhile
            os.unlink(path)
    if service is not None:
        service.leave_threads_behind()


def _url(settings: Settings, sockets: list[socket.socket]) -> str:
    port = 0 if settings.address.path is not None else sockets[0].getsockname()[1]
    return settings.address.url(port, tls=settings.tls is not None)


def announce(url: str) -> None:
    """Say on stderr, which a person or a program may be reading, that the server is there."""
    say(f"fastrpc: serving at {url}")


class Colleagues:
    """One worker's place among all: its number, how many there are, where they meet, and the channel to the
    process that looks after them."""

    def __init__(self, number: int, count: int, folder: str, channel: socket.socket) -> None:
        self.number = number
        self.count = count
        self.folder = folder
        self.channel = channel


def serve(
    server: Any,
    settings: Settings,
    sockets: list[socket.socket],
    on_ready: Callable[[], object],
    colleagues: Colleagues | None = None,
) -> Any:
    """Serve in this process until a signal comes; return the service. `server` is a `fastrpc.Server`."""
    service = server.service
    service.secret = settings.secret
    application = server.asgi(**settings.application)
    run_in_loop(_serve(application, service, settings, sockets, on_ready, colleagues))
    return service


def run_in_loop(serving: Any) -> None:
    """Run a coroutine in an event loop of its own, to its end."""
    loop.run(serving, is_signal=may_be_interrupted)


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
        hot=settings.trace is None,
        front=_traced(relay or app, settings, colleagues),
        tls=settings.context(),
        led=colleagues is not None,
        drain_seconds=settings.drain_seconds,
        on_ready=on_ready,
    )
    if colleagues is not None:
        running = asyncio.get_running_loop()
        running.add_reader(colleagues.channel, _hear, running, http, colleagues.channel)
    forks.in_child(http.let_go)
    try:
        await http.serve()
    finally:
        forks.forget(http.let_go)
    if relay is not None:
        await relay.close()
    await leave(service)


def _traced(front: Any, settings: Settings, colleagues: Colleagues | None) -> Any:
    """Return what stands in front of the application: a trace, if there is to be one."""
    if settings.trace is None:
        return front
    from fastrpc.transports.http.tracing import Traced

    return Traced(front, settings.trace, None if colleagues is None else colleagues.number)


def _hear(loop: asyncio.AbstractEventLoop, http: Any, channel: socket.socket) -> None:
    """The process that looks after this worker says that the grace time is over, or has died: then nobody
    would end this one any more."""
    from fastrpc.transports.http.workers import heard

    if heard(channel):
        http.hurry()
    else:
        loop.remove_reader(channel)
        http.end()


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
