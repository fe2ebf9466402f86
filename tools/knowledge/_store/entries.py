"""`Entries`: the texts that callers have stored, in the database. Each method is one transaction.

A `Reader` identifies the caller. Nothing of another owner is found, counted or reported to exist: every
statement is bound to the reader's spaces. A `Page` continues after a number, so new and deleted entries do
not shift it. Raises StorageError.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time

from sqlalchemy import bindparam, delete, func, insert, select, text, update

from .._search.fusion import fused
from .._search.spelling import SHORTEST
from . import readings
from .meaning import Meaning, Place
from .mentions import add_mentions
from .ranking import EVERY, Choice, best
from .schema import entries, mentions, spaces, tombstones
from .word_index import index_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

    from .._search.question import Question
    from .word_index import WordIndex

ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
ID = re.compile(f"mem_[{ID_LETTERS}]{{12}}")
ID_BEGINNING = re.compile(f"(?:m|me|mem|mem_[{ID_LETTERS}]{{0,12}})?")
RERANKED = 50
"""The best entries by rank, which are ordered again by how much of the question they contain: an entry with
more of the words precedes one that repeats a single word. The root gave the best results on questions with
known answers (docs/knowledge.md)."""
MOST_MISSPELT = 8
AGENT, ALL = "agent", "all"
CATEGORIES = ("fact", "preference", "observation")
NAMES = ("number", "id", "category", "content", "tags", "source", "written_at", "superseded_by")
"""The columns for an `Entry`."""


class Reader:
    """The caller. One space holds what an owner stores for all of their callers, another what they store for
    a class."""

    __slots__ = ("caller_class", "owner")

    def __init__(self, owner: str, caller_class: str) -> None:
        self.owner = owner
        self.caller_class = caller_class

    def class_in(self, scope: str) -> str:
        return self.caller_class if scope == AGENT else ""

    def classes_in(self, scope: str) -> set[str]:
        return {"", self.caller_class} if scope == ALL else {self.class_in(scope)}


class EveryClass(Reader):
    """A person, who reads what their callers of all classes have stored."""

    __slots__ = ("_classes",)

    def __init__(self, owner: str, classes: set[str]) -> None:
        super().__init__(owner, "")
        self._classes = classes

    def classes_in(self, scope: str) -> set[str]:
        return {"", *self._classes} if scope == ALL else super().classes_in(scope)


class Entry:
    """An entry as it was written."""

    __slots__ = ("category", "content", "id", "number", "source", "superseded_by", "tags", "written_at")

    def __init__(self, row: Any) -> None:
        self.number: int = row.number
        self.id: str = row.id
        self.category: str = row.category
        self.content: str = row.content
        self.tags: list[str] = tags_in(row.tags)
        self.source: str = row.source
        self.written_at: float = row.written_at
        self.superseded_by: str | None = row.superseded_by


class Entries:
    """The entries of all owners, in one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.changes_at_opening = self.changes()

    # --- writing ------------------------------------------------------------------------------------------

    def write(
        self, reader: Reader, content: str, category: str, scope: str, tags: Iterable[str], source: str,
        supersedes: str = "",
    ) -> tuple[Entry, bool] | None:  # fmt: skip
        """Store an entry; return it, and whether it is new. The same content twice is one entry, with the
        later date and the tags of both. None: the entry `supersedes` does not exist."""
        digest = hashlib.sha256(content.encode()).digest()
        with self.database.changing() as connection:
            older = _number_of(connection, reader, supersedes) if supersedes else None
            if supersedes and older is None:
                return None
            space = space_of(connection, reader.owner, reader.class_in(scope))
            index_of(connection).lock(connection, space)
            known = connection.execute(
                select(entries.c.number, entries.c.tags).where(
                    entries.c.space == space, entries.c.digest == digest
                )
            ).first()
            if known is None:
                number = _add(connection, entry_row(space, content, digest, category, tags, source))
            elif known.number == older:
                return None
            else:
                number = known.number
                values = _written(category, [*tags_in(known.tags), *tags], source)
                connection.execute(update(entries).where(entries.c.number == number).values(values))
                connection.execute(delete(mentions).where(mentions.c.entry == number))
                add_mentions(connection, space, [(number, content, tags_in(str(values["tags"])))])
                readings.NAMING.read_again(connection, number)
            entry = Entry(connection.execute(columns().where(entries.c.number == number)).one())
            changed = {space}
            if older is not None:
                is_older = entries.c.number == older
                connection.execute(update(entries).where(is_older).values(superseded_by=entry.id))
                changed |= set(connection.execute(select(entries.c.space).where(is_older)).scalars())
            count_change(connection, changed)
            return entry, known is None

    def forget(self, reader: Reader, id: str) -> bool:
        """Delete an entry, except its id and the time. False: it does not exist."""
        return ID.fullmatch(id) is not None and self._forget(reader, ALL, entries.c.id == id) == 1

    def forget_all(self, reader: Reader, scope: str) -> int:
        """Delete all entries of a scope; return their number."""
        return self._forget(reader, scope, entries.c.id.is_not(None))

    def _forget(self, reader: Reader, scope: str, which: Any) -> int:
        with self.database.changing() as connection:
            rows = connection.execute(
                select(entries.c.number, entries.c.id, entries.c.space)
                .where(_in(reader, scope), which)
                .order_by(entries.c.number)
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
            count_change(connection, {row.space for row in rows})
        self.database.overwrite_deleted()
        return len(rows)

    # --- reading ------------------------------------------------------------------------------------------

    def read(self, reader: Reader, id: str) -> Entry | None:
        """Return an entry, None if the reader has none with this id."""
        if ID.fullmatch(id) is None:
            return None
        with self.database.reading() as connection:
            row = connection.execute(columns().where(entries.c.id == id, _in(reader, ALL))).first()
        return None if row is None else Entry(row)

    def page(self, reader: Reader, before: int | None, limit: int, scope: str = ALL) -> list[Entry]:
        """Return entries, the newest first; those after an entry's number, if one is given."""
        return [Entry(row) for row in self._newest(reader, scope, columns(), limit, before)]

    def ids(self, reader: Reader, prefix: str, limit: int) -> list[str]:
        """Return the ids with this beginning, the newest entry's first."""
        if ID_BEGINNING.fullmatch(prefix) is None:
            return []
        begins = entries.c.id.startswith(prefix, autoescape=True)
        wanted = select(entries.c.number, entries.c.id).where(begins)
        return [row.id for row in self._newest(reader, ALL, wanted, limit)]

    def _newest(
        self, reader: Reader, scope: str, wanted: Any, limit: int, before: int | None = None
    ) -> list[Any]:
        """Return rows of entries, the newest first. Each space is read separately: its index then has them in
        order, and no more are read than are wanted."""
        if before is not None:
            wanted = wanted.where(entries.c.number < before)
        wanted = wanted.order_by(entries.c.number.desc()).limit(limit)
        found: list[Any] = []
        with self.database.reading() as connection:
            for space in own_numbers(connection, reader, scope):
                found += connection.execute(wanted.where(entries.c.space == space))
        return sorted(found, key=lambda row: -row.number)[:limit]

    def changes(self, owners: Iterable[str] | None = None) -> dict[tuple[str, str], int]:
        """Return how often each space of these owners, or of all, has changed, by owner and class of
        callers."""
        wanted = select(spaces.c.owner, spaces.c.caller_class, spaces.c.changes)
        if owners is not None:
            wanted = wanted.where(spaces.c.owner.in_(list(owners)))
        with self.database.reading() as connection:
            return {(row.owner, row.caller_class): row.changes for row in connection.execute(wanted)}

    def stamp(self, reader: Reader, id: str) -> object:
        """Return a value that differs after an entry was added, changed or deleted; without an id, after any
        was."""
        if not id:
            facts = func.count(), func.max(entries.c.number), func.max(entries.c.written_at)
            with self.database.reading() as connection:
                return tuple(connection.execute(select(*facts).where(_in(reader, ALL))).one())
        entry = self.read(reader, id)
        return entry and (entry.written_at, entry.category, entry.tags, entry.source, entry.superseded_by)

    def search(
        self, reader: Reader, question: Question, scope: str, limit: int, meaning: Meaning | None = None
    ) -> list[Entry]:
        """Return the entries that answer a question by its words and, if that is known, by its meaning, best
        first; superseded ones come last."""
        with self.database.reading() as connection:
            own = own_numbers(connection, reader, scope)
            if not own:
                return []
            if meaning is None or not question.asks:
                rows = _answering(connection, question, own, limit)
            else:
                rows = _fused(connection, question, own, limit, meaning)
        return [Entry(row) for row in rows]

    def nearest(self, reader: Reader, question: Question, scope: str) -> dict[str, str]:
        """Return, for words that no entry of the reader has, similar ones."""
        with self.database.reading() as connection:
            own = own_numbers(connection, reader, scope)
            return nearest_words(index_of(connection), connection, question, own)


def nearest_words(
    index: WordIndex, connection: Connection, question: Question, own: list[int]
) -> dict[str, str]:
    """Return, for the words of a question that these spaces do not have, similar ones."""
    if not own:
        return {}
    words = [word for word in question.words[:MOST_MISSPELT] if len(word) >= SHORTEST]
    found = {word: index.nearest(connection, word, own) for word in words}
    return {word: near for word, near in found.items() if near}


def _answering(connection: Connection, question: Question, own: list[int], limit: int) -> list[Any]:
    """Return the rows that answer a question, the best first."""
    index, conditions = index_of(connection), _chosen(question)
    if question.stems or (question.asks and index.ranks):
        wanted = max(limit, RERANKED)
        found = _scored(connection, best(connection, index, question, own, wanted, _choice(conditions)))
        if len(found) >= wanted and sum(row.superseded_by is None for row, _ in found) < limit:
            current = _choice([*conditions, ("e.superseded_by IS NULL", {})])
            better = _scored(connection, best(connection, index, question, own, wanted, current))
            found = better + [each for each in found if each[0].superseded_by is not None]
        return _in_order(found)[:limit]
    statement, parameters = _statement(own, [*index.limits(question), *conditions], limit)
    return list(connection.execute(text(statement), parameters))


def _fused(
    connection: Connection, question: Question, own: list[int], limit: int, meaning: Meaning
) -> list[Any]:
    """Return the rows that answer a question by their words or by their meaning, the best first."""
    from . import vectors

    by_words = _answering(connection, question, own, max(limit, RERANKED))
    rows = {row.number: row for row in by_words}
    limits = [*_chosen(question), *index_of(connection).limits(question)]
    place = Place(readings.ENTRIES, "knowledge_entries AS e", limits)
    near = vectors.nearest(connection, meaning, place, own)
    if new := [number for number in near if number not in rows]:
        found = connection.execute(columns().where(entries.c.number.in_(new)))
        rows |= {row.number: row for row in found}
    scores = fused([row.number for row in by_words], near)
    there = [(rows[number], -score) for number, score in scores.items() if number in rows]
    return _in_order(there)[:limit]


def _choice(conditions: list[tuple[str, dict[str, object]]]) -> Choice:
    if not conditions:
        return EVERY
    parameters = {name: value for _, values in conditions for name, value in values.items()}
    wanted = tuple(condition for condition, _ in conditions)
    return Choice(*CHOSEN, wanted, parameters)


def _scored(connection: Connection, ranked: list[tuple[int, float]]) -> list[tuple[Any, float]]:
    """Return the entries with these numbers, with their scores."""
    if not ranked:
        return []
    numbers = ", ".join(str(number) for number, _ in ranked)
    wanted = f"SELECT {', '.join(NAMES)} FROM knowledge_entries WHERE number IN ({numbers})"
    rows = {row.number: row for row in connection.exec_driver_sql(wanted)}
    return [(rows[number], score) for number, score in ranked]


def _in_order(found: list[tuple[Any, float]]) -> list[Any]:
    """Return entries in the order of their scores, the lowest first; superseded ones come last."""

    def place(each: tuple[Any, float]) -> tuple[bool, float, float]:
        row, score = each
        return row.superseded_by is not None, round(score, 6), -row.written_at

    return [row for row, _ in sorted(found, key=place)]


def _statement(
    own: list[int], conditions: list[tuple[str, dict[str, object]]], limit: int
) -> tuple[str, dict[str, object]]:
    """Return the statement that finds the newest entries in these spaces, and its parameters."""
    parameters: dict[str, object] = {"limit": limit}
    for _, values in conditions:
        parameters |= values
    wanted = [f"e.space IN ({', '.join(map(str, own))})", *(condition for condition, _ in conditions)]
    return (
        f"SELECT {', '.join(f'e.{name}' for name in NAMES)} FROM knowledge_entries AS e "
        f"WHERE {' AND '.join(wanted)} "
        "ORDER BY e.superseded_by IS NOT NULL, e.written_at DESC LIMIT :limit"
    ), parameters


def _chosen(question: Question) -> list[tuple[str, dict[str, object]]]:
    """Return the conditions for a question's fields, with their parameters."""
    return [
        (
            _FIELDS[name].format(f"field_{at}"),
            {f"field_{at}": f"%\n{escaped(str(value))}\n%" if name == "tag" else value},
        )
        for at, (name, value) in enumerate(question.fields)
    ]


CHOSEN = (
    " CROSS JOIN knowledge_entries AS e ON e.number = w.rowid",
    "knowledge_entries AS e",
    "e.space",
)
_FIELDS = {
    "tag": "e.tags LIKE :{} ESCAPE '\\'",
    "category": "e.category = :{}",
    "source": "lower(e.source) = :{}",
    "before": "e.written_at < :{}",
    "after": "e.written_at >= :{}",
}


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def columns() -> Any:
    """Return the statement that selects all columns of an `Entry`."""
    return select(*(entries.c[name] for name in NAMES))


def _written(category: str, tags: Iterable[str], source: str) -> dict[str, object]:
    """Return the values that each write sets, for a new or a known entry."""
    return {
        "category": category,
        "tags": lines_of(tags),
        "source": source,
        "written_at": time.time(),
        "superseded_by": None,
    }


def lines_of(words: Iterable[str]) -> str:
    """Return words in their stored and searched form, each once, with a line feed before and after it."""
    return "\n".join(["", *dict.fromkeys(words), ""])


def tags_in(kept: str) -> list[str]:
    return kept.split("\n")[1:-1]


def entry_row(
    space: int, content: str, digest: bytes, category: str, tags: Iterable[str], source: str
) -> dict[str, Any]:
    """Return the row of a new entry."""
    row = {"id": new_id("mem_"), "space": space, "content": content, "digest": digest}
    return {**row, **_written(category, tags, source)}


def _add(connection: Connection, row: dict[str, Any]) -> int:
    """Add a new entry, also to the index; return its number."""
    done: Any = connection.execute(insert(entries).values(row))
    number = int(done.inserted_primary_key[0])
    index_of(connection).add_many(connection, [(number, row["space"], row["content"])])
    add_mentions(connection, row["space"], [(number, row["content"], tags_in(row["tags"]))])
    return number


def _number_of(connection: Connection, reader: Reader, id: str) -> int | None:
    """Return the number of an entry, None if the reader has none with this id."""
    if ID.fullmatch(id) is None:
        return None
    found: int | None = connection.execute(
        select(entries.c.number).where(entries.c.id == id, _in(reader, ALL))
    ).scalar()
    return found


def own_numbers(connection: Connection, reader: Reader, scope: str) -> list[int]:
    """Return the numbers of the spaces of a scope that belong to a reader."""
    values = {"owner": reader.owner, "classes": list(reader.classes_in(scope))}
    return [int(number) for number in connection.execute(OWN_NUMBERS, values).scalars()]


OWN_NUMBERS = select(spaces.c.number).where(
    spaces.c.owner == bindparam("owner"), spaces.c.caller_class.in_(bindparam("classes", expanding=True))
)
"""Made once: each search begins with it."""


def own_spaces(reader: Reader, scope: str) -> Any:
    """Return the statement that selects the numbers of the reader's spaces."""
    return select(spaces.c.number).where(
        spaces.c.owner == reader.owner, spaces.c.caller_class.in_(reader.classes_in(scope))
    )


def _in(reader: Reader, scope: str) -> Any:
    """Return the condition that an entry belongs to the reader."""
    return entries.c.space.in_(own_spaces(reader, scope))


def count_change(connection: Connection, changed: Iterable[int]) -> None:
    """Count a change in these spaces, for their watchers. It comes last in a transaction: rows are locked
    before their space, always in this order."""
    is_changed = spaces.c.number.in_(sorted(changed))
    connection.execute(update(spaces).where(is_changed).values(changes=spaces.c.changes + 1))


def space_of(connection: Connection, owner: str, caller_class: str) -> int:
    """Return the number of a space, which is made if it does not exist."""
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


def new_id(prefix: str) -> str:
    """Return a random id; it reads random bytes once, not for each letter."""
    rest = secrets.randbelow(len(ID_LETTERS) ** 12)
    letters = []
    for _ in range(12):
        rest, at = divmod(rest, len(ID_LETTERS))
        letters.append(ID_LETTERS[at])
    return prefix + "".join(letters)
