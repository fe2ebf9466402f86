"""Signals for a process without an event loop: the parent of the workers.

Which signals end a server, and what they do in an event loop, is in `fastrpc.transports.shutdown`.
"""

from __future__ import annotations

import os
import signal

from fastrpc.transports.shutdown import ending_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


class SignalWriter:
    """Writes signals, SIGCHLD included, as bytes to a pipe, within `with`.

    `others` are handled too, besides those that end the server.
    """

    def __init__(self, *others: int) -> None:
        self._others = others

    def __enter__(self) -> SignalWriter:
        self.pipe, self._write = os.pipe()
        for end in (self.pipe, self._write):
            os.set_blocking(end, False)
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._before = {
            number: signal.signal(number, _note)
            for number in (*ending_signals(), signal.SIGCHLD, *self._others)
        }
        return self

    def __exit__(self, *exception: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.pipe)
        os.close(self._write)

    def take(self) -> bytes:
        """Return the numbers of the signals received since the last call."""
        try:
            return os.read(self.pipe, 1024)
        except BlockingIOError:
            return b""

    def leave_to_parent(self) -> None:
        """Stop handling signals, in a child that has just been forked.

        SIGINT, which a terminal sends to all processes, and the `others` are ignored until the child handles
        them: the parent forwards them.
        """
        self.__exit__()
        for number in (signal.SIGINT, *self._others):
            signal.signal(number, _note)


def _note(number: int, frame: FrameType | None) -> None:
    """Do nothing: the reader of the pipe handles the signal."""
