"""Which project the server works in: the nearest folder upward with ``.git``, else the working directory.

State is kept by project. Finding it costs one `stat` a folder on the way up.
"""

from __future__ import annotations

import os

from fastrpc import ToolError


def key() -> str:
    """Return the project as a real path. Bytes that are no UTF-8 are written out, so that the result is
    always plain text. Raises ToolError where the working directory is gone."""
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
