"""The result of `Server.asgi`: an ASGI application to be mounted in another one, or run by any ASGI server.

Connections, sessions and streams belong to an event loop, so each loop has a separate `HttpApp`, which is
dropped after the loop is closed. Applications that mount this one do not forward ASGI lifespan events: they
may use `lifespan` as theirs. Without it everything ends with the loop.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from fastrpc import diagnostics
from fastrpc.errors import UsageError
from fastrpc.transports.http.app import GRACE_SECONDS, HttpApp
from fastrpc.transports.http.auth import authenticator_from
from fastrpc.transports.http.guard import AccessRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from typing import Any

    from fastrpc.transports.http.endpoints import Endpoint
    from fastrpc.transports.http.interfaces import Front, MakeFront, Mapped, Receive, Send
    from fastrpc.transports.interfaces import Connect

APPLICATION = (
    "max_body",
    "max_bodies",
    "keep_alive_seconds",
    "session_idle_seconds",
    "sessions_per_caller",
    "max_sessions",
    "health",
)
PLACES = ("loopback", "hosts", "origins")


class Application:
    """An ASGI application that serves an MCP server in each event loop that calls it."""

    sees_all = False
    """Whether every request has to pass through `front`, so that none takes the fast path."""

    def __init__(
        self,
        make: Callable[[], HttpApp],
        endpoints: Mapping[str, Endpoint] | None = None,
        fronts: Sequence[MakeFront] = (),
    ) -> None:
        self._make = make
        self._endpoints = endpoints or {}
        self._makes_fronts = fronts
        self._fronts: WeakKeyDictionary[HttpApp, Front] = WeakKeyDictionary()
        self._apps: dict[AbstractEventLoop, HttpApp] = {}
        self._last: tuple[AbstractEventLoop | None, HttpApp] = (None, make())

    async def __call__(self, scope: Mapped, receive: Receive, send: Send) -> None:
        app = self.here()
        has_fronts = self._endpoints or self._makes_fronts
        await (self.front(app) if has_fronts else app)(scope, receive, send)

    def here(self) -> HttpApp:
        """Return the application of the running loop."""
        loop = asyncio.get_running_loop()
        known, app = self._last
        if known is not loop:
            for other in [other for other in self._apps if other.is_closed()]:
                _forget(self._apps.pop(other))
            if known is not None or loop in self._apps:
                app = self._apps.get(loop) or self._make()
            self._apps[loop] = app
            self._last = loop, app
        return app

    def front(self, app: Front) -> Front:
        """Return the application that receives requests: `app` itself, the application of this loop or one in
        front of it, or what serves the endpoints and the server's other `http_fronts` before it."""
        if not (self._endpoints or self._makes_fronts):
            return app
        here = self.here()
        if here not in self._fronts:
            if self._endpoints:
                from fastrpc.transports.http.endpoints import EndpointFront

                app = EndpointFront(app, here, self._endpoints)
            for make in self._makes_fronts:
                app = make(app, here)
            self._fronts[here] = app
        return self._fronts[here]

    @asynccontextmanager
    async def lifespan(self, host: object = None) -> AsyncIterator[None]:
        """The lifespan of the application, for the host application: ``Starlette(lifespan=mcp.lifespan)``.

        At the end sessions and streams are ended in order, and the server's own lifespan is left.
        """
        try:
            yield
        finally:
            await self.aclose()

    async def aclose(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Shut down in this loop: calls in flight have `grace_seconds`, streams are ended."""
        here = self.here()
        await self._fronts.get(here, here).stop(grace_seconds)
        self._apps.pop(asyncio.get_running_loop(), None)
        self._last = (None, self._make())


def application(
    connect: Connect,
    tool_schema: Callable[..., dict[str, Any] | None],
    options: dict[str, Any],
    max_batch: int,
) -> HttpApp:
    """Make the application of `Server.asgi`.

    Raises UsageError for unknown options, and if neither tokens nor ``auth=None`` are given.
    """
    options = dict(options)
    authenticator = authenticator_from(options)
    limits = {name: options.pop(name) for name in APPLICATION if name in options}
    for name, value in options.items():
        if name not in PLACES:
            raise UsageError(f"asgi: unknown option {name!r}")
        if isinstance(value, str):  # each of its characters would be a host
            raise UsageError(f"asgi: {name}: expected a list, got a text")
    return HttpApp(
        connect, AccessRules(authenticator, **options), tool_schema=tool_schema, max_batch=max_batch, **limits
    )


def _forget(app: HttpApp) -> None:
    """Free the sessions of an application whose loop is closed; its tasks have ended."""
    try:
        app.sessions.end_all("The server has ended")
    except RuntimeError as error:  # a call of the closed loop
        diagnostics.write("debug", f"sessions of a closed loop: {error}")
