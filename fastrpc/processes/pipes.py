"""A child process that exchanges lines over pipes: how a proxy runs its upstream server.

It shares this process's standard error. The meaning of the lines is left to `fastrpc.proxy.upstream`.
"""

from __future__ import annotations

import os

from fastrpc.processes.server_process import ServerProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

READ_SIZE = 64 * 1024
LONGEST_LINE = 64 * 1024 * 1024
"""Bytes; a program that writes a longer line is ended."""


class Pipes(ServerProcess):
    """A running program. `on_line` receives each line of its output; `on_end` is called once with the
    reason."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
        on_line: Callable[[bytes], object],
        on_end: Callable[[str], object],
    ) -> None:
        """Start the program. Raises as ServerProcess does."""
        super().__init__(command, cwd=cwd, env=env)
        self._on_line = on_line
        self._on_end = on_end
        self._unread = bytearray()
        self._searched = 0
        self._unsent = bytearray()
        self.loop.add_reader(self.output, self._readable)

    # --- writing --------------------------------------------------------------------------------------

    def write(self, line: bytes) -> None:
        """Send a line, including its newline. Does nothing if the program has ended."""
        if self.input < 0:
            return
        waiting = bool(self._unsent)
        self._unsent += line
        if not waiting:
            self._flush()

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self.input, self._unsent)]
        except BlockingIOError:
            self.loop.add_writer(self.input, self._writable)
        except OSError:
            self.close_input()

    def _writable(self) -> None:
        self.loop.remove_writer(self.input)
        self._flush()

    def close_input(self) -> None:
        super().close_input()
        self._unsent.clear()

    # --- reading --------------------------------------------------------------------------------------

    def _readable(self) -> None:
        """Read one chunk; the loop calls again for the next, after other work."""
        try:
            data = os.read(self.output, READ_SIZE)
        except BlockingIOError:
            return
        if not data:
            self.close_output()
            self.output_ended()
            return
        self._take(data)

    def _take(self, data: bytes) -> None:
        self._unread += data
        start = 0
        while (end := self._unread.find(b"\n", self._searched)) >= 0:
            line = bytes(self._unread[start:end])
            start = self._searched = end + 1
            if line.strip():
                self._on_line(line)
        del self._unread[:start]
        self._searched = len(self._unread)
        if self._searched > LONGEST_LINE:
            self.end(f"it has written a line of more than {LONGEST_LINE} bytes")

    def read_rest(self) -> None:
        for _ in range(64):
            if self.output < 0:
                return
            try:
                data = os.read(self.output, READ_SIZE)
            except BlockingIOError:
                return
            if not data:
                return
            self._take(data)

    def ended(self, reason: str) -> None:
        self._on_end(reason)
