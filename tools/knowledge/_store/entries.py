"""`Entries`: what callers have written down, in the database. Each method is one transaction.

A `Reader` says who asks. Nothing of another owner is found, counted or said to be there: every statement is
bound to the reader's spaces. A `Page` goes on behind a number, so entries that come and go meanwhile shift
nothing. Raises StorageError.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from math import sqrt

from sqlalchemy import and_, bindparam, delete, insert, select, text, update

from .schema import entries, spaces, tombstones
from .word_index import coverage, index_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

    from .._search.question import Question
    from .word_index import Fts5Index, TextSearchIndex

ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
ID = re.compile(f"mem_[{ID_LETTERS}]{{12}}")
RERANKED = 50
"""The best by rank, which are ordered again by how much of the question they have."""
USER, AGENT, ALL = SCOPES = ("user", "agent", "all")
COLUMNS = "e.number, e.id, e.category, e.content, e.tags, e.source, e.written_at, e.superseded_by"


class Reader:
    """Who asks: what an owner keeps for all of their callers is in one space, what for a class in another."""

    __slots__ = ("caller_class", "owner")

    def __init__(self, owner: str, caller_class: str) -> None:
        self.owner = owner
        self.caller_class = caller_class

    def class_in(self, scope: str) -> str:
        return self.caller_class if scope == AGENT else ""

    def classes_in(self, scope: str) -> set[str]:
        return {"", self.caller_class} if scope == ALL else {self.class_in(scope)}


class Entry:
    """An entry as it was written."""

    __slots__ = ("category", "content", "id", "number", "source", "superseded_by", "tags", "written_at")

    def __init__(self, row: Any) -> None:
        self.number: int = row[0]
        self.id: str = row[1]
        self.category: str = row[2]
        self.content: str = row[3]
        self.tags: list[str] = row[4].split("\n")[1:-1]
        self.source: str = row[5]
        self.written_at: float = row[6]
        self.superseded_by: str | None = row[7]


class Entries:
    """The entries of all owners, in one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # --- writing ------------------------------------------------------------------------------------------

    def write(
        self, reader: Reader, content: str, category: str, scope: str, tags: Iterable[str], source: str,
        supersedes: str = "",
    ) -> tuple[Entry, bool] | None:  # fmt: skip
        """Write an entry down; return it, and whether it is new. The same content twice is one entry, with
        the later date and the tags of both. None: there is no entry `supersedes`."""
        if supersedes and ID.fullmatch(supersedes) is None:
            return None
        digest = hashlib.sha256(content.encode()).digest()
        with self.database.changing() as connection:
            space = _space(connection, reader.owner, reader.class_in(scope))
            known = connection.execute(
                select(entries.c.number, entries.c.tags).where(
                    entries.c.space == space, entries.c.digest == digest
                )
            ).first()
            kept = [] if known is None else known.tags.split("\n")[1:-1]
            values = {
                "category": category,
                "tags": _kept([*kept, *tags]),
                "source": source,
                "written_at": time.time(),
                "superseded_by": None,
            }
            if known is None:
                row = {"id": _new_id(), "space": space, "content": content, "digest": digest, **values}
                number = _insert(connection, row)
                index_of(connection).add(connection, number, content)
            else:
                number = known.number
                connection.execute(update(entries).where(entries.c.number == number).values(values))
            entry = _by_number(connection, number)
            if supersedes:
                is_older = and_(entries.c.id == supersedes, _in(reader, ALL), entries.c.number != number)
                done = connection.execute(update(entries).where(is_older).values(superseded_by=entry.id))
                if done.rowcount != 1:
                    connection.rollback()
                    return None
            return entry, known is None

    def write_many(self, reader: Reader, contents: Iterable[tuple[str, str]]) -> int:
        """Write down facts for all of an owner's callers, pairs of a source and a content, in one
        transaction; return how many were new."""
        with self.database.changing() as connection:
            space, index, now = _space(connection, reader.owner, ""), index_of(connection), time.time()
            known = set(
                connection.execute(select(entries.c.digest).where(entries.c.space == space)).scalars()
            )
            count = len(known)
            for source, content in contents:
                digest = hashlib.sha256(content.encode()).digest()
                if digest in known:
                    continue
                known.add(digest)
                row = {
                    "id": _new_id(), "space": space, "content": content, "digest": digest, "category": "fact",
                    "tags": _kept([]), "source": source, "written_at": now,
                }  # fmt: skip
                index.add(connection, _insert(connection, row), content)
            return len(known) - count

    def forget(self, reader: Reader, id: str) -> bool:
        """Forget an entry, but for its id and the time. False: there is none."""
        return ID.fullmatch(id) is not None and self._forget(reader, ALL, entries.c.id == id) == 1

    def forget_all(self, reader: Reader, scope: str) -> int:
        """Forget all entries of a scope; return how many there were."""
        return self._forget(reader, scope, entries.c.id.is_not(None))

    def _forget(self, reader: Reader, scope: str, which: Any) -> int:
        with self.database.changing() as connection:
            rows = connection.execute(
                select(entries.c.number, entries.c.id, entries.c.space).where(_in(reader, scope), which)
            ).all()
            if not rows:
                return 0
            index_of(connection).remove(connection, [row.number for row in rows])
            connection.execute(
                delete(entries).where(entries.c.number == bindparam("gone")),
                [{"gone": row.number} for row in rows],
            )
            now = time.time()
            connection.execute(
                insert(tombstones),
                [{"id": row.id, "space": row.space, "forgotten_at": now} for row in rows],
            )
        self.database.overwrite_deleted()
        return len(rows)

    # --- reading ------------------------------------------------------------------------------------------

    def read(self, reader: Reader, id: str) -> Entry | None:
        """Return an entry, None if the reader has none of this id."""
        if ID.fullmatch(id) is None:
            return None
        with self.database.reading() as connection:
            row = connection.execute(_columns().where(entries.c.id == id, _in(reader, ALL))).first()
        return None if row is None else Entry(row)

    def page(self, reader: Reader, before: int | None, limit: int, scope: str = ALL) -> list[Entry]:
        """Return entries, the newest first, those behind an entry's number if one is given."""
        wanted = _columns().where(_in(reader, scope)).order_by(entries.c.number.desc()).limit(limit)
        if before is not None:
            wanted = wanted.where(entries.c.number < before)
        with self.database.reading() as connection:
            return [Entry(row) for row in connection.execute(wanted)]

    def ids(self, reader: Reader, beginning: str, limit: int) -> list[str]:
        """Return the ids that begin so, the newest first."""
        wanted = (
            select(entries.c.id)
            .where(_in(reader, ALL), entries.c.id.startswith(beginning, autoescape=True))
            .order_by(entries.c.number.desc())
        )
        with self.database.reading() as connection:
            return list(connection.execute(wanted.limit(limit)).scalars())

    def search(self, reader: Reader, question: Question, scope: str, limit: int) -> list[Entry]:
        """Return what answers a question, best first; what is superseded comes last."""
        with self.database.reading() as connection:
            own = _spaces(connection, reader, scope)
            if not own:
                return []
            statement, parameters = _statement(question, own, index_of(connection), limit)
            rows = connection.execute(text(statement), parameters).all()
        if question.asks:
            rows = sorted(rows, key=lambda row: _place(question, row))[:limit]
        return [Entry(row) for row in rows]


def _spaces(connection: Connection, reader: Reader, scope: str) -> list[int]:
    wanted = select(spaces.c.number).where(
        spaces.c.owner == reader.owner, spaces.c.caller_class.in_(reader.classes_in(scope))
    )
    return list(map(int, connection.execute(wanted).scalars()))


def _statement(
    question: Question, own: list[int], index: Fts5Index | TextSearchIndex, limit: int
) -> tuple[str, dict[str, object]]:
    """Return the statement that finds the entries in these spaces, and its parameters."""
    conditions = [f"e.space IN ({', '.join(map(str, own))})"]
    parameters: dict[str, object] = {"limit": limit}
    tables, columns, order = "knowledge_entries AS e", COLUMNS, ""
    parts = []
    if question.asks:
        tables, columns = index.tables, f"{COLUMNS}, {index.stems} AS stems, {index.rank} AS score"
        order = "score, "
        parameters["limit"] = max(limit, RERANKED)
        parts.append(index.asked(question))
    if question.without:
        parts.append(index.without(question))
    for condition, values in parts:
        conditions.append(condition)
        parameters |= values
    for at, (name, value) in enumerate(question.fields):
        conditions.append(_FIELDS[name].format(f"field_{at}"))
        parameters[f"field_{at}"] = f"%\n{_escaped(str(value))}\n%" if name == "tag" else value
    return (
        f"SELECT {columns} FROM {tables} WHERE {' AND '.join(conditions)} "
        f"ORDER BY e.superseded_by IS NOT NULL, {order}e.written_at DESC LIMIT :limit"
    ), parameters


def _place(question: Question, row: Any) -> tuple[bool, float, float]:
    """Return where an entry stands among those that were found: what has more of what was asked comes before
    what has one word of it often. The root is what served best on questions with known answers
    (docs/knowledge.md)."""
    score = row.score * sqrt(coverage(question, row.content, row.stems))
    return row.superseded_by is not None, round(score, 6), -row.written_at


_FIELDS = {
    "tag": "e.tags LIKE :{} ESCAPE '\\'",
    "category": "e.category = :{}",
    "source": "lower(e.source) = :{}",
    "before": "e.written_at < :{}",
    "after": "e.written_at >= :{}",
}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _columns() -> Any:
    return select(
        entries.c.number, entries.c.id, entries.c.category, entries.c.content, entries.c.tags,
        entries.c.source, entries.c.written_at, entries.c.superseded_by,
    )  # fmt: skip


def _kept(tags: list[str]) -> str:
    return "\n".join(["", *dict.fromkeys(tags), ""])


def _insert(connection: Connection, row: dict[str, object]) -> int:
    done: Any = connection.execute(insert(entries).values(row))
    return int(done.inserted_primary_key[0])


def _by_number(connection: Connection, number: int) -> Entry:
    return Entry(connection.execute(_columns().where(entries.c.number == number)).one())


def _in(reader: Reader, scope: str) -> Any:
    """Return the condition that an entry is the reader's."""
    own = select(spaces.c.number).where(
        spaces.c.owner == reader.owner, spaces.c.caller_class.in_(reader.classes_in(scope))
    )
    return entries.c.space.in_(own)


def _space(connection: Connection, owner: str, caller_class: str) -> int:
    """Return the number of a space, which is made if there is none."""
    wanted = select(spaces.c.number).where(spaces.c.owner == owner, spaces.c.caller_class == caller_class)
    found = connection.execute(wanted).scalar()
    if found is None:
        values = {"owner": owner, "caller_class": caller_class}
        connection.execute(
            text(
                "INSERT INTO knowledge_spaces (owner, caller_class) VALUES (:owner, :caller_class) "
                "ON CONFLICT DO NOTHING"
            ),
            values,
        )
        found = connection.execute(wanted).scalar_one()
    return int(found)


def _new_id() -> str:
    return "mem_" + "".join(secrets.choice(ID_LETTERS) for _ in range(12))
