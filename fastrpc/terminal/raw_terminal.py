"""A terminal in raw mode: single keys, no echo, no wait. The mode that it had is always restored."""

from __future__ import annotations

import os
import select
import signal
import termios
import time
from contextlib import suppress
from typing import Any

from fastrpc.terminal.device import NoTerminal, Terminal, drop_input

RESTORE_SECONDS = 0.2  # seconds that restoring an unresponsive terminal may take


class StopSignalsBlocked:
    """Blocks the signals that stop a background process when it uses the terminal."""

    def __enter__(self) -> None:
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN, signal.SIGTTOU})

    def __exit__(self, *error: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


class RawTerminal(Terminal):
    """A terminal that is read key by key and never blocks. Raises `NoTerminal`, also if it cannot place a
    cursor."""

    def __init__(self) -> None:
        if os.environ.get("TERM", "") in ("", "dumb"):
            raise NoTerminal("the terminal cannot place a cursor: TERM is dumb or not set")
        super().__init__("the server", "the server has no terminal", os.O_NONBLOCK)
        self._mode: list[Any] | None = None

    def enter_raw_mode(self) -> None:
        """Read single keys without echo, Ctrl-C too; discard what was typed before. Raises `NoTerminal`."""
        try:
            with StopSignalsBlocked():
                mode = termios.tcgetattr(self.descriptor)
                if self._mode is None:
                    self._mode = [*mode[:6], list(mode[6])]
                mode[0] &= ~(termios.IXON | termios.ICRNL | termios.INLCR | termios.IGNCR | termios.ISTRIP)
                mode[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
                mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
                termios.tcsetattr(self.descriptor, termios.TCSANOW, mode)
                drop_input(self.descriptor)
        except termios.error:
            raise NoTerminal("the terminal is gone") from None

    def restore(self, last: bytes) -> None:
        """Write `last` and restore the mode, unless another program uses the terminal now."""
        if self._mode is None:
            return
        mode, self._mode = self._mode, None
        with suppress(NoTerminal, termios.error):  # nothing to restore
            if self.is_foreground():
                self._write_all(last)
                with StopSignalsBlocked():
                    termios.tcsetattr(self.descriptor, termios.TCSANOW, mode)

    def write(self, data: bytes) -> int:
        """Write as much as the terminal accepts now; return the number of bytes."""
        try:
            with StopSignalsBlocked():
                return os.write(self.descriptor, data)
        except BlockingIOError:
            return 0

    def _write_all(self, data: bytes) -> None:
        deadline = time.monotonic() + RESTORE_SECONDS
        while data and time.monotonic() < deadline:
            try:
                data = data[self.write(data) :]
            except OSError:
                return
            if data:
                select.select([], [self.descriptor], [], RESTORE_SECONDS)

    def read(self) -> bytes | None:
        """Return the bytes typed, or None. Raises `NoTerminal` if the terminal has gone."""
        try:
            with StopSignalsBlocked():
                data = os.read(self.descriptor, 1024)
        except BlockingIOError:
            return None
        except OSError:
            if not self.is_foreground():
                return None
            data = b""
        if not data:
            raise NoTerminal("the terminal is gone")
        return data
