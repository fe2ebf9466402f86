"""The store: entries, documents, their indexes, and their owners, in SQLite or PostgreSQL
(`fastrpc.storage`).

`current()` is this process's store, opened at the first call that needs it. All servers of a machine, or of a
PostgreSQL database, share its content. A change is on disk before the call that made it is answered.
"""

from __future__ import annotations

from threading import Lock

from .._settings import DATABASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .documents import Documents
    from .entries import Entries

_opening = Lock()
_opened: dict[str, Entries] = {}
_swept: set[str] = set()
"""The folders of originals from which this process has removed the left-over files of killed processes."""


def current() -> Entries:
    """Return the store in the settings. Raises StorageError."""
    from .kind import KNOWLEDGE

    url = DATABASE.read()
    place = url or KNOWLEDGE.default_path
    with _opening:
        found = _opened.get(place)
        if found is None:
            from fastrpc.storage import open_database

            from .entries import Entries

            found = _opened[place] = Entries(open_database(url, KNOWLEDGE))
        return found


def is_open() -> bool:
    """Whether this process has opened the store in the settings."""
    from .kind import KNOWLEDGE

    return (DATABASE.read() or KNOWLEDGE.default_path) in _opened


def current_documents() -> Documents:
    """Return the documents of the store in the settings. Raises StorageError."""
    from .documents import Documents

    found = Documents(current().database)
    if found.originals.folder not in _swept:
        _swept.add(found.originals.folder)
        found.originals.sweep()
    return found
