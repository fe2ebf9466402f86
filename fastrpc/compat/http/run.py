"""Serves a compat server over HTTP in an event loop that runs already, and hands out its applications.

SIGTERM begins the shutdown where the program has no handler for it, and is raised again afterwards, so that
the rest of the program ends too: ``asyncio.gather(mcp.run_http_async(), other())``. SIGINT is the loop's.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from fastrpc.compat.http.apps import CompatApplication, Layout
from fastrpc.compat.http.guard import Places
from fastrpc.compat.http.options import TOKENS, run_settings
from fastrpc.errors import UsageError
from fastrpc.transports.http.asgi import APPLICATION, PLACES
from fastrpc.transports.http.run import run_in_loop
from fastrpc.transports.shutdown import Shutdown, UnhandledSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator
    from signal import Signals
    from typing import Any

    from fastrpc.compat.http.interfaces import Served
    from fastrpc.transports.http.interfaces import Mapped, Receive, Send


async def serve(
    server: Served, transport: str, options: dict[str, Any], sockets: list[socket.socket] | None
) -> None:
    """Serve in the running event loop, on `sockets` if they are given, until a signal or a cancellation."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError("run_http_async: HTTP is served in an event loop of asyncio only") from None
    settings = run_settings(server, transport, options)
    if settings.workers != 1:
        raise UsageError("workers: several are started by mcp.run() only, which has no event loop yet")
    shutdown = Shutdown(settings.drain_seconds)
    with _Signals(shutdown):
        await run_in_loop(server, settings, shutdown, sockets)


class _Signals(UnhandledSignals):
    """As that, but calls in flight are waited for; a second signal skips the wait."""

    def _take(self, number: Signals) -> None:
        self._seen = number
        if self._shutdown.begun.is_set():
            self._shutdown.hurry()
        self._shutdown.begin()


class SessionManager:
    """The sessions of an application that the program mounts: the official SDK's ``mcp.session_manager``."""

    def __init__(self, application: CompatApplication) -> None:
        self._application = application

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Enter the server's lifespan; at the end sessions and streams are ended, and it is left."""
        async with self._application.lifespan():
            yield

    async def handle_request(self, scope: Mapped, receive: Receive, send: Send) -> None:
        """Serve a request, whatever its path."""
        await self._application(
            {**scope, "path": self._application.layout.path, "root_path": ""}, receive, send
        )


def application(server: Served, layout: Layout | None, options: dict[str, Any]) -> CompatApplication:
    """Return the application of `Server.asgi` for a compat server. `layout` is what `run` has made of its
    options; by default all paths of `fastrpc.Server` and those of the settings are served.

    Without options for tokens the server's own `auth` decides. Raises UsageError for unknown options, and if
    there is neither that nor ``auth=None``.
    """
    tokens = {name: options.pop(name) for name in TOKENS if name in options}
    limits = {name: options.pop(name) for name in APPLICATION if name in options}
    for name, value in options.items():
        if name not in PLACES:
            raise UsageError(f"asgi: unknown option {name!r}")
        if isinstance(value, str):
            raise UsageError(f"asgi: {name}: expected a list, got a text")
    if layout is None:
        known = server.settings
        layout = Layout(
            None,
            places=Places(True, answers_cors=True),
            mcp_path=known.streamable_http_path,
            sse_path=known.sse_path,
            message_path=known.message_path.rstrip("/"),
            json_response=known.json_response,
            stateless=known.stateless_http,
        )
        layout.places.loopback = options.get("loopback", True)
    check = None if tokens else server._token_check(layout.mcp_path)
    if check is not None:
        tokens["token"] = check
    layout.places.hosts += [host.lower() for host in options.get("hosts", ())]
    layout.places.origins += [origin.lower() for origin in options.get("origins", ())]
    layout.limits.update(limits)
    return CompatApplication(server, layout, tokens)
