"""The records of an access log: written into fixed memory where a request is answered, lines later."""

from collections.abc import Callable
from typing import Any

from fastrpc._core.connection import Connection

def ticks() -> int:
    """Return the time in ticks, as records have it."""

def prepare(connection: Connection) -> None:
    """Have `call_of` and `take_outcome` tell of the next message of a connection alone."""

def take_outcome(connection: Connection) -> str | None:
    """Return the outcome of what compiled code has answered since `prepare`, or None: it was well, or the
    dispatcher's."""

def call_of(connection: Connection) -> tuple[str | None, str | None, bytes | None]:
    """Return the method and, of a call of a tool, the tool's name, of the message that a connection has read
    since `prepare`; and the JSON text of its id. None for what there is not."""

class AccessBuffer:
    """Two rooms of `capacity` bytes: one is filled while the other one is made into lines."""

    @property
    def dropped(self) -> int:
        """How many records did not fit."""
    def __init__(self, capacity: int = 1048576, on_first: Callable[[], object] | None = None) -> None:
        """Call `on_first` when there is a record after there was none."""
    def note(
        self,
        began: int,
        client: Any,
        caller: str,
        method: str,
        name: str,
        id: bytes,
        status: int,
        outcome: str | None,
        bytes_in: int,
        bytes_out: int,
    ) -> None:
        """Note a request that has just been answered.

        `began` is in ticks; `client` ASGI's, address and port, or None; `id` JSON text; `status` 0 where no
        answer went out; `outcome` one of `recorder.OUTCOMES`, or None. An empty text stands for none. Raises
        UnicodeEncodeError for a text with lone surrogates.
        """
    def note_answer(
        self,
        connection: Connection,
        began: int,
        client: Any,
        caller: str,
        method: bytes,
        name: bytes,
        bytes_in: int,
        answer: bytes,
    ) -> None:
        """Note a request whose whole answer of HTTP is `answer`, by a connection that has answered at once;
        without a `method` it is the one of the message that the connection has read since `prepare`."""
    def take(self, as_json: bool) -> bytes:
        """Return the lines of all records that there are now, the oldest first. By one thread at a time."""
