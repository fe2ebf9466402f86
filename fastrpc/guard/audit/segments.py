"""Segments: the files of an audit log, each written by one process, whole lines at a time, and only appended
to.

A name is ``TIME-CHAIN-NUMBER.jsonl``, the time of its first line: names sort by time. The writer holds a lock
(`flock`) on its segment, which ends with the process however that ends: others see by it whether a segment is
still written, also where process ids say nothing (containers). A write that fails in the middle of a line is
repaired before anything else is written.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from typing import NamedTuple

from fastrpc import forks
from fastrpc.guard.audit import folder
from fastrpc.regular_files import open_regular

ENDING = ".jsonl"
NAME = re.compile(r"(\d{8}T\d{6}\.\d{3}Z)-([0-9A-Z]{16})-(\d{6,})\.jsonl")
TAIL = 256 * 1024
"""Bytes at the end of a segment in which its last whole line is looked for: more than the longest line."""
UNCACHE_BYTES = 256 * 1024
"""So much is on disk before the kernel is told that it need not keep it in memory, too."""


class SegmentName(NamedTuple):
    """A segment's name, and what stands in it."""

    file: str
    time: str
    chain: str
    number: int


def name_of(time: str, chain: str, number: int) -> str:
    """Return the name of a segment whose first line is of this time (RFC 3339)."""
    return f"{time.replace('-', '').replace(':', '')}-{chain}-{number:06d}{ENDING}"


def names_in(path: str | int) -> list[SegmentName]:
    """Return the segments in a folder by their names, the oldest first. Raises OSError."""
    found = (NAME.fullmatch(file) for file in os.listdir(path))
    return sorted(SegmentName(match[0], match[1], match[2], int(match[3])) for match in found if match)


class OpenSegment:
    """A new segment, open for appending. `size` is where the next line goes. Raises OSError."""

    def __init__(self, path: str, name: str) -> None:
        self.name = name
        self.size = 0
        self._cached_from = 0
        directory = folder.opened(path)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._descriptor = open_regular(name, flags, follow=False, dir_fd=directory)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            except OSError:
                pass  # a file system without locks: it looks as if nobody wrote it
            try:
                folder.sync(directory)
            except OSError:
                self.close()
                os.unlink(name, dir_fd=directory)
                raise
        finally:
            os.close(directory)

    def write(self, data: bytes) -> int:
        """Append whole lines; return how many bytes of them are in the file, again whole lines. Raises
        nothing unless none are: then OSError."""
        self._repair()
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:] if written else data)
        except OSError:
            kept = data.rfind(b"\n", 0, written) + 1
            self.size += kept
            self._repair()
            if not kept:
                raise
            return kept
        self.size += written
        return written

    def _repair(self) -> None:
        """Cut off what a failed write has left of a line. Raises OSError."""
        if os.fstat(self._descriptor).st_size != self.size:
            os.ftruncate(self._descriptor, self.size)

    def sync(self) -> None:
        """Have everything be on disk. Raises OSError: the kernel may have forgotten what it could not write,
        so that all since the last success must be written again (`back_to`)."""
        os.fdatasync(self._descriptor) if hasattr(os, "fdatasync") else os.fsync(self._descriptor)
        if self.size - self._cached_from >= UNCACHE_BYTES and hasattr(os, "posix_fadvise"):
            self._uncache()

    def _uncache(self) -> None:
        """Have the kernel keep no copy of what is on disk. Nobody reads it soon, and it would push out what
        is read; what is written next takes that memory again, which costs a fraction of fresh memory. Whole
        pages: one that is not full would have to be read again before more is written to it."""
        end = self.size - self.size % os.sysconf("SC_PAGESIZE")
        with suppress(OSError):  # it is advice, and the records are on disk
            os.posix_fadvise(
                self._descriptor, self._cached_from, end - self._cached_from, os.POSIX_FADV_DONTNEED
            )
        self._cached_from = end

    def back_to(self, size: int) -> None:
        """Have what is behind `size` be written again: the next `write` cuts it off."""
        self.size = size

    def is_gone(self) -> bool:
        """Return whether the file was removed, or its folder."""
        return os.fstat(self._descriptor).st_nlink == 0

    def close(self) -> None:
        """Close the file: the lock ends."""
        os.close(self._descriptor)

    def let_go(self) -> None:
        """In a forked child: its parent goes on writing this, and keeps the lock."""
        forks.replace((self._descriptor,))


def last_line(path: str) -> tuple[bytes, bytes, bool]:
    """Return the first line of a segment and its last whole one, without newlines, and whether it is still
    written. What is read is on disk then. Raises OSError; empty lines if there are none."""
    descriptor = open_regular(path, follow=False)
    try:
        is_open = is_written(descriptor)
        size = os.fstat(descriptor).st_size
        os.fsync(descriptor)  # its writer may be dead, and may not have come to it
        first = os.pread(descriptor, TAIL, 0).partition(b"\n")
        tail = os.pread(descriptor, TAIL, max(0, size - TAIL)).rpartition(b"\n")[0]
        return first[0] if first[1] else b"", tail.rpartition(b"\n")[2], is_open
    finally:
        os.close(descriptor)


def is_written(descriptor: int) -> bool:
    """Return whether a process still writes a segment."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False
