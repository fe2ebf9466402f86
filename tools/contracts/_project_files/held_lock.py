"""A lock on a file for which a task waits. It excludes the other tasks of a server, and other servers.

It is released when the block is left, or when its process has died. Waiting costs one attempt each
`PAUSE_SECONDS`.
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
    """Return the descriptor of a lock file, which is made if it is missing. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


@asynccontextmanager
async def hold(path: str, deadline: float, late: Exception) -> AsyncIterator[None]:
    """Hold the lock of a file. Raises `late` at the deadline, a time of `time.monotonic`."""
    descriptor = opened(path)  # a separate one, since a lock belongs to one opening of the file
    try:
        while lock(descriptor) is False:
            if time.monotonic() > deadline:
                raise late
            await asyncio.sleep(PAUSE_SECONDS)
        yield
    finally:
        os.close(descriptor)
