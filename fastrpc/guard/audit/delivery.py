"""Sends checkpoints to other places, independently of the log: a thread for each target.

A checkpoint that cannot be sent is tried again, at growing intervals; the order is kept. If the queue is
full, the oldest ones are dropped and counted. The log continues in any case. One record on standard error
states that a target fails, and one that it accepts checkpoints again.
"""

from __future__ import annotations

from collections import deque
from threading import Condition, Thread
from time import monotonic
from typing import Any, Protocol

from fastrpc import diagnostics

CAPACITY = 1000
"""The maximum number of checkpoints that wait for a target: those of 3 hours, at one every 10 s."""
RETRY_SECONDS = (0.5, 60.0)
CLOSE_SECONDS = 2.0


class Target(Protocol):
    """Another place for checkpoints: a folder, a syslog daemon, a webhook, or a custom class."""

    @property
    def name(self) -> str:
        """The target's name in the log, without secrets."""

    def send(self, line: bytes) -> None:
        """Deliver a checkpoint: its line, without a newline. May block for a bounded time. Raises any
        exception if the checkpoint was not delivered."""


class Delivery:
    """The queue and the thread of one target."""

    def __init__(self, target: Target, retry_seconds: tuple[float, float] = RETRY_SECONDS) -> None:
        self.target = target
        self._retry_seconds = retry_seconds
        self.begin_anew()

    def begin_anew(self) -> None:
        """Empty the queue: at the start, and in a forked child, since its parent sends the checkpoints."""
        self._changed = Condition()
        self._waiting: deque[bytes] = deque()
        self._thread: Thread | None = None
        self._is_closing = False
        self.sent = 0
        self.failed = 0
        """The number of failed attempts."""
        self.dropped = 0
        self.failure = ""

    def put(self, line: bytes) -> None:
        with self._changed:
            if len(self._waiting) >= CAPACITY:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append(line)
            self._is_closing = False
            if self._thread is None:
                try:
                    self._thread = Thread(target=self._run, name="fastrpc-audit-target", daemon=True)
                    self._thread.start()
                except RuntimeError:  # the interpreter is ending
                    self._thread = None
            self._changed.notify()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Send the queued checkpoints, for at most `seconds`."""
        with self._changed:
            thread, self._is_closing = self._thread, True
            self._changed.notify()
        if thread is not None:
            thread.join(seconds)
        if self._waiting:
            diagnostics.write(
                "warning", f"{len(self._waiting)} audit checkpoints did not reach {self.target.name}"
            )

    def status(self) -> dict[str, Any]:
        return {
            "name": self.target.name,
            "sent": self.sent,
            "waiting": len(self._waiting),
            "failed": self.failed,
            "dropped": self.dropped,
            "failure": self.failure,
        }

    def _run(self) -> None:
        pause, longest = self._retry_seconds
        while (line := self._next()) is not None:
            try:
                self.target.send(line)
            except Exception as error:
                self._fail(error)
                if not self._wait(pause):
                    return
                pause = min(2 * pause, longest)
                continue
            pause = self._retry_seconds[0]
            self._succeed(line)

    def _next(self) -> bytes | None:
        """Wait for the oldest checkpoint; None when the delivery is closed."""
        with self._changed:
            while not self._waiting:
                if self._is_closing:
                    self._thread = None
                    return None
                self._changed.wait()
            return self._waiting[0]

    def _wait(self, seconds: float) -> bool:
        """Wait before the next attempt; False if the delivery is closed: then there is no further attempt."""
        until = monotonic() + seconds
        with self._changed:
            while (left := until - monotonic()) > 0 and not self._is_closing:
                self._changed.wait(left)
            if self._is_closing:
                self._thread = None
            return not self._is_closing

    def _fail(self, error: Exception) -> None:
        self.failed += 1
        if not self.failure:
            self.failure = f"{type(error).__name__}: {error}"
            text = f"audit checkpoints do not reach {self.target.name}: {self.failure}; it is tried again"
            diagnostics.write("warning", text)

    def _succeed(self, line: bytes) -> None:
        with self._changed:
            if self._waiting and self._waiting[0] is line:  # else it has been dropped for newer ones
                self._waiting.popleft()
        self.sent += 1
        if self.failure:
            self.failure = ""
            diagnostics.write("warning", f"audit checkpoints reach {self.target.name} again")
