"""Which project the server works in: the nearest folder upward with ``.git``, else the working directory.

State is stored by project. Finding the project costs one `stat` for each folder on the way up.
"""

from __future__ import annotations

import os

from fastrpc import ToolError


def key() -> str:
    """Return the project as a real path. Bytes that are not UTF-8 are escaped, so the result is always plain
    text. Raises ToolError if the working directory no longer exists."""
    try:
        start = os.path.realpath(os.getcwd())
    except OSError as error:
        raise ToolError(
            f"The working directory of the server does not exist any more: {error.strerror}."
        ) from None
    folder = start
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            folder = start
            break
        folder = above
    return os.fsencode(folder).decode("utf-8", "backslashreplace")
