"""Reads and replaces a client's configuration file: atomically, with a backup copy.

The newest few backups are kept. The content is handled by `_client_formats`.
"""

from __future__ import annotations

import os
import re

from fastrpc.errors import Reworded, UsageError

KEPT_COPIES = 5


def read(path: str) -> str:
    """Return a file's text, "" if it does not exist. Raises UsageError."""
    from fastrpc.regular_files import LARGEST, read_regular

    try:
        return read_regular(path, LARGEST).decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def write(path: str, text: str) -> str | None:
    """Replace a file atomically; return the path of the backup, or None if the file is new. Raises
    UsageError.

    For a symbolic link, its target is replaced. A new file is readable by its owner only, as it may contain
    secrets.
    """
    from fastrpc.regular_files import replace_file

    path = os.path.realpath(path)
    with Reworded(OSError, UsageError, f"{path}: "):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        backup = _copy(path)
        replace_file(path, text.encode(), 0o600 if backup is None else os.stat(path).st_mode & 0o7777)
        _prune_copies(path)
    return backup


def _copy(path: str) -> str | None:
    import shutil
    import time

    if not os.path.exists(path):
        return None
    stamp = time.strftime("%Y%m%d-%H%M%S")
    backup = f"{path}.{stamp}.bak"
    number = 1
    while os.path.lexists(backup):  # an existing link would be followed
        number += 1
        backup = f"{path}.{stamp}-{number}.bak"
    try:
        shutil.copy2(path, backup)
    except OSError:
        if os.path.lexists(backup):
            os.unlink(backup)
        raise
    return backup


def _prune_copies(path: str) -> None:
    folder, name = os.path.split(path)
    form = re.compile(re.escape(name) + r"\.(\d{8}-\d{6})(?:-(\d+))?\.bak")
    copies = []
    for entry in os.listdir(folder):
        made = form.fullmatch(entry)
        if made:
            copies.append((made[1], int(made[2] or 1), entry))
    for _, _, entry in sorted(copies)[:-KEPT_COPIES]:
        os.unlink(os.path.join(folder, entry))
