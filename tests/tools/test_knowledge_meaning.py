"""Search by meaning: what a model finds that words do not, whose it is, and what happens where the model is
away or answers nonsense; in both kinds of databases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from fastrpc.tools.knowledge import _models, _store
from fastrpc.tools.knowledge._extraction import Extracted, passages
from fastrpc.tools.knowledge._models import embedding
from fastrpc.tools.knowledge._models.background import Embedding, Job
from fastrpc.tools.knowledge._search.question import read
from fastrpc.tools.knowledge._store import moving, pgvector, readings, vectors
from fastrpc.tools.knowledge._store.documents import Documents, FoundPassage
from fastrpc.tools.knowledge._store.entries import Entries, Reader
from sqlalchemy import text
from support.knowledge_entries import ADA, BOB, write
from support.model_server import DIMENSIONS, KEY, Model, served, vector_of
from support.waiting import eventually

pytest_plugins = ["support.postgres", "support.entries_store"]


@pytest.fixture(params=["sqlite", "postgresql", "pgvector"])
def database_url(
    request: pytest.FixtureRequest, new_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """The URL of a new database, in which pgvector is used in the last kind alone."""
    if request.param != "pgvector":
        monkeypatch.setattr(pgvector, "OLDEST", (99,))
    return new_url(request.param)


ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""For what has nothing to do with the kind of database."""
ADAS_OTHER = Reader("ada", "reviewer")


@pytest.fixture
def model(store: Entries, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    monkeypatch.setitem(_store._opened, database_url, store)
    monkeypatch.setenv("FASTRPC_KNOWLEDGE_DATABASE", database_url)
    with served() as found:
        monkeypatch.setenv("FASTRPC_KNOWLEDGE_EMBEDDINGS", found.url)
        monkeypatch.setenv("FASTRPC_KNOWLEDGE_EMBEDDINGS_MODEL", "m")
        monkeypatch.setenv("FASTRPC_KNOWLEDGE_EMBEDDINGS_KEY", KEY)
        yield found


def embedded(store: Entries) -> Job:
    """Have all vectors made that can be made."""
    for texts in (readings.ENTRIES, readings.PASSAGES):
        job = Embedding(texts)
        while job.read_lot(store.database):
            pass
    return job


def found(store: Entries, query: str, reader: Reader = ADA, scope: str = "all", limit: int = 10) -> list[str]:
    question = read(query)
    meaning, note = _models.meaning_of(question.said)
    assert not note
    return [each.content for each in store.search(reader, question, scope, limit, meaning)]


def number_of_vectors(store: Entries) -> int:
    with store.database.reading() as connection:
        wanted = " + ".join(
            f"(SELECT count(*) FROM knowledge_{each}_vectors WHERE dimensions > 0)"
            for each in ("entry", "passage")
        )
        return int(connection.execute(text(f"SELECT {wanted}")).scalar_one())


def add_document(store: Entries, name: str, content: str, reader: Reader = ADA, tags: Any = ()) -> str:
    documents = Documents(store.database)
    document, _ = documents.begin(reader, name, content.encode(), list(tags))
    extracted = Extracted([content], markdown=[content], media_type="text/markdown")
    documents.finish(document.number, extracted, passages(extracted))
    return document.id


def queried(store: Entries, query: str, reader: Reader = ADA, tags: Any = ()) -> list[FoundPassage]:
    question = read(query)
    meaning, _ = _models.meaning_of(question.said)
    return Documents(store.database).search(reader, question, [], list(tags), 10, meaning)


# --- what is found ------------------------------------------------------------------------------------------


def test_what_is_meant_is_found_where_no_word_is_the_same(store: Entries, model: Model) -> None:
    for content in ("Her automobile is blue.", "The physician called.", "Tea at five."):
        write(store, content)
    assert found(store, "car") == []
    embedded(store)
    assert found(store, "car") == ["Her automobile is blue."]
    assert found(store, "the doctor") == ["The physician called."]
    assert model.keys == {f"Bearer {KEY}"}
    assert {body["model"] for body in model.bodies} == {"m"}


def test_what_both_words_and_meaning_find_comes_first(store: Entries, model: Model) -> None:
    write(store, "Funds: none.")
    write(store, "The budget of the club.")
    write(store, "A club in the wood.")
    embedded(store)
    assert found(store, "club budget") == ["The budget of the club.", "A club in the wood.", "Funds: none."]


def test_vectors_of_others_are_never_found(store: Entries, model: Model) -> None:
    write(store, "Bob's automobile.", BOB)
    write(store, "An automobile of the reviewer.", ADAS_OTHER, scope="agent")
    write(store, "Ada's automobile.")
    embedded(store)
    assert found(store, "car") == ["Ada's automobile."]
    assert found(store, "car", ADA, "agent") == []
    assert found(store, "car", BOB) == ["Bob's automobile."]
    assert found(store, "car", ADAS_OTHER, "agent") == ["An automobile of the reviewer."]
    assert found(store, "car", Reader("eve", "agent")) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("car tag:work", ["An automobile at work."]),
        ("car before:2001", []),
        ("car -home", ["An automobile at work."]),
        ('car "at home"', ["An automobile at home."]),
        ("car hom*", ["An automobile at home."]),
        ("car category:preference", ["An automobile at home."]),
    ],
)
def test_what_a_question_demands_holds_for_what_is_meant(
    store: Entries, model: Model, query: str, expected: list[str]
) -> None:
    write(store, "An automobile at work.", tags=["work"])
    write(store, "An automobile at home.", category="preference")
    embedded(store)
    assert found(store, query) == expected


def test_what_is_superseded_comes_last_however_near_it_is(store: Entries, model: Model) -> None:
    older = write(store, "Automobile.")
    write(store, "The vehicle is at the garage, since spring, with others.", supersedes=older.id)
    embedded(store)
    assert found(store, "car")[-1] == "Automobile."
    assert len(found(store, "car")) == 2


def test_passages_are_found_by_meaning(store: Entries, model: Model) -> None:
    id = add_document(store, "a.md", "# Transport\n\nEach automobile is washed.", tags=["fleet"])
    add_document(store, "b.md", "# Transport\n\nAutomobiles? An automobile of Bob.", BOB)
    embedded(store)
    assert [each.document for each in queried(store, "car")] == [id]
    assert queried(store, "car")[0].score > 0
    assert [each.document for each in queried(store, "car", tags=["fleet"])] == [id]
    assert queried(store, "car", tags=["other"]) == []
    assert queried(store, 'car "nothing such"') == []


@pytest.mark.parametrize("most_bytes", [vectors.MOST_BYTES, 2 * 4 * DIMENSIONS, 0])
def test_what_is_kept_in_memory_is_as_the_store_has_it(
    store: Entries, model: Model, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    monkeypatch.setattr(vectors, "MOST_BYTES", most_bytes)
    first = write(store, "Automobile one.", tags=["a"])
    write(store, "Automobile two.", tags=["b"])
    write(store, "Bob's automobile.", BOB)
    embedded(store)
    assert sorted(found(store, "car tag:a")) == ["Automobile one."]
    assert sorted(found(store, "car")) == ["Automobile one.", "Automobile two."]
    write(store, "Automobile three.", tags=["a"])
    embedded(store)
    assert sorted(found(store, "car tag:a")) == ["Automobile one.", "Automobile three."]
    assert sorted(found(store, "car")) == ["Automobile one.", "Automobile three.", "Automobile two."]
    store.forget(ADA, first.id)
    assert found(store, "car tag:a") == ["Automobile three."]
    assert sorted(found(store, "car")) == ["Automobile three.", "Automobile two."]
    assert found(store, "car", BOB) == ["Bob's automobile."]


def test_vectors_that_were_made_anew_replace_those_in_memory(store: Entries, model: Model) -> None:
    write(store, "Automobile.")
    write(store, "Physician.")
    embedded(store)
    assert found(store, "car") == ["Automobile."]
    _models.meaning_of("doctor")
    model.vector_of = lambda text, dimensions: vector_of(
        text.replace("Automobile", "doctor").replace("Physician", "car"), dimensions
    )
    moving.reindex(store.database, [readings.ENTRIES])
    embedded(store)
    assert found(store, "car") == ["Physician."]


# --- what is kept -------------------------------------------------------------------------------------------


def test_forgetting_and_deleting_leave_no_vector(store: Entries, model: Model) -> None:
    gone = write(store, "An automobile.")
    write(store, "A vehicle.", scope="agent")
    write(store, "Bob's.", BOB)
    document = add_document(store, "a.md", "Each automobile is washed.")
    embedded(store)
    assert number_of_vectors(store) == 4
    assert store.forget(ADA, gone.id)
    assert number_of_vectors(store) == 3
    assert store.forget_all(ADA, "all") == 1
    assert Documents(store.database).delete(ADA, document)
    assert number_of_vectors(store) == 1
    assert found(store, "car") == []


def test_what_is_forgotten_while_it_is_read_leaves_nothing(store: Entries, model: Model) -> None:
    gone = write(store, "An automobile.")
    write(store, "A vehicle.")
    model.holds = True
    thread = Thread(target=embedded, args=(store,))
    thread.start()
    eventually(lambda: model.waiting)
    assert store.forget(ADA, gone.id)
    model.holds = False
    thread.join(60)
    assert number_of_vectors(store) == 1
    assert found(store, "car") == ["A vehicle."]


def test_two_servers_on_one_store_read_each_text_once(store: Entries, model: Model) -> None:
    contents = [f"Entry {number}" for number in range(100)]
    for content in contents:
        write(store, content)
    threads = [Thread(target=embedded, args=(store,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    embedded(store)
    assert sorted(model.embedded) == sorted(contents)


def test_what_somebody_who_was_killed_had_claimed_is_read_by_another(store: Entries, model: Model) -> None:
    write(store, "An automobile.")
    claimed, _ = readings.ENTRIES.claim(store.database, 0, 10)
    assert [each.content for each in claimed] == ["An automobile."]
    embedded(store)
    assert model.embedded == []
    pass_time(store, readings.CLAIM_SECONDS)
    embedded(store)
    assert model.embedded == ["An automobile."]


def pass_time(store: Entries, seconds: float) -> None:
    with store.database.changing() as connection:
        for texts in (readings.ENTRIES, readings.PASSAGES, readings.NAMING):
            table = texts.readings.name
            connection.execute(text(f"UPDATE {table} SET claimed_until = claimed_until - {seconds}"))


def test_a_text_that_the_model_refuses_keeps_none_of_the_others_back(store: Entries, model: Model) -> None:
    model.refuses = lambda content: "poison" in content
    for number in range(7):
        write(store, "poison" if number == 3 else f"Automobile {number}.")
    embedded(store)
    assert len(found(store, "car")) == 6
    asked = len(model.bodies)
    embedded(store)
    assert len(model.bodies) == asked
    model.refuses = lambda content: False
    pass_time(store, readings.PUT_OFF_SECONDS)
    embedded(store)
    assert model.embedded[-1] == "poison"


@ON_SQLITE
def test_a_text_at_which_the_model_breaks_keeps_none_of_the_others_back(store: Entries, model: Model) -> None:
    model.breaks = lambda content: "poison" in content
    for number in range(7):
        write(store, "poison" if number == 3 else f"Automobile {number}.")
    job = Embedding(readings.ENTRIES)
    for _ in range(30):
        job.read_lot(store.database)
    assert len(found(store, "car")) == 6


@pytest.mark.parametrize("dimensions", [300, DIMENSIONS])
def test_another_model_leaves_old_vectors_alone_until_they_are_made_anew(
    store: Entries, model: Model, monkeypatch: pytest.MonkeyPatch, dimensions: int
) -> None:
    write(store, "An automobile.")
    embedded(store)
    monkeypatch.setenv("FASTRPC_KNOWLEDGE_EMBEDDINGS_MODEL", "other")
    model.dimensions = dimensions
    write(store, "A vehicle.")
    embedded(store)
    assert found(store, "car") == ["A vehicle."]
    assert moving.counts(store.database)["  m"] == moving.counts(store.database)["  other"] == 1
    moving.reindex(store.database, [readings.ENTRIES, readings.PASSAGES])
    embedded(store)
    assert sorted(found(store, "car")) == ["A vehicle.", "An automobile."]
    assert moving.counts(store.database)["  other"] == moving.counts(store.database)["vectors"] == 2
    assert moving.problems(store.database) == []


def test_a_damaged_vector_is_found_by_a_check(store: Entries, model: Model) -> None:
    write(store, "An automobile.")
    embedded(store)
    with store.database.changing() as connection:
        connection.execute(text("UPDATE knowledge_entry_vectors SET dimensions = 7"))
    assert "1 vectors of entries are damaged" in moving.problems(store.database)[0]


# --- where the model is away, or answers nonsense ---------------------------------------------------------


def said_of(model: Model, query: str) -> str:
    meaning, note = _models.meaning_of(query)
    assert meaning is None
    assert KEY not in note
    assert model.url not in note
    return note


def data_of(*embeddings: object) -> str:
    return json.dumps({"data": [{"index": at, "embedding": each} for at, each in enumerate(embeddings)]})


@ON_SQLITE
@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("<h1>Welcome</h1>", "the answer is not JSON, although its Content-Type says so"),
        ("[1, 2]", "expected a JSON object"),
        ('{"data": "x"}', "data: expected a list of 1 vectors, got none"),
        ('{"data": []}', "data: expected a list of 1 vectors, got 0"),
        (data_of([1.0], [2.0]), "data: expected a list of 1 vectors, got 2"),
        (data_of([]), "data[0].embedding: expected 1 to 16,384 numbers"),
        (data_of("abc"), "data[0].embedding: expected 1 to 16,384 numbers"),
        (data_of([1.0] * 20_000), "data[0].embedding: expected 1 to 16,384 numbers"),
        (data_of([1.0, "2"]), "data[0].embedding: expected numbers"),
        (data_of([True, 1.0]), "data[0].embedding: expected numbers"),
        (data_of([0.0, 0.0]), "data[0].embedding: expected finite numbers, not all of them 0"),
        ('{"data": [{"index": 0, "embedding": [NaN]}]}', "the answer is not JSON"),
        ('{"data": [{"index": 0, "embedding": [1e999]}]}', "data[0].embedding: expected finite numbers"),
        (data_of([10**400]), "data[0].embedding: expected finite numbers"),
        ('{"data": [{"index": 1, "embedding": [1.0]}]}', "data[0].index: expected each of 0 to 0 once"),
        ('{"data": [7]}', "data[0].index: expected each of 0 to 0 once"),
    ],
)
def test_an_answer_that_cannot_be_used_is_one_clear_error(
    store: Entries, model: Model, says: str, reason: str
) -> None:
    model.says = says
    note = said_of(model, "car")
    assert note.startswith("Searched only by words: the model that --embeddings names: ")
    assert reason in note
    write(store, "An automobile.")
    job = Embedding(readings.ENTRIES)
    job.read_lot(store.database)
    assert reason in job.problem
    assert number_of_vectors(store) == 0


@ON_SQLITE
def test_vectors_of_several_lengths_are_one_clear_error(store: Entries, model: Model) -> None:
    model.says = data_of([1.0], [1.0, 2.0])
    with pytest.raises(embedding.ModelUnavailable, match="expected vectors of one length, got 1 and 2"):
        embedding.embed(embedding.model(), ["a", "b"], 5.0)


@ON_SQLITE
@pytest.mark.parametrize(
    ("status", "reason"), [(401, "Unauthorized"), (404, "Not Found"), (503, "Service Unavailable")]
)
def test_an_endpoint_that_fails_is_named_without_what_it_says(
    store: Entries, model: Model, status: int, reason: str
) -> None:
    model.status, model.says = status, f"wrong key: {KEY}"
    assert said_of(model, "car") == (
        f"Searched only by words: the model that --embeddings names: it answers {status} {reason}."
    )


@ON_SQLITE
def test_a_page_instead_of_an_answer_is_one_clear_error(store: Entries, model: Model) -> None:
    model.media, model.says = "text/html", "<h1>Login</h1>"
    assert "its answer cannot be used: expected a JSON object" in said_of(model, "car")


@ON_SQLITE
def test_a_model_that_was_away_is_not_waited_for_by_the_next_question(
    store: Entries, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.status = 503
    first = said_of(model, "car")
    assert said_of(model, "doctor") == first
    assert len(model.bodies) == 1
    model.status = 200
    monkeypatch.setattr(embedding, "_away", {})
    assert _models.meaning_of("car")[1] == ""


@ON_SQLITE
def test_a_question_does_not_wait_for_a_model_that_hangs(
    store: Entries, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "QUESTION_SECONDS", 0.3)
    model.holds = True
    assert "no answer, or not all of it, within 0.3 s" in said_of(model, "car")


@ON_SQLITE
def test_a_question_is_asked_for_once(store: Entries, model: Model) -> None:
    for _ in range(3):
        assert _models.meaning_of("car")[0] is not None
    assert model.embedded == ["car"]


def test_vectors_of_other_dimensions_than_before_are_no_answer(store: Entries, model: Model) -> None:
    write(store, "An automobile.")
    embedded(store)
    model.dimensions = 300
    assert "its vectors have 300 dimensions, those in the store 512" in said_of(model, "car")
    write(store, "A vehicle.")
    job = Embedding(readings.ENTRIES)
    job.read_lot(store.database)
    assert "its vectors have 300 dimensions" in job.problem
    assert number_of_vectors(store) == 1


def test_what_was_not_read_while_the_model_was_away_is_read_later(store: Entries, model: Model) -> None:
    model.status = 503
    write(store, "An automobile.")
    job = Embedding(readings.ENTRIES)
    assert not job.read_lot(store.database)
    assert job.is_paused
    model.status = 200
    assert job.read_lot(store.database)
    assert model.embedded == ["An automobile."]


def test_without_a_model_nothing_is_asked(tmp_path: Path) -> None:
    assert _models.meaning_of("car") == (None, "")
