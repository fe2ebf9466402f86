"""Makes what is no regular file where one is expected: for tests of what opens files by given names."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator

KINDS = {
    "FIFO": "a FIFO",
    "FIFO that only its owner may read": "a FIFO",
    "folder": "a folder",
    "socket": "a socket",
    "link to a FIFO": "a FIFO",
    "link to a device": "a device",
}


def make(kind: str, path: str) -> None:
    """Make one of `KINDS`, whose folder is there."""
    if kind == "folder":
        os.mkdir(path)
    elif kind == "socket":
        before = os.getcwd()
        os.chdir(os.path.dirname(path))  # its whole name may be too long for one
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.basename(path))
        os.chdir(before)
    elif kind == "link to a device":
        os.symlink("/dev/zero", path)
    elif kind == "link to a FIFO":
        os.mkfifo(path + ".target")
        os.symlink(path + ".target", path)
    else:
        os.mkfifo(path, 0o400 if "only" in kind else 0o600)


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail, rather than wait for ever: for the main thread."""

    def fail(number: int, frame: object) -> None:
        raise AssertionError(f"it still waits after {seconds} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
