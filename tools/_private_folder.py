"""The folders in which tools keep state and long outputs. They belong to the user alone, and a tool uses one
only as long as no other user can write to it. Costs a few system calls each time something is opened in one.

Programs of the same user are not kept out: they have the same rights as this one. A file that such a program
replaces is refused when it is opened. A folder that it replaces has no effect once it is open.
"""

from __future__ import annotations

import errno
import os
import stat


def make(path: str) -> None:
    """Make a folder with mode 0700 unless it exists. Raise OSError unless it is private (`opened`)."""
    os.close(_made(path))


def made_inside(folder: str, name: str) -> int:
    """Make a private folder within another one, unless both exist, and return its descriptor. What is made
    and removed through the descriptor is in this folder, even if the path is replaced meanwhile. Raises
    OSError as `opened` does."""
    outer = _made(folder)
    try:
        try:
            os.mkdir(name, 0o700, dir_fd=outer)
        except FileExistsError:
            pass
        return _opened(os.path.join(folder, name), name, outer)
    finally:
        os.close(outer)


def opened(folder: str, name: str) -> int:
    """Return the descriptor of a folder within another one. The outer one may be a link that this user has
    made; the inner one may not be a link. Raises OSError, with the path and the reason, for another user's
    folder, for one that others may write to, and for a link that another user has made. Root's folders are
    trusted, and root trusts every owner."""
    outer = _opened(folder, folder)
    try:
        return _opened(os.path.join(folder, name), name, outer)
    finally:
        os.close(outer)


def _made(path: str) -> int:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except FileExistsError:
        pass  # no folder, or a dangling link: the next call raises the error
    return _opened(path, path)


def _opened(path: str, name: str, outer: int | None = None) -> int:
    """Open `name`, within `outer` if that is given; errors name `path`."""
    facts = os.stat(name, dir_fd=outer, follow_symlinks=False)
    if stat.S_ISLNK(facts.st_mode):
        if outer is not None:
            raise OSError(errno.ELOOP, "it is a symbolic link", path)
        if not _is_trusted(facts):
            raise OSError(errno.EPERM, "it is a link of another user's", path)
    elif not stat.S_ISDIR(facts.st_mode):
        raise OSError(errno.ENOTDIR, "it is not a folder", path)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if outer is None else os.O_NOFOLLOW)
    descriptor = os.open(name, flags, dir_fd=outer)
    facts = os.fstat(descriptor)
    reason = ""
    if not _is_trusted(facts):
        reason = "it belongs to another user"
    elif facts.st_mode & stat.S_IWOTH:
        reason = "others may write to it (chmod o-w, or name a folder inside it)"
    if reason:
        os.close(descriptor)
        raise OSError(errno.EPERM, reason, path)
    return descriptor


def _is_trusted(facts: os.stat_result) -> bool:
    own = os.geteuid()
    return own == 0 or facts.st_uid in (own, 0)
