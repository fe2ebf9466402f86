"""Writes all messages of the wire to a file, one a line, with secrets masked. For debugging.

Each line is ``<`` (from the client) or ``>`` (to it), the seconds since the start, and the message. Only the
owner can read the file. Lines that cannot be written are counted, and one that begins with ``#`` says how
many are missing. Costs a `write` a message; without ``--trace`` this module is not imported.
"""

from __future__ import annotations

from time import monotonic

from fastrpc import diagnostics
from fastrpc.errors import Reworded, UsageError
from fastrpc.redaction import masked_line
from fastrpc.regular_files import LineFile


class Trace:
    """A trace in a file. Raises UsageError if it cannot be opened."""

    def __init__(self, path: str) -> None:
        with Reworded(OSError, UsageError, f"--trace: cannot write {path}: "):
            self._file = LineFile(path)
        self._path = path
        self._began = monotonic()
        self._unfinished = b""
        self._lost = 0

    def __call__(self, direction: bytes, data: bytes) -> None:
        """Record a received line, or sent bytes, which may be any part of the output."""
        if direction == b">":
            *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        else:
            lines = [data]
        for line in lines:
            self.write(direction, line)

    def write(self, direction: bytes, line: bytes) -> None:
        """Write one line."""
        at = b"%.6f" % (monotonic() - self._began)
        text = b"%b %b %b\n" % (direction, at, masked_line(line))
        if self._lost:
            text = b"# %d lines are missing here\n%b" % (self._lost, text)
        try:
            self._file.append(text)
            self._lost = 0
        except OSError as error:
            if not self._lost:
                reason = f"cannot write {self._path}: {error.strerror}"
                diagnostics.write("error", f"--trace: {reason}; messages are left out of it")
            self._lost += 1

    def close(self) -> None:
        self._file.close()
