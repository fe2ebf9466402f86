"""Opens the guard's database for commands: that of ``--database``, or of the settings.

After 2 seconds a command writes that it waits. The limits of the database end the wait: SQLite's for a lock,
PostgreSQL's for connecting and for each statement.
"""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from threading import Timer

from fastrpc.cli import configuration
from fastrpc.diagnostics import write_line
from fastrpc.errors import UsageError
from fastrpc.storage import GUARD_DATABASE, StorageError, open_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastrpc.command_line import CommandParser
    from fastrpc.storage.database import Database

SLOW_SECONDS = 2.0


def add_database(options: CommandParser) -> None:
    """Add the option that names the guard's database."""
    options.option(
        "--database URL", "the guard's database: sqlite:///PATH or postgresql://… (FASTRPC_GUARD_DATABASE)"
    )


@contextmanager
def guard_database(url: str | None, *, is_quick: bool = True) -> Iterator[Database]:
    """Open the database at a URL, None for that of the settings, and close it at the end.

    Raises UsageError, also for a StorageError of the block. `is_quick`: if the block takes long, the database
    is the only possible cause.
    """
    settings = configuration()
    settings.declare([GUARD_DATABASE])
    settings.export(os.environ)
    text = "fastrpc: waiting for the guard's database: others use it, or it does not answer"
    timer = Timer(SLOW_SECONDS, write_line, [text])
    timer.daemon = True
    timer.start()
    try:
        with closing(open_database(url or settings[GUARD_DATABASE.name])) as database:
            if not is_quick:
                timer.cancel()
            yield database
    except StorageError as error:
        raise UsageError(str(error)) from None
    finally:
        timer.cancel()
