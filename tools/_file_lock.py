"""The lock that marks an open file as in use: gone when it is closed, or its process has died."""

from __future__ import annotations


def lock(descriptor: int, *, shared: bool = False) -> bool | None:
    """Take the lock, or not: False if somebody else has it, None where the file system has no locks."""
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
