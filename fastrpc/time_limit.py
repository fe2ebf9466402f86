"""A time limit for a part of a coroutine, like `asyncio.timeout` of Python 3.11; it makes no task."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


class TimeLimit:
    """``async with TimeLimit(seconds):`` cancels the block after this time, and raises TimeoutError.

    `is_over`: the time has passed, so that a TimeoutError is this one's and not the block's own.
    """

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._seconds = seconds
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> TimeLimit:
        self._task = asyncio.current_task()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._timer is not None
        self._timer.cancel()
        if self.is_over and kind is asyncio.CancelledError:
            if self._task is not None and hasattr(self._task, "uncancel"):  # from Python 3.11 on
                self._task.uncancel()
            raise TimeoutError from None

    def _end(self) -> None:
        self.is_over = True
        if self._task is not None:
            self._task.cancel()
