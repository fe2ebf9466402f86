"""The access log: a line for each request over HTTP, in a file or on standard error.

Records go into a buffer of fixed size (`fastrpc._core.access_buffer`); a thread formats and writes them, at
most 50 ms later, so no response waits for a disk or a reader. Records that do not fit, and lines that cannot
be written, are counted, and the count is logged. A batch of lines is one write to a file that is open for
appending: several processes may share it. A file that has been moved (logrotate) is created again within a
second. Records come from `fastrpc.transports.http.access`; nothing is imported without an access log.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from threading import Lock
from time import monotonic

from fastrpc import diagnostics, forks
from fastrpc._core.access_buffer import AccessBuffer
from fastrpc.regular_files import LineFile
from fastrpc.telemetry.drain_thread import DrainThread

STDERR = "-"
CAPACITY = 1024 * 1024
"""Bytes of each of the two buffers: about 9,000 records."""
LOOK_SECONDS = 1.0
"""Seconds between two looks at whether the file has been moved."""
WRITE_SECONDS = 1.0
"""Seconds for which standard error may accept nothing before lines are dropped."""


class AccessLog:
    """The access log of one process. `buffer` takes the records of requests."""

    def __init__(self, path: str, *, as_json: bool) -> None:
        """Write to a file, ``-`` for standard error. Raises OSError if the file cannot be appended to."""
        self._path = None if path == STDERR else os.path.abspath(path)
        self._as_json = as_json
        self._lost = 0
        """Lines that could not be written, and records that did not fit, not yet reported in the log."""
        self._dropped = 0
        """The dropped records of the buffer that `_lost` includes."""
        self._file = None if self._path is None else LineFile(self._path)
        self._looks_at = 0.0
        """When to look next whether the file has been moved, as ``time.monotonic()`` counts."""
        self._writing = Lock()
        self._generation = forks.generation
        self.buffer = AccessBuffer(CAPACITY, DrainThread("fastrpc-access-log", self.write, self.write).wake)

    def write(self) -> None:
        """Write the lines of all requests answered so far. Thread-safe."""
        if self._generation != forks.generation:  # a child of a handler: the records are its parent's
            return
        if not self._writing.acquire(timeout=2 * WRITE_SECONDS):
            return
        try:
            dropped = self.buffer.dropped
            self._lost += dropped - self._dropped
            self._dropped = dropped
            if self._path is not None and not self._lost:
                self._write_to_file(self._path)
            else:
                self._put(self.buffer.take(self._as_json))
        finally:
            self._writing.release()

    def close(self) -> None:
        """The server has ended: write what is left."""
        self.write()
        atexit.unregister(self.write)
        with self._writing:
            if self._file is not None:
                self._file.close()
            self._file = None

    def _write_to_file(self, path: str) -> None:
        """Append the lines of all requests answered so far to the file."""
        try:
            file = self._found_file(path)
        except OSError:
            self._put(self.buffer.take(self._as_json))  # tries again, reports what is wrong, and counts
            return
        try:
            self.buffer.write_to(file.fileno(), self._as_json)
        except OSError as error:
            diagnostics.write("error", f"the access log cannot be written: {error}")
            self._lost = self.buffer.unwritten
            file.is_cut = self.buffer.is_cut

    def _put(self, lines: bytes) -> None:
        if not lines:
            return
        text = self._note_of(self._lost) + lines if self._lost else lines
        try:
            left = b""
            if self._path is None:
                left = self._to_stderr(text)
            else:
                self._found_file(self._path).append(text)
        except (OSError, ValueError) as error:  # ValueError: standard error is closed
            if not self._lost:  # else it has been logged
                diagnostics.write("error", f"the access log cannot be written: {error}")
            left = text
        if len(left) < len(text):
            self._lost = left.count(b"\n")
        else:
            self._lost += lines.count(b"\n")

    def _note_of(self, lost: int) -> bytes:
        """Return the line that reports the number of lost lines."""
        from datetime import datetime, timezone

        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._as_json:
            return b'{"time":"%b","dropped":%d}\n' % (now.encode(), lost)
        return b"# %b %d requests are missing here: there was no room for them\n" % (now.encode(), lost)

    def _found_file(self, path: str) -> LineFile:
        """Return the file, opened again if it has been moved. Raises OSError."""
        now = monotonic()
        if self._file is not None and now < self._looks_at:
            return self._file
        self._looks_at = now + LOOK_SECONDS
        if self._file is not None and _is_moved(self._file, path):
            self._file.close()
            self._file = None
        if self._file is None:
            self._file = LineFile(path)
        return self._file

    def _to_stderr(self, lines: bytes) -> bytes:
        """Write lines to standard error; return what was not accepted. Raises OSError, ValueError."""
        if sys.stderr is None:
            return lines
        descriptor = sys.stderr.fileno()
        until = monotonic() + WRITE_SECONDS
        written = 0
        for piece in pieces(lines):
            if not diagnostics.can_accept(descriptor, max(0.0, until - monotonic())):
                break
            os.write(descriptor, piece)
            written += len(piece)
        return lines[written:]


def _is_moved(file: LineFile, path: str) -> bool:
    try:
        return not os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return True


def pieces(lines: bytes) -> Iterator[bytes]:
    """Yield groups of whole lines that a pipe accepts in one atomic write (POSIX: PIPE_BUF)."""
    from select import PIPE_BUF

    begin = 0
    while begin < len(lines):
        end = lines.rfind(b"\n", begin, begin + PIPE_BUF) + 1
        if end == 0:  # a line that is longer
            end = lines.index(b"\n", begin) + 1
        yield lines[begin:end]
        begin = end
