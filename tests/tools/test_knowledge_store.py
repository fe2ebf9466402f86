"""The store of the knowledge toolset, in both kinds of databases: what is found, by whom, what is left."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.knowledge._search.folding import folded
from fastrpc.tools.knowledge._search.question import read
from fastrpc.tools.knowledge._store import graph
from fastrpc.tools.knowledge._store.cursors import Cursors
from fastrpc.tools.knowledge._store.documents import Documents
from fastrpc.tools.knowledge._store.entries import Entries, Reader
from fastrpc.tools.knowledge._store.kind import KNOWLEDGE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from sqlalchemy import event
from sqlalchemy.engine import Engine
from support.knowledge_entries import ADA, BOB, pieces, write

from fastrpc.storage import open_database

pytest_plugins = ["support.postgres", "support.entries_store"]

ADAS_OTHER = Reader("ada", "reviewer")


def found(
    store: Entries, question: str, reader: Reader = ADA, scope: str = "all", limit: int = 10
) -> list[str]:
    return [entry.content for entry in store.search(reader, read(question), scope, limit)]


TEXTS = [
    "The project deadline is 14 May; Ada runs the meetings.",
    "A draft of the deadline was sent to Bob.",
    "会议室在三楼",
    "المكتبات العامة في المدينة",
    "Die Straße ist gesperrt",
    "asyncio.run starts an event loop",
]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("when is the meeting?", [0]),
        ("deadline", [1, 0]),
        ("deadline -draft", [0]),
        ('"project deadline"', [0]),
        ('"deadline project"', []),
        ("meet*", [0]),
        ("会议", [2]),
        ("楼", [2]),
        ("议会", []),
        ("مكتبة", [3]),
        ("strasse", [4]),
        ("STRASSE gesperrt", [4]),
        ("asyncio.run", [5, 0]),
        ("NEAR(deadline OR", [1, 0]),
        ('"', [5, 4, 3, 2, 1, 0]),
        ("-deadline", [5, 4, 3, 2]),
        ("meeting\0 \ud800 tag:\0", [0]),
        ("meeting\0 \ud800", [0]),
        ("nothing", []),
    ],
)
def test_what_a_question_finds(store: Entries, question: str, expected: list[int]) -> None:
    for text in TEXTS:
        write(store, text)
    assert sorted(found(store, question)) == sorted(TEXTS[at] for at in expected)


def test_fields_choose(store: Entries) -> None:
    write(store, "one", tags=["work", "x_y"], source="mail")
    write(store, "two", tags=["work"], category="preference")
    write(store, "three", tags=["w%rk", "xzy"])
    assert found(store, "tag:work") == ["two", "one"]
    assert found(store, "tag:Work one") == ["one"]
    assert found(store, "tag:w%rk") == ["three"]
    assert found(store, "tag:x_y") == ["one"]
    assert found(store, "category:preference") == ["two"]
    assert found(store, "source:MAIL") == ["one"]
    assert found(store, "before:2001") == []
    assert len(found(store, "after:2001")) == 3


def test_the_same_content_is_one_entry_with_the_later_date_and_both_tags(store: Entries) -> None:
    first = write(store, "one", tags=["a"])
    again = write(store, "one", tags=["b"], category="preference")
    assert (again.id, again.tags, again.category) == (first.id, ["a", "b"], "preference")
    assert again.written_at > first.written_at
    assert found(store, "one") == ["one"]
    assert write(store, "one", BOB).id != first.id
    assert write(store, "one", scope="agent").id != first.id


def test_what_is_superseded_comes_last_and_says_so(store: Entries) -> None:
    old = write(store, "deadline deadline deadline")
    new = write(store, "the deadline is in June, and much else is said here", supersedes=old.id)
    entries = store.search(ADA, read("deadline"), "all", 10)
    assert [(entry.id, entry.superseded_by) for entry in entries] == [(new.id, None), (old.id, new.id)]


@pytest.mark.parametrize("id", ["mem_nothing", "", "%"])
def test_nothing_is_written_that_supersedes_what_there_is_not(store: Entries, id: str) -> None:
    bobs = write(store, "bob's", BOB)
    for unknown in (id or "x", bobs.id):
        assert store.write(ADA, "new", "fact", "user", [], "", unknown) is None
    assert store.page(ADA, None, 10) == []
    assert store.read(BOB, bobs.id).superseded_by is None  # type: ignore[union-attr]


def test_scopes_belong_to_the_owner_and_to_the_class(store: Entries) -> None:
    write(store, "shared thing")
    write(store, "private thing", scope="agent")
    assert sorted(found(store, "thing")) == ["private thing", "shared thing"]
    assert found(store, "thing", scope="agent") == ["private thing"]
    assert found(store, "thing", scope="user") == ["shared thing"]
    assert found(store, "thing", ADAS_OTHER) == ["shared thing"]
    assert found(store, "thing", BOB) == []


def test_a_page_goes_on_while_entries_come_and_go(store: Entries) -> None:
    made = [write(store, f"entry {number}") for number in range(9)]
    first = store.page(ADA, None, 3)
    write(store, "a later one")
    store.forget(ADA, first[-1].id)
    store.forget(ADA, made[4].id)
    second = store.page(ADA, first[-1].number, 3)
    assert [each.content for each in first] == ["entry 8", "entry 7", "entry 6"]
    assert [each.content for each in second] == ["entry 5", "entry 3", "entry 2"]


def test_a_cursor_is_its_owners_and_shows_no_number(store: Entries) -> None:
    of_ada, of_bob, of_other = (Cursors(store.database, each) for each in (ADA, BOB, ADAS_OTHER))
    made = [of_ada.sealed(number) for number in range(1, 200)]
    for number, cursor in enumerate(made, 1):
        assert of_ada.opened(cursor, 1) == (number,)
        assert of_other.opened(cursor, 1) == (number,)
        assert of_bob.opened(cursor, 1) is None
        assert of_ada.opened(cursor, 2) is None
    assert len({cursor[:8] for cursor in made}) == len({cursor[-8:] for cursor in made}) == len(made)
    two = of_ada.sealed(7, 2**63)
    assert of_ada.opened(two, 2) == (7, 2**63)
    for at, letter in enumerate(two):
        forged = two[:at] + ("B" if letter == "A" else "A") + two[at + 1 :]
        assert at == len(two) - 1 or of_ada.opened(forged, 2) is None
    for text in ("", "7", "7.8", two[:-1], two + "A", "é" * len(two), "\0" * len(two), "=" * len(two)):
        assert of_ada.opened(text, 2) is None


def test_a_page_is_read_in_order_by_an_index_however_much_there_is(tmp_path: Path) -> None:
    """What would be sorted for a page is all that an owner has, with its content."""
    asked: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        asked.append((statement, parameters))

    database = open_database(f"sqlite:///{tmp_path}/knowledge.sqlite3", KNOWLEDGE)
    store, documents = Entries(database), Documents(database)
    write(store, "one")
    write(store, "two", scope="agent")
    event.listen(Engine, "before_cursor_execute", note)
    try:
        for before in (None, 9):
            assert len(store.page(ADA, before, 10)) == 2
            assert documents.page(ADA, before, 10) == []
        assert len(store.ids(ADA, "mem_", 10)) == 2
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert len(asked) == 2 + 3 * 3
    with database.reading() as connection:
        for statement, parameters in asked:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            assert not any("TEMP B-TREE" in row.detail for row in plan), (statement, plan)
    database.close()


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.integers(0, 9), steps=st.lists(st.lists(st.integers(-1, 12), max_size=4), max_size=6),
       size=st.integers(1, 4))  # fmt: skip
def test_a_walk_by_pages_shows_what_was_there_all_along_once(
    store: Entries, first: int, steps: list[list[int]], size: int
) -> None:
    reader = Reader(f"walker-{time.monotonic_ns()}", "")
    there = [write(store, f"entry {number}", reader).id for number in range(first)]
    stayed, seen, before = set(there), [], None
    for changes in [*steps, *([] for _ in range(first + 4 * len(steps)))]:
        page = store.page(reader, before, size)
        seen += [entry.id for entry in page]
        before = page[-1].number if page else before
        for number in changes:  # meanwhile one is written, or one is forgotten
            if number < 0:
                there.append(write(store, f"later {len(there)} {len(seen)}", reader).id)
            elif number < len(there) and store.forget(reader, there[number]):
                stayed.discard(there[number])
    assert len(set(seen)) == len(seen)
    assert stayed <= set(seen)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(pieces, st.text(max_size=20)), min_size=1, max_size=4).map(" ".join))
def test_an_entry_is_found_by_each_of_its_words_whatever_the_script(store: Entries, text: str) -> None:
    reader = Reader(f"writer-{time.monotonic_ns()}", "")
    write(store, content := text.replace("\0", ""), reader)
    for piece in content.replace('"', " ").split():
        for question in (piece, f'"{piece}"'):
            if read(question).asks:
                assert found(store, question, reader) == [content], question


def test_many_writers_at_once_lose_nothing(store: Entries) -> None:
    def work(writer: int) -> None:
        for number in range(10):
            write(store, f"writer {writer} number {number}", ADA if writer % 2 else BOB)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(store.page(ADA, None, 100)) == len(store.page(BOB, None, 100)) == 40


def test_forgetting_leaves_no_word_in_any_file(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/knowledge.sqlite3", KNOWLEDGE)
    store = Entries(database)
    kept = write(store, "the weather is fine")
    secret = write(store, "Xylophones are hidden in Quetzaltenango", tags=["zanzibar"], source="vladivostok")
    write(store, "what else there was")
    words = (b"xylophon", b"quetzaltenango", b"zanzibar", b"vladivostok")
    assert all(word in bytes_of(tmp_path) for word in words)
    assert store.forget(ADA, secret.id)
    assert not any(word in bytes_of(tmp_path) for word in words)
    assert found(store, "weather") == [kept.content]
    assert not store.forget(ADA, secret.id)
    database.close()


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir()).lower()


# --- owners never mix ---------------------------------------------------------------------------------

OWNERS = [Reader("ada", "x"), Reader("ada", "y"), Reader("bob", "x"), Reader("ad", "a\0x"), Reader("%", "_")]
WORDS = ["deadline", "meeting", "会议", "مكتبة", "budget"]


class Owners(RuleBasedStateMachine):
    """Random operations of several owners, beside a model in which each has a separate list."""

    written: Bundle[tuple[int, str, str]] = Bundle("written")
    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.store = Entries(
            open_database(f"sqlite:///{self.folder}/{id(self)}-{len(MADE)}.sqlite3", KNOWLEDGE)
        )
        MADE.append(self.store)
        self.model: dict[str, tuple[int, str, str]] = {}

    def seen_by(self, at: int) -> set[str]:
        reader = OWNERS[at]
        return {
            key
            for key, (owner, scope, _) in self.model.items()
            if OWNERS[owner].owner == reader.owner
            and (scope == "user" or OWNERS[owner].caller_class == reader.caller_class)
        }

    @rule(target=written, at=st.integers(0, 4), scope=st.sampled_from(["user", "agent"]),
          words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))  # fmt: skip
    def write(self, at: int, scope: str, words: list[str]) -> tuple[int, str, str]:
        entry = write(self.store, " ".join(words), OWNERS[at], scope=scope, tags=words)
        self.model[entry.id] = (at, scope, entry.content)
        return at, scope, entry.id

    @rule(entry=written, at=st.integers(0, 4))
    def read(self, entry: tuple[int, str, str], at: int) -> None:
        seen = self.store.read(OWNERS[at], entry[2])
        assert (seen is not None) is (entry[2] in self.seen_by(at))

    @rule(entry=consumes(written), at=st.integers(0, 4))
    def forget(self, entry: tuple[int, str, str], at: int) -> None:
        may = entry[2] in self.seen_by(at)
        assert self.store.forget(OWNERS[at], entry[2]) is may
        if may:
            del self.model[entry[2]]

    @rule(at=st.integers(0, 4), scope=st.sampled_from(["user", "agent"]))
    def forget_all(self, at: int, scope: str) -> None:
        own = {key for key in self.seen_by(at) if self.model[key][1] == scope}
        assert self.store.forget_all(OWNERS[at], scope) == len(own)
        for key in own:
            del self.model[key]

    @rule(at=st.integers(0, 4), word=st.sampled_from(WORDS))
    def search(self, at: int, word: str) -> None:
        ids = {entry.id for entry in self.store.search(OWNERS[at], read(word), "all", 100)}
        assert ids == {key for key in self.seen_by(at) if word in self.model[key][2].split()}

    @rule(at=st.integers(0, 4), word=st.sampled_from(WORDS))
    def traverse(self, at: int, word: str) -> None:
        nodes, found = graph.traverse(self.store.database, OWNERS[at], word, 1, 100)
        own = {key: set(self.model[key][2].split()) for key in self.seen_by(at)}
        named = set().union(*(words for words in own.values() if word in words))
        assert {node.key for node in nodes} == {folded(each) for each in named}
        assert {entry.id for entry in found} == {key for key, words in own.items() if words & named}

    @invariant()
    def each_sees_their_own(self) -> None:
        for at, reader in enumerate(OWNERS):
            assert {entry.id for entry in self.store.page(reader, None, 1000)} == self.seen_by(at)

    def teardown(self) -> None:
        self.store.database.close()


MADE: list[Entries] = []


def test_owners_never_mix(tmp_path: Path) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    Owners.folder = tmp_path
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Owners,
        settings=settings(max_examples=15, stateful_step_count=20, suppress_health_check=list(HealthCheck)),
    )
