"""A request of a client, and who gets its result: a future, a task, or the sink of a forwarded call."""

from typing import Any

class AnswerSink:
    """Takes the results of forwarded calls where they are read, in place of a future."""

class PendingRequest:
    """A request that has been sent. `done`: its result or error is available."""

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
    def value(self) -> Any:
        """The result; None for a request without one."""
    @property
    def error(self) -> BaseException | None: ...
    context: Any
    """An object of the caller."""
    @property
    def is_forwarded(self) -> bool:
        """Whether its result goes to another connection, as a forwarded call's does."""
    def result(self) -> Any:
        """Return the result. Raises the error."""

def sent_id(id: object) -> int | None:
    """Return which of our ids, which are integers, an answer bears; None for none."""

class Resumptions:
    """Completed requests whose tasks wait for them. Compiled methods only."""
