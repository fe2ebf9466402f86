"""Kills what can still be found of a program when its reaper and the guardian were killed together.

Its processes then have no parent of ours, and only Linux says which they are: those that write to the call's
own pipe, and all in their sessions. A process that has left both is not found, so callers must not report
that all have ended. Reads every process of the system and its descriptors, on the calling thread (10 ms on a
usual machine). Used only in this one case.
"""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PASSES = 20  # new processes may appear while /proc is read


class _Found:
    """A process, as /proc describes it."""

    __slots__ = ("parent", "pid", "session", "started", "state")

    def __init__(self, pid: int, stat: bytes) -> None:
        fields = stat.rpartition(b")")[2].split()
        self.pid = pid
        self.state = fields[0]
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.started = int(fields[19])  # in clock ticks since boot


def end_writers(pipe: int, age_seconds: float) -> None:
    """Send SIGKILL to the processes that write to the pipe that `pipe` reads from, and to their sessions.

    `age_seconds` is the time since the program was started: older processes are not its own, nor are children
    of this process. Does nothing where there is no /proc.
    """
    try:
        name = os.readlink(f"/proc/self/fd/{pipe}")
        oldest = time.clock_gettime(time.CLOCK_BOOTTIME) - age_seconds
    except (AttributeError, OSError):
        return
    oldest_ticks = int(oldest * os.sysconf("SC_CLK_TCK")) - 1
    sessions: set[int] = set()
    for _ in range(PASSES):
        young = [found for found in _processes() if found.started >= oldest_ticks]
        writers = {found.pid for found in young if _writes_to(found.pid, name)}
        sessions |= {found.session for found in young if found.pid in writers}
        ended = [found.pid for found in young if found.pid in writers or found.session in sessions]
        for pid in ended:
            _kill(pid)
        if not ended:
            return
        time.sleep(0.001)


def _processes() -> Iterator[_Found]:
    """The living processes, except this one, its children, and those of its session."""
    own, session = os.getpid(), os.getsid(0)
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                found = _Found(int(name), file.read())
        except OSError:  # it has ended meanwhile
            continue
        ours = own in (found.pid, found.parent) or found.session == session
        if found.state not in (b"Z", b"X") and not ours:
            yield found


def _writes_to(pid: int, pipe: str) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            path = f"{folder}/{name}"
            if os.readlink(path) == pipe and os.lstat(path).st_mode & 0o200:  # how it is opened
                return True
    except OSError:  # another user's process, or ended
        pass
    return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
