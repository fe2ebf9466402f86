"""What requests, calls and batches use of the dispatcher that makes them, so that no module imports its user.

For type checkers only: not imported at run time.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Sized
from typing import Any, Protocol

from fastrpc._core.connection import Connection
from fastrpc._core.message import Message
from fastrpc._core.plan import Plan
from fastrpc.engine.ports import NotifiedDispatcher
from fastrpc.engine.runtime import Runtime
from fastrpc.errors import ProtocolError
from fastrpc.protocol.lifecycle import SessionState


class CallProtocol(Protocol):
    """A call of a handler, as its request knows it."""

    state: str
    plan: Plan

    @property
    def context(self) -> Any:
        """The handler's `fastrpc.Context`, None if it takes none."""

    def cancel(self, said: dict[str, Any] | None = None) -> None: ...


class DispatcherProtocol(NotifiedDispatcher, Protocol):
    """What serves one connection, as its requests, calls and batches use it."""

    runtime: Runtime
    session: SessionState
    connection: Connection
    loop: AbstractEventLoop | None
    on_paused: Callable[[], object] | None
    batches: set[Any]
    in_flight: dict[bytes, Any]
    listening: dict[bytes, Any]

    @property
    def pending(self) -> Any:
        """The server's requests to this client that have not been answered yet."""

    # of a wrapped request
    def begin(self, request: Any, plan: Plan, arguments: list[Any] | dict[str, Any]) -> bytes | None: ...

    # of the messages of a batch, and of those that fail
    def dispatch(self, message: Message, batch: Any = None) -> None: ...
    def line_failed(self, line: bytes, before: int, error: BaseException, batch: Any = None) -> None: ...
    def answer_error(self, id: bytes, error: ProtocolError, batch: Any) -> None: ...
    def forget(self, request: Any) -> None: ...
    def batch_read(self, batch: Any, late: bool) -> None: ...

    # of calls that end
    def leave_if_forked(self, error: BaseException | None) -> None: ...
    def call_returned(self, call: Any, result: Any) -> None: ...
    def call_encoded(self, call: Any, result: bytes) -> None: ...
    def call_raised(self, call: Any, error: BaseException) -> None: ...
    def call_dropped(self, call: Any) -> None: ...

    # of what goes to the client besides answers
    @property
    def posted(self) -> Sized: ...
    def run_posted(self) -> None: ...
    def send(self, message: dict[str, Any]) -> None: ...
    def send_line(self, line: bytes) -> None: ...
