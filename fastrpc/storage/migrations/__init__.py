"""The migrations of the guard's database: one file for each revision, run by Alembic in one transaction.

A revision is never changed once it was released; a new one is a file in `versions` and an entry in
`REVISIONS`. There is no way back: an older fastrpc refuses a newer schema.
"""

from __future__ import annotations

import os
from threading import Lock

from fastrpc.storage.errors import LibraryMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy.engine import Connection

_migrating = Lock()  # `alembic.op` and `alembic.context` belong to the process


def migrate(connection: Connection, to: str = "head") -> None:
    """Bring the schema to a revision, in the transaction of a connection. Raises LibraryMissing, and what
    SQLAlchemy raises."""
    try:
        from alembic import command
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "alembic":
            raise
        raise LibraryMissing("Alembic", "guard") from None
    config = configuration()
    config.attributes["connection"] = connection
    with _migrating:
        command.upgrade(config, to)


def configuration() -> Config:
    """Return Alembic's configuration for this folder."""
    from alembic.config import Config

    config = Config()
    folder = os.path.dirname(os.path.abspath(__file__))
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
