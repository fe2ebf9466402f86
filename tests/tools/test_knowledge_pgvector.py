"""Vectors in PostgreSQL with pgvector: the column and the index are there and used, what was kept as bytes
moves over, each finds their own however many others have nearer ones, and without the right to create the
extension all is as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastrpc.tools.knowledge._store import moving, pgvector, readings, vectors
from fastrpc.tools.knowledge._store.entries import Entries, own_numbers
from fastrpc.tools.knowledge._store.meaning import Meaning, Place
from sqlalchemy import text
from support.knowledge_entries import ADA, BOB

from fastrpc.storage.database import Database

pytest_plugins = ["support.postgres", "support.entries_store"]

TABLE = readings.ENTRIES.readings
MODEL = "m"


@pytest.fixture
def database_url(new_url: Callable[[str], str]) -> str:
    return new_url("pgvector")


def add(store: Entries, owner: str, made: list[list[float]]) -> None:
    """Write entries of an owner, and their vectors."""
    numpy = pytest.importorskip("numpy")
    with store.database.reading() as connection:
        known = connection.execute(text("SELECT count(*) FROM knowledge_entries")).scalar_one()
    records = [moving.Record(f"{owner} {known + at}", "fact", "", [], "") for at in range(len(made))]
    moving.add(store.database, owner, records)
    left = iter(made)
    while True:
        claimed, _ = readings.ENTRIES.claim(store.database, 0, 1000)
        if not claimed:
            return
        of_texts = {each.number: numpy.array(next(left), "<f4") for each in claimed}
        vectors.store(store.database, readings.ENTRIES, MODEL, of_texts)


def prepare(database: Database) -> None:
    pgvector.prepare(database, TABLE)


def nearest(store: Entries, question: list[float], reader: object = ADA) -> list[str]:
    numpy = pytest.importorskip("numpy")
    meaning = Meaning(MODEL, numpy.array(question, "<f4"))
    with store.database.reading() as connection:
        own = own_numbers(connection, reader, "all")  # type: ignore[arg-type]
        found = vectors.nearest(connection, meaning, Place(readings.ENTRIES, ""), own)
        contents = dict(connection.execute(text("SELECT number, content FROM knowledge_entries")).all())
    return [contents[number] for number in found]


def asked(store: Entries, statement: str) -> list[object]:
    with store.database.reading() as connection:
        return list(connection.execute(text(statement)).scalars())


def turned(part: float, dimensions: int = 3) -> list[float]:
    """A vector of length 1 whose product with the first axis is this."""
    return [part, (1 - part * part) ** 0.5, *[0.0] * (dimensions - 2)]


FIRST = turned(1.0)


def test_vectors_are_kept_once_in_the_databases_own_type_with_an_index(store: Entries) -> None:
    prepare(store.database)
    add(store, "ada", [turned(0.5), turned(0.9), turned(-0.5)])
    assert nearest(store, FIRST) == ["ada 1", "ada 0"]
    assert asked(store, "SELECT count(*) FROM knowledge_entry_vectors WHERE vector IS NOT NULL") == [0]
    assert asked(store, "SELECT count(embedding) FROM knowledge_entry_vectors") == [3]
    (definition,) = asked(store, "SELECT indexdef FROM pg_indexes WHERE indexname LIKE '%hnsw_3'")
    assert "hnsw" in str(definition)


def test_what_was_kept_as_bytes_moves_over(store: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgvector, "MOVED", 2)
    add(store, "ada", [turned(part / 10) for part in range(1, 8)])
    assert asked(store, "SELECT count(*) FROM knowledge_entry_vectors WHERE vector IS NOT NULL") == [7]
    before = nearest(store, FIRST)
    prepare(store.database)
    assert asked(store, "SELECT count(*) FROM knowledge_entry_vectors WHERE vector IS NOT NULL") == [0]
    assert nearest(store, FIRST) == before == [f"ada {at}" for at in reversed(range(7))]
    assert moving.problems(store.database) == []


def test_another_server_sees_that_the_column_is_there(store: Entries, database_url: str) -> None:
    from fastrpc.tools.knowledge._store.kind import KNOWLEDGE

    from fastrpc.storage import open_database

    add(store, "ada", [turned(0.5)])
    other = open_database(database_url, KNOWLEDGE)
    prepare(other)
    other.close()
    add(store, "ada", [turned(0.9)])
    assert nearest(store, FIRST) == ["ada 1", "ada 0"]


def test_a_large_space_is_looked_up_in_the_index(store: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgvector, "EXACT_ROWS", 100)
    monkeypatch.setattr(vectors, "NEAREST", 5)
    monkeypatch.setattr(pgvector.Column, "exact", None)
    prepare(store.database)
    add(store, "ada", [turned(at / 400) for at in range(400)])
    assert nearest(store, FIRST) == [f"ada {at}" for at in range(399, 394, -1)]
    with store.database.changing() as connection:
        connection.execute(text("ANALYZE knowledge_entry_vectors"))
        connection.execute(text("SET LOCAL enable_sort = off"))
        plan = connection.execute(
            text(
                "EXPLAIN SELECT number FROM knowledge_entry_vectors AS v WHERE dimensions = 3 ORDER BY "
                "CAST(v.embedding AS vector(3)) <#> CAST('[1,0,0]' AS vector(3)) LIMIT 5"
            )
        ).scalars()
        assert "Index Scan using knowledge_entry_vectors_hnsw_3" in "\n".join(plan)


@pytest.mark.parametrize("exact_rows", [0, 20])
def test_each_finds_their_own_however_many_nearer_ones_others_have(
    store: Entries, monkeypatch: pytest.MonkeyPatch, exact_rows: int
) -> None:
    monkeypatch.setattr(pgvector, "EXACT_ROWS", exact_rows)
    monkeypatch.setattr(pgvector, "LOOKED_AT", 10)
    prepare(store.database)
    add(store, "bob", [turned(0.99)] * 1500)
    add(store, "ada", [turned(0.1 + at / 100) for at in range(30)])
    assert nearest(store, FIRST) == [f"ada {1500 + at}" for at in range(29, -1, -1)]
    assert len(nearest(store, FIRST, BOB)) == vectors.NEAREST


@pytest.mark.parametrize("dimensions", [2_500, 5_000])
def test_vectors_that_are_too_long_for_an_index_of_whole_numbers_are_found(
    store: Entries, monkeypatch: pytest.MonkeyPatch, dimensions: int
) -> None:
    monkeypatch.setattr(pgvector, "EXACT_ROWS", 0)
    prepare(store.database)
    add(store, "ada", [turned(part / 10, dimensions) for part in range(1, 6)])
    assert nearest(store, turned(1.0, dimensions)) == [f"ada {at}" for at in range(4, -1, -1)]


def test_an_older_version_is_left_alone(store: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgvector, "OLDEST", (99, 0))
    prepare(store.database)
    add(store, "ada", [turned(0.5)])
    assert nearest(store, FIRST) == ["ada 0"]
    assert asked(store, "SELECT count(*) FROM knowledge_entry_vectors WHERE vector IS NOT NULL") == [1]


def test_where_the_user_may_not_create_the_extension_bytes_stay_until_somebody_has(
    postgres_with_pgvector: Any,
) -> None:
    cluster, name = postgres_with_pgvector, postgres_with_pgvector.new_database()
    cluster.execute("CREATE ROLE modest LOGIN")
    cluster.execute("GRANT CREATE ON SCHEMA public TO modest", name)
    store = Entries(_opened(cluster.url(name).replace("fastrpc@", "modest@")))
    prepare(store.database)
    add(store, "ada", [turned(0.5)])
    assert nearest(store, FIRST) == ["ada 0"]
    cluster.execute("CREATE EXTENSION vector", name)
    cluster.execute("REVOKE CREATE ON SCHEMA public FROM modest", name)  # it may make no index, too
    prepare(store.database)
    add(store, "ada", [turned(0.9)])
    assert asked(store, "SELECT count(embedding) FROM knowledge_entry_vectors") == [2]
    assert asked(store, "SELECT count(*) FROM pg_indexes WHERE indexname LIKE '%hnsw%'") == [0]
    assert nearest(store, FIRST) == ["ada 1", "ada 0"]
    store.database.close()


def _opened(url: str) -> Database:
    from fastrpc.tools.knowledge._store.kind import KNOWLEDGE

    from fastrpc.storage import open_database

    return open_database(url, KNOWLEDGE)
