"""Stores the output of a program within bounds: `Output` in memory, `OutputFile` on disk.

Memory holds the head (one third of the limit) and the latest tail. A file is opened when memory cannot hold
everything, or on request. It receives all output up to its own limit; beyond that it keeps the first half and
the latest half. Offsets count the bytes that the program has written. A disk error affects only the file,
never the program: see `file_error`. Part of `fastrpc.processes`, which exports it.
"""

from __future__ import annotations

import os

from fastrpc.regular_files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEMORY_LIMIT = 1024 * 1024
"""How many bytes of a program's output are kept in memory."""
FILE_LIMIT = 256 * 1024 * 1024
"""How many bytes of a program's output are written to a file."""
SLACK = 128 * 1024  # bytes that the tail may exceed its limit before it is trimmed
COPY = 512 * 1024
CONTINUATION = bytes(range(0x80, 0xC0))


class OutputFile:
    """A file of bounded size. While it is written, its second half is a ring buffer.

    `descriptor` is open for reading and writing and belongs to this object. After `close` the file can still
    be read by its path.
    """

    def __init__(self, descriptor: int, path: str, limit: int = FILE_LIMIT) -> None:
        self.descriptor = descriptor
        self.path = path
        self.limit = limit
        self.first = limit // 2
        """Bytes of the head, which are always kept."""
        self.total = 0
        self._straight = 0  # where the latest part begins, once the ring is in order

    @property
    def wrapped(self) -> bool:
        """Whether the output was longer than `limit` bytes, so that its middle is lost."""
        return self.total > self.limit

    @property
    def kept_from(self) -> int:
        """The offset from which all later bytes are kept; those between `first` and it are lost."""
        return self.total - (self.limit - self.first) if self.wrapped else self.first

    def write(self, data: bytes | bytearray) -> None:
        """Append data. Raises OSError."""
        view = memoryview(data)
        while view:
            position, room = self._place(self.total)
            written = os.pwrite(self.descriptor, view[:room], position)
            self.total += written
            view = view[written:]

    def _place(self, offset: int) -> tuple[int, int]:
        """Return the file position of an offset, and how many bytes follow it there without a gap."""
        if offset < self.first:
            return offset, self.first - offset
        if self._straight:
            return self._straight + offset - self.kept_from, self.total - offset
        ring = self.limit - self.first
        within = (offset - self.first) % ring
        return self.first + within, ring - within

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from an offset that is kept. Raises OSError."""
        position, room = self._place(offset)
        size = min(size, room, self.total - offset)
        if self.descriptor >= 0:
            return os.pread(self.descriptor, size, position)
        descriptor = open_regular(self.path, follow=False)
        try:
            return os.pread(descriptor, size, position)
        finally:
            os.close(descriptor)

    def straighten(self) -> Iterator[None]:
        """Put the ring in order for readers of the file, and close it; yields after every half megabyte.
        Nothing may be written afterwards. Raises OSError."""
        gap = self.kept_from - self.first
        note = b"\n[... %d bytes are missing here ...]\n" % gap
        beside = self.path + ".new"
        target = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for start, end, before in ((0, self.first, b""), (self.kept_from, self.total, note)):
                write_all(target, before)
                while start < end:
                    piece = self.read(start, min(COPY, end - start))
                    if not piece:
                        break
                    write_all(target, piece)
                    start += len(piece)
                    yield
            os.replace(beside, self.path)
            import threading

            # On another thread: freeing a large unlinked file takes 0.1 s.
            threading.Thread(target=os.close, args=(self.descriptor,), daemon=True).start()
            self.descriptor = -1
            self._straight = self.first + len(note)
        except BaseException:
            os.unlink(beside)
            raise
        finally:
            os.close(target)

    def close(self) -> None:
        """Close the file. May be called twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class Output:
    """The output of a program: standard output and standard error in the order received.

    `limit` is the number of bytes in memory. `open_file`, if given, is called once when more has been
    received; it returns an `OutputFile` or raises OSError.
    """

    def __init__(self, limit: int = MEMORY_LIMIT, open_file: Callable[[], OutputFile] | None = None) -> None:
        self.total = 0
        """The number of bytes received."""
        self.dropped_characters = 0
        """The numbers of characters and newlines between `head` and `tail`."""
        self.dropped_lines = 0
        self.file: OutputFile | None = None
        self.file_error: OSError | None = None
        self._open_file = open_file
        self._head_limit = limit // 3
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()  # everything, while within the limit
        self._tail: bytearray | None = None

    def feed(self, data: bytes) -> None:
        """Store a chunk of output."""
        self.total += len(data)
        self._to_file(data)
        if self._tail is None:
            self._head += data
            if self.total > self._head_limit + self._tail_limit:
                if self.file is None:
                    self.keep_file()
                self._tail = self._head[self._head_limit :]
                del self._head[self._head_limit :]
                self._trim()
            return
        self._tail += data
        if len(self._tail) > self._tail_limit + SLACK:
            self._trim()

    def _trim(self) -> None:
        assert self._tail is not None
        excess = len(self._tail) - self._tail_limit
        if excess > 0:
            gone = bytes(self._tail[:excess])
            beginnings = gone if gone.isascii() else gone.translate(None, CONTINUATION)
            self.dropped_characters += len(beginnings)  # of UTF-8; of other bytes about as many
            self.dropped_lines += gone.count(b"\n")
            del self._tail[:excess]

    def keep_file(self) -> OutputFile | None:
        """Open the file now, and write all output so far to it; return None, and set `file_error`, if that
        fails.

        Works only while memory holds everything; later the file exists already, or never will.
        """
        if self.file is None and self._tail is None and self._open_file is not None:
            open_file, self._open_file = self._open_file, None
            try:
                self.file = open_file()
            except OSError as error:
                self.file_error = error
                return None
            self._to_file(self._head)
        return self.file

    def _to_file(self, data: bytes | bytearray) -> None:
        if self.file_error is None and self.file is not None:
            try:
                self.file.write(data)
            except OSError as error:
                self.file_error = error

    def shrink(self, limit: int) -> None:
        """Keep only the latest `limit` bytes in memory from now on; the rest should be in the file."""
        if self._tail is None:
            self._tail = self._head
        self._head = bytearray()
        self._head_limit, self._tail_limit = 0, limit
        self._trim()

    @property
    def complete(self) -> bool:
        """Whether memory holds all output."""
        return self._tail is None

    @property
    def head(self) -> bytes:
        """All output if `complete`, else the first third of the limit."""
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        """The latest part; empty if `complete`."""
        if self._tail is None:
            return b""
        self._trim()
        return bytes(self._tail)

    def read(self, offset: int, size: int) -> tuple[int, bytes]:
        """Return up to `size` bytes from `offset` on, and the offset at which they begin: a later one if the
        bytes at `offset` are no longer kept. Raises OSError."""
        tail_from = self.total - len(self._tail or b"")
        if offset >= tail_from and self._tail is not None:
            return offset, bytes(self._tail[offset - tail_from : offset - tail_from + size])
        if offset < len(self._head):
            return offset, bytes(self._head[offset : offset + size])
        if self._tail is None:
            return self.total, b""
        file = self.file
        if file is not None and offset < file.total:
            if file.wrapped and file.first <= offset < file.kept_from:
                offset = file.kept_from
            return offset, file.read(offset, size)
        return tail_from, bytes(self._tail[:size])
