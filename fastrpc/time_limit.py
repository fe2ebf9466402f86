"""A time limit for a part of a coroutine, like `asyncio.timeout` of Python 3.11; it creates no task.

All blocks with the same limit share one timer of their loop. So a block costs two changes of a dict, not a
separate timer, which most blocks would cancel at once.
"""

from __future__ import annotations

import asyncio
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

SHORTEST_PAUSE = 0.001
"""The minimum delay of the timer in seconds: the clock of a loop may count in milliseconds."""


class TimeLimit:
    """``with TimeLimit(seconds):`` cancels the block after this time, and raises TimeoutError, or what `late`
    returns.

    `is_over`: the time has passed.
    """

    __slots__ = ("_late", "_queue", "_seconds", "_task", "is_over")

    def __init__(self, seconds: float, late: Callable[[], BaseException] = TimeoutError) -> None:
        self.is_over = False
        self._late = late
        self._seconds = seconds
        self._task: asyncio.Task[object] | None = None
        self._queue: _Queue | None = None

    def __enter__(self) -> TimeLimit:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(loop)
        queue = _queues.get((loop, self._seconds))
        if queue is None:
            for key in list(_queues):  # an atomic copy: loops on other threads change the dict, too
                if key[0].is_closed():
                    _queues.pop(key, None)
            queue = _queues[loop, self._seconds] = _Queue(loop, self._seconds)
        self._queue = queue
        queue.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._queue is not None
        self._queue.blocks.pop(self, None)
        if self.is_over and kind is asyncio.CancelledError:
            if self._task is not None and hasattr(self._task, "uncancel"):  # from Python 3.11 on
                self._task.uncancel()
            raise self._late() from None

    def end(self) -> None:
        """The time has passed."""
        self.is_over = True
        if self._task is not None:
            self._task.cancel()


class _Queue:
    """The blocks of one loop with one limit, in the order in which they end."""

    __slots__ = ("_is_timed", "_loop", "_seconds", "blocks")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self.blocks: dict[TimeLimit, float] = {}
        self._loop = loop
        self._seconds = seconds
        self._is_timed = False

    def add(self, block: TimeLimit) -> None:
        self.blocks[block] = monotonic() + self._seconds
        if not self._is_timed:
            self._is_timed = True
            self._loop.call_later(self._seconds, self._look)

    def _look(self) -> None:
        """End the blocks whose time has passed, and start the timer for the next one."""
        now = monotonic()
        while self.blocks:
            block, end = next(iter(self.blocks.items()))
            if end > now:
                self._loop.call_later(max(end - now, SHORTEST_PAUSE), self._look)
                return
            del self.blocks[block]
            block.end()
        self._is_timed = False
        _queues.pop((self._loop, self._seconds), None)


_queues: dict[tuple[asyncio.AbstractEventLoop, float], _Queue] = {}
