"""`PingMiddleware`: pings the connected clients from time to time, which keeps idle connections open. It has
no hook: requests cost nothing more."""

from __future__ import annotations

from itertools import count

from fastrpc.compat.middleware.base import Middleware
from fastrpc.protocol.lifecycle import READY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PingMiddleware(Middleware):
    """Sends ``ping`` every `interval_ms` to clients of versions that have it, those before 2026-07-28. Raises
    ValueError for an interval below 1."""

    def __init__(self, interval_ms: int = 30_000) -> None:
        if interval_ms <= 0:
            raise ValueError(f"interval_ms: expected more than 0, got {interval_ms}")
        self.interval_ms = interval_ms
        self._numbers = count(1)

    def attach(self, server: Any) -> None:
        """Begin to ping the clients of a server."""

        def ping() -> None:
            for dispatcher in list(server.runtime.dispatchers):
                if dispatcher.session.state == READY:
                    outbound = dispatcher.outbound
                    message = {"jsonrpc": "2.0", "id": f"ping-{next(self._numbers)}", "method": "ping"}
                    outbound.post(lambda to=outbound, sent=message: to.send(sent))

        server.watch(ping, self.interval_ms / 1000)
