"""Serves an `HttpApp` on sockets of this process: uvicorn with httptools, our connection class in front.

Everything that needs a running loop (the straight way, the timer of the limits) begins and ends with
`HttpServer.serve`. Several processes may serve the same sockets. Command line, workers and certificates are
left to others, who hand over sockets, a TLS context and uvicorn's options.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import uvicorn

from fastrpc import forks
from fastrpc.transports.http import refusals, signals
from fastrpc.transports.http.hot_path import HotPath
from fastrpc.transports.http.limits import Limits
from fastrpc.transports.http.monitor import Monitor
from fastrpc.transports.http.protocol import Protocol
from fastrpc.transports.http.stopping import StoppingServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from typing import Any

    from fastrpc._core.access_buffer import AccessBuffer
    from fastrpc.transports.http.app import HttpApp

SPARE_DESCRIPTORS = 64
"""Of those that the system lets us open: for files, pipes and the loop itself."""


class HttpServer:
    """One process's server.

    `options` are uvicorn's. With `hot` false every request goes through the application. `front` is an
    application that stands in front of it, and is stopped in its place. `on_ready` is called when connections
    are taken. At the end calls in flight have `drain_seconds` to end; `led`: see `stopping`. What is answered
    is noted in `access`, if there is one.
    """

    def __init__(
        self,
        app: HttpApp,
        sockets: list[socket.socket],
        *,
        limits: Limits | None = None,
        hot: bool = True,
        front: Any = None,
        tls: ssl.SSLContext | None = None,
        led: bool = False,
        drain_seconds: float = 5.0,
        on_ready: Callable[[], object] | None = None,
        access: AccessBuffer | None = None,
        **options: Any,
    ) -> None:
        self.app = app
        self.sockets = sockets
        self.limits = limits or Limits()
        _fit(self.limits)
        self._hot = hot
        self._front = front or app
        self._tls = tls
        self._led = led
        self._drain_seconds = drain_seconds
        self._on_ready = on_ready
        self._access = access
        self._options = options
        self._server: StoppingServer | None = None
        self._hot_path: HotPath | None = None

    async def serve(self) -> None:
        """Serve until `end` is called or SIGTERM, SIGINT or SIGHUP comes."""
        loop = asyncio.get_running_loop()
        monitor = Monitor(self.limits, loop)
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
                **self._options,
            },
        )
        for each in self.sockets:
            if each.family != socket.AF_UNIX:  # for those that it accepts: a client may just vanish
                each.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._server = StoppingServer(
            config,
            self._front,
            drain_seconds=self._drain_seconds,
            tls=self._tls,
            handshakes=self.limits.handshakes,
            led=self._led,
            on_ready=self._on_ready,
        )
        try:
            await self._server.serve(sockets=self.sockets)
        finally:
            monitor.close()
            refusals.flush()

    def _protocol(self, monitor: Monitor, loop: asyncio.AbstractEventLoop) -> type[Protocol]:
        """Return the class of connections."""
        if self._access is None:
            hot = self._hot_path = HotPath(self.app, loop) if self._hot else None
            return type("Protocol", (Protocol,), {"monitor": monitor, "hot": hot})
        from fastrpc.transports.http.access import Access, NotedHotPath, NotedProtocol

        access = Access(self._access)
        access.attach(self.app)
        hot = self._hot_path = NotedHotPath(self.app, loop, access) if self._hot else None
        return type("Protocol", (NotedProtocol,), {"monitor": monitor, "hot": hot, "access": access})

    def let_go(self) -> None:
        """Keep nothing of this server, in a child process: the port and the connections are the parent's."""
        sockets = [each.fileno() for each in self.sockets]
        if self._server is not None:
            for connection in self._server.server_state.connections:
                found = connection.transport.get_extra_info("socket")
                sockets.append(-1 if found is None else found.fileno())
            sockets += [each.fileno() for each in self._server.shaking_hands()]
        forks.replace(descriptor for descriptor in sockets if descriptor >= 0)
        signals.let_go()
        if self._hot_path is not None:
            self._hot_path.let_go()

    def end(self) -> None:
        """Have `serve` come to its end, in order. To be called in the loop."""
        if self._server is not None:
            self._server.end()

    def hurry(self) -> None:
        """Have `serve` end now. To be called in the loop."""
        if self._server is not None:
            self._server.hurry()


def _fit(limits: Limits) -> None:
    """Fit limits to the files that this process may open, after raising its own limit as far as they need.

    An eighth is left for connections that are accepted before others are closed for them: a system that has
    no descriptor left would not even accept the connection that is to be refused.
    """
    import resource

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
