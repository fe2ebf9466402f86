"""The signals that end a server over HTTP, and how a process without an event loop waits for them.

SIGTERM, SIGINT and SIGHUP mean the end; SIGHUP does not where it is ignored, for ``nohup`` means it.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def heeded() -> list[signal.Signals]:
    """Return the signals that mean the end of this process."""
    return [
        number for number in ENDING if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    ]


def may_be_interrupted() -> bool:
    """Whether a KeyboardInterrupt that is raised now may be that of a signal: nobody else takes SIGINT."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def let_go() -> None:
    """Take signals as a new program does, in a child process: those that come here are no longer the
    server's."""
    signal.set_wakeup_fd(-1)
    for number in ENDING:
        if signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


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


def _note(number: int, frame: Any) -> None:
    """The reader of the pipe acts on the signal."""
