"""Opens files by names that others have chosen: regular files alone, without waiting, and reads them bounded.

    descriptor = regular_files.open_regular(path)
    data = regular_files.read_regular(path, limit=1024 * 1024)

Somebody may have put a FIFO, a device or a link where a file is expected: opening a FIFO waits for its other
end, a device never ends or does something, a link leads elsewhere. What is there is looked at before it is
opened, so that nothing but a regular file is (opening may have effects), and again through the descriptor,
so that nobody can swap it in between. Whatever opens a file by a name that it did not make goes through
here, tools included; to whom a file belongs and who may read it is left to the caller. Costs a `stat` and an
`fstat` more than `os.open`.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    Path = str | bytes | PathLike[str] | PathLike[bytes]

LARGEST = 64 * 1024 * 1024
"""The limit for a file that becomes one result: more than that no client takes in one message."""

_KINDS = (
    (stat.S_ISFIFO, "a FIFO", errno.EINVAL),
    (stat.S_ISDIR, "a folder", errno.EISDIR),
    (stat.S_ISLNK, "a symbolic link", errno.ELOOP),
    (stat.S_ISCHR, "a device", errno.EINVAL),
    (stat.S_ISBLK, "a device", errno.EINVAL),
    (stat.S_ISSOCK, "a socket", errno.EINVAL),
)


class NotRegular(OSError):
    """There is something else than a regular file. `kind` says what, such as ``"a FIFO"``; `strerror` is
    ``"a FIFO, not a regular file"`` and `filename` the path, as in any OSError."""

    def __init__(self, mode: int, path: Path) -> None:
        self.kind, number = next(
            ((name, number) for is_one, name, number in _KINDS if is_one(mode)),
            ("something else", errno.EINVAL),
        )
        super().__init__(number, f"{self.kind}, not a regular file", os.fsdecode(path))


def look(path: Path, *, follow: bool = True, dir_fd: int | None = None) -> os.stat_result:
    """Return what is known of a regular file without opening it. Raises OSError, `NotRegular` included.

    For files that a library opens by their names, of which this process may have others open: closing any
    descriptor of a file ends all POSIX locks that the process has on it.
    """
    found = os.stat(path, dir_fd=dir_fd, follow_symlinks=follow)
    if not stat.S_ISREG(found.st_mode):
        raise NotRegular(found.st_mode, path)
    return found


def open_regular(
    path: Path, flags: int = os.O_RDONLY, *, follow: bool = True, dir_fd: int | None = None
) -> int:
    """Open a regular file and return its descriptor, which is not inherited. Never waits.

    `flags` are those of `os.open`; a file that is made gets mode 0600. `follow=False` refuses a path whose
    last part is a symbolic link. `dir_fd` is the folder that a relative path counts from. Raises `NotRegular`
    for what is no regular file, any other OSError as `os.open` does.
    """
    try:
        look(path, follow=follow, dir_fd=dir_fd)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    if not follow:
        flags |= os.O_NOFOLLOW
    # Non-blocking mode stays on: it means nothing to a regular file on a disk, and reading one that the
    # kernel makes up, such as /proc/kmsg, would otherwise wait.
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o600, dir_fd=dir_fd)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):  # swapped since
            raise NotRegular(mode, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: Path, limit: int, *, follow: bool = True, dir_fd: int | None = None) -> bytes:
    """Return the bytes of a whole regular file, `limit` at most. Raises OSError, `NotRegular` included; for a
    larger file with EFBIG, before it is read where its size tells."""
    descriptor = open_regular(path, follow=follow, dir_fd=dir_fd)
    try:
        data = bytearray()
        if os.fstat(descriptor).st_size <= limit:
            while len(data) <= limit and (piece := os.read(descriptor, min(limit + 1 - len(data), 1 << 20))):
                data += piece
            if len(data) <= limit:
                return bytes(data)
    finally:
        os.close(descriptor)
    unit = "byte" if limit == 1 else "bytes"
    raise OSError(errno.EFBIG, f"larger than {limit:,} {unit}", os.fsdecode(path))


def check_regular(path: Path) -> None:
    """Raise OSError unless a file can be opened for reading: for what a library will open by its name."""
    os.close(open_regular(path))


def check_certificates() -> None:
    """Do so for the file of ``SSL_CERT_FILE``, if that is set: TLS libraries open it by themselves."""
    named = os.environ.get("SSL_CERT_FILE")
    if named:
        check_regular(named)
