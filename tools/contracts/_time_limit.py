"""A time limit for a part of a coroutine, like `asyncio.timeout` of Python 3.11."""

from __future__ import annotations

import asyncio
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


class TimeLimit:
    """``async with TimeLimit(seconds):`` ends what is in the block, with TimeoutError, after this time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_over = False
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._end, task)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._timer is not None
        self._timer.cancel()
        if self._is_over and kind is asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            if sys.version_info >= (3, 11):
                task.uncancel()
            raise TimeoutError from None

    def _end(self, task: asyncio.Task[object]) -> None:
        self._is_over = True
        task.cancel()
