"""Opens the file that ReadImage shows, and says what a file is that cannot be shown.

Regular files only. The file is opened without following a symbolic link and without blocking (a pipe would
never end, and `/dev/stdin` carries the protocol). It is checked through the descriptor, so no program can
replace it in between. The opening runs on a separate thread, since a network folder may be slow.
"""

from __future__ import annotations

import errno
import os

from fastrpc import ToolError, regular_files
from fastrpc.errors import suggest

from .._file_names import MOST, looking_like, the_one_meant
from .._in_thread import in_thread
from .._text import quoted

HEAD = 4096  # bytes, enough to identify a file

LONGEST_PATH = 4096
ACCEPTED = "PNG, JPEG, GIF, WebP, BMP, TIFF, ICO, PPM or SVG"

_BEGINNINGS = (
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"8BPS", "a Photoshop document"),
    (b"\x7fELF", "a program"),
    (b"\x00\x00\x00\x0cjP", "a JPEG 2000 image"),
    (b"\xff\x0a", "a JPEG XL image"),
    (b"version https://git-lfs", "a Git LFS pointer: the image itself was not downloaded"),
)
_IMAGES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\0", b"MM\0*", b"BM", b"\0\0\1\0")
_BRANDS = {
    b"avif": "an AVIF image",
    b"avis": "an AVIF image",
    b"heic": "a HEIC image",
    b"heix": "a HEIC image",
}


class File:
    """An open regular file: its descriptor, its length, and its first bytes."""

    __slots__ = ("descriptor", "head", "path", "size")

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.size = size
        self.head = b""

    def read(self, limit: int) -> bytes:
        """Return the whole file, or its beginning. Raises OSError."""
        content = bytearray()
        while len(content) < limit:
            piece = os.pread(self.descriptor, min(limit - len(content), 1 << 20), len(content))
            if not piece:
                break
            content += piece
        return bytes(content)

    def __del__(self) -> None:
        self.close()  # of a file that was opened after its caller was cancelled

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


async def open_file(given: str, limit: int) -> File:
    """Open the file at a path, which is relative to the working directory or begins with ``~``. Raises
    ToolError for anything but a regular file with 1 to `limit` bytes."""
    path = os.path.join(os.getcwd(), os.path.expanduser(given)) if given else ""
    return await in_thread(_open, path, limit)


def _open(path: str, limit: int) -> File:
    if not path:
        raise ToolError("file_path: expected the path to an image file, got an empty text.")
    if len(path) > LONGEST_PATH:
        raise ToolError(f"file_path: has {len(path):,} characters; a path has at most {LONGEST_PATH:,}.")
    try:
        path, descriptor = _opened(path)
    except OSError as error:
        raise ToolError(_why_not(path, error)) from None
    except ValueError:  # NUL, or a lone surrogate
        raise ToolError("file_path: contains a character not allowed in names.") from None
    found = os.fstat(descriptor)
    file = File(path, descriptor, found.st_size)
    problem = _problem_with(found, limit)
    try:
        if not problem:
            file.head = os.pread(descriptor, HEAD, 0)
            return file
    except OSError as error:
        problem = f"cannot be read: {error.strerror}."
    file.close()
    raise ToolError(f"file_path: {quoted(path)} {problem}")


def _opened(path: str) -> tuple[str, int]:
    """Return the path and the descriptor of a file, or of the only one whose name looks the same. Raises
    OSError and ValueError."""
    try:
        return path, regular_files.open_regular(path, follow=False)
    except FileNotFoundError:
        meant = the_one_meant(path)
        if meant is None:
            raise
        return meant, regular_files.open_regular(meant, follow=False)


def _problem_with(found: os.stat_result, limit: int) -> str:
    if found.st_size == 0:
        return "is empty; expected an image file."
    if found.st_size > limit:
        return f"has {found.st_size:,} bytes; at most {limit:,} are read."
    return ""


def _why_not(path: str, error: OSError) -> str:
    shown = quoted(path)
    if error.errno == errno.ENOENT:
        return f"file_path: {shown} does not exist{_alternatives(path)}"
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return f"file_path: {shown} is a symbolic link, which is not followed{_target(path)}."
    if isinstance(error, regular_files.NotRegular):
        return f"file_path: {shown} is {error.kind}; expected an image file."
    return f"file_path: {shown} cannot be opened: {error.strerror}."


def _alternatives(path: str) -> str:
    """Name the files with similar names."""
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")[:MOST]
    except OSError:
        return f"; there is no folder {quoted(folder)}." if not os.path.isdir(folder) else "."
    found = looking_like(folder or ".", name) or suggest(name, names)
    shown = " or ".join(quoted(each) for each in found[:3])
    return f". Did you mean {shown}?" if found else "."


def _target(path: str) -> str:
    """Return the target of a link, so that the next call may name it."""
    try:
        target = os.path.realpath(path, strict=True)
    except OSError:  # a dangling link, or no longer a link
        return ""
    return f"; it leads to {quoted(target)}"


def is_svg(head: bytes) -> bool:
    """Whether a file that begins like this is an SVG drawing; HTML that contains a drawing is not."""
    text = head.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n").lower()
    at = text.find("<svg")
    return text.startswith("<") and at >= 0 and "<html" not in text[:at] and "<!doctype html" not in text[:at]


def begins_like_an_image(head: bytes) -> bool:
    return head.startswith(_IMAGES)


def what_it_is(head: bytes) -> str:
    """Return the kind of a file that is not an image, by its first bytes; empty if it is unknown."""
    for beginning, name in _BEGINNINGS:
        if head.startswith(beginning):
            return name
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "a film or sound")
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:15].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "an HTML page"
    if b"\0" not in head:
        try:
            head[:-4].decode("utf-8")
        except UnicodeDecodeError:
            return ""
        return "text"
    return ""
