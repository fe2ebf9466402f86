"""Segments: the append-only files of an audit log, each written by one process, whole lines at a time.

A name is ``TIME-CHAIN-NUMBER.jsonl``, with the time of its first line, so names sort by time. The writer
holds a lock (`flock`) on its segment, which ends with the process in any case. By the lock other processes
detect whether a segment is still written, even in containers, where process ids are ambiguous. A write that
fails in the middle of a line is repaired before anything else is written.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from typing import NamedTuple

from fastrpc import forks
from fastrpc.guard.audit import private_folder
from fastrpc.regular_files import open_regular

ENDING = ".jsonl"
NAME = re.compile(r"(\d{8}T\d{6}\.\d{3}Z)-([0-9A-Z]{16})-(\d{6,})\.jsonl")
TAIL = 256 * 1024
"""Bytes at the end of a segment in which its last whole line is searched: more than the longest line."""
UNCACHE_BYTES = 256 * 1024
"""After this many synchronised bytes, the kernel is advised to drop them from its page cache."""


class SegmentName(NamedTuple):
    """A segment's file name, and its parts."""

    file: str
    time: str
    chain: str
    number: int


def name_of(time: str, chain: str, number: int) -> str:
    """Return the name of a segment whose first line has this time (RFC 3339)."""
    return f"{time.replace('-', '').replace(':', '')}-{chain}-{number:06d}{ENDING}"


def names_in(path: str | int) -> list[SegmentName]:
    """Return the segments in a folder by their names, the oldest first. Raises OSError."""
    found = (NAME.fullmatch(file) for file in os.listdir(path))
    return sorted(SegmentName(match[0], match[1], match[2], int(match[3])) for match in found if match)


class OpenSegment:
    """A new segment, open for appending. `size` is the offset of the next line. Raises OSError."""

    def __init__(self, path: str, name: str) -> None:
        self.name = name
        self.size = 0
        self._cached_from = 0
        directory = private_folder.opened(path)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._descriptor = open_regular(name, flags, follow=False, dir_fd=directory)
            with suppress(OSError):  # a file system without locks: the segment looks closed
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            try:
                private_folder.sync(directory)
            except OSError:
                self.close()
                os.unlink(name, dir_fd=directory)
                raise
        finally:
            os.close(directory)

    def write(self, data: bytes) -> int:
        """Append whole lines; return how many bytes of them are in the file, again whole lines. Raises
        OSError only if none are."""
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
        """Truncate the incomplete line that a failed write has left. Raises OSError."""
        if os.fstat(self._descriptor).st_size != self.size:
            os.ftruncate(self._descriptor, self.size)

    def sync(self) -> None:
        """Call fsync. Raises OSError: then the kernel may have dropped what it could not write, so everything
        since the last success must be written again (`size`)."""
        os.fdatasync(self._descriptor) if hasattr(os, "fdatasync") else os.fsync(self._descriptor)
        if self.size - self._cached_from >= UNCACHE_BYTES and hasattr(os, "posix_fadvise"):
            self._uncache()

    def _uncache(self) -> None:
        """Advise the kernel to drop synchronised data from its page cache. The data is not read soon, and
        would displace data that is. The next writes reuse the memory, which costs a fraction of fresh memory.
        Only whole pages are dropped: a partial one would have to be read again before more is written to
        it."""
        end = self.size - self.size % os.sysconf("SC_PAGESIZE")
        with suppress(OSError):  # it is only advice, and the records are on disk
            os.posix_fadvise(
                self._descriptor, self._cached_from, end - self._cached_from, os.POSIX_FADV_DONTNEED
            )
        self._cached_from = end

    def is_gone(self) -> bool:
        """Return whether the file was removed, or its folder."""
        return os.fstat(self._descriptor).st_nlink == 0

    def close(self) -> None:
        """Close the file, which releases the lock."""
        os.close(self._descriptor)

    def let_go(self) -> None:
        """In a forked child, close the descriptor: the parent continues to write, and keeps the lock."""
        forks.replace((self._descriptor,))


def last_line(path: str) -> tuple[bytes, bytes, bool]:
    """Return the first line of a segment and its last whole one, without newlines, and whether it is still
    written. Calls fsync first. If there are no lines, they are empty. Raises OSError."""
    descriptor = open_regular(path, follow=False)
    try:
        is_open = is_written(descriptor)
        size = os.fstat(descriptor).st_size
        os.fsync(descriptor)  # its writer may have been killed before it did
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
