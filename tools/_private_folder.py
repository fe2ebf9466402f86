"""The folders in which tools keep state and long outputs: made for the user alone, and used only as long as
nobody else can put anything into them. Costs a few system calls, when something is opened in there.

What another program of the same user does in there is not kept away: it may do what this one may. What it
puts in the place of a file is refused where that file is opened; what it puts in the place of a folder that
is open already does not count.
"""

from __future__ import annotations

import errno
import os
import stat


def make(path: str) -> None:
    """Make a folder with mode 0700, unless it is there; raise OSError unless it is private (`opened`)."""
    os.close(_made(path))


def made_inside(folder: str, name: str) -> int:
    """Make a private folder within another one, unless both are there, and return its descriptor: what is
    made and removed through it lies in there, whatever takes its place meanwhile. Raises OSError as `opened`
    does."""
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
    """Return the descriptor of a folder within another one, which may be a link of one's own; the inner one
    may not. Raises OSError, with the path and the reason, for one of another user's, one that others may
    write to, and a link that another user has made. Root's are trusted, and root trusts every owner."""
    outer = _opened(folder, folder)
    try:
        return _opened(os.path.join(folder, name), name, outer)
    finally:
        os.close(outer)


def _made(path: str) -> int:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except FileExistsError:
        pass  # no folder, or a link that leads nowhere: the next says it
    return _opened(path, path)


def _opened(path: str, name: str, outer: int | None = None) -> int:
    """Open `name`, within `outer` if that is given; `path` is for the errors."""
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
