"""Coroutines of calls that the connection begins by itself, and the calls that wait for them."""

from typing import Any

from fastrpc._core.context import InFlightCall
from fastrpc._core.task import CallTask

class ConnectionCall(InFlightCall):
    """A call that the connection has begun. It is among the requests in flight, as their request and its
    call."""

    outcome: str | None
    """What the record of a call that is cancelled says, if its client sees more than that."""
    @property
    def id(self) -> bytes: ...
    @property
    def call(self) -> ConnectionCall: ...
    @property
    def dispatcher(self) -> Any: ...
    @property
    def batch(self) -> None: ...
    @property
    def began(self) -> int:
        """When the message had been read, in ticks."""

class PendingCall(ConnectionCall):
    """A call that waits: its coroutine is suspended."""

    def __call__(self, task: CallTask) -> None:
        """The coroutine has ended."""
