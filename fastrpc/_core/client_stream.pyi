"""The client side of a connection: encodes requests, matches responses to them, passes on other messages."""

import asyncio
from collections.abc import Callable
from typing import Any

from fastrpc._core.client_request import PendingRequest

LONGEST_LINE: int
"""Bytes; longer lines are discarded."""
OVER_LIMIT: bytes
"""What `on_unreadable` gets in place of such a line."""

class ClientStream:
    """One connection to a server.

    `on_request` and `on_notification` are called with each request and notification of the server;
    `on_unreadable` with the first bytes of an invalid message; `on_end` with what the server has closed, "its
    input" or "its output"; `on_full`, if it is set, when the server is slow to read its input. What they
    raise is logged. `carry`, for a connection without descriptors, is called for each message to be taken:
    with the request and its params without the connection's ``_meta``, or with None and None.
    `needs_loop` makes `wait` return False.
    """

    on_request: Callable[[dict[str, Any]], object]
    on_notification: Callable[[dict[str, Any]], object]
    on_unreadable: Callable[[bytes], object]
    on_end: Callable[[str], object]
    on_full: Callable[[], object] | None
    carry: Callable[[PendingRequest | None, dict[str, Any] | None], object] | None
    needs_loop: bool
    sends_tokens: bool
    """Whether each call asks for progress."""
    max_seconds: float
    """The most that a request with a time limit may take, whatever progress it reports; 0 for no bound."""
    remark: str
    """Appended to the message of a RequestTimeout."""

    def __new__(cls, max_line: int = ...) -> ClientStream: ...
    @property
    def pending(self) -> dict[int, PendingRequest]: ...
    @property
    def next_id(self) -> int:
        """The id of the next request."""
    def open(self, input: int, output: int, extra_input: int = -1) -> None:
        """Read from the descriptor `input` and write to `output`, both non-blocking.

        `extra_input`: a descriptor that the event loop reads; `wait` returns when it is readable.
        """
    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use this event loop for writing, for time limits and, with descriptors, for reading."""
    def detach(self) -> None:
        """Stop using the descriptors and the event loop."""
    def detach_sink(self) -> None:
        """Stop writing, before the descriptor is closed."""
    @property
    def backlog(self) -> tuple[int, int]:
        """The bytes that have been sent so far, and those that wait."""
    def take(self) -> bytes:
        """Return the lines that have not been sent, each with its newline."""
    def set_envelope(self, meta: dict[str, Any] | None) -> None:
        """Set the ``_meta`` of every request made by `call` (MCP 2026-07-28)."""
    def call(
        self,
        name: str,
        arguments: dict[str, Any] | None,
        timeout_seconds: float = 0.0,
        with_token: bool = False,
    ) -> PendingRequest:
        """Send a ``tools/call`` and return its PendingRequest. `with_token`: it asks for progress.

        Its result is a CallResult, or a dict if the ``resultType`` is not ``complete``.
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
        """Send a request and return its PendingRequest. Its result is a dict."""
    def send(self, line: bytes) -> None:
        """Send a notification or a response. The newline is added here. Raises ClientError if the server does
        not read its input."""
    def cancel(self, id: int, said: dict[str, Any]) -> None:
        """Send ``notifications/cancelled`` for a request, unless the server does not read its input. `said`:
        the other members of its params."""
    def follow(self, request: PendingRequest, future: asyncio.Future[Any]) -> None:
        """Resolve `future` with the result, for a caller that starts to wait in the event loop."""
    def forget(self, request: PendingRequest) -> bool:
        """Stop waiting for a response. Return False if the request has already ended."""
    def fail(self, request: PendingRequest, error: Exception) -> None:
        """Fail a request with an error."""
    def fail_all(self, make_error: Callable[[PendingRequest], Exception]) -> None:
        """Fail all pending requests, each with the error that `make_error` returns for it."""
    def flush(self) -> None:
        """Write the buffered messages."""
    def wait(self, request: PendingRequest) -> bool:
        """Wait for a response without the event loop. Return False if the loop has to run first."""
    def sink_closed(self) -> None:
        """Nobody can read the output any more. Called by the event loop."""
    def readable(self) -> None:
        """Read the available input. Called by the event loop."""
    def writable(self) -> None:
        """Continue to write after the output was full."""
    def read_rest(self) -> None:
        """Read the remaining input of a server that has exited."""
    def expire(self) -> None:
        """Fail the requests whose time limit has passed."""
    def hold_limits(self, held: bool) -> None:
        """Suspend all time limits while `held`. Afterwards each request has its whole time limit again."""
    def receive_message(self, text: bytes) -> None:
        """Handle one message, which may contain newlines where JSON allows them."""
