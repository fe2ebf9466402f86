"""Import, export, counts, checks and reindexing of a whole store, for the commands of its operator.

`add` writes a lot of entries in one transaction, and leaves out those whose content the store already has, so
an interrupted import can be repeated. Raises StorageError.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

from sqlalchemy import delete, func, insert, select, text, update

from . import readings, vectors
from .entries import CATEGORIES, ID, count_change, entry_row, space_of, tags_in
from .mentions import add_mentions
from .originals import Originals
from .schema import (
    documents,
    entity_readings,
    entries,
    mentions,
    passages,
    spaces,
    tombstones,
)
from .word_index import ENTRIES, PASSAGES, index_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

    from .readings import Texts

LOT = 500
"""Entries of one transaction, and of one page."""


@dataclass
class Record:
    """An imported or exported entry. `caller_class` is "" if all of the owner's callers share it; `id` is its
    id in the original store."""

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
    """Add the entries whose content the owner does not have yet, in one transaction; return their number."""
    added = 0
    with database.changing() as connection:
        lots: dict[str, dict[bytes, Record]] = {}
        for record in records:
            digest = hashlib.sha256(record.content.encode()).digest()
            lots.setdefault(record.caller_class, {}).setdefault(digest, record)
        of_spaces = {space_of(connection, owner, caller_class): lot for caller_class, lot in lots.items()}
        for space in sorted(of_spaces):
            index_of(connection).lock(connection, space)
        for space, lot in sorted(of_spaces.items()):
            added += _add_lot(connection, space, lot)
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
    index_of(connection).add_many(connection, [(numbers[row["id"]], space, row["content"]) for row in rows])
    add_mentions(
        connection, space, [(numbers[row["id"]], row["content"], tags_in(row["tags"])) for row in rows]
    )
    for row, record in zip(rows, lot.values(), strict=True):
        if record.supersedes:
            older = entries.c.id == record.supersedes, entries.c.space == space
            connection.execute(update(entries).where(*older).values(superseded_by=row["id"]))
    count_change(connection, {space})
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
    """Return the numbers of all that a store holds."""
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
        "documents": select(func.count()).select_from(documents),
        "passages": select(func.count()).select_from(passages),
    }
    with database.reading() as connection:
        found = {name: int(connection.execute(each).scalar_one()) for name, each in wanted.items()}
        made = vectors.counts(connection)
        read = select(func.count()).where(entity_readings.c.done.is_(True))
        found["vectors"] = sum(made.values())
        found |= {f"  {model}": number for model, number in made.items()}
        found["read by model"] = int(connection.execute(read).scalar_one())
    return found


def problems(database: Database) -> list[str]:
    """Return what is wrong with a store, in sentences; nothing for an intact one."""
    found = []
    with database.changing() as connection:
        if connection.dialect.name == "sqlite":
            lines = [str(row[0]) for row in connection.execute(text("PRAGMA integrity_check"))]
            found += [line for line in lines if line != "ok"]
        for what, texts in ((ENTRIES, "entries"), (PASSAGES, "passages")):
            found += _index_problems(connection, what, texts)
        lost = select(func.count()).where(mentions.c.entry.not_in(select(entries.c.number)))
        if number := int(connection.execute(lost).scalar_one()):
            found.append(f"{number:,} entities that no entry names: fastrpc knowledge reindex mends it")
        for read, texts in ((readings.ENTRIES, "entries"), (readings.PASSAGES, "passages")):
            if number := vectors.damaged(connection, read):
                found.append(f"{number:,} vectors of {texts} are damaged: fastrpc knowledge reindex mends it")
        wrong = sum(
            hashlib.sha256(content.encode()).digest() != bytes(digest)
            for content, digest in connection.execute(select(entries.c.content, entries.c.digest))
        )
    if wrong:
        found.append(f"{wrong:,} entries whose content is not what was written")
    return found + _original_problems(database)


def _index_problems(connection: Connection, what: tuple[str, str], texts: str) -> list[str]:
    index = index_of(connection, what)
    found = index.damage(connection)
    for problem, statement in (
        (
            f"{texts} that the index of words does not have",
            f"SELECT count(*) FROM {index.texts} WHERE number NOT IN (SELECT {index.key} FROM {index.table})",
        ),
        (
            f"rows of the index of words without {texts}",
            f"SELECT count(*) FROM {index.table} WHERE {index.key} NOT IN (SELECT number FROM {index.texts})",
        ),
    ):
        number = int(connection.execute(text(statement)).scalar_one())
        if number:
            found.append(f"{number:,} {problem}: fastrpc knowledge reindex mends it")
    return found


def _original_problems(database: Database) -> list[str]:
    """Remove the left-over document files of killed processes; report changed or missing files, and files
    without a document."""
    originals = Originals(database)
    originals.sweep()
    with database.reading() as connection:
        rows = connection.execute(select(documents.c.digest, documents.c.size).distinct()).all()
    found = []
    broken = sum(not originals.is_whole(row.digest, row.size) for row in rows)
    if broken:
        found.append(f"{broken:,} documents whose file is missing or changed: add them again")
    if unknown := originals.names() - {row.digest for row in rows}:
        found.append(f"{len(unknown):,} files of no document in {originals.folder}")
    return found


def reindex(database: Database, unread: Sequence[Texts] = ()) -> int:
    """Rebuild the indexes of words and the graph, in one transaction; return the number of entries and
    passages. All texts of `unread`, and all entries of the graph, then wait for the models again."""
    with database.changing() as connection:
        of_entries = _reindex(
            connection,
            ENTRIES,
            select(entries.c.number, entries.c.space, entries.c.content),
            entries.c.number,
        )
        _make_graph(connection)
        line = passages.c.heading + "\n" + passages.c.content
        of_documents = select(passages.c.number, documents.c.space, line).join(documents)
        of_passages = _reindex(connection, PASSAGES, of_documents, passages.c.number)
        for texts in (readings.NAMING, *unread):
            texts.clear(connection)
    return of_entries + of_passages


def _reindex(connection: Connection, what: tuple[str, str], wanted: Any, number: Any) -> int:
    index = index_of(connection, what)
    index.clear(connection)
    count = after = 0
    while True:
        found = connection.execute(wanted.where(number > after).order_by(number).limit(LOT))
        rows = [(each, space, content) for each, space, content in found]
        if not rows:
            return count
        index.add_many(connection, rows)
        count, after = count + len(rows), rows[-1][0]


def _make_graph(connection: Connection) -> None:
    connection.execute(delete(mentions))
    after = 0
    while True:
        wanted = select(entries).where(entries.c.number > after)
        rows = connection.execute(wanted.order_by(entries.c.number).limit(LOT)).all()
        if not rows:
            return
        for row in rows:
            add_mentions(connection, row.space, [(row.number, row.content, tags_in(row.tags))])
        after = rows[-1].number
