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
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PASSES = 20  # new processes may appear while /proc is read


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
        young = [(pid, session) for pid, session, started in _processes() if started >= oldest_ticks]
        writers = {pid for pid, _ in young if _writes_to(pid, name)}
        sessions |= {session for pid, session in young if pid in writers}
        ended = [pid for pid, session in young if pid in writers or session in sessions]
        for pid in ended:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not ended:
            return
        time.sleep(0.001)


def _processes() -> Iterator[tuple[int, int, int]]:
    """The living processes, except this one, its children, and those of its session: pid, session, and start
    in clock ticks since boot."""
    own, own_session = os.getpid(), os.getsid(0)
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()  # proc(5): those after the name
        except OSError:  # it has ended meanwhile
            continue
        pid, parent, session = int(name), int(fields[1]), int(fields[3])
        if fields[0] not in (b"Z", b"X") and own not in (pid, parent) and session != own_session:
            yield pid, session, int(fields[19])


def _writes_to(pid: int, pipe: str) -> bool:
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):  # another user's process, or ended
        for name in os.listdir(folder):
            path = f"{folder}/{name}"
            if os.readlink(path) == pipe and os.lstat(path).st_mode & 0o200:  # how it is opened
                return True
    return False
