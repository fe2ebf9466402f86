"""Waiting for what comes about by itself, within a time that only says that waiting has an end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

SECONDS = 60.0  # half of what pytest gives a test: a busy machine may take as long to start a program
PAUSES = (0.001, 0.002, 0.005)  # between the first looks: most of what is waited for comes at once
LATER_PAUSE = 0.01


def eventually(is_so: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Wait until something is so, and return what it is. Raises AssertionError."""
    deadline = time.monotonic() + seconds
    pauses = chain(PAUSES, repeat(LATER_PAUSE))
    while not (found := is_so()):
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(next(pauses))
    return found


async def until(is_so: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """`eventually`, while the event loop runs."""
    deadline = time.monotonic() + seconds
    pauses = chain(PAUSES, repeat(LATER_PAUSE))
    while not (found := is_so()):
        assert time.monotonic() < deadline, "it did not come to that in time"
        await asyncio.sleep(next(pauses))
    return found
