"""What the transports of MCP over HTTP have in common: their port, their client's, and how a stream is read.

A `Transport` carries the messages of one conversation as some versions of the protocol have it; there are
three, in `stateless`, `session` and `sse`. What comes in is handed to the `Client`, of which a transport
knows no more than is written here. No I/O; which transport a server knows is left to `HttpPeer`.
"""

from __future__ import annotations

import json

from fastrpc.proxy.requests import RemoteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from typing import Any, Protocol

    from fastrpc.proxy.requests import Asked

    class Transport(Protocol):
        """How messages go to one server and come from it."""

        def agreed(self, version: str) -> None:
            """The handshake has chosen a version."""

        def put(self, asked: Asked, message: dict[str, Any]) -> None:
            """Send a request; its answer is taken, or it fails."""

        def withdraw(self, asked: Asked) -> None:
            """The answer to a request is not waited for any more."""

        async def tell(self, message: dict[str, Any], asked: Asked | None = None) -> None:
            """Send a notification, or an answer to what the server has asked during a request. Raises
            ToolError."""

        async def watch(self, uris: set[str]) -> None:
            """Have the server tell when these resources change, where no request does it."""

        async def leave(self) -> None:
            """End the conversation. Raises ToolError."""

    class Client(Protocol):
        """The MCP client whose messages a transport carries, to one server."""

        loop: asyncio.AbstractEventLoop
        told: dict[str, Any]
        """What the server is told of us: ``clientInfo`` and ``capabilities``."""
        ended: str | None
        """Why nothing can be asked any more; None while it can."""

        def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
            """Run something for as long as the conversation lasts."""

        def take(self, message: Any, of: Asked | None = None) -> None:
            """Take a message of the server's. `of`: the request that it came along with, if any."""

        def waits_for(self, asked: Asked) -> bool:
            """Whether a request is still to be answered."""

        def fail(self, asked: Asked, error: Exception) -> None:
            """A request will not be answered."""

        def tell_soon(self, message: dict[str, Any]) -> None:
            """Send a notification or an answer, without waiting."""

        def expire(self, reason: str) -> bool:
            """Nothing more can be asked, though what was asked may still be answered. False if it was so
            before."""

        def end(self, reason: str) -> None:
            """The server is gone: what waits for it fails."""

        def list_anew(self) -> None:
            """What the server offers may have changed without a word of it."""

        def schema_of(self, tool: str) -> dict[str, Any]:
            """The input schema of one of the server's tools; empty if it is not known."""


SILENT_SECONDS = 300.0
"""A stream of changes on which nothing comes for so long, no comment either, is opened anew."""
STEADY_SECONDS = 5.0
"""A stream that has lasted so long was none that breaks at once."""
PAUSES = (0.2, 1.0, 2.0, 5.0, 10.0, 30.0)
"""In seconds, between attempts to open it again; the last one from then on."""


def parsed(data: str) -> Any:
    """Return the JSON of an event, or its text where that is none: a client skips what is no message."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


def check_answers(message: Any, status: int) -> None:
    """Raise RemoteError for an error without an id: the request could not be read (JSON-RPC 2.0, 5)."""
    if isinstance(message, dict) and "error" in message and message.get("id") is None:
        raise RemoteError(message["error"], status)
