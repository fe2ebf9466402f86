"""The lock that marks an open file as in use. The system releases it when the file is closed or the process
dies."""

from __future__ import annotations


def lock(descriptor: int, *, shared: bool = False) -> bool | None:
    """Try to take the lock. Return False if another process has it, None where the file system has no
    locks."""
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
