"""Coroutines of calls that the connection begins by itself, and the calls that wait for them."""

from typing import Any

from fastrpc._core.task import CallTask

class InFlightCall:
    """A call that is answered later. Stands among the requests in flight, as their request and its call."""

    outcome: str | None
    """What the record of a call that is cancelled says, if its client sees more than that."""
    @property
    def id(self) -> bytes: ...
    @property
    def call(self) -> InFlightCall: ...
    @property
    def dispatcher(self) -> Any: ...
    @property
    def batch(self) -> None: ...

class PendingCall(InFlightCall):
    """A call whose coroutine is suspended."""

    def __call__(self, task: CallTask) -> None:
        """The coroutine has ended."""
    def expire(self) -> None:
        """The time limit has passed: answer now, and stop the work."""
    def cancel(self, said: dict[str, Any] | None = None) -> None:
        """The client has cancelled, or is gone: stop the work and answer nothing."""
