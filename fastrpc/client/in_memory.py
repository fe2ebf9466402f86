"""Connects a client to a `Server` object in the same process, without descriptors or pipes.

Messages are parsed and encoded as over stdio. The server handles a request before `call` returns; if the tool
runs inline, its response has then been received.
"""

from __future__ import annotations

from fastrpc.client.transport import ConnectionTransport
from fastrpc.transports.base import Connections
from fastrpc.transports.memory import MemoryTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from fastrpc._core.client_request import PendingRequest
    from fastrpc._core.client_stream import ClientStream
    from fastrpc.errors import ConnectionLost

    class LineWatcher(Protocol):
        """Receives every line of both directions, with its newline."""

        def sent(self, data: bytes) -> object: ...
        def received(self, data: bytes) -> object: ...

    class InMemoryServer(Protocol):
        """The part of `fastrpc.Server` that is needed here."""

        name: str

        @property
        def runtime(self) -> Any:
            """Its `ServedRuntime`. Untyped, as the next: pyright rejects the types."""

        def connect(self, main: Any = None) -> Any:
            """Return the `ServedDispatcher` of a new connection."""


class InMemory(ConnectionTransport):
    """The transport to a server in this process. `watcher`: for test suites. `principal`: for whom the
    client calls; "" for an unauthenticated caller."""

    def __init__(
        self, server: InMemoryServer, watcher: LineWatcher | None = None, principal: str = ""
    ) -> None:
        self.shown = server.name
        self._principal = principal
        self._watcher = watcher
        self._server = server
        self._carrier: MemoryTransport | None = None

    async def open(self, stream: ClientStream, on_lost: Callable[[ConnectionLost], object]) -> None:
        self._stream = stream
        self._carrier = carrier = MemoryTransport(
            stream.receive_message if self._watcher is None else self._receive_watched
        )
        carrier.connect(Connections(lambda: self._server.connect().connection), self._principal)
        stream.carry = self._carry

    def _carry(self, request: PendingRequest | None, params: dict[str, Any] | None) -> None:
        """Send the messages in the stream; those that a response adds to it are sent before the rest."""
        assert self._carrier is not None
        for line in self._stream.take().splitlines():
            if self._watcher is not None:
                self._watcher.sent(line + b"\n")
            self._carrier.send(line)

    def _receive_watched(self, line: bytes) -> None:
        assert self._watcher is not None
        self._watcher.received(line + b"\n")
        self._stream.receive_message(line)

    async def close(self) -> None:
        self._stream.carry = None
        if self._carrier is not None:
            self._carrier.disconnect()
        await self._server.runtime.leave()
