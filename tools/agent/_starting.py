"""What plan mode and callbacks share: the object for each server, and the take-over of dead servers' rows at
the start. Costs a check every two seconds until the event loop runs and the folder is known; the loop imports
asyncio."""

from __future__ import annotations

import sys

from . import _instances
from ._stderr import write_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Iterable, MutableMapping
    from sqlite3 import Connection, Row
    from typing import Any, TypeVar

    from fastrpc import Server

    T = TypeVar("T")


def kept_of(server: Server, kept: MutableMapping[Any, T], make: Callable[[Server], T]) -> T:
    """Return the object for a server; it is made at the first call."""
    found = kept.get(server)
    if found is None:
        found = kept[server] = make(server)
    return found


def when_the_loop_runs(server: Server, function: Callable[[], object]) -> None:
    """Call `function` once, on the loop's thread, when the server knows which project it serves."""

    def look() -> None:
        if server.settled and loop_runs():
            server.unwatch(look)
            function()

    server.watch(look)


def failed(start: Future[Any]) -> bool:
    return not start.cancelled() and start.exception() is not None


def complain(what: str) -> Callable[[Future[Any]], None]:
    """Return a callback that writes to stderr, if a start has failed, what was not taken over."""

    def said(start: Future[Any]) -> None:
        if failed(start):
            write_line(f"{what} not taken over: {start.exception()}")

    return said


def loop_runs() -> bool:
    """Whether this thread runs an event loop."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Heritage:
    """The rows of a project's dead servers in one table. To be used within `_state.changing`, so that of two
    servers that start at once only one gets them."""

    def __init__(self, database: Connection, table: str, project: str) -> None:
        self._database = database
        owners = database.execute(f"SELECT DISTINCT instance FROM {table} WHERE project = ?", (project,))
        self.dead = [owner for (owner,) in owners.fetchall() if not _instances.alive(owner)]
        self._table = table
        self._project = project

    def rows(self, order: str) -> list[Row]:
        """Return all rows, sorted by a column."""
        marks = ", ".join("?" * len(self.dead))
        return self._database.execute(
            f"SELECT * FROM {self._table} WHERE project = ? AND instance IN ({marks}) ORDER BY {order}",
            (self._project, *self.dead),
        ).fetchall()

    def without_rows(self) -> list[str]:
        """Return the dead servers without rows, for `bury`."""
        return [owner for owner in self.dead if not _instances.left(self._database, owner)]


def bury(owners: Iterable[str]) -> None:
    """Forget servers without rows, after the rows that were taken from them are on disk."""
    for owner in owners:
        _instances.bury(owner)
