"""The contract of a client's transport: it carries the messages of one `ClientStream` to a server and back.

There are `stdio` (a process), `in_memory` (a `Server` in this process) and `http`. Over HTTP the protocol
version also decides how messages travel: `fastrpc.client.session`, which negotiates it, tells the transport.
What the messages mean is left to it. No I/O here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc._core.client_stream import ClientStream, PendingRequest
    from fastrpc.errors import ConnectionLost


class Transport:
    """Carries the messages of one connection. Is opened and closed once, in the loop that runs then."""

    shown: str
    """The server's name in messages."""
    answering: PendingRequest | None = None
    """The request to which the message belongs that is being received, where the transport can tell."""
    still_answers = False
    """Whether requests in flight may still be answered after the connection has been lost."""
    on_gap: Callable[[], object] | None = None
    """Called when notifications may have been missed: a stream has broken, and another one has begun."""

    async def open(self, stream: ClientStream, on_lost: Callable[[ConnectionLost], object]) -> None:
        """Begin to carry what the stream holds. `on_lost` is called once, if the connection ends by itself.

        Raises ConnectionLost if the server cannot be reached or started.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """End the connection, within seconds. What the server still has to say is dropped."""
        raise NotImplementedError

    def wait_shortly(self, request: PendingRequest) -> None:
        """Without a running loop: wait a moment for the answer to a request, where that is cheaper than to
        run the loop."""

    # --- where the version decides how messages travel ------------------------------------------------

    def set_version(self, version: str) -> None:
        """Carry what follows as this version has it. Called before `server/discover`, before `initialize`,
        and with the version that the server has chosen."""

    async def fall_back(self) -> bool:
        """The server has refused `initialize`: prepare another way to send it. Return False if there is none.
        Raises ClientError."""
        return False

    async def settle(self) -> None:
        """Wait until the server has received that the handshake is over. Raises ClientError."""

    async def flush(self) -> None:
        """Wait until the server has received the notifications so far."""
