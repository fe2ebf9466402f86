"""The limits of one HTTP connection, in time and memory.

Plain numbers and sums: `protocol` enforces them for its connection, when `monitor` calls it; `connections`
decides which connection is evicted when there are too many.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import byteorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import WriteTransport


@dataclass(kw_only=True)
class ConnectionLimits:
    """The limits of a connection. Times are in seconds, and exact to two intervals of `Monitor.every`."""

    head_seconds: float = 10.0
    """For a whole head, from its first byte on; the first head from the connection on."""
    body_seconds: float = 10.0
    """For a body; each part of it that arrives extends the deadline (`Deadline`)."""
    read_seconds: float = 10.0
    """For a response that waits to be read, by the same rule."""
    idle_seconds: float = 75.0
    """Between two requests."""
    least_rate: int = 4096
    """Bytes a second."""
    head_bytes: int = 64 * 1024
    url_bytes: int = 8 * 1024
    headers: int = 100
    waiting: int = 64
    """Requests that a client may send before it has the response to the first."""
    connections: int = 1024
    """Of one process. For one more another one is evicted, or it is refused: see `connections`."""
    lingering: int = 256
    """Besides these, connections that are read after their last response, until the client has it."""
    handshakes: int = 512
    """Of TLS, besides these. One more replaces the oldest."""
    eviction_seconds: float = 1.0
    """How long a connection between two requests must have been idle to be evicted: a client that is about to
    reuse it would lose its request."""


class Deadline:
    """The deadline of a transfer in progress: a body that is received, or an answer that is read.

    Every `least_rate` bytes that are transferred extend it by a second, to `seconds` from now at most: a
    burst does not allow a long stop afterwards.
    """

    __slots__ = ("_least_rate", "_left", "_moment", "_moved", "_seconds")

    def __init__(self, seconds: float, least_rate: int, now: float, moved: int = 0) -> None:
        self._seconds = self._left = seconds
        self._least_rate = least_rate
        self._moment = now
        self._moved = moved

    def ends(self, now: float, moved: int, early: float) -> bool:
        """Whether it has passed, or will in `early` seconds. `moved` counts all bytes transferred so far."""
        left = self._left + (moved - self._moved) / self._least_rate
        self._left = min(left, self._seconds) - (now - self._moment)
        self._moment, self._moved = now, moved
        return self._left <= early


def unread_bytes(transport: WriteTransport) -> int:
    """Return the number of written bytes that the client has not acknowledged: here, and in the kernel.

    The kernel becomes writable when a third of its buffer, perhaps a megabyte, is free: judging by the buffer
    here alone, a client that reads it slowly would seem to read nothing.
    """
    waiting = transport.get_write_buffer_size()
    try:
        from fcntl import ioctl
        from termios import TIOCOUTQ

        found = ioctl(transport.get_extra_info("socket").fileno(), TIOCOUTQ, b"\0\0\0\0")
    except (ImportError, AttributeError, OSError, ValueError):  # the system does not tell
        return waiting
    return waiting + int.from_bytes(found, byteorder)
