"""The contract of a client's transport: it carries the lines of one `ClientStream` to a server and back.

There are `stdio` (a process), `in_memory` (a `Server` in this process) and those over HTTP. What the messages
mean is left to `fastrpc.client.session`. No I/O here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from fastrpc._core.client_stream import ClientStream
    from fastrpc.errors import ConnectionLost

    class Transport(Protocol):
        """Carries the messages of one connection. Is opened and closed once, in the loop that runs then."""

        shown: str
        """The server's name in messages."""

        async def open(self, stream: ClientStream, on_lost: Callable[[ConnectionLost], object]) -> None:
            """Begin to carry what the stream holds. `on_lost` is called once, if the connection ends by
            itself.

            Raises ConnectionLost if the server cannot be reached or started.
            """

        async def close(self) -> None:
            """End the connection, within seconds. What the server still has to say is dropped."""
