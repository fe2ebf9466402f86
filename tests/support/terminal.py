"""The `fastrpc` command on a separate terminal: a pseudo-terminal whose other side the test has."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from typing import Any

from support.command_line import SECONDS


class OnTerminal:
    """A command at a terminal: what is typed there, and what it shows."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self.master = master
        self.written = b""

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def type_until_it_ends(self, text: str) -> None:
        """Type a text, again and again: readline misses a signal between its prompt and its wait."""
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # it has ended meanwhile
                self.type(text)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.3)

    def until(self, wanted: str) -> str:
        """Read until the terminal shows a text; return all up to there."""
        deadline = time.monotonic() + SECONDS
        while wanted.encode() not in self.written:
            left = deadline - time.monotonic()
            assert left > 0, f"{wanted!r} never came: {self.written!r}"
            if select.select([self.master], [], [], left)[0]:
                self.written += os.read(self.master, 65536)
        before, _, self.written = self.written.partition(wanted.encode())
        return before.decode() + wanted

    def rest(self) -> str:
        """Read until the end; return all that the terminal has shown since."""
        deadline = time.monotonic() + SECONDS
        while True:
            left = deadline - time.monotonic()
            assert left > 0, f"it has not ended: {self.written!r}"
            if select.select([self.master], [], [], left)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:  # Linux: no one has the other side any more
                    data = b""
                if not data:
                    return self.written.decode()
                self.written += data

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and the standard output."""
        out = "" if self.process.stdout is None else self.process.stdout.read().decode()
        return self.process.wait(SECONDS), out


def take_terminal(slave: int) -> None:
    """Have Ctrl-C at this terminal interrupt the process, also where who runs the tests ignores SIGINT."""
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def on_terminal(
    place: Any, *arguments: str, shows_output: bool = False, columns: int = 80, **environ: str
) -> Iterator[OnTerminal]:
    """Run `fastrpc` with a terminal of its own as standard input and standard error. Its standard output is a
    pipe, unless the terminal `shows_output` too."""
    own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "fastrpc", *arguments],
        cwd=place,
        stdin=slave,
        stdout=slave if shows_output else subprocess.PIPE,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: take_terminal(slave),
        env={**own, "TERM": "xterm", **environ},
    )
    os.close(slave)
    try:
        yield OnTerminal(process, master)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        os.close(master)
