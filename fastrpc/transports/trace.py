"""Writes all messages of the wire to a file, one a line, with secrets masked. For debugging.

Each line is ``<`` (from the client) or ``>`` (to it), the seconds since the start, and the message. Only the
owner can read the file. Costs a `write` a message; without ``--trace`` this module is not imported.
"""

from __future__ import annotations

import os
from time import monotonic

from fastrpc.errors import UsageError
from fastrpc.redaction import masked_line
from fastrpc.regular_files import open_regular


class Trace:
    """A trace in a file. Raises UsageError if it cannot be opened."""

    def __init__(self, path: str) -> None:
        try:
            self._file = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        except OSError as error:
            raise UsageError(f"--trace: cannot write {path}: {error.strerror}") from None
        self._began = monotonic()
        self._unfinished = b""

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
        os.write(self._file, b"%b %b %b\n" % (direction, at, masked_line(line)))

    def close(self) -> None:
        os.close(self._file)
