"""Search in a large store: what is looked at is bounded, and what is found is right for each owner."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from fastrpc.tools.knowledge._search.question import read
from fastrpc.tools.knowledge._store import entries, moving, ranking, row_sets
from fastrpc.tools.knowledge._store.entries import Entries, Reader, count_change
from fastrpc.tools.knowledge._store.kind import KNOWLEDGE
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, text
from support.postgres import Cluster
from support.waiting import SECONDS, eventually

from fastrpc.storage import open_database
from fastrpc.storage.migrations import migrate

pytest_plugins = ["support.postgres"]

ADA, BOB = Reader("ada", ""), Reader("bob", "")
COMMON = ("red", "green", "blue")


@pytest.fixture
def store(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Entries]:
    """Entries that have common words in all combinations; so few rows are ranked by FTS5 that sets decide."""
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(ranking, "RANKED_ROWS", 20)
    monkeypatch.setattr(ranking, "LOOKED_AT", 10)
    monkeypatch.setattr(row_sets, "KEPT_FROM", 5)
    database = open_database(database_url, KNOWLEDGE)
    for owner in ("ada", "bob"):
        texts = [content_of(owner, number) for number in range(400)]
        moving.add(database, owner, [moving.Record(text, "fact", "", [], "") for text in texts])
    yield Entries(database)
    database.close()


def content_of(owner: str, number: int) -> str:
    return " ".join([f"{owner} {number}", *(word for at, word in enumerate(COMMON) if number >> at & 1)])


def found(store: Entries, question: str, reader: Reader = ADA, limit: int = 10) -> list[str]:
    return [entry.content for entry in store.search(reader, read(question), "all", limit)]


def write(store: Entries, content: str, supersedes: str = "") -> str:
    done = store.write(ADA, content, "fact", "user", [], "", supersedes)
    assert done is not None
    return done[0].id


def test_what_has_all_common_words_comes_first_and_is_the_readers(store: Entries) -> None:
    for reader in (ADA, BOB):
        contents = found(store, "blue red green", reader)
        assert len(contents) == 10
        assert all(content.startswith(reader.owner) for content in contents)
        assert all(set(COMMON) <= set(content.split()) for content in contents)


def test_a_rare_word_outweighs_common_ones_wherever_its_entry_is(store: Entries) -> None:
    assert found(store, "ada red green 17 blue")[0] == "ada 17 red"


def test_an_entry_is_found_as_soon_as_it_is_written_and_not_once_it_is_forgotten(store: Entries) -> None:
    assert "red green" not in found(store, "red green")
    id = write(store, "red green")
    assert found(store, "red green")[0] == "red green"
    assert store.forget(ADA, id)
    assert "red green" not in found(store, "red green", limit=100)


def test_what_has_to_be_there_is_and_what_may_not_is_not(store: Entries) -> None:
    assert all("red green" in each for each in found(store, '"red green" blue ada', limit=50))
    without = found(store, "red green -blue", limit=50)
    assert len(without) == 50
    assert not any("blue" in each for each in without)
    assert len(found(store, '"red green"', limit=100)) == 100


def test_what_has_to_be_there_is_enough(store: Entries) -> None:
    write(store, "violet ink")
    assert found(store, '"violet ink" red green blue') == ["violet ink"]
    assert found(store, "viol* zzz") == ["violet ink"]


def test_characters_without_spaces_are_found_in_their_order(store: Entries) -> None:
    for content in ("会議は明日", "明議は会日", "東京の会議"):
        write(store, content)
    assert found(store, "会議", limit=2) == ["東京の会議", "会議は明日"]
    assert "明議は会日" not in found(store, "会議")


def test_what_was_being_written_while_others_searched_is_found_once_it_is_there(
    postgres: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set that was read up to a number misses none below it that is committed later."""
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(row_sets, "KEPT_FROM", 1)
    database = open_database(postgres.url(postgres.new_database()), KNOWLEDGE)
    store = Entries(database)
    write(store, "red")
    is_written, may_end = Event(), Event()

    def count_late(connection: Connection, changed: Iterable[int]) -> None:
        if not is_written.is_set():
            is_written.set()
            assert may_end.wait(SECONDS)
        count_change(connection, changed)

    monkeypatch.setattr(entries, "count_change", count_late)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(write, store, "red first")
        assert is_written.wait(SECONDS)
        second = pool.submit(write, store, "red second")
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        eventually(lambda: second.done() or bool(postgres.execute(waiting)))
        assert "red first" not in found(store, "red")
        may_end.set()
        first.result(), second.result()
    assert set(found(store, "red")) == {"red", "red first", "red second"}
    database.close()


def test_fields_choose_among_all_that_answer(store: Entries) -> None:
    done = store.write(ADA, "red and nothing else", "preference", "user", [], "")
    assert done is not None
    assert found(store, "red green blue category:preference") == ["red and nothing else"]


@pytest.mark.parametrize(("every", "limit"), [(1, 10), (3, 10), (100, 10), (3, 200)])
def test_what_fields_choose_is_ranked_by_sets_however_much_it_is(
    store: Entries, monkeypatch: pytest.MonkeyPatch, every: int, limit: int
) -> None:
    monkeypatch.setattr(ranking, "_of_fts5", None)
    monkeypatch.setattr(ranking, "TRIED", 2)
    for number in range(0, 400, every):
        tag(store, content_of("ada", number))
    contents = found(store, "red green blue tag:x", limit=limit)
    numbers = [int(each.split()[1]) for each in contents]
    expected = [number for number in range(0, 400, every) if number & 7]
    assert len(numbers) == min(limit, len(expected))
    assert set(numbers) <= set(expected)
    common = [(number & 7).bit_count() for number in numbers]
    assert common == sorted(((number & 7).bit_count() for number in expected), reverse=True)[:limit]


def test_what_fields_choose_is_what_the_store_has_now(
    store: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "_of_fts5", None)
    monkeypatch.setattr(ranking, "TRIED", 1)
    assert found(store, "red green blue tag:x") == []
    tag(store, "ada 8")
    tag(store, "ada 9 red")
    assert found(store, "red green blue tag:x") == ["ada 9 red"]
    assert found(store, "red green blue tag:x", BOB) == []
    assert store.forget(ADA, store.search(ADA, read("tag:x red"), "all", 10)[0].id)
    assert found(store, "red green blue tag:x") == []


def tag(store: Entries, content: str) -> None:
    """Write an entry again, with a tag."""
    assert store.write(ADA, content, "fact", "user", ["x"], "") is not None


def test_what_is_superseded_comes_after_all_that_holds_however_much_of_it_there_is(store: Entries) -> None:
    id = write(store, "the weight is 80")
    for number in range(60):
        id = write(store, f"weight weight {number}", supersedes=id)
    assert found(store, "weight weight", limit=2)[0] == "weight weight 59"
    contents = found(store, "weight of ada", limit=20)
    assert contents[0] == "weight weight 59"
    assert not any(each.startswith("weight") for each in contents[1:])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sets(st.integers(1, 300)), st.integers(1, 31)), min_size=1, max_size=8),
    st.integers(1, 60),
)
def test_the_heaviest_rows_are_those_whose_weights_add_up_to_most(
    weighed: list[tuple[set[int], int]], most: int
) -> None:
    weighed[0] = weighed[0][0], 31
    sums: dict[int, int] = {}
    for numbers, weight in weighed:
        for number in numbers:
            sums[number] = sums.get(number, 0) + weight
    expected = sorted(sums, key=lambda number: (sums[number], number), reverse=True)[:most]
    sets = [row_sets.set_of(sorted(numbers)) for numbers, _ in weighed]
    heaviest = row_sets.heaviest(sets, [weight for _, weight in weighed], most)
    assert row_sets.numbers_in(heaviest) == sorted(expected, reverse=True)


@given(st.sets(st.integers(1, 300)), st.integers(0, 300))
def test_a_set_has_its_numbers_wherever_it_begins(numbers: set[int], above: int) -> None:
    numbers = {number + above for number in numbers}
    assert set(row_sets.numbers_in(row_sets.set_of(sorted(numbers), above))) == numbers


def test_a_store_of_before_in_postgresql_is_searched_as_a_new_one(postgres: Cluster) -> None:
    url = postgres.url(postgres.new_database())
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        migrate(connection, KNOWLEDGE, to="k0009")
        for owner in ("ada", "bob"):
            space = text("INSERT INTO knowledge_spaces (owner, caller_class) VALUES (:owner, '')")
            connection.execute(space, {"owner": owner})
            connection.execute(
                text(
                    "INSERT INTO knowledge_entries "
                    "(id, space, category, content, tags, source, written_at, digest) "
                    "SELECT CAST(:owner AS text), number, 'fact', :content, E'\\n', '', 0, '' "
                    "FROM knowledge_spaces WHERE owner = CAST(:owner AS text)"
                ),
                {"owner": owner, "content": f"tea of {owner}"},
            )
        connection.execute(
            text(
                "INSERT INTO knowledge_words (number, words, stems) "
                "SELECT number, to_tsvector('simple', content), to_tsvector('simple', content) "
                "FROM knowledge_entries"
            )
        )
    engine.dispose()
    database = open_database(url, KNOWLEDGE)
    assert found(Entries(database), "tea", BOB) == ["tea of bob"]
    database.close()


def test_a_store_of_before_is_searched_as_a_new_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/older.sqlite3"
    engine = create_engine(url)
    with engine.begin() as connection:
        migrate(connection, KNOWLEDGE, to="k0006")
        for number, owner in enumerate(("ada", "bob"), 1):
            connection.exec_driver_sql("INSERT INTO knowledge_spaces VALUES (?, ?, '', 0)", (number, owner))
            connection.exec_driver_sql(
                "INSERT INTO knowledge_entries VALUES (?, ?, ?, 'fact', ?, char(10), '', 0, ?, NULL)",
                (number, f"mem_{number}", number, f"tea of {owner}", b"digest"),
            )
            connection.exec_driver_sql(
                "INSERT INTO knowledge_words (rowid, words, stems) VALUES (?, ?, ?)",
                (number, f"tea of {owner}", f"tea of {owner}"),
            )
    engine.dispose()
    os.chmod(tmp_path / "older.sqlite3", 0o600)
    database = open_database(url, KNOWLEDGE)
    assert found(Entries(database), "tea", BOB) == ["tea of bob"]
    database.close()
