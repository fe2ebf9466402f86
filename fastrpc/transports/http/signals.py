"""How a process without an event loop waits for signals: the one that looks after workers.

Which signals mean the end, and what they do in an event loop, is in `fastrpc.transports.shutdown`.
"""

from __future__ import annotations

import os
import signal

from fastrpc.transports.shutdown import heeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


class Signals:
    """The signals that come, and the deaths of children, as bytes in a pipe, within `with`.

    `others` are taken too, besides those that mean the end.
    """

    def __init__(self, *others: int) -> None:
        self._others = others

    def __enter__(self) -> Signals:
        self.pipe, self._write = os.pipe()
        for end in (self.pipe, self._write):
            os.set_blocking(end, False)
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._before = {
            number: signal.signal(number, _note) for number in (*heeded(), signal.SIGCHLD, *self._others)
        }
        return self

    def __exit__(self, *exception: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.pipe)
        os.close(self._write)

    def take(self) -> bytes:
        """Return the numbers of the signals that have come."""
        try:
            return os.read(self.pipe, 1024)
        except BlockingIOError:
            return b""

    def leave_to_parent(self) -> None:
        """Take signals no longer, in a child that has just been forked.

        That of a terminal (SIGINT) and the `others` are the parent's to pass on, until the child takes them
        itself.
        """
        self.__exit__()
        for number in (signal.SIGINT, *self._others):
            signal.signal(number, _note)


def _note(number: int, frame: FrameType | None) -> None:
    """The reader of the pipe acts on the signal."""
