"""A client's side of a connection: encodes requests, matches answers to them, hands over all else."""

import asyncio
from collections.abc import Callable
from typing import Any

LONGEST_LINE: int
"""Bytes; of a longer line nothing is kept."""

class PendingRequest:
    """A request that has been sent. `done`: it has its result or its error."""

    @property
    def id(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def is_call(self) -> bool:
        """Whether it calls a tool: its result is a CallResult."""
    @property
    def done(self) -> bool: ...
    @property
    def context(self) -> Any:
        """Whatever the caller gave."""
    def result(self) -> Any:
        """Return the result. Raises the error."""
    def follow(self, connection: ClientStream, future: asyncio.Future[Any]) -> None:
        """Have `future` resolved too, in a loop that begins to wait only now."""

class ClientStream:
    """One connection to a server.

    `on_request` and `on_notification` get each request and notification of the server, whole; `on_unreadable`
    the beginning of a line that is no message; `on_end` is called at the end of the input. None of them may
    raise. `carry`, for a connection without descriptors, is called when a line waits to be taken: with the
    request that it is and its params without ``_meta`` of the connection, or with None twice. `needs_loop`
    makes `wait` return, once it has seen it.
    """

    on_request: Callable[[dict[str, Any]], object]
    on_notification: Callable[[dict[str, Any]], object]
    on_unreadable: Callable[[bytes], object]
    on_end: Callable[[], object]
    carry: Callable[[PendingRequest | None, dict[str, Any] | None], object] | None
    needs_loop: bool
    remark: str
    """What an error about a missing answer says besides; "" for nothing."""

    def __new__(cls, max_line: int = ...) -> ClientStream: ...
    @property
    def pending(self) -> dict[int, PendingRequest]: ...
    @property
    def unsent(self) -> int:
        """How many bytes wait to be sent."""
    @property
    def next_id(self) -> int:
        """The id that the next request will have."""
    def open(self, input: int, output: int, also: int = -1) -> None:
        """Read from the descriptor `input` and write to `output`, both non-blocking.

        `also`: a descriptor that a loop reads; `wait` returns when it has something.
        """
    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use this event loop: for writing, for time limits and, with descriptors, for reading."""
    def detach(self) -> None:
        """Leave the descriptors and the loop alone from now on."""
    def take(self) -> bytes:
        """Return the lines that wait to be sent, each with its newline."""
    def set_envelope(self, meta: dict[str, Any] | None) -> None:
        """Put this ``_meta`` on every call that is made by `call` (MCP 2026-07-28)."""
    def call(
        self,
        name: str,
        arguments: dict[str, Any] | None,
        future: asyncio.Future[Any] | None = None,
        timeout_seconds: float = 0.0,
    ) -> PendingRequest:
        """Send a ``tools/call``; return its PendingRequest, whose result is a CallResult.

        A result with another ``resultType`` than ``complete`` is a dict.
        """
    def request(
        self,
        method: str,
        params: dict[str, Any],
        future: asyncio.Future[Any] | None = None,
        timeout_seconds: float = 0.0,
        context: Any = None,
        is_call: bool = False,
    ) -> PendingRequest:
        """Send any request; return its PendingRequest, whose result is a dict."""
    def send(self, line: bytes) -> None:
        """Send a notification or an answer; its newline is added here."""
    def cancel(self, id: int, reason: str) -> None:
        """Tell the server that nobody waits for an answer any more."""
    def forget(self, request: PendingRequest) -> bool:
        """Stop waiting for an answer. Return False if it is there already."""
    def fail(self, request: PendingRequest, error: Exception) -> None:
        """End a request with an error."""
    def fail_all(self, make_error: Callable[[PendingRequest], Exception]) -> None:
        """End all requests, each with an error that `make_error` makes."""
    def flush(self) -> None:
        """Write what waits."""
    def wait(self, request: PendingRequest) -> bool:
        """Wait for an answer without a loop. Return False if that needs the loop, which has to wait on."""
    def readable(self) -> None:
        """Read what has come, in a loop."""
    def writable(self) -> None:
        """Write on: the output was full."""
    def read_rest(self) -> None:
        """Read what a server that has ended has left."""
    def expire(self) -> None:
        """Fail the requests whose time is up."""
    def receive(self, data: bytes) -> None:
        """Take bytes that have come: lines, or parts of them."""
    def receive_message(self, text: bytes) -> None:
        """Take one message. It may hold newlines, where JSON allows them."""
