"""Names of the processes that run tasks: another process on the same machine can tell that one has ended.

A name contains the machine's boot, the namespace of process ids, the process and its start time, so a process
that has got the same id since is not mistaken for it. Reads /proc; without it, only the lease shows that a
process has ended.
"""

from __future__ import annotations

import os
import secrets
from hashlib import blake2b

from fastrpc.tasks.record import INPUT_REQUIRED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.tasks.record import TaskRecord

_BOOT = "/proc/sys/kernel/random/boot_id"


OF_WORKERS = "%w"
"""What names of processes of `fastrpc worker` look like, for SQL's LIKE: those of servers end otherwise."""


def new_name(is_worker: bool = False) -> str:
    """Return a name of this process, which no other name equals."""
    ending = "w" if is_worker else ""
    return f"{_place()}:{os.getpid()}:{_started(os.getpid())}:{secrets.token_hex(4)}{ending}"


def has_ended(name: str) -> bool:
    """Whether the process with a name is known to have ended: False, too, for one of another machine."""
    place, pid, started, _ = name.split(":")
    if not place or place != _place():
        return False
    return _started(int(pid)) != started


def is_left(record: TaskRecord, now: float) -> bool:
    """Whether the function of an open task has begun, and no process runs it: it waits for an answer, or for
    a worker that continues it, or its process has ended."""
    if record.state == INPUT_REQUIRED:
        return not record.approval
    if not record.worker:
        return record.runs > 0
    return record.lease_until < now or has_ended(record.worker)


def _place() -> str:
    """Return what processes have in common that know each other by their ids; "" if that is not known."""
    try:
        with open(_BOOT, encoding="ascii") as file:
            known = f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
    return blake2b(known.encode(), digest_size=8).hexdigest()


def _started(pid: int) -> str:
    """Return when a process was started, in ticks since the start of the machine; "" if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if state in (b"Z", b"X") else fields[18].decode()
