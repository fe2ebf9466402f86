"""The best rows of an index for a question, with bounded work however frequent its words are in the store.

FTS5 ranks a thousand rows in 1.5 ms, so its order is used if few rows have a word of the question. If many
have one, and always in PostgreSQL, sets of rows (`row_sets`) give the rows with the most significant words,
each word weighted by its rarity. This module ranks these rows by BM25 over the owner's own entries. A
question's fields are one more set, which changes no weight.
"""

from __future__ import annotations

from math import log, sqrt
from types import MappingProxyType
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import text

from .row_sets import RowSets, heaviest, numbers_in, set_of
from .word_index import Fts5Index, coverage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.engine import Connection, Engine

    from .._search.question import Question
    from .word_index import TextSearchIndex, WordIndex

    Ranked = list[tuple[int, float]]

RANKED_ROWS = 2000
"""Rows that FTS5 ranks for a question."""
LOOKED_AT = 150
"""The least number of rows that are ranked here."""
TRIED = 8
"""If fields restrict the rows, so many times as many are examined before all that the fields allow are
read."""
MOST_KEPT = 256
"""Sets of chosen rows that are cached for each database."""
SATURATION, LENGTH_MATTERS = 1.2, 0.75
"""k1 and b of BM25, as in FTS5."""


_kept: WeakKeyDictionary[Engine, dict[object, tuple[int | None, int]]] = WeakKeyDictionary()
"""For each database the sets of chosen rows, with the number of changes at which they were read."""


class Choice(NamedTuple):
    """The rows to search: tables to join to the index; tables without the index, the texts as `e`; the column
    of their space; conditions on them, and their parameters."""

    joined: str = ""
    tables: str = ""
    space: str = ""
    conditions: tuple[str, ...] = ()
    parameters: Mapping[str, object] = MappingProxyType({})


EVERY = Choice()


def best(
    connection: Connection,
    index: Fts5Index | TextSearchIndex,
    question: Question,
    spaces: Sequence[int],
    wanted: int,
    choice: Choice = EVERY,
) -> Ranked:
    """Return the numbers of the best rows with their scores, the lowest and best first. For a question
    without stems only FTS5 is used."""
    found = _by_sets(connection, index, question, spaces, wanted, choice) if question.stems else None
    if found is None and isinstance(index, Fts5Index):
        found = _of_fts5(connection, index, question, spaces, wanted, choice)
    return found or []


def _by_sets(
    connection: Connection,
    index: WordIndex,
    question: Question,
    spaces: Sequence[int],
    wanted: int,
    choice: Choice,
) -> Ranked | None:
    """Return the same by sets of rows; None if so few rows match that FTS5 ranks them faster."""
    few = RANKED_ROWS if index.ranks else 0
    sets = RowSets(connection, index, spaces)
    own = sets.having(index.all_of(spaces))
    if own.bit_count() <= few:
        return None
    if needed := index.needed(question):
        own &= sets.having(needed)
    if unwanted := index.unwanted(question):
        own &= ~sets.having(unwanted)
    having = [sets.having(index.wished([each])) & own for each in question.stems]
    counts = [each.bit_count() for each in having]
    if sum(counts) <= few and index.ranks:
        return None
    weights = [log(1 + (own.bit_count() - count + 0.5) / (count + 0.5)) for count in counts]
    by_itself = [own] if needed else []  # the required parts alone are enough
    weighed = [*having, *by_itself], [*weights, *(0.0 for _ in by_itself)]
    numbers = Chosen(connection, choice, spaces).heaviest(*weighed, max(wanted, LOOKED_AT))
    return _of_sets(sets, question, numbers, weights, wanted)


class Chosen:
    """The rows of these spaces that match a question's fields."""

    def __init__(self, connection: Connection, choice: Choice, spaces: Sequence[int]) -> None:
        self._connection = connection
        self._choice = choice
        self._spaces = ", ".join(map(str, spaces))

    def heaviest(self, having: list[int], weights: list[float], most: int) -> list[int]:
        """Return the numbers of the chosen rows with the highest sums of weights. The heaviest of all rows
        are examined first, since enough of them are often chosen."""
        if self._choice is EVERY:
            return numbers_in(heaviest(having, weights, most))
        for looked_at in (most, TRIED * most):
            rows = numbers_in(heaviest(having, weights, looked_at))
            found = self._among(f"e.number IN ({', '.join(map(str, rows))})") if rows else []
            if len(found) >= most or len(rows) < looked_at:
                return found
        chosen = self._all()
        return numbers_in(heaviest([each & chosen for each in having], weights, most))

    def _among(self, condition: str) -> list[int]:
        wanted = " AND ".join([condition, *self._choice.conditions])
        statement = f"SELECT e.number FROM {self._choice.tables} WHERE {wanted}"
        rows = self._connection.execute(text(statement), dict(self._choice.parameters))
        return [number for (number,) in rows]

    def _all(self) -> int:
        """Return the set of all chosen rows. It is cached until something in the spaces changes."""
        kept = _kept.setdefault(self._connection.engine, {})
        key = self._spaces, self._choice.conditions, tuple(self._choice.parameters.items())
        changes = f"SELECT sum(changes) FROM knowledge_spaces WHERE number IN ({self._spaces})"
        stamp = self._connection.exec_driver_sql(changes).scalar()
        known, rows = kept.get(key, (None, 0))
        if known != stamp:
            rows = set_of(sorted(self._among(f"{self._choice.space} IN ({self._spaces})")))
            if len(kept) >= MOST_KEPT:
                kept.clear()
            kept[key] = stamp, rows
        return rows


def _of_sets(
    sets: RowSets, question: Question, numbers: list[int], weights: list[float], wanted: int
) -> Ranked:
    """Rank these rows, which have the most significant words."""
    if not numbers:
        return []
    texts = sets.stems_of(numbers, question)
    lengths = {number: stems.count(" ") + 1 for number, stems in texts.items()}
    usual = sum(lengths.values()) / max(len(lengths), 1)
    words = [(f" {' '.join(each)} ", weight) for each, weight in zip(question.stems, weights, strict=True)]
    found = []
    for number, stems in texts.items():
        padded, score, has = f" {stems} ", 0.0, 0
        slowed = SATURATION * (1 - LENGTH_MATTERS + LENGTH_MATTERS * lengths[number] / usual)
        for word, weight in words:
            if times := padded.count(word):
                has += 1
                score += weight * times * (SATURATION + 1) / (times + slowed)
        found.append((-score * sqrt(has / len(words)), -number))
    return [(-number, score) for score, number in sorted(found)[:wanted]]


def _of_fts5(
    connection: Connection,
    index: Fts5Index,
    question: Question,
    spaces: Sequence[int],
    wanted: int,
    choice: Choice,
) -> Ranked:
    """Return the rows that FTS5 ranks best, ordered again by how much of the question they contain
    (docs/knowledge.md)."""
    query = index.query(question, spaces)
    conditions = "".join(f" AND {each}" for each in choice.conditions)
    rows = connection.exec_driver_sql(
        f"SELECT w.rowid, w.stems, w.rank FROM {index.table} AS w{choice.joined} "
        f"WHERE w.{index.table} MATCH :query{conditions} ORDER BY w.rank LIMIT {wanted:d}",
        {**choice.parameters, "query": query},
    )
    found = [(number, score * sqrt(coverage(question, [stems]))) for number, stems, score in rows]
    return sorted(found, key=lambda each: each[1])
