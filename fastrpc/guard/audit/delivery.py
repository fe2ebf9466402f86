"""Sends checkpoints to another place, whatever that place does meanwhile: a thread for each target.

What cannot be sent is tried again, at growing intervals, in the order in which it came; what does not fit is
dropped, the oldest first, and counted. The log goes on either way. One record on standard error says when a
target fails, one when it takes checkpoints again.
"""

from __future__ import annotations

from collections import deque
from threading import Condition, Thread
from time import monotonic
from typing import Protocol

from fastrpc import diagnostics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CAPACITY = 1000
"""Checkpoints that wait for a target at most: 3 hours of them, if there is one every 10 s."""
RETRY_SECONDS = (0.5, 60.0)
CLOSE_SECONDS = 2.0


class Target(Protocol):
    """Another place for checkpoints: a folder, a syslog daemon, a webhook, or a class of one's own."""

    @property
    def name(self) -> str:
        """What the log calls it, without secrets."""

    def send(self, line: bytes) -> None:
        """Put a checkpoint there: its line, without a newline. May wait, for a bounded time. Raises any
        exception if it is not there."""


class Delivery:
    """The way to one target."""

    def __init__(self, target: Target, retry_seconds: tuple[float, float] = RETRY_SECONDS) -> None:
        self.target = target
        self._retry_seconds = retry_seconds
        self.begin_anew()

    def begin_anew(self) -> None:
        """Have nothing to send: at first, and in a forked child, for what is here is its parent's to send."""
        self._changed = Condition()
        self._waiting: deque[bytes] = deque()
        self._thread: Thread | None = None
        self._is_closing = False
        self.sent = 0
        self.failed = 0
        """Attempts that have failed."""
        self.dropped = 0
        self.failure = ""

    def put(self, line: bytes) -> None:
        """Have a checkpoint be sent."""
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
                except RuntimeError:  # the interpreter ends
                    self._thread = None
            self._changed.notify()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Send what waits, for at most so many seconds."""
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
        """Return how the target is."""
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
        """Wait before the next attempt; False if the delivery is closed: no further one is made."""
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
            if self._waiting and self._waiting[0] is line:  # else it was dropped for newer ones meanwhile
                self._waiting.popleft()
        self.sent += 1
        if self.failure:
            self.failure = ""
            diagnostics.write("warning", f"audit checkpoints reach {self.target.name} again")
