"""Opens files whose names come from others: only regular files, without blocking, with bounded reads.

        descriptor = regular_files.open_regular(path)
        data = regular_files.read_regular(path, limit=1024 * 1024)

The path may be a FIFO, a device or a link instead of a file. Opening a FIFO blocks, a device may be endless
or have side effects, a link leads elsewhere. The path is checked before it is opened, because opening may
have effects, and again through the descriptor, so that the file cannot be exchanged in between. All code that
opens a file by a name from outside uses this module, tools included. The caller checks ownership and
permissions. Costs one `stat` and one `fstat` more than `os.open`.
"""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    Path = str | bytes | PathLike[str] | PathLike[bytes]

LARGEST = 64 * 1024 * 1024
"""Bytes of a file that becomes one result; no client accepts more in one message."""

_KINDS = (
    (stat.S_ISFIFO, "a FIFO", errno.EINVAL),
    (stat.S_ISDIR, "a folder", errno.EISDIR),
    (stat.S_ISLNK, "a symbolic link", errno.ELOOP),
    (stat.S_ISCHR, "a device", errno.EINVAL),
    (stat.S_ISBLK, "a device", errno.EINVAL),
    (stat.S_ISSOCK, "a socket", errno.EINVAL),
)


class NotRegular(OSError):
    """Not a regular file. `kind` names what it is, such as ``"a FIFO"``; `strerror` is ``"a FIFO, not a
    regular file"`` and `filename` the path, as in any OSError."""

    def __init__(self, mode: int, path: Path) -> None:
        self.kind, number = next(
            ((name, number) for is_one, name, number in _KINDS if is_one(mode)),
            ("something else", errno.EINVAL),
        )
        super().__init__(number, f"{self.kind}, not a regular file", os.fsdecode(path))


def look(path: Path, *, follow: bool = True, dir_fd: int | None = None) -> os.stat_result:
    """Return the `stat` result of a regular file without opening it. Raises OSError, including `NotRegular`.

    For files that a library opens by name and may have locked: closing any descriptor of a file releases all
    POSIX locks that the process holds on it.
    """
    found = os.stat(path, dir_fd=dir_fd, follow_symlinks=follow)
    if not stat.S_ISREG(found.st_mode):
        raise NotRegular(found.st_mode, path)
    return found


def open_regular(
    path: Path, flags: int = os.O_RDONLY, *, follow: bool = True, dir_fd: int | None = None
) -> int:
    """Open a regular file and return its descriptor, which is not inheritable. Never blocks.

    `flags` are those of `os.open`; a new file gets mode 0600. `follow=False` refuses a path whose last part
    is a symbolic link. `dir_fd` is the folder for a relative path. Raises `NotRegular` for anything but a
    regular file, and any other OSError as `os.open` does.
    """
    try:
        look(path, follow=follow, dir_fd=dir_fd)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    if not follow:
        flags |= os.O_NOFOLLOW
    # Non-blocking mode stays on: it has no effect on a regular file on a disk, and reading one that the
    # kernel generates, such as /proc/kmsg, would otherwise block.
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o600, dir_fd=dir_fd)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):  # exchanged meanwhile
            raise NotRegular(mode, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: Path, limit: int, *, follow: bool = True, dir_fd: int | None = None) -> bytes:
    """Return the content of a regular file, at most `limit` bytes. Raises OSError, including `NotRegular`;
    EFBIG for a larger file, without reading it if its size says so."""
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


class LineFile(FileIO):
    """A regular file to which whole lines are appended without buffering. A line that a full disk has
    truncated (`is_cut`) is terminated before the next one. Several processes may share the file. Raises
    OSError."""

    def __init__(self, path: Path) -> None:
        super().__init__(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")
        self.is_cut = False

    def append(self, lines: bytes) -> None:
        """Append lines, each with its line break. Raises OSError if not all of them are written."""
        left = b"\n" + lines if self.is_cut else lines
        while left:  # usually one write, so that lines of other processes do not come between
            left = left[self.write(left) :]
            self.is_cut = bool(left)


def open_folder_beneath(base: str, names: Iterable[str]) -> int:
    """Open the folder at a path of `names` below `base`, and return its descriptor, a `dir_fd` for the
    functions here. Each name is looked up in the descriptor of its parent, and symbolic links are refused,
    also those that are created meanwhile. `base` itself may be a link. Raises OSError."""
    step = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
    folder = os.open(base, step)
    try:
        for name in names:
            inner = os.open(name, step | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
    except BaseException:
        os.close(folder)
        raise
    return folder


def replace_file(
    path: str, data: bytes | Iterable[bytes], mode: int = 0o600, owner: tuple[int, int] | None = None
) -> None:
    """Replace or create a file atomically: a reader sees all of the former content or all of the new one.
    `owner`: its user and group, None for those of this process. Raises OSError; then the former file is
    unchanged."""
    import tempfile

    descriptor, new = tempfile.mkstemp(dir=os.path.dirname(path), prefix=os.path.basename(path) + ".")
    try:
        with open(descriptor, "wb") as file:
            file.writelines((data,) if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
        if owner is not None:
            os.chown(new, *owner)
        os.chmod(new, mode)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise


def create_file(path: str, pieces: Iterable[bytes]) -> None:
    """Create a file atomically, with mode 0600 and fsync, unless another process has. Raises OSError."""
    import tempfile

    folder = os.path.dirname(path) or "."
    descriptor, new = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path) + ".")
    try:
        with open(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(new, path)
        except FileExistsError:
            pass
    finally:
        os.unlink(new)


def stamp_of(path: Path) -> tuple[int, int, int, int] | None:
    """Return values that change when a file is written or replaced; None if the file does not exist."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino, facts.st_dev


def is_trusted(facts: os.stat_result) -> bool:
    """Whether a file or a folder belongs to this user or to root; root trusts every owner."""
    own = os.geteuid()
    return own == 0 or facts.st_uid in (own, 0)


def check_regular(path: Path) -> None:
    """Raise OSError unless a file can be opened for reading. For files that a library opens by name."""
    os.close(open_regular(path))


def check_certificates() -> None:
    """Check the file of ``SSL_CERT_FILE``, if that is set: TLS libraries open it. Raises OSError."""
    named = os.environ.get("SSL_CERT_FILE")
    if named:
        check_regular(named)
