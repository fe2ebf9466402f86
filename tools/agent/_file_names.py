"""Finds the file whose name looks the same as a given name.

In the names of screenshots, macOS writes a narrow no-break space (U+202F) before AM and PM, and letters with
accents as two characters (NFD). A model or a person types an ordinary space, and one character. Such names
look the same. Reads one folder, of at most `MOST` names, and only after a name was not found.
"""

from __future__ import annotations

import os
from itertools import islice

MOST = 10_000


def the_one_meant(path: str) -> str | None:
    """Return the path of the only file whose name looks like that of `path`, which does not exist; None for
    no such file or several. Folders on the way may differ in the same way."""
    folder, name = os.path.split(path)
    if not name:
        return None
    if folder and not os.path.isdir(folder):
        found = the_one_meant(folder)
        if found is None or not os.path.isdir(found):
            return None
        folder = found
        if os.path.lexists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    matches = looking_like(folder or ".", name)
    return os.path.join(folder, matches[0]) if len(matches) == 1 else None


def looking_like(folder: str, name: str) -> list[str]:
    """Return the names in a folder that look like this one."""
    wanted = _looks(name)
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, MOST) if _looks(entry.name) == wanted)
    except OSError:
        return []


def _looks(name: str) -> str:
    """Return a key that is equal for names that look the same. It leaves out marks of direction and other
    characters without a width, which are copied with a name."""
    from unicodedata import category

    from fastrpc.unicode_forms import normal_form

    seen = "".join(each for each in normal_form("NFKC", name) if category(each) != "Cf")
    return " ".join(seen.split())
