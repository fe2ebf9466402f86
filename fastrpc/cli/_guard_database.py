"""The guard's database, as commands open it: by ``--database``, or by the settings."""

from __future__ import annotations

import os

from fastrpc.cli import configuration
from fastrpc.storage import GUARD_DATABASE, open_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.storage.database import Database


def guard_database(url: str | None) -> Database:
    """Open the database at a URL, None for that of the settings. Raises StorageError."""
    settings = configuration()
    settings.declare([GUARD_DATABASE])
    settings.export(os.environ)
    return open_database(url or settings[GUARD_DATABASE.name])
