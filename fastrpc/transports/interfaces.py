"""What transports read of the server that they serve, as interfaces: the server, the half of it that its
connections share, and the dispatcher that serves one connection.

A transport written against `base` needs none of it: `Connections` does. For type checkers alone: no module
imports this when it runs.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

from fastrpc._core.connection import Connection
from fastrpc._core.message import Message
from fastrpc._core.plan import Plan
from fastrpc.engine.ports import ChangeNotifier, MessageSender, NotifiedDispatcher
from fastrpc.errors import ProtocolError
from fastrpc.protocol.lifecycle import SessionState
from fastrpc.quotas import Quotas
from fastrpc.signed_texts import TextKeys


class ServedServer(Protocol):
    """A `fastrpc.Server`."""

    @property
    def runtime(self) -> ServedRuntime: ...
    def connect(self) -> ServedDispatcher:
        """Return the dispatcher of a new connection."""

    def drain_observers(self, *, at_end: bool = ...) -> None: ...


class Connect(Protocol):
    """`fastrpc.Server.connect`: returns the dispatcher of a new connection."""

    def __call__(self, main: Any = None) -> ServedDispatcher:
        """`main` is the main dispatcher of the connection's session, which this function has returned for the
        first one; None for a new session."""


class ServedRuntime(Protocol):
    """What all connections of a server share, and the parts of the engine (`fastrpc.engine.runtime`)."""

    signing_keys: TextKeys | None
    knows_callers: bool
    filters: Any

    @property
    def server(self) -> ServedServer: ...
    @property
    def dispatchers(self) -> Collection[NotifiedDispatcher]: ...
    @property
    def quotas(self) -> Quotas: ...
    @property
    def has_upstreams(self) -> bool: ...
    @property
    def upstreams(self) -> Any: ...
    @property
    def announcements(self) -> Any: ...
    @property
    def plans(self) -> Any: ...
    @property
    def shared(self) -> Any: ...
    @property
    def tasks(self) -> Any: ...
    @property
    def description(self) -> Any: ...
    def process_state(self) -> dict[str, list[str]]: ...
    async def leave(self) -> None: ...
    def leave_threads_behind(self) -> None: ...


class ServedDispatcher(NotifiedDispatcher, Protocol):
    """What serves one connection."""

    connection: Connection
    session: SessionState

    @property
    def runtime(self) -> ServedRuntime: ...
    @property
    def main(self) -> object:
        """The session's main dispatcher: this one, if it has no other."""

    # its parts
    @property
    def requests(self) -> ServedRequests: ...
    @property
    def responses(self) -> ServedResponses: ...
    @property
    def outbound(self) -> ServedOutbound: ...
    @property
    def changes(self) -> ServedChanges: ...

    # of the connection
    def loop_runs(self, loop: AbstractEventLoop) -> None: ...
    def adopt_version(self, version: str) -> None: ...
    def adopt_session(self, params: dict[str, Any]) -> None: ...
    def apply_session_state(self) -> None: ...
    def dispatch(self, message: Message) -> None: ...


class ServedRequests(Protocol):
    """The requests in flight of a connection's session."""

    on_idle: Callable[[], object] | None
    on_dropped: Callable[[], object] | None
    on_batch_read: Callable[[], object] | None

    @property
    def busy(self) -> bool: ...
    @property
    def in_flight(self) -> dict[bytes, RequestInFlight]: ...
    @property
    def batches(self) -> Collection[ServedBatch]: ...
    def interrupt(self, request: RequestInFlight) -> None: ...


class ServedResponses(Protocol):
    """What writes a connection's responses."""

    last_outcome: str | None

    def line_too_long(self) -> None: ...
    def line_failed(self, line: bytes, before: int, error: BaseException) -> None: ...


class ServedOutbound(MessageSender, Protocol):
    """What sends a connection's other messages."""

    on_paused: Callable[[], object] | None


class ServedChanges(ChangeNotifier, Protocol):
    """The streams of changes of a connection."""

    def end_listening(self) -> None: ...
    def watch_resources(self, uris: Iterable[str]) -> None: ...
    def unwatch(self, uris: Iterable[str]) -> None: ...


class ServedDelegate(Protocol):
    """What the compiled connection leaves to Python of its calls."""

    def on_client_idle(self) -> bool: ...
    def has_current_plans(self) -> bool: ...
    def call_ended(self, id: bytes, plan: Plan, result: Any, stateless: bool) -> str: ...
    def call_failed(self, id: bytes, plan: Plan, error: BaseException, stateless: bool) -> str: ...
    def binding_failed(self, error: BaseException) -> ProtocolError: ...


class RequestInFlight(Protocol):
    """A request that is answered later."""

    id: bytes
    call: Any
    outcome: str

    @property
    def dispatcher(self) -> object: ...
    @property
    def batch(self) -> ServedBatch | None: ...


class ServedBatch(Protocol):
    """A batch, some elements of which may not have been read yet."""

    @property
    def dispatcher(self) -> object: ...
    @property
    def answers(self) -> list[bytes]: ...
    def stop(self, error: ProtocolError) -> None: ...
