"""Serves an `HttpApp` on sockets of this process: uvicorn with httptools, our connection class in front.

A transport (`fastrpc.transports.base`) whose connections the application opens by itself: a session has one
for each POST. Several processes may serve the same sockets. The caller provides sockets, a TLS context and
uvicorn's options; signals and the order of the shutdown are left to `fastrpc.transports.shutdown`. uvicorn's
own shutdown is not used: it would wait for streams that never end, raise the signal again (the exit code
would not be 0), and let a TLS handshake take a minute.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import uvicorn

from fastrpc import forks
from fastrpc.errors import UsageError
from fastrpc.transports.base import Transport
from fastrpc.transports.http import refusals
from fastrpc.transports.http.hot_path import HotPath
from fastrpc.transports.http.limits import ConnectionLimits
from fastrpc.transports.http.monitor import ConnectionMonitor
from fastrpc.transports.http.protocol import Protocol
from fastrpc.transports.http.sockets import ignore_new_connections

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from fastrpc._core.access_buffer import AccessBuffer
    from fastrpc.transports.base import Connections
    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.connections import TrackedConnection
    from fastrpc.transports.http.handshakes import TlsListener
    from fastrpc.transports.http.interfaces import Front
    from fastrpc.transports.http.session_router import SessionRouter

SPARE_DESCRIPTORS = 64
"""Descriptors that are reserved for files, pipes and the loop itself."""
LAST_SECONDS = 1.0
"""Seconds to send the last responses."""
TICK_SECONDS = 1.0
LOOK_SECONDS = 0.01
LAST_CONNECTIONS_SECONDS = 0.1
"""Seconds in which connections that have begun are established and accepted."""
FIRST_REQUEST_SECONDS = 1.0
"""Seconds that these have for their first request."""
CLOSE = (b"connection", b"close")


async def wait_for_first_requests(
    listeners: Iterable[socket.socket], connections: Iterable[TrackedConnection]
) -> None:
    """Return when the system has no connection left to accept, and each connection has sent a request,
    within `FIRST_REQUEST_SECONDS`: on a busy machine a proxy may connect and send its request only later, and
    this process may have had no time to accept it. The proxy would not send it again elsewhere."""
    import select

    queued = select.poll()
    for each in listeners:
        queued.register(each, select.POLLIN)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + FIRST_REQUEST_SECONDS
    while queued.poll(0) or not all(each.has_sent_request for each in connections):
        if loop.time() > deadline:
            return
        await asyncio.sleep(LOOK_SECONDS)


@dataclass(eq=False)
class HttpServer(Transport):
    """One process's server. Of uvicorn's only the state and the Date header are used.

    `options` are uvicorn's. With `hot` false every request goes through the application. `front` is an
    application in front of `app`, and is stopped in its place; a `router` also receives requests from other
    workers. `on_ready` is called when connections are accepted. The end is announced
    `notice_seconds` before it. Requests are recorded in `access`, if there is one.
    """

    app: HttpApp
    sockets: list[socket.socket]
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    hot: bool = True
    front: Front | None = None
    router: SessionRouter | None = None
    tls: ssl.SSLContext | None = None
    on_ready: Callable[[], object] | None = None
    notice_seconds: float = 0.0
    access: AccessBuffer | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _fit(self.limits)
        self._front = self.front or self.app
        self._server: uvicorn.Server | None = None
        self._listeners: list[Any] = []
        """Of asyncio.Server, with TLS of TlsListener."""
        self._monitor: ConnectionMonitor | None = None
        self._hot_path: HotPath | None = None

    async def start(self, connections: Connections) -> None:
        loop = asyncio.get_running_loop()
        monitor = self._monitor = ConnectionMonitor(self.limits, loop)
        protocol = self._protocol(monitor, loop)
        config = uvicorn.Config(
            self._front,
            http=protocol,
            **{
                "interface": "asgi3",
                "ws": "none",
                "lifespan": "on",
                "log_config": None,
                "log_level": "warning",
                "access_log": False,
                "server_header": False,
                "proxy_headers": False,
                **self.options,
            },
        )
        for each in self.sockets:
            if each.family != socket.AF_UNIX:  # for those that it accepts: a client may just vanish
                each.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self.router is not None:
            await self.router.begin()
        config.load()
        server = self._server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.lifespan.startup()
        if server.lifespan.should_exit:
            raise UsageError("http: the application could not start; see the log")
        await server.on_tick(0)
        make = partial(
            protocol,
            config=config,
            server_state=server.server_state,
            app_state=server.lifespan.state,
            _loop=loop,
        )
        for listener in self.sockets:
            self._listeners.append(await self._accepting(listener, make, config.backlog))
        server.started = True
        if self.on_ready is not None:
            self.on_ready()

    async def _accepting(
        self, listener: socket.socket, make: Callable[[], Protocol], backlog: int
    ) -> asyncio.Server | TlsListener:
        """Accept connections from a socket; return an object with ``close()``."""
        if self.tls is None:
            loop = asyncio.get_running_loop()
            return await loop.create_server(make, sock=listener, backlog=backlog)
        from fastrpc.transports.http.handshakes import TlsListener

        return TlsListener(listener, self.tls, make, self.limits.handshakes)

    async def wait_closed(self) -> None:
        """Never returns; runs uvicorn's timer, which updates the Date header."""
        while self._server is not None:
            await asyncio.sleep(TICK_SECONDS)
            await self._server.on_tick(0)

    def announce_end(self) -> None:
        """Refuse at `/readyz`, and close each connection after its next response: a proxy that keeps
        connections would otherwise send a request on one that is just being closed."""
        self.app.ending = True
        if self._server is not None:
            self._server.config.encoded_headers.append(CLOSE)
            state = self._server.server_state
            state.default_headers = [*state.default_headers, CLOSE]

    async def stop_accepting(self) -> None:
        """Accept no new connections, and no new requests on the open ones."""
        if self.notice_seconds and any([*map(ignore_new_connections, self.sockets)]):
            # The system has already accepted some: closing the socket would reset them.
            await asyncio.sleep(LAST_CONNECTIONS_SECONDS)
            await wait_for_first_requests(self.sockets, self._monitor.connections if self._monitor else ())
        for listener in (*self._listeners, *self.sockets):
            listener.close()
        if self._server is not None:
            for connection in list(self._server.server_state.connections):
                connection.shutdown()

    async def drain(self) -> None:
        await self._front.stop(None)

    async def close(self) -> None:
        """Answer requests in flight with an error, and close the connections after their responses."""
        await self._front.stop(0.0)
        if self._server is not None:
            await self._close_connections(self._server)
        if self.router is not None:
            await self.router.close()
        if self._monitor is not None:
            self._monitor.close()
        refusals.flush()

    async def _close_connections(self, server: uvicorn.Server) -> None:
        """Close the connections after their responses are sent, bounded in time, and the application."""
        state, loop = server.server_state, asyncio.get_running_loop()
        deadline = loop.time() + LAST_SECONDS
        while (state.connections or state.tasks) and loop.time() < deadline:
            await asyncio.sleep(LOOK_SECONDS)
        for connection in list(state.connections):
            connection.transport.abort()
        for task in list(state.tasks):
            task.cancel()
        if state.tasks:
            await asyncio.wait(list(state.tasks), timeout=LAST_SECONDS)
        if server.started:
            await server.lifespan.shutdown()

    def _protocol(self, monitor: ConnectionMonitor, loop: asyncio.AbstractEventLoop) -> type[Protocol]:
        """Return the class of connections."""
        if self.access is None:
            hot = self._hot_path = self._exposed(HotPath(self.app, loop)) if self.hot else None
            return type("Protocol", (Protocol,), {"monitor": monitor, "hot": hot})
        from fastrpc.transports.http.access import Access, NotedHotPath, NotedProtocol

        access = Access(self.access)
        access.attach(self.app)
        hot = self._hot_path = self._exposed(NotedHotPath(self.app, loop, access)) if self.hot else None
        return type("Protocol", (NotedProtocol,), {"monitor": monitor, "hot": hot, "access": access})

    def _exposed(self, hot: HotPath) -> HotPath:
        if self.app.exposes_requests:
            from fastrpc.transports.http.current_request import expose

            expose(hot, "http" if self.tls is None else "https")
        return hot

    def let_go(self) -> None:
        """Close all sockets of this server, in a child process: they are the parent's."""
        sockets = [each.fileno() for each in self.sockets]
        if self._server is not None:
            for connection in self._server.server_state.connections:
                found = connection.transport.get_extra_info("socket")
                sockets.append(-1 if found is None else found.fileno())
        if self.tls is not None:
            for listener in self._listeners:
                sockets += [each.fileno() for each in listener.under_way()]
        forks.replace(descriptor for descriptor in sockets if descriptor >= 0)
        if self._hot_path is not None:
            self._hot_path.let_go()


def _fit(limits: ConnectionLimits) -> None:
    """Fit the limits to the process's limit of descriptors, after raising that as far as needed and allowed.

    An eighth is reserved for connections that are accepted before others are evicted: without a descriptor
    the system could not even accept a connection in order to refuse it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    wanted = max(
        4096, SPARE_DESCRIPTORS + (limits.connections + limits.lingering + limits.handshakes) * 8 // 7
    )
    if soft < wanted and (hard == resource.RLIM_INFINITY or soft < hard):
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = max(soft - SPARE_DESCRIPTORS, 8) * 7 // 8
    limits.lingering = max(1, min(limits.lingering, room // 5))
    limits.handshakes = max(1, min(limits.handshakes, room // 5))
    limits.connections = max(1, min(limits.connections, room - limits.lingering - limits.handshakes))
