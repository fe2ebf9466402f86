"""The clock of an asyncio loop, which a test sets forward instead of waiting: what is due then comes at once.

    clock = LoopClock()          # in the running loop
    clock.advance(55)

It goes on by itself between, as fast as the machine's. Time that processes measure by themselves is not
changed. For loops of asyncio alone: those of uvloop keep their own time.
"""

from __future__ import annotations

import asyncio
import time


class LoopClock:
    """The time of the running loop; `monotonic` may take the place of `time.monotonic`."""

    def __init__(self) -> None:
        self._ahead = 0.0
        loop = asyncio.get_running_loop()
        assert isinstance(loop, asyncio.BaseEventLoop)
        loop.time = self.monotonic  # type: ignore[method-assign]

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += seconds
