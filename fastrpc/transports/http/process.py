"""One process that serves over HTTP, alone or as one of several workers, until a signal ends it.

Runs the event loop, and the server on the sockets that it is given, with a trace and, in a worker, the
`session_router` around the application. The shutdown is that of all transports
(`fastrpc.transports.shutdown`). Listening, and other processes, are left to `run` and `workers`.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import contextmanager
from dataclasses import dataclass

from fastrpc._core import http_body
from fastrpc.errors import UsageError
from fastrpc.transports import loop
from fastrpc.transports import shutdown as ending
from fastrpc.transports.shutdown import Shutdown, ShutdownSignals, connections_of, may_be_interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any, Protocol

    from typing_extensions import Unpack

    from fastrpc._core.access_buffer import AccessBuffer
    from fastrpc.options import AsgiOptions
    from fastrpc.transports.http.asgi import Application
    from fastrpc.transports.http.server import HttpServer
    from fastrpc.transports.http.session_router import SessionRouter
    from fastrpc.transports.http.settings import HttpSettings
    from fastrpc.transports.interfaces import ServedRuntime, ServedServer

    class HttpServable(ServedServer, Protocol):
        """A `fastrpc.Server`, with what it has besides for HTTP."""

        def asgi(self, **options: Unpack[AsgiOptions]) -> Application: ...
        def print_statistics(self) -> StatisticsReport: ...
        def open_access_log(self, path: str, *, as_json: bool = False) -> AccessLogWriter: ...

    class StatisticsReport(Protocol):
        """The statistics that are printed while it serves, and at the end."""

        def end(self) -> None: ...

    class AccessLogWriter(Protocol):
        """What writes the lines of the requests that are noted in its buffer."""

        buffer: AccessBuffer

        def close(self) -> None: ...


@dataclass(frozen=True)
class WorkerGroup:
    """The workers that serve one address, as one of them sees them.

    `number` is its own among `count`, `folder` has the Unix sockets of all (`session_router`), `channel` is a
    socket to the parent process.
    """

    number: int
    count: int
    folder: str
    channel: socket.socket


def serve(
    server: HttpServable,
    settings: HttpSettings,
    sockets: list[socket.socket],
    on_ready: Callable[[], object],
    group: WorkerGroup | None = None,
) -> ServedRuntime:
    """Serve in this process until a signal ends it; return the runtime. `server` is a `fastrpc.Server`.

    Raises UsageError for a server that several processes must not serve.
    """
    if group is not None:
        declared = server.runtime.process_state()
        if declared:
            kept = "; ".join(f"{what} ({', '.join(names)})" for what, names in declared.items())
            raise UsageError(
                f"http: workers: each process would have its own {kept}, and the next call may come to "
                "another one: serve these tools with one worker, or leave them out"
            )
    if server.runtime.shared is not None:
        server.runtime.shared.wait_until_open()
    with _recording(server, settings) as access:

        async def serving() -> None:
            http = _server_of(server, settings, sockets, on_ready, access, group)
            await serve_transport(http, server.runtime, settings.drain_seconds, group)

        run_in_loop(serving())
    return server.runtime


async def serve_in_loop(
    server: HttpServable,
    settings: HttpSettings,
    sockets: list[socket.socket],
    on_ready: Callable[[], object],
    shutdown: Shutdown,
) -> None:
    """Serve in the running event loop until the `shutdown` begins; signals are left to the caller."""
    with _recording(server, settings) as access:
        http = _server_of(server, settings, sockets, on_ready, access)
        _give_notice(http, shutdown)
        await ending.serve(http, connections_of(server), shutdown, server.runtime, owns_loop=False)


@contextmanager
def _recording(server: HttpServable, settings: HttpSettings) -> Iterator[AccessLogWriter | None]:
    """Within ``with``, requests and calls are recorded as the settings say: in the access log, which is
    returned, and as statistics. Sets the signing key too."""
    if server.runtime.signing_keys is None or settings.signing_keys.are_shared:
        server.runtime.signing_keys = settings.signing_keys
    report = server.print_statistics() if settings.stats else None
    access = None
    if settings.access_log is not None:
        access = server.open_access_log(settings.access_log, as_json=settings.access_log_format == "json")
    try:
        yield access
    finally:
        if access is not None:
            access.close()
        server.drain_observers(at_end=True)
        if report is not None:
            report.end()


def run_in_loop(serving: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a new event loop, to its end."""
    http_body.give_back_memory()
    loop.run(serving, is_signal=may_be_interrupted)


def _server_of(
    server: HttpServable,
    settings: HttpSettings,
    sockets: list[socket.socket],
    on_ready: Callable[[], object],
    access: AccessLogWriter | None,
    group: WorkerGroup | None = None,
) -> HttpServer:
    """Return what serves a server in this loop; in a worker of a `group` behind a router."""
    from fastrpc.transports.http.server import HttpServer

    application = server.asgi(**settings.application)
    app = application.here()
    router: SessionRouter | None = None
    if group is not None:
        from fastrpc.transports.http.session_router import SessionRouter

        announcements = server.runtime.announcements
        router = SessionRouter(app, group.folder, group.number, group.count, announcements.take)
        announcements.carriers.append(router.share)
        if server.runtime.shared is not None:
            server.runtime.shared.group = os.path.basename(group.folder)  # a random name
    front = application.front(router or app)
    if settings.trace is not None:
        from fastrpc.transports.http.tracing import Traced

        front = Traced(front, settings.trace, None if group is None else group.number)
    return HttpServer(
        app,
        sockets,
        hot=settings.trace is None and not application.sees_all,
        front=front,
        router=router,
        tls=settings.context(),
        on_ready=on_ready,
        notice_seconds=settings.notice_seconds,
        access=None if access is None else access.buffer,
        options=settings.uvicorn,
    )


async def serve_transport(
    http: HttpServer, runtime: ServedRuntime, drain_seconds: float, group: WorkerGroup | None = None
) -> None:
    """Serve by an `HttpServer` in this loop, until a signal or the parent process of the `group` ends it."""
    shutdown = Shutdown(drain_seconds)
    _give_notice(http, shutdown)
    running = asyncio.get_running_loop()
    if group is not None:
        running.add_reader(group.channel, _on_parent, running, shutdown, group.channel)
    with ShutdownSignals(shutdown, supervised=group is not None):
        await ending.serve(http, connections_of(runtime.server), shutdown, runtime, owns_loop=True)


def _give_notice(http: HttpServer, shutdown: Shutdown) -> None:
    """Have the shutdown announced, if the server has a time of notice."""
    if http.notice_seconds:
        shutdown.notice_seconds, shutdown.announce = http.notice_seconds, http.announce_end


def receive_byte(channel: socket.socket) -> bytes:
    """Return a byte from the socket, b"" at its end."""
    try:
        return channel.recv(1)
    except ConnectionError:  # the other end was closed with unread data
        return b""


def _on_parent(loop: asyncio.AbstractEventLoop, shutdown: Shutdown, channel: socket.socket) -> None:
    """The parent process has sent a byte, to hurry the shutdown, or has died, which begins it."""
    if receive_byte(channel):
        shutdown.hurry()
    else:
        loop.remove_reader(channel)
        shutdown.begin()
