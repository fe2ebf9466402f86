"""The file of budgets: ``budgets`` in the state folder, mapped by every process that counts.

It is a head and a table (`fastrpc._core.budget_table`). It is written completely before it gets its name, and
all its blocks are allocated, so a full disk fails the start but never a call. A process has a slot in the
table, and holds a lock on one byte for it until it ends in any way. A process that opens the file takes the
locks that are not held, and gives back what their former owners had reserved. A second lock is held while a
file is opened, and while a cell is claimed, at a caller's first use of a budget; counting takes no lock. A
stopped process may hold the second lock: others wait for it for a second, and after a timeout only for a few
milliseconds, until it is free again. These are POSIX locks, so a process opens a file once, and a forked
child opens it again.

The counts survive the end of the process, but not a loss of power: the kernel writes them within about half a
minute. A file of another version, or with a damaged head, is refused and left unchanged.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, lockf
from mmap import mmap
from time import monotonic, sleep
from zlib import crc32

from fastrpc._core.budget_table import CELL_SIZE, BudgetCell, BudgetShareBase, BudgetTable, size_of
from fastrpc.errors import Reworded, UsageError
from fastrpc.guard.policy.budgets import PERIODS, Budget, CannotCount
from fastrpc.regular_files import create_file, is_trusted, open_regular
from fastrpc.settings import STATE_DIR

NAME = "budgets"
MAGIC = b"fRPCbudg"
VERSION = 1
CELLS = 16_384
PROCESSES = 64
GRANTS = PROCESSES - 1
"""The row of the table that no process has: what this host may count of budgets that hosts share. Each
process has a shared lock on its byte, so that a former version, which takes it for a process's, leaves it."""
PIECE = 1024 * 1024
LOCK_SECONDS, LOCK_SECONDS_AFTER_A_FAILURE, PAUSE_SECONDS = 1.0, 0.02, 0.001
"""How long to wait for the lock of claims, which is held for some 10 ms at most."""
_HEAD = struct.Struct("<8sIIII")
_CHECKSUM = struct.Struct("<I")
_BYTE_OF_OPENING = 0
_BYTE_OF_PROCESSES = 1


class BudgetFileError(UsageError):
    """A file of budgets that cannot be used."""


def default_path() -> str:
    return os.path.join(STATE_DIR.read(), NAME)


class BudgetFile:
    """The file at a path, created unless it exists. `counts`: this process takes a slot in it; otherwise it
    only reads, and the file must exist. Raises BudgetFileError."""

    def __init__(self, path: str, *, counts: bool = True, cells: int = CELLS) -> None:
        self.path = path
        self._lock_seconds = LOCK_SECONDS
        with Reworded(OSError, BudgetFileError, f"{path}: "):
            self._descriptor = _opened(path, cells if counts else 0)
        try:
            found = _checked(self._descriptor)
            memory = mmap(self._descriptor, size_of(found, PROCESSES))
            with self.claiming():
                process = self._take_place() if counts else -1
                self.table = BudgetTable(memory, found, PROCESSES, process)
                if counts:
                    self._recover(process)
        except (ValueError, OSError, CannotCount) as error:
            os.close(self._descriptor)
            raise BudgetFileError(f"{path}: {error}; it is not changed") from None

    @contextmanager
    def claiming(self) -> Iterator[None]:
        """Hold the lock for opening the file and claiming cells. Raises CannotCount."""
        until = monotonic() + self._lock_seconds
        while not self._take_lock(_BYTE_OF_OPENING):
            if monotonic() > until:
                self._lock_seconds = LOCK_SECONDS_AFTER_A_FAILURE
                raise CannotCount(
                    "another process holds the lock of the budgets file, and does not release it"
                )
            sleep(PAUSE_SECONDS)
        self._lock_seconds = LOCK_SECONDS
        try:
            yield
        finally:
            lockf(self._descriptor, LOCK_UN, 1, _BYTE_OF_OPENING)

    def claim(
        self,
        key: str,
        text: bytes,
        budget: Budget,
        day: int,
        month: int,
        is_estimate: bool,
        share: BudgetShareBase | None = None,
    ) -> BudgetCell | None:
        """Return the cell of a budget, None if all are in use. `key` identifies it, `text` is for people. An
        estimate is given back if the process is killed. `share`: that of a budget that hosts share. Raises
        CannotCount."""
        with self.claiming():
            return self.table.claim(
                key,
                PERIODS.index(budget.period),
                day,
                month,
                text,
                budget.limit,
                budget.warns_at,
                is_estimate,
                share,
            )

    def close(self) -> None:
        """Release the slot in the table. This process must not use cells of the file any more."""
        os.close(self._descriptor)

    def _take_place(self) -> int:
        lockf(self._descriptor, LOCK_SH | LOCK_NB, 1, _BYTE_OF_PROCESSES + GRANTS)
        for place in range(GRANTS):
            if self._take_lock(_BYTE_OF_PROCESSES + place):
                return place
        raise ValueError(f"{GRANTS} processes use it already, which is the maximum")

    def _take_lock(self, byte: int) -> bool:
        try:
            lockf(self._descriptor, LOCK_EX | LOCK_NB, 1, byte)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            return False
        return True

    def _recover(self, own: int) -> None:
        """Give back the reservations of processes that have ended."""
        self.table.recover(own)
        for place in range(GRANTS):
            if place != own and self._take_lock(_BYTE_OF_PROCESSES + place):
                self.table.recover(place)
                lockf(self._descriptor, LOCK_UN, 1, _BYTE_OF_PROCESSES + place)


def _opened(path: str, cells: int) -> int:
    """Return the descriptor of a file, which is created with this number of cells unless it exists; with 0
    cells it is not created. Raises OSError."""
    try:
        descriptor = open_regular(path, os.O_RDWR)
    except FileNotFoundError:
        if not cells:
            raise
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        create_file(path, _content(cells))
        descriptor = open_regular(path, os.O_RDWR)
    facts = os.fstat(descriptor)
    reason = ""
    if not is_trusted(facts):
        reason = "it belongs to another user"
    elif facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        reason = "others may read or write it (chmod 600)"
    if reason:
        os.close(descriptor)
        raise OSError(errno.EPERM, reason)
    return descriptor


def _content(cells: int) -> Iterator[bytes]:
    head = _HEAD.pack(MAGIC, VERSION, cells, PROCESSES, CELL_SIZE)
    yield head + _CHECKSUM.pack(crc32(head))
    left = size_of(cells, PROCESSES) - _HEAD.size - _CHECKSUM.size
    while left > 0:
        yield bytes(min(left, PIECE))
        left -= PIECE


def _checked(descriptor: int) -> int:
    """Return the number of cells of a file. Raises ValueError with what is wrong with it."""
    data = os.pread(descriptor, _HEAD.size + _CHECKSUM.size, 0)
    if not data.startswith(MAGIC) or len(data) < _HEAD.size + _CHECKSUM.size:
        raise ValueError("not a budgets file")
    head = data[: _HEAD.size]
    if _CHECKSUM.unpack(data[_HEAD.size :]) != (crc32(head),):
        raise ValueError("its head is damaged")
    _, version, cells, processes, cell_size = _HEAD.unpack(head)
    if (version, processes, cell_size) != (VERSION, PROCESSES, CELL_SIZE):
        raise ValueError(f"it has version {version}; this fastrpc supports {VERSION}")
    size, expected = os.fstat(descriptor).st_size, size_of(cells, processes)
    if size != expected:
        raise ValueError(f"expected {expected} bytes, it has {size}")
    return int(cells)
