"""What the HTTP transports share: the protocols `Transport` and `Client`, and how a stream is read.

A `Transport` carries the messages of one connection, for some versions of the protocol; there are three, in
`stateless`, `session` and `sse`. It hands incoming messages to its `Client`. No I/O; `HttpClient` selects the
transport.
"""

from __future__ import annotations

import json

from fastrpc.proxy.requests import RemoteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from typing import Any, Protocol

    from fastrpc.proxy.requests import PendingRequest

    class Transport(Protocol):
        """Carries the messages of one connection."""

        def set_version(self, version: str) -> None:
            """Store the protocol version that the handshake chose."""

        def send_request(self, pending: PendingRequest, message: dict[str, Any]) -> None:
            """Send a request in the background; its answer goes to `Client.on_message` or `Client.fail`."""

        def withdraw(self, pending: PendingRequest) -> None:
            """Cancel a request whose caller no longer waits."""

        async def send(self, message: dict[str, Any], pending: PendingRequest | None = None) -> None:
            """Send a notification, or the response to a request that the server sent during `pending`. Raises
            ToolError."""

        async def watch(self, uris: set[str]) -> None:
            """Subscribe to changes of these resources, if that needs no request."""

        async def leave(self) -> None:
            """Close the connection. Raises ToolError."""

    class Client(Protocol):
        """The connection whose messages a transport carries."""

        loop: asyncio.AbstractEventLoop
        initialize_params: dict[str, Any]
        """Our side of the handshake: ``clientInfo`` and ``capabilities``."""
        ended: str | None
        """Why no request can be sent any more; None while the connection is open."""

        def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
            """Start a task that is cancelled when the connection is closed."""

        def on_message(self, message: Any, of: PendingRequest | None = None) -> None:
            """Handle an incoming message. `of`: the request to which it belongs, if any."""

        def is_pending(self, pending: PendingRequest) -> bool:
            """Whether a request is still pending."""

        def fail(self, pending: PendingRequest, error: Exception) -> None:
            """End a pending request with an error."""

        def send_nowait(self, message: dict[str, Any]) -> None:
            """Send a notification or a response without waiting."""

        def expire(self, reason: str) -> bool:
            """Refuse new requests; pending ones may still be answered. Return False if already done."""

        def end(self, reason: str) -> None:
            """The connection has ended: fail all pending requests."""

        def relist(self) -> None:
            """List everything again: the server may have changed without a notification."""

        def schema_of(self, tool: str) -> dict[str, Any]:
            """Return the input schema of a tool of the server; empty if the tool is not known."""


SILENT_SECONDS = 300.0
"""Seconds without a byte, comments included, after which a stream of changes is opened again."""
STEADY_SECONDS = 5.0
"""Seconds that a stream must last to reset the back-off."""
PAUSES = (0.2, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Back-off in seconds between attempts to open a stream; the last value repeats."""


def parsed(data: str) -> Any:
    """Return the JSON of an event, or its text if it is not JSON; the client logs and skips that."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


def check_answers(message: Any, status: int) -> None:
    """Raise RemoteError for an error without an id: the request could not be read (JSON-RPC 2.0, 5)."""
    if isinstance(message, dict) and "error" in message and message.get("id") is None:
        raise RemoteError(message["error"], status)
