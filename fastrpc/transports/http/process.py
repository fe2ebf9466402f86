"""One process that serves over HTTP, by itself or as one of several workers, until a signal comes.

The loop, the server on the sockets that it is handed, and what stands in front of it: a trace, and for
workers the `relay`. In the end the server's lifespan is left and the programs of its tools are ended, as over
standard input and output. Listening, and other processes, are left to `run` and `workers`.
"""

from __future__ import annotations

import asyncio
import sys

from fastrpc import forks
from fastrpc.transports import loop
from fastrpc.transports.http.signals import may_be_interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from fastrpc.transports.http.settings import Settings

PROCESS_GRACE_SECONDS = 0.3
UNWIND_SECONDS = 0.5


class WorkerGroup:
    """The workers that serve one address, as one of them sees them.

    `number` is its own among `count`, `folder` where they meet (`relay`), `channel` leads to the process that
    looks after them.
    """

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
    group: WorkerGroup | None = None,
) -> Any:
    """Serve in this process until a signal comes; return the service. `server` is a `fastrpc.Server`."""
    service = server.service
    service.secret = settings.secret
    application = server.asgi(**settings.application)
    report = server.print_statistics() if settings.stats else None
    access = None
    if settings.access_log is not None:
        access = server.open_access_log(settings.access_log, as_json=settings.access_log_format == "json")
    try:
        run_in_loop(_serve(application, service, settings, sockets, on_ready, group, access))
    finally:
        if access is not None:
            access.close()
        server.drain_observers()
        if report is not None:
            report.end()
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
    group: WorkerGroup | None,
    access: Any,
) -> None:
    from fastrpc.transports.http.server import HttpServer

    relay: Any = None
    app = application.here()
    if group is not None:
        from fastrpc.transports.http.relay import Relay

        relay = Relay(app, group.folder, group.number, group.count, service.tell_of_update)
        service.share_update = relay.tell
        await relay.begin()
    http = HttpServer(
        app,
        sockets,
        hot=settings.trace is None,
        front=_traced(relay or app, settings, group),
        tls=settings.context(),
        led=group is not None,
        drain_seconds=settings.drain_seconds,
        on_ready=on_ready,
        access=None if access is None else access.buffer,
    )
    if group is not None:
        running = asyncio.get_running_loop()
        running.add_reader(group.channel, _on_parent, running, http, group.channel)
    forks.in_child(http.let_go)
    try:
        await http.serve()
    finally:
        forks.forget(http.let_go)
    if relay is not None:
        await relay.close()
    await leave(service)


def _traced(front: Any, settings: Settings, group: WorkerGroup | None) -> Any:
    """Return what stands in front of the application: a trace, if there is to be one."""
    if settings.trace is None:
        return front
    from fastrpc.transports.http.tracing import Traced

    return Traced(front, settings.trace, None if group is None else group.number)


def receive_byte(channel: socket.socket) -> bytes:
    """Return a byte that was sent through a channel, b"" at its end."""
    try:
        return channel.recv(1)
    except ConnectionError:  # the other end was closed before all was read there
        return b""


def _on_parent(loop: asyncio.AbstractEventLoop, http: Any, channel: socket.socket) -> None:
    """The process that looks after this worker says that the grace time is over, or has died: then nobody
    would end this one any more."""
    if receive_byte(channel):
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
