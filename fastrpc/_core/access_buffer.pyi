"""The records of an access log: written into fixed memory where a request is answered, lines later."""

from collections.abc import Callable
from typing import Any

from fastrpc._core.connection import Connection

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
        answer went out; `outcome` one of `recorder.OUTCOMES`, or None. An empty text means none. Raises
        UnicodeEncodeError for a text with lone surrogates.
        """
    @property
    def unwritten(self) -> int:
        """How many lines the last `write_to` could not write."""
    @property
    def is_cut(self) -> bool:
        """Whether it has written a part of the next one."""
    def write_to(self, descriptor: int, as_json: bool) -> None:
        """Write the lines of all records in the buffer to a file, the oldest first. One thread at a
        time may call it. Raises OSError; the `unwritten` lines are then lost.

        The GIL is taken once: on a busy event loop each time costs up to a switch interval.
        """
    def take(self, as_json: bool) -> bytes:
        """Return the lines of all records in the buffer, the oldest first. By one thread at a time."""

class NotedAnswers:
    """Calls what answers requests the straight way, and notes what it has answered.

    `function` is what is called as `answer` is. Behind it `served` is the connection that has answered, None
    for `connection`, or anything else, which `log_unshared` gets with the ticks at which it was called, what
    it was called with, and its answer. The request is noted with the members ``principal``, ``method`` and
    ``name`` of its head; without a method it is the message's that the connection has read since `prepare`.
    """

    served: Any
    def __init__(
        self,
        buffer: AccessBuffer,
        function: Callable[..., Any],
        connection: Connection,
        log_unshared: Callable[..., object],
    ) -> None: ...
    def answer(self, head: Any, body: bytes, headers: Any, client: Any = None) -> Any:
        """Return the answer of `function`: bytes, or None, which is not noted."""
