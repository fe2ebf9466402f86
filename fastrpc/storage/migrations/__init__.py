"""Runs the migrations of a database with Alembic, in one transaction. Those of the guard are in `versions`.

A released revision is never changed; a new one is a file in `versions` and an entry in the `revisions` of its
kind. There are no downgrades: an older fastrpc refuses a newer schema.
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

_HERE = os.path.dirname(os.path.abspath(__file__))  # the folder of `env.py`, which serves every kind
_migrating = Lock()  # `alembic.op` and `alembic.context` are global


def migrate(connection: Connection, kind: DatabaseKind, to: str = "head") -> None:
    """Migrate the schema to a revision, in the transaction of a connection. Raises LibraryMissing, and what
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
    for name in ("path_separator", "version_path_separator"):  # the second is for Alembic before 1.16
        config.set_main_option(name, "newline")
    return config
