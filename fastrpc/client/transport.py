"""The interface of a client's transports, which exchange the messages of one `ClientStream` with a server.

The transports are `stdio` (a child process), `in_memory` (a `Server` in this process) and `http`, where the
form of requests depends on the version. The meaning of messages is left to `fastrpc.client.session`.
"""

from __future__ import annotations

from collections.abc import Callable

from fastrpc._core.client_request import PendingRequest
from fastrpc._core.client_stream import ClientStream
from fastrpc.errors import ConnectionLost

PAUSES = (0.2, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Back-off in seconds between attempts to open a stream; the last value repeats."""


class ConnectionTransport:
    """The transport of one connection. It is opened and closed once, in the running event loop."""

    shown: str
    """The server's name in messages."""
    answering: PendingRequest | None = None
    """While a message is received: the request on whose stream it arrived; None if it is unknown."""
    has_request_streams = False
    """Whether what a server sends for a request arrives on a stream of that request, if the server follows
    MCP (Streamable HTTP): all else belongs to no request."""
    still_answers = False
    """Whether requests in flight may still be answered after the connection has been lost."""
    on_gap: Callable[[], object] | None = None
    """Called when notifications may have been missed, because a stream broke and was reopened."""

    @property
    def awaited(self) -> str:
        """What the connection waits for, before a request is sent: "a connection"; "" for nothing."""
        return ""

    @property
    def pid(self) -> int:
        """The process id of the server, if the transport has started it and it runs; else 0."""
        return 0

    @property
    def last_lines(self) -> list[str]:
        """The last lines on standard error of a server that the transport has started, secrets masked."""
        return []

    async def open(self, stream: ClientStream, on_lost: Callable[[ConnectionLost], object]) -> None:
        """Connect, and send the messages in the stream from then on. `on_lost` is called once, if the
        connection is lost before `close`. Raises ConnectionLost if there is no connection."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the connection, within seconds. Messages that arrive meanwhile are dropped."""
        raise NotImplementedError

    def wait_shortly(self, request: PendingRequest) -> None:
        """Wait a moment for the answer to a request, where that is cheaper than to run the loop."""

    # --- for transports that depend on the protocol version -------------------------------------------

    def set_version(self, version: str) -> None:
        """Use this version for the messages that follow. Called before `server/discover` and `initialize`,
        and with the version that the server has chosen."""

    async def fall_back(self) -> bool:
        """Switch to an older transport after a refused `initialize`, if there is one. Raises ClientError."""
        return False

    async def settle(self) -> None:
        """Wait until the server has received `notifications/initialized`. Raises ClientError."""

    async def flush(self) -> None:
        """Wait until the server has received all notifications sent so far."""
