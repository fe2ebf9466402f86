"""The time that an upstream server has to start: `on_slow` hears of a slow start, `Late` ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

SLOW_SECONDS = 2.0
"""Seconds after which it may be said what a start waits for."""


class Late(Exception):
    """The time is over. The text says what was waited for."""


async def in_time(
    work: Coroutine[Any, Any, None],
    seconds: float,
    awaited: Callable[[], str],
    on_slow: Callable[[str, float], object] | None,
) -> None:
    """Do some work within a time. `awaited` returns what it waits for; `on_slow` is called with that and the
    seconds that are left, after `SLOW_SECONDS`. Raises Late, and what the work raises."""
    task = asyncio.get_running_loop().create_task(work)
    left = seconds
    try:
        if on_slow is not None and seconds > SLOW_SECONDS:
            await asyncio.wait({task}, timeout=SLOW_SECONDS)
            if not task.done():
                left = seconds - SLOW_SECONDS
                on_slow(awaited(), left)
        if not task.done():
            await asyncio.wait({task}, timeout=left)
        if not task.done():
            raise Late(awaited())
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(_drop)
    task.result()


def _drop(task: asyncio.Task[None]) -> None:
    """Retrieve what the work has raised when its time was over: else it would be logged as a traceback."""
    if not task.cancelled():
        task.exception()
