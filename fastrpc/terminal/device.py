"""Opens the terminal of this process's session, ``/dev/tty``: descriptors 0 and 1 may be a protocol's."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Self

TERMINAL = "/dev/tty"


class NoTerminal(Exception):
    """There is no usable terminal. The message says why."""


class Terminal:
    """The terminal of this process's session, in the mode that it has. A block of ``with`` closes it.

    `owner` names this process in errors. `flags`: further ones for `os.open`. Raises `NoTerminal`: with the
    text `absent` if there is no terminal; also if this process is not in its foreground group.
    """

    def __init__(self, owner: str, absent: str, flags: int = 0) -> None:
        self._owner = owner
        try:
            self.descriptor = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | flags)
        except OSError:
            raise NoTerminal(absent) from None
        try:
            self.require_foreground()
        except NoTerminal:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self.descriptor)

    def is_foreground(self) -> bool:
        """Whether this process is in the terminal's foreground group. Raises `NoTerminal`."""
        try:
            return os.tcgetpgrp(self.descriptor) == os.getpgrp()
        except OSError:
            raise NoTerminal("the terminal is gone") from None

    def require_foreground(self) -> None:
        if not self.is_foreground():
            raise NoTerminal(f"{self._owner} is not in the foreground of its terminal")


def size_of(descriptor: int) -> tuple[int, int]:
    """Return (columns, rows) of a terminal; (80, 24) if it does not say."""
    try:
        columns, rows = os.get_terminal_size(descriptor)
    except OSError:
        columns = rows = 0
    return columns or 80, rows or 24


def drop_input(descriptor: int) -> None:
    """Discard what was typed at a terminal before a question was shown: it is not an answer."""
    import termios

    termios.tcflush(descriptor, termios.TCIFLUSH)
