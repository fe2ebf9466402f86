"""Sets of rows of the index of words: which rows have a word, with a bit for each row's number.

The sets are Python integers: intersecting those of all of a question's words takes microseconds in a store of
100,000 entries. A set is read from the index once; each later use adds the rows written since. Numbers are
never reused, and the text of a row never changes. So a set is wrong only about deleted rows, which are then
not found when they are read. The sets of a database are cached up to `MOST_BYTES`.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.engine import Connection, Engine

    from .._search.question import Question
    from .word_index import WordIndex

    Kept = dict[tuple[str, int | None, str], tuple[int, int]]

MOST_BYTES = 32 * 1024 * 1024
KEPT_FROM = 200
"""A set of fewer rows is read each time, which is as fast."""
WEIGHT_BITS = 5
"""Weights are rounded to so many bits."""

_kept: WeakKeyDictionary[Engine, Kept] = WeakKeyDictionary()
"""For each database the sets by index, part of it and query, each with the number up to which it was read."""


class RowSets:
    """The sets of one index, for one transaction."""

    def __init__(self, connection: Connection, index: WordIndex, spaces: Sequence[int]) -> None:
        self._connection = connection
        self._index = index
        self._kept = _kept.setdefault(connection.engine, {})
        self._newest = {part: index.newest(connection, part) for part in index.parts(spaces)}

    def having(self, query: str) -> int:
        """Return the set of rows that answer a query of the index."""
        rows = 0
        for part, newest in self._newest.items():
            rows |= self._of_part(query, part, newest)
        return rows

    def _of_part(self, query: str, part: int | None, newest: int) -> int:
        key = self._index.table, part, query
        rows, upto = self._kept.get(key, (0, 0))
        if upto > newest:  # read by a transaction that has seen more
            rows, upto = 0, 0
        if upto < newest:
            rows |= set_of(self._index.numbers(self._connection, query, part, upto), upto)
            if rows.bit_count() >= KEPT_FROM:
                self._keep(key, rows, newest)
        return rows

    def stems_of(self, numbers: Iterable[int], question: Question) -> dict[int, str]:
        """Return the stems of these rows, without deleted ones."""
        return self._index.stems_of(self._connection, numbers, question)

    def _keep(self, key: tuple[str, int | None, str], rows: int, upto: int) -> None:
        """Cache a set; clear the cache if it is too large, since a question reads its own sets in
        milliseconds."""
        if sum(each.bit_length() for each, _ in list(self._kept.values())) // 8 > MOST_BYTES:
            self._kept.clear()
        self._kept[key] = rows, upto


def set_of(numbers: Sequence[int], above: int = 0) -> int:
    """Return the set of these ascending numbers, all greater than `above`."""
    if not numbers:
        return 0
    base = above - above % 8
    bits = bytearray((numbers[-1] - base) // 8 + 1)
    for number in numbers:
        bits[(number - base) >> 3] |= 1 << (number & 7)
    return int.from_bytes(bits, "little") << base


def numbers_in(rows: int) -> list[int]:
    """Return the numbers of a small set."""
    found = []
    while rows:
        number = rows.bit_length() - 1
        found.append(number)
        rows ^= 1 << number
    return found


def heaviest(sets: Sequence[int], weights: Sequence[float], most: int) -> int:
    """Return the rows with the highest sums of their sets' weights; of equals the newest.

    The sums are in binary, with a set of rows for each digit, and are added as on paper, for all rows at
    once.
    """
    largest = max(weights)
    digits: list[int] = []
    for rows, weight in zip(sets, weights, strict=True):
        rounded = max(round(weight / largest * ((1 << WEIGHT_BITS) - 1)), 1)
        for place in range(WEIGHT_BITS):
            carry, at = rows if rounded >> place & 1 else 0, place
            while carry:
                if at >= len(digits):
                    digits.extend([0] * (at + 1 - len(digits)))
                digits[at], carry = digits[at] ^ carry, digits[at] & carry
                at += 1
    equal = 0
    for rows in sets:
        equal |= rows
    found, left = 0, most
    for digit in reversed(digits):
        higher = equal & digit
        if (count := higher.bit_count()) > left:
            equal = higher
        else:
            found |= higher
            left -= count
            equal &= ~digit
    return found | _newest(equal, left)


def _newest(rows: int, most: int) -> int:
    """Return the highest numbers of a set."""
    surplus = rows.bit_count() - most
    if surplus <= 0:
        return rows
    low, high = 0, rows.bit_length()
    while low < high:  # the highest position with no more than the surplus below it
        middle = (low + high + 1) // 2
        if (rows & ((1 << middle) - 1)).bit_count() <= surplus:
            low = middle
        else:
            high = middle - 1
    return rows >> low << low
