"""The requests of one connection that are answered later, and the batches that are still being read.

The connections of one session share both tables. A request is in flight from `put` until `forget`; the calls
that the compiled connection has begun by itself are in the same table. The transport is notified when nothing
is in flight any more, and of calls that will not be answered.
"""

from __future__ import annotations

from fastrpc.engine.outbound import tell
from fastrpc.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from fastrpc._core.connection import Connection

    class ReadBatch(Protocol):
        """A batch that is being read, or waits for its requests (`fastrpc.engine.batches`)."""

        owed: int
        answers: list[bytes]

        @property
        def dispatcher(self) -> object: ...
        def settle(self) -> None: ...
        def cancel(self, key: bytes) -> None: ...
        def stop(self, error: ProtocolError) -> None: ...
        def abandon(self) -> None: ...

    class StoppableRequest(Protocol):
        """A request whose call can be stopped."""

        call: Any
        outcome: str

    class TrackedRequest(StoppableRequest, Protocol):
        """A request of the dispatcher."""

        key: bytes

        @property
        def batch(self) -> ReadBatch | None: ...


class RequestsInFlight:
    """The requests in flight of a connection's session, by the key of their id."""

    __slots__ = ("batches", "in_flight", "on_batch_read", "on_dropped", "on_idle")

    def __init__(self, connection: Connection, main: RequestsInFlight | None) -> None:
        """`main` are those of the first connection of the session; None: this is the first."""
        if main is not None:
            connection.in_flight = main.in_flight
        self.in_flight: dict[bytes, Any] = connection.in_flight
        self.batches: set[ReadBatch] = set() if main is None else main.batches
        self.on_idle: Callable[[], object] | None = None
        """Called when no request is in flight any more, and no batch is being read."""
        self.on_dropped: Callable[[], object] | None = None
        """Called when a call has been cancelled, which is not answered."""
        self.on_batch_read: Callable[[], object] | None = None
        """Called when a batch has been read that took more than one turn."""

    @property
    def busy(self) -> bool:
        """Whether a request of the session is in flight, or a batch is being read."""
        return bool(self.in_flight or self.batches)

    def put(self, request: TrackedRequest) -> None:
        """Put a request in flight; its batch waits for it, too."""
        self.in_flight[request.key] = request
        if request.batch is not None:
            request.batch.owed += 1

    def take_back(self, request: TrackedRequest) -> None:
        """Take a request out that is answered at once after all."""
        del self.in_flight[request.key]
        if request.batch is not None:
            request.batch.owed -= 1

    def defer(self, request: TrackedRequest, held: Any) -> None:
        """Put a request in flight that is served later; `held` has a ``cancel()``, as calls have."""
        request.call = held
        self.put(request)

    def forget(self, request: TrackedRequest) -> None:
        """Take a request out that has been answered, or will not be."""
        del self.in_flight[request.key]
        self.ended(request)

    def ended(self, request: TrackedRequest) -> None:
        """Notify the batch and the transport that wait for a request which has left the table."""
        if request.batch is not None:
            request.batch.settle()
        self.check_idle()

    def batch_read(self, batch: ReadBatch, late: bool) -> None:
        """A batch has been read to its end, `late` if that took more than one turn."""
        self.batches.discard(batch)
        batch.settle()
        if late and self.on_batch_read is not None:
            tell(self.on_batch_read)
        self.check_idle()

    def check_idle(self) -> None:
        """Notify the transport if nothing is in flight any more."""
        if self.on_idle is not None and not self.busy:
            tell(self.on_idle)

    def dropped(self) -> None:
        """Notify the transport that a call has been cancelled, which will not be answered."""
        if self.on_dropped is not None:
            tell(self.on_dropped)

    def cancel(self, key: bytes, said: dict[str, Any] | None = None) -> None:
        """Stop the request with this key, if it is in flight (MCP, utilities: cancellation). `said`: the
        other params of the client's notification, its reason among them."""
        request = self.in_flight.get(key)
        if request is not None and request.call is not None:
            request.call.cancel(said)
        for batch in self.batches:
            batch.cancel(key)

    def interrupt(self, request: StoppableRequest) -> None:
        """Stop a request in flight that its transport answers with an error."""
        request.outcome = ProtocolError.outcome
        if request.call is not None:
            request.call.cancel()

    def cancel_all(self) -> None:
        """Stop everything in flight; none of it is answered, nor what batches still hold."""
        while self.batches:
            self.batches.pop().abandon()
        for key in list(self.in_flight):
            self.cancel(key)


class DeferredRequest:
    """A request that a dispatcher serves later, when `resume` is called, in place of its call."""

    def __init__(self, dispatcher: Any, request: Any) -> None:
        self.dispatcher = dispatcher
        self.request = request
        self.over = False

    def cancel(self, said: dict[str, Any] | None = None) -> None:
        self.over = True
        self.request.call = None
        self.dispatcher.responses.call_dropped(self)

    def resume(self) -> None:
        if not self.over:
            self.over = True
            self.dispatcher.resume(self.request)
