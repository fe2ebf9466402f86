"""Moves bytes between two descriptors and a connection; see the compiled module's text."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any

from fastrpc._core.connection import Connection

IDLE: int
MORE: int
BLOCKED: int
END: int
BROKEN: int
LOOP: int
SIGNAL: int

class Stream:
    """Both directions of one connection, over two non-blocking descriptors.

    `trace` is called with ``b"<"`` or ``b">"`` and the bytes that came or went.
    """

    @property
    def at_end(self) -> bool: ...
    @property
    def unsent(self) -> int: ...
    def __init__(
        self,
        connection: Connection,
        input: int,
        output: int,
        max_line: int,
        trace: Callable[[bytes, bytes], object] | None = None,
    ) -> None: ...
    def run(self) -> int:
        """Serve in poll(2); return END, BROKEN, LOOP or SIGNAL."""
    def attach(self, loop: AbstractEventLoop, on_end: Callable[[int], Any]) -> None:
        """Go on in a running loop; `on_end` is called with END or BROKEN."""
    def call_in_loop(self, function: Callable[[], object]) -> None: ...
    def turn(self) -> None: ...
    def flush_soon(self) -> None: ...
    def flush(self) -> None: ...
    def drained(self) -> None: ...
    def abandon(self) -> None:
        """Read and answer nothing any more, in a child process that a call has forked."""
    def send_rest(self, timeout_ms: int) -> int:
        """Write what waits without a loop; return IDLE, BLOCKED or BROKEN."""

def catch_signals() -> int:
    """Note SIGTERM, SIGINT and SIGHUP from now on; return a descriptor that turns readable."""

def forget_signals() -> None:
    """Take signals as before `catch_signals`, in a child process."""

def release_signals() -> None: ...
def flush_c_output() -> None:
    """Write what C code has printed and C's standard I/O still holds back."""
