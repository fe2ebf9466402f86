"""The folder in which forge runs: it is made to hold the sources of a run and nothing else.

Only changed files are written, so the others stay in forge's cache. Blocks: call it on a worker thread.
"""

from __future__ import annotations

import os


def make_hold(folder: str, files: dict[str, str]) -> bool:
    """Make the folder hold the files and no others. Return whether anything had to change. Raises OSError."""
    changed = False
    for place, folders, names in os.walk(folder, topdown=False):
        for name in names:
            path = os.path.join(place, name)
            if os.path.relpath(path, folder) not in files:
                os.unlink(path)
                changed = True
        for name in folders:
            try:
                os.rmdir(os.path.join(place, name))
            except OSError:
                pass  # it is still used
    for path, text in files.items():
        content = text.encode()
        target = os.path.join(folder, path)
        if _content(target) != content:
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            write(target, content)
            changed = True
    return changed


def write(path: str, content: bytes) -> None:
    """Write a file that only the user can read. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
