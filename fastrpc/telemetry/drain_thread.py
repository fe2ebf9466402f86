"""A thread that drains a ring buffer of records.

It sleeps while there are none and drains every 50 ms otherwise (`pause_seconds`): records are at most that
old, and drained in batches. It is started by the first record, and again in a forked child.
"""

from __future__ import annotations

import atexit
from threading import Event, Thread
from time import sleep

from fastrpc import forks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_SECONDS = 0.05


class DrainThread:
    """Calls `drain` soon after each `wake`, and `at_exit` when the interpreter ends."""

    def __init__(self, name: str, drain: Callable[[], object], at_exit: Callable[[], object]) -> None:
        self._name = name
        self._drain = drain
        self._at_exit = at_exit
        self.pause_seconds = PAUSE_SECONDS
        self._something = Event()
        self._thread: Thread | None = None
        self._generation = forks.generation

    def wake(self) -> None:
        """Called when there is a record after there was none, on the thread that has added it."""
        if self._thread is None or self._generation != forks.generation:
            self._generation = forks.generation
            self._thread = Thread(target=self._watch, name=self._name, daemon=True)
            self._thread.start()
            atexit.register(self._at_exit)
        self._something.set()

    def _watch(self) -> None:
        while True:
            self._something.wait()
            self._something.clear()
            sleep(self.pause_seconds)  # collect more: each batch costs a thread switch
            self._drain()
