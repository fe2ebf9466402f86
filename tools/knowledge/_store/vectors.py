"""Vectors of entries and passages: what a model has made of their texts, and which are nearest to a question.

They are packed numbers of four bytes, of length 1, compared one by one with NumPy, in lots as the database
hands them out: 10,000 of 1,024 dimensions in some hundredths of a second, however many the store has of other
owners, whose vectors are never read. No index and no extension of the database: many builds of Python let
SQLite load none, and sqlite-vec would compare one by one as well. Vectors of another model, or of other
dimensions, are left alone.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import bindparam, func, select, text, update

from . import readings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

    from .readings import Texts

LOT = 1000
"""Vectors that are compared at once."""
NEAREST = 50
"""What is returned at most."""


class Meaning(NamedTuple):
    """What a model says that a question means: its vector, an array of NumPy of length 1."""

    model: str
    vector: Any


class Place(NamedTuple):
    """Which vectors are compared: of which texts, the tables of those (`e`), conditions and their
    parameters."""

    texts: Texts
    tables: str
    conditions: Sequence[tuple[str, Mapping[str, object]]] = ()


class OtherDimensions(Exception):
    """A model makes vectors of other dimensions than it has before."""

    def __init__(self, expected: int, came: int) -> None:
        super().__init__(f"its vectors have {came:,} dimensions, those in the store {expected:,}")


def store(database: Database, texts: Texts, model: str, made: Mapping[int, Any]) -> None:
    """Store the vectors of texts that were claimed, by number: one at least. Raises OtherDimensions."""
    table = texts.readings
    rows = [
        {"at": number, "dimensions": len(vector), "vector": vector.tobytes()}
        for number, vector in made.items()
    ]
    done = update(table).where(table.c.number == bindparam("at")).values(done=True, model=model)
    with database.changing() as connection:
        check_dimensions(connection, model, len(next(iter(made.values()))))
        connection.execute(done, rows)


def check_dimensions(connection: Connection, model: str, dimensions: int) -> None:
    """Raise OtherDimensions if the store has vectors of this model with others."""
    for texts in (readings.ENTRIES, readings.PASSAGES):
        table = texts.readings
        is_made = table.c.model == model, table.c.dimensions > 0
        known = connection.execute(select(table.c.dimensions).where(*is_made).limit(1)).scalar()
        if known not in (None, dimensions):
            raise OtherDimensions(known, dimensions)


def nearest(connection: Connection, meaning: Meaning, place: Place, spaces: Sequence[int]) -> list[int]:
    """Return the numbers of the texts in these spaces that are nearest, the nearest first: those that are
    alike at all."""
    import numpy

    conditions = "".join(f" AND {condition}" for condition, _ in place.conditions)
    parameters = {name: value for _, values in place.conditions for name, value in values.items()}
    rows = connection.execute(
        text(
            f"SELECT v.number, v.vector FROM {place.tables} "
            f"JOIN {place.texts.readings.name} AS v ON v.number = e.number "
            f"WHERE v.space IN ({', '.join(map(str, spaces))}) AND v.model = :vectors_of "
            f"AND v.dimensions = :dimensions{conditions}"
        ),
        {**parameters, "vectors_of": meaning.model, "dimensions": len(meaning.vector)},
        execution_options={"yield_per": LOT},
    )
    best: list[tuple[float, int]] = []
    for lot in rows.partitions():
        numbers = [row.number for row in lot]
        vectors = numpy.frombuffer(b"".join(row.vector for row in lot), "<f4")
        alike = vectors.reshape(len(lot), -1) @ meaning.vector
        best += [(float(alike[at]), numbers[at]) for at in numpy.argsort(-alike)[:NEAREST] if alike[at] > 0]
        best = sorted(best, key=lambda each: (-each[0], -each[1]))[:NEAREST]
    return [number for _, number in best]


def counts(connection: Connection) -> dict[str, int]:
    """Return how many vectors there are of each model, of entries and passages together."""
    found: dict[str, int] = {}
    for texts in (readings.ENTRIES, readings.PASSAGES):
        table = texts.readings
        wanted = select(table.c.model, func.count()).where(table.c.done.is_(True)).group_by(table.c.model)
        for model, number in connection.execute(wanted):
            found[model] = found.get(model, 0) + number
    return found
