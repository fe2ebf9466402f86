"""Import, export, counts, checks and reindexing of a whole store, for commands of whoever may open it.

`add` writes a lot of entries in one transaction, and leaves out those whose content the store has already: an
import that was interrupted can be repeated. Raises StorageError.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

from sqlalchemy import func, insert, select, text, update

from .entries import CATEGORIES, ID, entry_row, space_of, tags_in
from .schema import entries, spaces, tombstones
from .word_index import index_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

LOT = 500
"""Entries of one transaction, and of one page."""


@dataclass
class Record:
    """An entry to import, or one that is exported. `caller_class` is "" if all of the owner's callers share
    it; `id` is the id that it had in the store that it comes from."""

    content: str
    category: str
    caller_class: str
    tags: list[str]
    source: str
    written_at: float | None = None
    id: str = ""
    superseded_by: str = ""
    supersedes: str = ""


def add(database: Database, owner: str, records: list[Record]) -> int:
    """Add the entries whose content the owner does not have yet, in one transaction; return how many."""
    added = 0
    with database.changing() as connection:
        lots: dict[str, dict[bytes, Record]] = {}
        for record in records:
            digest = hashlib.sha256(record.content.encode()).digest()
            lots.setdefault(record.caller_class, {}).setdefault(digest, record)
        for caller_class, lot in lots.items():
            added += _add_lot(connection, space_of(connection, owner, caller_class), lot)
    return added


def _add_lot(connection: Connection, space: int, lot: dict[bytes, Record]) -> int:
    known = select(entries.c.digest).where(entries.c.space == space, entries.c.digest.in_(list(lot)))
    for digest in connection.execute(known).scalars():
        del lot[digest]
    if not lot:
        return 0
    wanted = [record.id for record in lot.values() if ID.fullmatch(record.id)]
    taken = set(connection.execute(select(entries.c.id).where(entries.c.id.in_(wanted))).scalars())
    rows = []
    for digest, record in lot.items():
        row = entry_row(space, record.content, digest, record.category, record.tags, record.source)
        if ID.fullmatch(record.id) and record.id not in taken:
            row["id"] = record.id
            taken.add(record.id)
        row["written_at"] = time.time() if record.written_at is None else record.written_at
        row["superseded_by"] = record.superseded_by if ID.fullmatch(record.superseded_by) else None
        rows.append(row)
    connection.execute(insert(entries), rows)
    ids = [row["id"] for row in rows]
    found = connection.execute(select(entries.c.id, entries.c.number).where(entries.c.id.in_(ids)))
    numbers = {row.id: row.number for row in found}
    index_of(connection).add_many(connection, [(numbers[row["id"]], row["content"]) for row in rows])
    for row, record in zip(rows, lot.values(), strict=True):
        if record.supersedes:
            older = entries.c.id == record.supersedes, entries.c.space == space
            connection.execute(update(entries).where(*older).values(superseded_by=row["id"]))
    return len(rows)


def everything(database: Database, owner: str) -> Iterator[Record]:
    """Return an owner's entries, the oldest first."""
    after = 0
    while True:
        wanted = (
            select(entries, spaces.c.caller_class)
            .join(spaces, spaces.c.number == entries.c.space)
            .where(spaces.c.owner == owner, entries.c.number > after)
            .order_by(entries.c.number)
            .limit(LOT)
        )
        with database.reading() as connection:
            rows = connection.execute(wanted).all()
        for row in rows:
            yield Record(
                row.content, row.category, row.caller_class, tags_in(row.tags), row.source,
                row.written_at, row.id, row.superseded_by or "",
            )  # fmt: skip
        if len(rows) < LOT:
            return
        after = rows[-1].number


def counts(database: Database) -> dict[str, int]:
    """Return how many there are of what a store holds."""
    is_old = entries.c.superseded_by.is_not(None)
    wanted: dict[str, Any] = {
        "owners": select(func.count(spaces.c.owner.distinct())),
        "entries": select(func.count()).select_from(entries),
        **{
            f"  {each}": select(func.count()).select_from(entries).where(entries.c.category == each)
            for each in CATEGORIES
        },
        "superseded": select(func.count()).select_from(entries).where(is_old),
        "forgotten": select(func.count()).select_from(tombstones),
    }
    with database.reading() as connection:
        return {name: int(connection.execute(each).scalar_one()) for name, each in wanted.items()}


def problems(database: Database) -> list[str]:
    """Return what is wrong with a store, in sentences; nothing for one that is whole."""
    found = []
    with database.changing() as connection:
        index = index_of(connection)
        found += index.damage(connection)
        key = index.key
        for what, statement in (
            (
                "entries that the index of words does not have",
                "SELECT count(*) FROM knowledge_entries "
                f"WHERE number NOT IN (SELECT {key} FROM knowledge_words)",
            ),
            (
                "rows of the index of words without an entry",
                "SELECT count(*) FROM knowledge_words "
                f"WHERE {key} NOT IN (SELECT number FROM knowledge_entries)",
            ),
        ):
            number = int(connection.execute(text(statement)).scalar_one())
            if number:
                found.append(f"{number:,} {what}: fastrpc knowledge reindex mends it")
        wrong = sum(
            hashlib.sha256(content.encode()).digest() != bytes(digest)
            for content, digest in connection.execute(select(entries.c.content, entries.c.digest))
        )
    if wrong:
        found.append(f"{wrong:,} entries whose content is not what was written")
    return found


def reindex(database: Database) -> int:
    """Make the index of words anew, in one transaction; return of how many entries."""
    with database.changing() as connection:
        index = index_of(connection)
        index.clear(connection)
        count = after = 0
        while True:
            wanted = select(entries.c.number, entries.c.content).where(entries.c.number > after)
            found = connection.execute(wanted.order_by(entries.c.number).limit(LOT))
            rows = [(row.number, row.content) for row in found]
            if not rows:
                return count
            index.add_many(connection, rows)
            count, after = count + len(rows), rows[-1][0]
