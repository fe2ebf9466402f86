"""The reapers of `fastrpc.processes`: their frames, their sockets, and the pool of idle ones.

A reaper (`reaper.c`) supervises one program at a time, and returns to the pool when no process is left below
it. A few stay idle for the next program; the others end after ten seconds. On Linux a reaper has a guardian:
its parent, and a child of this process. When one of the two is killed, the other ends the program and its
descendants, and reports `LOST` at once and then the usual reports. What a report means is left to the
watcher.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import socket
import struct
import time
from contextlib import suppress

from fastrpc.errors import ToolError
from fastrpc.processes.output import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class ReportReceiver(Protocol):
        """Receives the reports about one program."""

        def on_report(self, report: bytes) -> None:
            """Handle a report of the reaper."""

        def on_lost(self) -> None:
            """The reaper and its guardian, if it had one, are gone: it is unknown which processes remain."""

        def on_loop_closed(self) -> None:
            """The loop was closed, and the reaper ends."""

        async def terminate(self, grace_seconds: float) -> bool:
            """End the program and its descendants; return whether all have ended."""


REAPER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "_core", "reaper")
IDLE_AT_MOST = 4
IDLE_SECONDS = 10.0  # seconds; after that one idle reaper stays
INLINE_LIMIT = 64 * 1024

# The frames, as in reaper.c.
REQUEST = struct.Struct("=6I")
REPORT = struct.Struct("=IiiIQIIII")
CHILD = struct.Struct("=i16s")
REPORT_SIZE = REPORT.size + 16 * CHILD.size
RUN, TERMINATE, LIST = 1, 2, 3
STARTED, FAILED, EXITED, GONE, LISTED, LOST = 1, 2, 3, 4, 5, 6
HAS_STDIN, HAS_SCRIPT, IN_FILE, TELL_START = 1, 2, 4, 8

_LOST = struct.pack("=I", LOST)

idle: list[Reaper] = []
busy: set[Reaper] = set()
_ending: list[int] = []  # reapers that are ending and not waited for yet


class ProgramError(ToolError):
    """A program cannot be started, or its reaper was lost. A tool need not catch it: the message is for the
    model."""


class ReaperLostError(ProgramError):
    """The reaper of a program was killed, and so the program: it says nothing about the program itself."""


class Reaper:
    """One reaper, and the socket to it. `pid` is that of its guardian, if it has one; both are in the
    guardian's process group."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.watcher: ReportReceiver | None = None
        self.idle_since = 0.0
        self.ending = False
        """Whether it cannot be reused: it or its guardian was killed."""
        self._unread = b""
        self._reaped = False
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 3)]
            if theirs.fileno() == 3:  # dup2 to itself would leave it close-on-exec
                theirs.set_inheritable(True)
                actions = []
            self.pid = os.posix_spawn(REAPER, ["fastrpc-reaper"], {}, file_actions=actions, setsigmask=())
        except OSError as error:
            ours.close()
            raise ProgramError(f"The supervisor {REAPER} cannot be started: {error.strerror}") from None
        finally:
            theirs.close()
        self.socket: socket.socket | None = ours
        loop.add_reader(ours.fileno(), self.read_reports)

    def move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use another loop than the one in which the last program ran."""
        assert self.socket is not None
        self._unwatch()
        self.loop = loop
        loop.add_reader(self.socket.fileno(), self.read_reports)

    def request(
        self,
        kind: int,
        flags: int = 0,
        counts: tuple[int, int] = (0, 0),
        payload: bytes = b"",
        descriptors: Sequence[int] = (),
        grace_ms: int = 0,
    ) -> bool:
        """Send a request. Return False if the reaper has ended."""
        if self.socket is None:
            return False
        in_file = len(payload) > INLINE_LIMIT
        frame = REQUEST.pack(kind, flags | IN_FILE if in_file else flags, len(payload), *counts, grace_ms)
        file = anonymous_file(payload) if in_file else -1
        if in_file:
            descriptors = (*descriptors, file)
        else:
            frame += payload
        try:
            sent = socket.send_fds(self.socket, [frame], list(descriptors)) if descriptors else 0
            if sent < len(frame):
                self.socket.sendall(frame[sent:])
        except OSError:
            return False
        finally:
            if file >= 0:
                os.close(file)
        return True

    def wake_up(self) -> None:
        """Send SIGCONT: a stopped reaper could not end its processes."""
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGCONT)

    def read_reports(self) -> None:
        """Pass on the reports that have arrived; does not block."""
        assert self.socket is not None
        try:
            data = self.socket.recv(4096, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.on_lost()
            return
        data = self._unread + data
        while len(data) >= REPORT_SIZE:
            report, data = data[:REPORT_SIZE], data[REPORT_SIZE:]
            if report[:4] == _LOST:
                self._begins_to_end()
            if self.watcher is not None:
                self.watcher.on_report(report)
        self._unread = data

    def has_ended(self) -> bool:
        """Whether the process `pid` has ended."""
        if not self._reaped:
            try:
                self._reaped = os.waitpid(self.pid, os.WNOHANG)[0] != 0
            except OSError:  # another waiter has reaped it, so it has ended
                self._reaped = True
        return self._reaped

    def _begins_to_end(self) -> None:
        self.ending = True
        if self in idle:
            idle.remove(self)

    def on_lost(self) -> None:
        """The socket was closed by the other end."""
        watcher, self.watcher = self.watcher, None
        self._begins_to_end()
        self.end()
        if watcher is not None:
            watcher.on_lost()

    def release(self) -> None:
        """No process is left below: return to the pool."""
        self.watcher = None
        busy.discard(self)
        if self.ending or len(idle) >= IDLE_AT_MOST:
            self.end()
            return
        self.idle_since = time.monotonic()
        idle.append(self)
        if len(idle) > 1:
            self.loop.call_later(IDLE_SECONDS, _trim_idle)

    def _unwatch(self) -> None:
        if self.socket is not None and not self.loop.is_closed():
            self.loop.remove_reader(self.socket.fileno())

    def end(self) -> None:
        """Close the socket: the reaper then ends all processes below it, and itself."""
        watcher, self.watcher = self.watcher, None
        if watcher is not None:  # of another loop, which is closed
            watcher.on_loop_closed()
        busy.discard(self)
        if self.socket is not None:
            self._unwatch()
            self.wake_up()
            self.socket.close()
            self.socket = None
            if not self._reaped:
                _ending.append(self.pid)
            if not self.loop.is_closed():
                self.loop.call_later(0.02, _reap_zombies_in, self.loop)


def reap_zombies() -> None:
    """Wait for the reapers that have ended, so that no zombie remains."""
    for pid in _ending[:]:
        with suppress(OSError):  # another waiter has reaped them
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        _ending.remove(pid)


def _reap_zombies_in(loop: asyncio.AbstractEventLoop) -> None:
    reap_zombies()
    if _ending:  # some process below it takes longer
        loop.call_later(0.3, _reap_zombies_in, loop)


def _trim_idle() -> None:
    """End reapers that have been idle for too long, except one."""
    limit = time.monotonic() - IDLE_SECONDS + 0.5
    for reaper in idle[:-1]:
        if reaper.idle_since <= limit:
            idle.remove(reaper)
            reaper.end()


def _forget() -> None:
    """Close the sockets: in a forked child, since the reapers belong to the parent; and at the end of the
    process, so that its reapers end."""
    for reaper in (*idle, *busy):
        if reaper.socket is not None:
            reaper.socket.close()
    idle.clear()
    busy.clear()
    _ending.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(_forget)


def take(loop: asyncio.AbstractEventLoop) -> Reaper:
    for stale in [reaper for reaper in busy if reaper.loop.is_closed()]:
        busy.discard(stale)
        stale.end()
    if _ending:
        reap_zombies()
    reaper = _take_idle() or Reaper(loop)
    if reaper.loop is not loop:
        reaper.move_to(loop)
    busy.add(reaper)
    return reaper


def _take_idle() -> Reaper | None:
    """Return a living idle reaper. A program sent to a killed one would be lost, and reports about that may
    be unread or still to come."""
    while idle:
        reaper = idle.pop()
        reaper.read_reports()
        if not reaper.ending and not reaper.has_ended():
            return reaper
        reaper.end()
    return None


def ask(flags: int, counts: tuple[int, int], payload: bytes, descriptors: Sequence[int]) -> Reaper:
    """Send a program to an idle reaper, or to a new one if those were killed."""
    loop = asyncio.get_running_loop()
    for _ in range(IDLE_AT_MOST + 1):
        reaper = take(loop)
        if reaper.request(RUN, flags, counts, payload, descriptors):
            return reaper
        reaper.end()
    raise ProgramError(f"The supervisor {REAPER} does not answer.")


def anonymous_file(data: bytes) -> int:
    """Return a descriptor of an unnamed file with `data`, positioned at its beginning."""
    try:
        descriptor = os.memfd_create("fastrpc", os.MFD_CLOEXEC)
    except (AttributeError, OSError):  # not available on every system and kernel
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        write_all(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:  # no memory is left, for example
        os.close(descriptor)
        raise
    return descriptor


async def end_all() -> None:
    """End all reapers and their processes, and wait briefly until they are reaped."""
    for reaper in list(busy):
        reaper.on_lost()
    while idle:
        idle.pop().end()
    for _ in range(200):
        reap_zombies()
        if not _ending:
            break
        await asyncio.sleep(0.002)
