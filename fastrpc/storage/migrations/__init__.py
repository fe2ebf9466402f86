"""Runs the migrations of a database by Alembic, in one transaction. Those of the guard's are in `versions`.

A revision is never changed once it was released; a new one is a file in `versions` and an entry in
the `revisions` of its kind. There is no way back: an older fastrpc refuses a newer schema.
"""

from __future__ import annotations

import os
from threading import Lock

from fastrpc.storage.errors import LibraryMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy.engine import Connection

    from fastrpc.storage.kinds import DatabaseKind

_HERE = os.path.dirname(os.path.abspath(__file__))  # where `env.py` is, which serves every kind
_migrating = Lock()  # `alembic.op` and `alembic.context` belong to the process


def migrate(connection: Connection, kind: DatabaseKind, to: str = "head") -> None:
    """Bring the schema to a revision, in the transaction of a connection. Raises LibraryMissing, and what
    SQLAlchemy raises."""
    try:
        from alembic import command
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "alembic":
            raise
        raise LibraryMissing(kind.title, "Alembic", kind.extra) from None
    config = configuration(kind)
    config.attributes.update(connection=connection, version_table=kind.version_table)
    with _migrating:
        command.upgrade(config, to)


def configuration(kind: DatabaseKind) -> Config:
    """Return Alembic's configuration for a kind of database."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", _HERE.replace("%", "%%"))
    config.set_main_option("version_locations", kind.migrations.replace("%", "%%"))
    for name in ("path_separator", "version_path_separator"):  # the second before Alembic 1.16
        config.set_main_option(name, "newline")
    return config
