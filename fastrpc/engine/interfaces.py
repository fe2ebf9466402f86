"""What requests, calls and batches use of the dispatcher that makes them, so that no module imports its user.

For type checkers only: not imported at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from fastrpc._core.connection import Connection
from fastrpc._core.message import Message
from fastrpc._core.plan import Plan
from fastrpc.engine.change_notifications import ChangeNotifications
from fastrpc.engine.outbound import Outbound
from fastrpc.engine.ports import NotifiedDispatcher
from fastrpc.engine.requests_in_flight import RequestsInFlight
from fastrpc.engine.runtime import Runtime
from fastrpc.errors import ProtocolError
from fastrpc.protocol.lifecycle import SessionState


class DispatcherProtocol(NotifiedDispatcher, Protocol):
    """What serves one connection, as its requests, calls and batches use it."""

    runtime: Runtime
    session: SessionState
    connection: Connection

    @property
    def request_type(self) -> Any:
        """The class of its requests."""

    # its parts
    @property
    def requests(self) -> RequestsInFlight: ...
    @property
    def responses(self) -> ResponsesProtocol: ...
    @property
    def outbound(self) -> Outbound: ...
    @property
    def changes(self) -> ChangeNotifications: ...

    # of its messages and calls
    def dispatch(self, message: Message, batch: Any = None) -> None: ...
    def serve(self, request: Any, serve: Callable[[Any], bytes | None] | None = None) -> None: ...
    def begin(
        self, request: Any, plan: Plan, arguments: list[Any] | dict[str, Any], is_allowed: bool = False
    ) -> bytes | None: ...
    def take_plans(self) -> dict[str, Plan]: ...


class ResponsesProtocol(Protocol):
    """What writes a connection's responses, as its batches and calls use it."""

    last_outcome: str | None

    @property
    def connection(self) -> Connection: ...
    @property
    def requests(self) -> RequestsInFlight: ...
    def answer(self, request: Any, result: bytes) -> None: ...
    def refuse(self, request: Any, error: ProtocolError) -> None: ...
    def put_result(self, id: bytes, result: bytes, batch: Any) -> None: ...
    def put_error(self, id: bytes, error: ProtocolError, batch: Any = None) -> None: ...
    def line_failed(self, line: bytes, before: int, error: BaseException, batch: Any = None) -> None: ...
    def call_returned(self, call: Any, result: Any) -> None: ...
    def call_encoded(self, call: Any, result: bytes) -> None: ...
    def call_raised(self, call: Any, error: BaseException) -> None: ...
    def call_dropped(self, call: Any) -> None: ...
    def failure(self, request: Any, plan: Plan, error: BaseException) -> bytes: ...
