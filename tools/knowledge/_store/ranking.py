"""The best rows of FTS5 for a question, with bounded work however often its words stand in the store.

FTS5 ranks a thousand rows in 1.5 ms, so where few rows have a word of the question its order is the order.
Where many have one, sets of rows (`row_sets`) tell which have the words that say most, each word weighed by
how rare it is; these are ranked here, by BM25 over the owner's own entries. A question that chooses by
fields is always ranked by FTS5.
"""

from __future__ import annotations

from math import log, sqrt
from types import MappingProxyType
from typing import NamedTuple

from .row_sets import RowSets, heaviest, numbers_in
from .word_index import coverage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.engine import Connection

    from .._search.question import Question
    from .word_index import Fts5Index

    Ranked = list[tuple[int, float]]

RANKED_ROWS = 2000
"""Rows that FTS5 ranks for a question."""
LOOKED_AT = 150
"""Rows that are ranked here, at least."""
SATURATION, LENGTH_MATTERS = 1.2, 0.75
"""k1 and b of BM25, as FTS5 has them."""


class Choice(NamedTuple):
    """Which rows are looked at: tables to join, conditions on them, and their parameters."""

    tables: str = ""
    conditions: Sequence[str] = ()
    parameters: Mapping[str, object] = MappingProxyType({})


EVERY = Choice()


def best(
    connection: Connection,
    index: Fts5Index,
    question: Question,
    spaces: Sequence[int],
    wanted: int,
    choice: Choice = EVERY,
) -> Ranked:
    """Return the numbers of the best rows with their scores, less is better, the best first."""
    if choice is EVERY and question.stems:
        sets = RowSets(connection, index)
        own = sets.having(index.in_spaces(spaces))
        if own.bit_count() > RANKED_ROWS:
            if needed := index.needed(question):
                own &= sets.having(needed)
            if unwanted := index.unwanted(question):
                own &= ~sets.having(unwanted)
            having = [sets.having(index.wished([each])) & own for each in question.stems]
            if sum(each.bit_count() for each in having) > RANKED_ROWS:
                return _of_sets(sets, question, having, own.bit_count(), wanted)
    return _of_fts5(connection, index, question, spaces, wanted, choice)


def _of_sets(sets: RowSets, question: Question, having: list[int], size: int, wanted: int) -> Ranked:
    """Rank the rows that have the words which say most: `having` is the set of rows for each of them."""
    counts = [each.bit_count() for each in having]
    weights = [log(1 + (size - count + 0.5) / (count + 0.5)) for count in counts]
    texts = sets.stems_of(numbers_in(heaviest(having, weights, max(wanted, LOOKED_AT))))
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
    """Return the rows that FTS5 ranks best, ordered again by how much of the question they have
    (docs/knowledge.md)."""
    query = index.query(question, spaces)
    conditions = "".join(f" AND {each}" for each in choice.conditions)
    rows = connection.exec_driver_sql(
        f"SELECT w.rowid, w.stems, w.rank FROM {index.table} AS w{choice.tables} "
        f"WHERE w.{index.table} MATCH :query{conditions} ORDER BY w.rank LIMIT {wanted:d}",
        {**choice.parameters, "query": query},
    )
    found = [(number, score * sqrt(coverage(question, [stems]))) for number, stems, score in rows]
    return sorted(found, key=lambda each: each[1])
