"""How often each owner's callers have called each tool: by hour for 90 days, then by day.

Servers count in memory and call `add`; several servers add to the same rows. Each function is one
transaction. Raises StorageError.
"""

from __future__ import annotations

import time

from sqlalchemy import bindparam, delete, func, select, text

from .schema import counts, documents, entries, spaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import Column, Select

    from fastrpc.storage.database import Database

    from .entries import Reader

    Key = tuple[str, str, int]

HOUR, DAY = 3600, 86_400
HOURS_KEPT = 90 * DAY
ADDITION = text(
    "INSERT INTO knowledge_counts (owner, tool, start, calls, errors, refusals) "
    "VALUES (:owner, :tool, :start, :calls, :errors, :refusals) "
    "ON CONFLICT (owner, tool, start) DO UPDATE SET calls = knowledge_counts.calls + excluded.calls, "
    "errors = knowledge_counts.errors + excluded.errors, "
    "refusals = knowledge_counts.refusals + excluded.refusals"
)


def add(database: Database, added: dict[Key, list[int]]) -> None:
    """Add calls, errors and refusals by owner, tool and hour; merge old hours into days."""
    rows = [
        {
            "owner": owner,
            "tool": tool,
            "start": start,
            "calls": each[0],
            "errors": each[1],
            "refusals": each[2],
        }
        for (owner, tool, start), each in added.items()
    ]
    is_old = (counts.c.start < int(time.time()) - HOURS_KEPT) & (counts.c.start % DAY != 0)
    with database.changing() as connection:
        if rows:
            connection.execute(ADDITION, rows)
        old = connection.execute(select(counts).where(is_old)).mappings().all()
        if old:
            connection.execute(ADDITION, [{**row, "start": row["start"] - row["start"] % DAY} for row in old])
            key = [counts.c[name] == bindparam(f"old_{name}") for name in ("owner", "tool", "start")]
            connection.execute(
                delete(counts).where(*key),
                [{f"old_{name}": row[name] for name in ("owner", "tool", "start")} for row in old],
            )


def of_calls(
    database: Database, owner: str, metric: str, since: float, until: float, tool: str
) -> list[tuple[int, int]]:
    """Return pairs of an hour's or a day's start and a metric, in order."""
    wanted = select(counts.c.start, func.sum(counts.c[metric])).where(
        counts.c.owner == owner,
        counts.c.start >= since - since % HOUR,
        counts.c.start < until,
        counts.c[metric] > 0,
    )
    if tool:
        wanted = wanted.where(counts.c.tool == tool)
    return _rows(database, wanted.group_by(counts.c.start).order_by(counts.c.start))


def of_entries(database: Database, reader: Reader, since: float, until: float) -> list[tuple[int, int]]:
    """Return pairs of a day's start and the number of entries written, in order."""
    classes = sorted(reader.classes_in("all"))
    wanted = (
        _by_day(entries.c.written_at)
        .join(spaces, spaces.c.number == entries.c.space)
        .where(spaces.c.owner == reader.owner, spaces.c.caller_class.in_(classes))
        .where(entries.c.written_at >= since, entries.c.written_at < until)
    )
    return _rows(database, wanted)


def of_documents(database: Database, reader: Reader, since: float, until: float) -> list[tuple[int, int]]:
    """Return pairs of a day's start and the number of documents added, in order."""
    wanted = (
        _by_day(documents.c.added_at)
        .join(spaces, spaces.c.number == documents.c.space)
        .where(spaces.c.owner == reader.owner, documents.c.added_at >= since, documents.c.added_at < until)
    )
    return _rows(database, wanted)


def _by_day(at: Column[float]) -> Select[Any]:
    """Return the statement that counts the rows of each day, in order."""
    day = func.floor(at / DAY)
    return select((day * DAY).label("start"), func.count()).group_by(day).order_by(day)


def _rows(database: Database, wanted: Select[Any]) -> list[tuple[int, int]]:
    with database.reading() as connection:
        return [(int(start), int(number)) for start, number in connection.execute(wanted)]
