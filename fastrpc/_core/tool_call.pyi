"""A tool call of `AsyncClient`: `call_tool`, and the awaitable that it returns."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Literal, TypeVar, final, overload

from typing_extensions import Self

from fastrpc._core.call_result import CallResult
from fastrpc._core.client_request import PendingRequest
from fastrpc._core.client_stream import ClientStream
from fastrpc.client.tasks import RemoteTask

_Wanted = TypeVar("_Wanted")
_OnNotification = Callable[[dict[str, Any]], object]

class ToolCaller:
    """The base class of `AsyncClient`: `call_tool`, and what a call needs of its client."""

    _stream: ClientStream
    _loop: asyncio.AbstractEventLoop
    _output_schemas: Any
    """A dict by the names of tools."""
    _timeout_seconds: float
    _is_open: bool

    @overload
    def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        timeout_seconds: float | None = None,
        on_progress: _OnNotification | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Coroutine[Any, Any, CallResult]:
        """Call a tool. Cancelling this cancels the call.

        A tool that fails returns a result with `is_error`. `as_type`: return the result's value as this type
        (a dataclass, a msgspec Struct, a pydantic model, ``list[int]`` …); raises ToolCallFailed for a tool
        that fails, InvalidAnswer for a value of another type. `meta`: members of the request's ``_meta``.
        `task`: return a `fastrpc.client.RemoteTask` as soon as there is one; `ttl_ms`: how long the server is
        asked to keep it, in milliseconds, which 2025-11-25 alone can ask for. Raises ClientError,
        TasksUnsupported among them.
        """
    @overload
    def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        as_type: type[_Wanted],
        timeout_seconds: float | None = None,
        on_progress: _OnNotification | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Coroutine[Any, Any, _Wanted]: ...
    @overload
    def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        task: Literal[True],
        ttl_ms: int | None = None,
        timeout_seconds: float | None = None,
        on_progress: _OnNotification | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Coroutine[Any, Any, RemoteTask]: ...

@final
class ToolCall(PendingRequest):
    """A call that may be awaited once."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> dict[str, Any] | None: ...
    @property
    def as_type(self) -> Any: ...
    @property
    def timeout_seconds(self) -> float | None: ...
    @property
    def __qualname__(self) -> str:
        """What the representation of a task says of its coroutine."""
    def __await__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any) -> Any:
        """Send the request, or go on after the response."""
    def throw(self, error: Any, value: Any = None, traceback: Any = None) -> Any:
        """Raise an exception where the call waits. A request without a response is cancelled."""
    def close(self) -> None:
        """End the call. A request without a response is cancelled."""
    _asyncio_future_blocking: bool | None
    """None but while the task waits: `asyncio.isfuture` takes it for a coroutine before."""
    @property
    def _loop(self) -> asyncio.AbstractEventLoop: ...
    def add_done_callback(
        self, callback: Callable[[Any], object], *, context: Context | None = None
    ) -> None: ...
    def cancel(self, msg: Any = None) -> bool:
        """Raise CancelledError in the task that waits. Return False if the response has been read."""
    def result(self) -> None:
        """Raise CancelledError if the task was cancelled. The result is returned by `send`."""
