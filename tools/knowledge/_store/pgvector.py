"""Vectors in PostgreSQL with pgvector: stored in a column of its type, and compared in the database.

`prepare` makes the column if the extension is installed, or the server's user may install it. Vectors that
were stored as bytes are moved in batches; searches find each after its move. The vectors of a space with up
to `EXACT_ROWS` are compared one by one. A larger space is searched in an index (HNSW) of all owners' vectors
of these dimensions, which is read until enough results are the reader's own. If the index ends too early, the
vectors are compared one by one as well.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sqlalchemy import Table
    from sqlalchemy.engine import Connection, Engine

    from fastrpc.storage.database import Database

    from .meaning import Meaning, Place

    Numbered = list[tuple[float, int]]

OLDEST = 0, 8
"""The first version that continues to read an index after rows that a condition has excluded."""
EXACT_ROWS = 10_000
MOST_INDEXED, MOST_HALVED = 2_000, 4_000
"""Dimensions that an index accepts: above the first as numbers of two bytes, above the second none."""
LOOKED_AT = 200
"""Candidates in a search of the index (hnsw.ef_search)."""
MOVED = 500
"""Vectors that are moved in one transaction."""
LOCK = 0x66727063_76656374
"""The key of PostgreSQL's advisory lock under which one server at a time changes tables."""

_known: WeakKeyDictionary[Engine, set[str]] = WeakKeyDictionary()
"""For each database, the columns and indexes that are known to exist."""


class Column(NamedTuple):
    """The column of a table of vectors, with the question for it."""

    connection: Connection
    table: str
    meaning: Meaning
    place: Place

    def exact(self, space: int, most: int) -> Numbered:
        """Return the similarity of the nearest vectors of a space, with their numbers; compare all of
        them."""
        return self._found("v.embedding", "vector", space, most)

    def indexed(self, space: int, most: int) -> Numbered:
        """Return the same from the index."""
        for name, value in (("ef_search", str(LOOKED_AT)), ("iterative_scan", "strict_order")):
            self.connection.execute(
                text("SELECT set_config(:name, :value, true)"), {"name": f"hnsw.{name}", "value": value}
            )
        return self._found(
            _indexed(len(self.meaning.vector), "v."), _type(len(self.meaning.vector)), space, most
        )

    def is_large(self, space: int) -> bool:
        """Whether a space has more vectors than are compared one by one."""
        beyond = f"SELECT 1 FROM {self.table} AS v WHERE {_OF_SPACE} OFFSET {EXACT_ROWS:d} LIMIT 1"
        return self.connection.execute(text(beyond), self._of(space)).first() is not None

    def _of(self, space: int) -> dict[str, object]:
        return {"space": space, "vectors_of": self.meaning.model, "dimensions": len(self.meaning.vector)}

    def _found(self, column: str, type: str, space: int, most: int) -> Numbered:
        tables, conditions = f"{self.table} AS v", ""
        parameters = {**self._of(space), "question": written(self.meaning.vector)}
        if self.place.conditions:
            tables = f"{self.place.tables} JOIN {tables} ON v.number = e.number"
            for condition, values in self.place.conditions:
                conditions += f" AND {condition}"
                parameters |= values
        unlike = f"{column} <#> CAST(:question AS {type}({len(self.meaning.vector):d}))"
        statement = (
            f"SELECT v.number, {unlike} AS unlike FROM {tables} WHERE {_OF_SPACE}{conditions} "
            f"AND v.embedding IS NOT NULL ORDER BY unlike LIMIT {most:d}"
        )
        rows = self.connection.execute(text(statement), parameters)
        return [(-row.unlike, row.number) for row in rows if row.unlike < 0]


_OF_SPACE = "v.space = :space AND v.model = :vectors_of AND v.dimensions = :dimensions"


def nearest(connection: Connection, meaning: Meaning, place: Place, space: int, most: int) -> Numbered:
    """Return the similarity of the nearest vectors of a space, with their numbers."""
    column = Column(connection, place.texts.readings.name, meaning, place)
    if column.is_large(space) and len(meaning.vector) <= MOST_HALVED:
        found = column.indexed(space, most)
        if len(found) == most:
            return found
    return column.exact(space, most)


def is_used(connection: Connection, table: Table) -> bool:
    """Whether the vectors of this table are stored in the extension's column, which stays so once it is."""
    if connection.dialect.name != "postgresql":
        return False
    return _is_there(connection, table.name, COLUMN)


COLUMN = (
    "SELECT 1 FROM pg_attribute "
    "WHERE attrelid = to_regclass(:name) AND attname = 'embedding' AND NOT attisdropped"
)
INDEX = "SELECT 1 WHERE to_regclass(:name) IS NOT NULL"


def _is_there(connection: Connection, name: str, statement: str) -> bool:
    known = _known.setdefault(connection.engine, set())
    if name not in known and connection.execute(text(statement), {"name": name}).first() is not None:
        known.add(name)
    return name in known


def prepare(database: Database, table: Table) -> None:
    """Store the vectors of this table in the extension's column, if the extension is installed or may be, and
    move those that are stored as bytes."""
    with database.reading() as connection:
        if connection.dialect.name != "postgresql":
            return
        is_ready = is_used(connection, table) or _is_offered(connection)
    if is_ready and _make_column(database, table):
        while _move(database, table):
            pass


def _is_offered(connection: Connection) -> bool:
    """Whether the server has the extension, in a sufficient version."""
    offered = "SELECT coalesce(installed_version, default_version) FROM pg_available_extensions"
    version = connection.execute(text(f"{offered} WHERE name = 'vector'")).scalar() or ""
    return tuple(map(int, re.findall(r"\d+", version)[:2])) >= OLDEST


def _make_column(database: Database, table: Table) -> bool:
    """Make the column, with the extension; return False if the server's user may not."""
    with database.changing() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        return is_used(connection, table) or _done(
            connection,
            "CREATE EXTENSION IF NOT EXISTS vector",
            f"ALTER TABLE {table.name} ADD COLUMN embedding vector",
        )


def _done(connection: Connection, *statements: str) -> bool:
    """Do this completely, or undo it and return False if the server's user may not do it."""
    try:
        with connection.begin_nested():
            for each in statements:
                connection.execute(text(each))
    except DBAPIError:
        return False
    return True


def _move(database: Database, table: Table) -> bool:
    """Move some vectors; return whether any were left that no other server was moving."""
    with database.reading() as connection:
        wanted = f"SELECT DISTINCT dimensions FROM {table.name} WHERE vector IS NOT NULL"
        sizes = list(connection.execute(text(wanted)).scalars())
    for dimensions in sizes:
        make_index(database, table, dimensions)
    with database.changing() as connection:
        left = f"SELECT number, model, vector FROM {table.name} WHERE vector IS NOT NULL AND done"
        rows = connection.execute(text(f"{left} LIMIT {MOVED:d} FOR UPDATE SKIP LOCKED")).all()
        if rows:
            store(connection, table, {row.number: (row.model, _numbers(row.vector)) for row in rows})
    return bool(rows)


def is_indexed(connection: Connection, table: Table, dimensions: int) -> bool:
    """Whether vectors of these dimensions have an index, or can have none."""
    return dimensions > MOST_HALVED or _is_there(connection, _index_name(table, dimensions), INDEX)


def _index_name(table: Table, dimensions: int) -> str:
    return f"{table.name}_hnsw_{dimensions:d}"


def make_index(database: Database, table: Table, dimensions: int) -> None:
    """Make the index of vectors of these dimensions, if it is missing. If the server's user may not make it,
    the database compares one by one."""
    name = _index_name(table, dimensions)
    with database.changing() as connection:
        if is_indexed(connection, table, dimensions):
            return
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        _done(
            connection,
            f"CREATE INDEX IF NOT EXISTS {name} ON {table.name} USING hnsw "
            f"(({_indexed(dimensions)}) {_type(dimensions)}_ip_ops) WHERE dimensions = {dimensions:d}",
        )
        _known[connection.engine].add(name)


def store(connection: Connection, table: Table, made: Mapping[int, tuple[str, Any]]) -> None:
    """Store vectors by the number of their texts, each with its model."""
    connection.execute(
        text(
            f"UPDATE {table.name} SET done = true, model = :model, dimensions = :dimensions, vector = NULL, "
            "embedding = CAST(:vector AS vector) WHERE number = :at"
        ),
        [
            {"at": number, "model": model, "dimensions": len(vector), "vector": written(vector)}
            for number, (model, vector) in made.items()
        ],
    )


def damaged(connection: Connection, table: Table) -> int:
    """Return how many vectors do not have their recorded number of dimensions."""
    broken = f"SELECT count(*) FROM {table.name} WHERE done AND vector_dims(embedding) <> dimensions"
    return int(connection.execute(text(broken)).scalar_one())


def written(vector: Any) -> str:
    """Return a vector in the extension's notation."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def _numbers(kept: bytes) -> Any:
    import numpy

    return numpy.frombuffer(kept, "<f4")


def _type(dimensions: int) -> str:
    return "vector" if dimensions <= MOST_INDEXED else "halfvec"


def _indexed(dimensions: int, table: str = "") -> str:
    """Return the indexed expression for these dimensions: the database uses the index only for a statement
    that orders by exactly this."""
    return f"CAST({table}embedding AS {_type(dimensions)}({dimensions:d}))"
