"""The reapers of `fastrpc.processes`: their frames, the sockets to them, and the pool of idle ones.

A reaper (`reaper.c`) serves one program at a time and comes back here when nobody is left below it. A
few stay idle for the next program; surplus ones end after ten seconds. On Linux it has a guardian, its
parent and this process's child: when one of the two is killed, the other ends the program and everything
below it and says so, `LOST` at once and then what it has to say of any end. What a report means is left to
the watcher of the program.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import time

from fastrpc.errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class Watcher(Protocol):
        """What watches the program below a reaper."""

        def heard(self, report: bytes) -> None:
            """The reaper has said something."""

        def lost(self) -> None:
            """The reaper is gone, and its guardian, if it had one: nobody is sure of what it has left."""

        def abandoned(self) -> None:
            """The loop is gone, the reaper goes."""

        async def terminate(self, grace_seconds: float) -> bool:
            """End the program."""


REAPER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "_core", "reaper")
IDLE_AT_MOST = 4
IDLE_SECONDS = 10.0  # after that one idle reaper stays
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
_ending: list[int] = []  # reapers that were told to end and are not reaped yet


class ProgramError(ToolError):
    """A program cannot be started, or its reaper was lost. A tool need not catch it: the model reads it."""


class Reaper:
    """One reaper, and the socket to it. `pid` is its guardian's, where it has one; both are in that one's
    process group."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.watcher: Watcher | None = None
        self.idle_since = 0.0
        self.ending = False
        """Whether it serves no further program: it or its guardian was killed."""
        self._unread = b""
        self._reaped = False
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.pid = _spawn_reaper(theirs.fileno())
        except OSError as error:
            ours.close()
            raise ProgramError(f"The supervisor {REAPER} cannot be started: {error.strerror}") from None
        finally:
            theirs.close()
        self.socket: socket.socket | None = ours
        loop.add_reader(ours.fileno(), self.read_reports)

    def move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Go on in another loop than that in which the last program ran."""
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
        """Send a request; False if the reaper is no longer there."""
        if self.socket is None:
            return False
        size = REQUEST.size + len(payload)
        if len(payload) > INLINE_LIMIT:
            file = anonymous_file(payload)
            try:
                flags |= IN_FILE
                frame = REQUEST.pack(kind, flags, len(payload), *counts, grace_ms)
                return self._send(frame, REQUEST.size, (*descriptors, file))
            finally:
                os.close(file)
        frame = REQUEST.pack(kind, flags, len(payload), *counts, grace_ms) + payload
        return self._send(frame, size, descriptors)

    def _send(self, frame: bytes, size: int, descriptors: Sequence[int]) -> bool:
        assert self.socket is not None
        try:
            if descriptors:
                sent = socket.send_fds(self.socket, [frame], list(descriptors))
                if sent < size:
                    self.socket.sendall(frame[sent:])
            else:
                self.socket.sendall(frame)
        except OSError:
            return False
        return True

    def wake_up(self) -> None:
        """A reaper that somebody has stopped could not end anybody."""
        try:
            os.killpg(self.pid, signal.SIGCONT)
        except OSError:
            pass

    def read_reports(self) -> None:
        """Hand on what the reaper has said, if anything; does not wait."""
        assert self.socket is not None
        try:
            data = self.socket.recv(4096, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lost()
            return
        data = self._unread + data
        while len(data) >= REPORT_SIZE:
            report, data = data[:REPORT_SIZE], data[REPORT_SIZE:]
            if report[:4] == _LOST:
                self._begins_to_end()
            if self.watcher is not None:
                self.watcher.heard(report)
        self._unread = data

    def has_ended(self) -> bool:
        """Whether the process `pid` has ended, as the system knows at once."""
        if not self._reaped:
            try:
                self._reaped = os.waitpid(self.pid, os.WNOHANG)[0] != 0
            except OSError:  # somebody else waits for all children, and has seen its end
                self._reaped = True
        return self._reaped

    def _begins_to_end(self) -> None:
        self.ending = True
        if self in idle:
            idle.remove(self)

    def lost(self) -> None:
        """The other end is gone."""
        watcher, self.watcher = self.watcher, None
        self._begins_to_end()
        self.end()
        if watcher is not None:
            watcher.lost()

    def release(self) -> None:
        """No process is left below: be ready for the next program."""
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
        """Close the socket: the reaper ends what is below it, if anybody, and itself."""
        watcher, self.watcher = self.watcher, None
        if watcher is not None:  # of another loop, which is no more
            watcher.abandoned()
        busy.discard(self)
        if self.socket is not None:
            self._unwatch()
            self.wake_up()
            self.socket.close()
            self.socket = None
            if not self._reaped:
                _ending.append(self.pid)
            if not self.loop.is_closed():
                self.loop.call_later(0.02, _bury_in, self.loop)


def _spawn_reaper(descriptor: int) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, 3)]
    if descriptor == 3:  # dup2 to itself would leave it closed on exec
        os.set_inheritable(descriptor, True)
        actions = []
    return os.posix_spawn(REAPER, ["fastrpc-reaper"], {}, file_actions=actions, setsigmask=())


def bury() -> None:
    """Collect the reapers that have ended, so that no zombie stays."""
    for pid in _ending[:]:
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        except OSError:
            pass  # somebody else waits for all children
        _ending.remove(pid)


def _bury_in(loop: asyncio.AbstractEventLoop) -> None:
    bury()
    if _ending:  # somebody below it does not go at once
        loop.call_later(0.3, _bury_in, loop)


def _trim_idle() -> None:
    """End reapers that have been idle for long, all but one."""
    limit = time.monotonic() - IDLE_SECONDS + 0.5
    for reaper in idle[:-1]:
        if reaper.idle_since <= limit:
            idle.remove(reaper)
            reaper.end()


def _forget() -> None:
    """After a fork, in the child: the reapers are the parent's."""
    for reaper in (*idle, *busy):
        if reaper.socket is not None:
            reaper.socket.close()
    idle.clear()
    busy.clear()
    _ending.clear()


os.register_at_fork(after_in_child=_forget)


def take(loop: asyncio.AbstractEventLoop) -> Reaper:
    for stale in [reaper for reaper in busy if reaper.loop.is_closed()]:
        busy.discard(stale)
        stale.end()
    if _ending:
        bury()
    reaper = _take_idle() or Reaper(loop)
    if reaper.loop is not loop:
        reaper.move_to(loop)
    busy.add(reaper)
    return reaper


def _take_idle() -> Reaper | None:
    """Return an idle reaper that lives. A program that is handed to one that was killed is lost with it, and
    what the other of the two has to say of it may lie unread or come yet."""
    while idle:
        reaper = idle.pop()
        reaper.read_reports()
        if not reaper.ending and not reaper.has_ended():
            return reaper
        reaper.end()
    return None


def ask(flags: int, counts: tuple[int, int], payload: bytes, descriptors: Sequence[int]) -> Reaper:
    """Hand a program to an idle reaper, or to a new one where those have been killed meanwhile."""
    loop = asyncio.get_running_loop()
    for _ in range(IDLE_AT_MOST + 1):
        reaper = take(loop)
        if reaper.request(RUN, flags, counts, payload, descriptors):
            return reaper
        reaper.end()
    raise ProgramError(f"The supervisor {REAPER} does not answer.")


def anonymous_file(data: bytes) -> int:
    """Return a descriptor of a nameless file that holds `data`, at its beginning."""
    try:
        descriptor = os.memfd_create("fastrpc", os.MFD_CLOEXEC)
    except (AttributeError, OSError):  # not every system has it, nor every kernel below a Python that has
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


async def end_all() -> None:
    """End every reaper, and what is below it, and wait a moment until they are reaped."""
    for reaper in list(busy):
        reaper.lost()
    while idle:
        idle.pop().end()
    for _ in range(200):
        bury()
        if not _ending:
            break
        await asyncio.sleep(0.002)
