"""A lock on a file that a task waits for: one at a time among the tasks of a server and among servers alike.

It is gone when it is left, or when its process has died. Waiting costs a look each `PAUSE_SECONDS`.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager

from ..._file_lock import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PAUSE_SECONDS = 0.02


def opened(path: str) -> int:
    """Return the descriptor of a file to lock, made if it is not there. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


@asynccontextmanager
async def hold(path: str, deadline: float, late: Exception) -> AsyncIterator[None]:
    """Hold the lock of a file. Raises `late` at the deadline, a time of `time.monotonic`."""
    descriptor = opened(path)  # of its own: a lock counts for one opening of the file
    try:
        while lock(descriptor) is False:
            if time.monotonic() > deadline:
                raise late
            await asyncio.sleep(PAUSE_SECONDS)
        yield
    finally:
        os.close(descriptor)
