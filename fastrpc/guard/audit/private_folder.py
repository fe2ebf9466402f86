"""The private folder of an audit log: created with mode 0700, used only if no other user can write to it.

Files in it are opened through its descriptor, never through a link, and are new or regular. Another program
of the same user can still change the folder; `verify` detects that. Costs a few system calls when a file is
opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from fastrpc.regular_files import is_trusted, open_regular


def opened(path: str) -> int:
    """Create a folder unless it exists, and return its descriptor. Raises OSError for a folder that belongs
    to another user or that others may write to; root's folders are trusted, and root trusts every owner."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except FileExistsError:
        raise OSError(errno.ENOTDIR, "it is not a folder", path) from None
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    facts = os.fstat(descriptor)
    reason = ""
    if not is_trusted(facts):
        reason = "it belongs to another user"
    elif facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        reason = "others may write to it (chmod go-w, or name a folder inside it)"
    if reason:
        os.close(descriptor)
        raise OSError(errno.EPERM, reason, path)
    return descriptor


@contextmanager
def log_in(path: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the descriptors of a folder, as `opened` returns it, and of a file in it that is appended to.
    Raises OSError."""
    directory = opened(path)
    try:
        descriptor = open_regular(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, follow=False, dir_fd=directory)
        try:
            yield directory, descriptor
        finally:
            os.close(descriptor)
    finally:
        os.close(directory)


def append(line: bytes, descriptor: int, name: str) -> bool:
    """Append a line to a file, after a newline if a failed write has left an incomplete one, and call fsync.
    Return whether the file was empty. Raises OSError."""
    size = os.fstat(descriptor).st_size
    is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    data = b"\n" * is_torn + line + b"\n"
    if os.write(descriptor, data) != len(data):
        raise OSError(errno.ENOSPC, "only a part of the line could be written", name)
    os.fsync(descriptor)
    return not size


def sync(descriptor: int) -> None:
    """Synchronise the names in a folder to disk, if the file system can do that."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
