"""Vectors of entries and passages, which a model has made of their texts, and the search for those nearest to
a question.

In PostgreSQL with pgvector the database stores and compares them (`pgvector`). Elsewhere they are packed
numbers of four bytes, of length 1, which NumPy compares one by one. It compares one space at a time, so never
vectors of another owner. A process caches the vectors that it has read; each question asks the database which
of them still exist. No extension of SQLite is used: many builds of Python cannot load any, and sqlite-vec
would compare one by one as well. Vectors of another model, or with other dimensions, are ignored.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from sqlalchemy import bindparam, func, select, text, update

from . import pgvector, readings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from sqlalchemy.engine import Connection, Engine

    from fastrpc.storage.database import Database

    from .meaning import Meaning, Place
    from .readings import Texts

LOT = 1000
"""Vectors in one read."""
MOST_BYTES = 128 * 1024 * 1024
"""Bytes of cached vectors for each database; a larger space is read for each question."""
NEAREST = 50
"""The most results."""


_kept: WeakKeyDictionary[Engine, dict[tuple[str, str, int, int], tuple[Any, Any]]] = WeakKeyDictionary()
"""For each database, by table, model, dimensions and space: ascending numbers with the times of their claims,
and their vectors."""


class OtherDimensions(Exception):
    """A model's vectors have other dimensions than before."""

    def __init__(self, expected: int, came: int) -> None:
        super().__init__(f"its vectors have {came:,} dimensions, those in the store {expected:,}")


def unit(vector: Any) -> Any:
    """Return a vector in the stored form, of length 1; None for one that is zero or not finite."""
    import numpy

    length = float(numpy.linalg.norm(vector))
    return (vector / length).astype("<f4") if 0 < length < float("inf") else None


def store(database: Database, texts: Texts, model: str, made: Mapping[int, Any]) -> None:
    """Store the vectors of claimed texts, by number; at least one. Raises OtherDimensions."""
    table, dimensions = texts.readings, len(next(iter(made.values())))
    of_model = {number: (model, vector) for number, vector in made.items()}
    with database.changing() as connection:
        check_dimensions(connection, model, dimensions)
        is_column = pgvector.is_used(connection, table)
        lacks_index = is_column and not pgvector.is_indexed(connection, table, dimensions)
        if is_column and not lacks_index:
            pgvector.store(connection, table, of_model)
        elif not is_column:
            done = update(table).where(table.c.number == bindparam("at")).values(done=True, model=model)
            rows = [
                {"at": number, "dimensions": dimensions, "vector": vector.tobytes()}
                for number, vector in made.items()
            ]
            connection.execute(done, rows)
    if lacks_index:
        pgvector.make_index(database, table, dimensions)
        with database.changing() as connection:
            pgvector.store(connection, table, of_model)


def check_dimensions(connection: Connection, model: str, dimensions: int) -> None:
    """Raise OtherDimensions if the store has vectors of this model with other dimensions."""
    for texts in (readings.ENTRIES, readings.PASSAGES):
        table = texts.readings
        is_made = table.c.model == model, table.c.dimensions > 0
        known = connection.execute(select(table.c.dimensions).where(*is_made).limit(1)).scalar()
        if known not in (None, dimensions):
            raise OtherDimensions(known, dimensions)


def nearest(connection: Connection, meaning: Meaning, place: Place, spaces: Sequence[int]) -> list[int]:
    """Return the numbers of the texts in these spaces that are nearest, the nearest first; only those with a
    positive similarity."""
    best: list[tuple[float, int]] = []
    is_column = pgvector.is_used(connection, place.texts.readings)
    for space in spaces:
        if is_column:
            best += pgvector.nearest(connection, meaning, place, space, NEAREST)
        else:
            best += _Compared(connection, meaning, place, space).best()
    return [number for _, number in sorted(best, key=lambda each: (-each[0], -each[1]))[:NEAREST]]


class _Compared:
    """The vectors of a space that are compared with a question's."""

    def __init__(self, connection: Connection, meaning: Meaning, place: Place, space: int) -> None:
        self._connection = connection
        self._meaning = meaning
        self._table = place.texts.readings.name
        self._key = self._table, meaning.model, len(meaning.vector), space
        self._is_whole = not place.conditions
        self._kept = _kept.setdefault(connection.engine, {})
        self._wanted = self._numbers(place, space)

    def _numbers(self, place: Place, space: int) -> Any:
        """Return the ascending numbers of these vectors, and the time of each claim, which distinguishes a
        vector from a newer one of the same text."""
        import numpy

        tables, conditions, parameters = f"{self._table} AS v", "", {}
        if not self._is_whole:
            tables = f"{place.tables} JOIN {tables} ON v.number = e.number"
            conditions = "".join(f" AND {condition}" for condition, _ in place.conditions)
            parameters = {name: value for _, values in place.conditions for name, value in values.items()}
        rows = self._connection.execute(
            text(
                f"SELECT v.number, v.claimed_until FROM {tables} WHERE v.space = {space:d} "
                f"AND v.model = :vectors_of AND v.dimensions = :dimensions{conditions} ORDER BY v.number"
            ),
            {**parameters, "vectors_of": self._meaning.model, "dimensions": len(self._meaning.vector)},
        )
        return numpy.array(list(map(tuple, rows.fetchall())), [("number", "i8"), ("claimed", "f8")])

    def best(self) -> list[tuple[float, int]]:
        """Return the similarities of the nearest vectors, and their numbers."""
        import numpy

        size = 4 * len(self._meaning.vector)
        if len(self._wanted) * size > MOST_BYTES:
            starts = range(0, len(self._wanted), LOT)
            lots = [self._wanted[start : start + LOT] for start in starts]
            alike = numpy.concatenate([self._read(lot) @ self._meaning.vector for lot in lots])
        else:
            known, vectors = self._up_to_date(size)
            alike = (vectors @ self._meaning.vector)[
                numpy.searchsorted(known["number"], self._wanted["number"])
            ]
        nearest = numpy.argsort(-alike, kind="stable")[:NEAREST]
        return [(float(alike[at]), int(self._wanted["number"][at])) for at in nearest if alike[at] > 0]

    def _up_to_date(self, size: int) -> tuple[Any, Any]:
        """Return the cached vectors of the space, with all wanted ones, and without those that are known to
        be deleted."""
        import numpy

        nothing = self._wanted[:0], self._read(self._wanted[:0])
        known, vectors = self._kept.get(self._key, nothing)
        new = self._wanted[~_are_in(self._wanted, known)]
        is_there = _are_in(known, self._wanted)
        if not self._is_whole:
            is_there |= ~numpy.isin(known["number"], self._wanted["number"])
        if len(new) == 0 and is_there.all():
            return known, vectors
        if sum(each.nbytes for _, each in list(self._kept.values())) + len(new) * size > MOST_BYTES:
            self._kept.clear()
        known = numpy.concatenate([known[is_there], new])
        order = numpy.argsort(known["number"])
        made = known[order], numpy.concatenate([vectors[is_there], self._read(new)])[order]
        self._kept[self._key] = made
        return made

    def _read(self, wanted: Any) -> Any:
        """Read vectors, in the order of their numbers; zeros for one that was just deleted, which resembles
        nothing."""
        import numpy

        found = numpy.zeros((len(wanted), len(self._meaning.vector)), "<f4")
        for start in range(0, len(wanted), LOT):
            numbers = wanted["number"][start : start + LOT]
            listed = ", ".join(map(str, numbers))
            statement = f"SELECT number, vector FROM {self._table} WHERE number IN ({listed})"
            rows = {row.number: row.vector for row in self._connection.exec_driver_sql(statement)}
            for at, number in enumerate(numbers.tolist(), start):
                if rows.get(number):
                    found[at] = numpy.frombuffer(rows[number], "<f4")
        return found


def _are_in(some: Any, others: Any) -> Any:
    """Return for each of some numbers with the times of their claims whether it is among others, which
    ascend."""
    import numpy

    if len(others) == 0:
        return numpy.zeros(len(some), bool)
    at = numpy.minimum(numpy.searchsorted(others["number"], some["number"]), len(others) - 1)
    found = others[at]
    return (found["number"] == some["number"]) & (found["claimed"] == some["claimed"])


def damaged(connection: Connection, texts: Texts) -> int:
    """Return how many vectors of these texts do not have their recorded number of dimensions."""
    table = texts.readings
    is_broken = func.length(table.c.vector) != 4 * table.c.dimensions
    broken = select(func.count()).where(table.c.done.is_(True), is_broken)
    found = int(connection.execute(broken).scalar_one())
    return found + (pgvector.damaged(connection, table) if pgvector.is_used(connection, table) else 0)


def counts(connection: Connection) -> dict[str, int]:
    """Return the number of vectors of each model, of entries and passages together."""
    found: dict[str, int] = {}
    for texts in (readings.ENTRIES, readings.PASSAGES):
        table = texts.readings
        wanted = select(table.c.model, func.count()).where(table.c.done.is_(True)).group_by(table.c.model)
        for model, number in connection.execute(wanted):
            found[model] = found.get(model, 0) + number
    return found
