"""The files that hold long outputs: where they are, who may read them, and when they are removed.

They are in ``output/`` of the state folder, for the user alone (0600). They are removed after 24 hours or,
oldest first, when all of them hold 2 GiB. The check runs when a file is made, once a minute at most. A server
locks the files that it still writes, so that another one leaves them alone.
"""

from __future__ import annotations

import os
import time

from fastrpc import regular_files
from fastrpc.settings import STATE_DIR

from .. import _private_folder
from .._file_lock import lock
from . import _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.processes import OutputFile

KEEP_SECONDS = 24 * 3600
KEEP_BYTES = 2 * 1024**3
TIDY_SECONDS = 60

_made = 0
_tidied = 0.0


def folder() -> str:
    return os.path.join(STATE_DIR.read(), "output")


def create(name: str) -> OutputFile:
    """Make a new file. Raises OSError."""
    place = folder()
    inside = _private_folder.made_inside(*os.path.split(place))
    try:
        return _create_inside(inside, place, name)
    finally:
        os.close(inside)


def _create_inside(inside: int, place: str, name: str) -> OutputFile:
    from fastrpc import processes

    global _made
    tidy_at_times(place)
    limit = _settings.OUTPUT_FILE_BYTES.read()
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        _made += 1
        stamp = time.strftime("%Y%m%d-%H%M%S")
        file_name = f"{name}-{stamp}-{os.getpid()}-{_made}.txt"
        try:
            descriptor = os.open(file_name, flags, 0o600, dir_fd=inside)
        except FileExistsError:
            continue
        lock(descriptor)
        return processes.OutputFile(descriptor, os.path.join(place, file_name), limit)


def tidy_at_times(place: str) -> None:
    global _tidied
    now = time.monotonic()
    if not _tidied or now - _tidied >= TIDY_SECONDS:
        _tidied = now
        tidy(place)


def tidy(place: str, keep_seconds: float = KEEP_SECONDS, keep_bytes: int = KEEP_BYTES) -> None:
    """Remove the files that are too old, then the oldest ones while the total is too large. Never raises
    OSError."""
    try:
        inside = _private_folder.opened(*os.path.split(place))
    except OSError:
        return
    try:
        _tidy_inside(inside, time.time() - keep_seconds, keep_bytes)
    except OSError:
        pass
    finally:
        os.close(inside)


def _tidy_inside(folder: int, oldest: float, keep_bytes: int) -> None:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                facts = entry.stat(follow_symlinks=False)
                found.append((facts.st_mtime, facts.st_size, entry.name))
    total = sum(size for _, size, _ in found)
    for changed, size, name in sorted(found):
        if changed >= oldest and total <= keep_bytes:
            return
        if _remove_unused(name, folder):
            total -= size


def _remove_unused(name: str, folder: int) -> bool:
    try:
        descriptor = regular_files.open_regular(name, follow=False, dir_fd=folder)
    except OSError:
        return False
    try:
        if lock(descriptor) is False:
            return False
        os.unlink(name, dir_fd=folder)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
