"""Connects a client to a `Server` object in the same process: no descriptors, no pipes.

Messages are framed, parsed and encoded as over stdio. A request is handed to the server where it is made, so
that an inline tool's answer is there when `call` returns.
"""

from __future__ import annotations

from fastrpc.client.transport import Transport
from fastrpc.transports.base import Connections
from fastrpc.transports.memory import MemoryTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from fastrpc._core.client_stream import ClientStream, PendingRequest
    from fastrpc.errors import ConnectionLost
    from fastrpc.transports.interfaces import Dispatcher

    class Watcher(Protocol):
        """Sees every line in both directions, with its newline."""

        def sent(self, data: bytes) -> object: ...
        def received(self, data: bytes) -> object: ...

    class Runtime(Protocol):
        """What all connections of a server share."""

        async def leave(self) -> None:
            """Leave the lifespans of a server that nobody uses any more."""

    class Server(Protocol):
        """The part of `fastrpc.Server` that is needed here."""

        name: str

        @property
        def runtime(self) -> Any:
            """A `Runtime`."""

        def connect(self, main: Any = None) -> Any:
            """Return the dispatcher of a new connection."""


class InMemory(Transport):
    """The transport to a server in this process. `watcher` is for test suites."""

    def __init__(self, server: Server, watcher: Watcher | None = None) -> None:
        self.shown = server.name
        self._watcher = watcher
        self._server = server
        self._carrier: MemoryTransport | None = None

    async def open(self, stream: ClientStream, on_lost: Callable[[ConnectionLost], object]) -> None:
        self._stream = stream
        self._carrier = carrier = MemoryTransport(
            stream.receive_message if self._watcher is None else self._receive_watched
        )
        await carrier.start(Connections(self._connect))
        stream.carry = self._carry

    def _connect(self) -> Any:
        dispatcher: Dispatcher = self._server.connect()
        return dispatcher.connection

    def _carry(self, request: PendingRequest | None, params: dict[str, Any] | None) -> None:
        """Hand over what the stream holds. A server's answer to it may make the stream hold more: that goes
        first."""
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
        runtime: Runtime = self._server.runtime
        await runtime.leave()
