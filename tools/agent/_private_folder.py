"""The folders in which tools keep state and long outputs: made for the user alone, and used only as long as
nobody else can put anything into them. Costs two or three `lstat`, when something is opened in there.

What another program of the same user does in there is not kept away: it may do what this one may. What it
puts in the place of a file is refused where that file is opened.
"""

from __future__ import annotations

import errno
import os
import stat


def make(path: str) -> None:
    """Make a folder with mode 0700, unless it is there; raise OSError unless it is private (`check`)."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except FileExistsError:
        pass  # no folder, or a link that leads nowhere: `check` says it
    check(path)


def make_inside(folder: str, path: str) -> None:
    """The same for a folder within another one that is to be private, too; it may be no link."""
    make(folder)
    make(path)
    _check_no_link(path)


def check(path: str) -> None:
    """Raise OSError, with the path and the reason, for a folder of another user's, one that others may write
    to, and a link that another user has made. Root's are trusted, and root trusts every owner."""
    facts = os.lstat(path)
    if stat.S_ISLNK(facts.st_mode):
        if not _is_trusted(facts):
            raise _refused(path, errno.EPERM, "it is a link of another user's")
        facts = os.stat(path)
    if not stat.S_ISDIR(facts.st_mode):
        raise _refused(path, errno.ENOTDIR, "it is no folder")
    if not _is_trusted(facts):
        raise _refused(path, errno.EPERM, "it belongs to another user")
    if facts.st_mode & stat.S_IWOTH:
        raise _refused(path, errno.EPERM, "others may write to it (chmod o-w, or name a folder inside it)")


def opened(path: str) -> int:
    """Return a descriptor of a folder within the state folder, through which its files can be removed without
    a link in its place counting. Raises OSError."""
    _check_no_link(path)
    check(path)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _check_no_link(path: str) -> None:
    if os.path.islink(path):
        raise _refused(path, errno.ELOOP, "it is a symbolic link")


def _is_trusted(facts: os.stat_result) -> bool:
    own = os.geteuid()
    return own == 0 or facts.st_uid in (own, 0)


def _refused(path: str, number: int, reason: str) -> OSError:
    return OSError(number, reason, path)
