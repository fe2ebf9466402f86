"""Search by meaning with a model in a folder: what it finds, how the folder says that vectors are made, and
what happens where there is no such model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastrpc.tools.knowledge import _models, _settings, _store
from fastrpc.tools.knowledge._models import background, embedding, folder_model
from fastrpc.tools.knowledge._models.folder_model import FolderModel
from fastrpc.tools.knowledge._search.question import read
from fastrpc.tools.knowledge._store import moving
from fastrpc.tools.knowledge._store.entries import Entries
from support.knowledge_entries import ADA, write
from support.model_folder import DIMENSIONS, WORDS, folder_with

from fastrpc import UsageError

pytest_plugins = ["support.postgres", "support.entries_store"]
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def named(
    store: Entries, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The store as the process has it open, and the folder `model` of the test as its model."""
    monkeypatch.setitem(_store._opened, database_url, store)
    monkeypatch.setenv(_settings.DATABASE.name, database_url)
    monkeypatch.setenv(_settings.EMBEDDINGS_FOLDER.name, str(tmp_path / "model"))
    folder_model._models.clear()
    yield
    embedding._away.clear()


def all_read(store: Entries) -> list[background.Job]:
    jobs = background.jobs()
    for job in jobs:
        while job.read_lot(store.database):
            pass
    return jobs


def found(store: Entries, query: str) -> list[str]:
    question = read(query)
    meaning, note = _models.meaning_of(question.said)
    assert note == ""
    return [each.content for each in store.search(ADA, question, "all", 10, meaning)]


def note_of(query: str) -> str:
    meaning, note = _models.meaning_of(query)
    assert meaning is None
    return note


@pytest.mark.parametrize("pooled", [False, True])
def test_what_is_meant_is_found_without_a_network(store: Entries, tmp_path: Path, pooled: bool) -> None:
    folder_with(tmp_path / "model", pooled=pooled)
    for content in ("Automobile", "Physician physician physician", "Tea"):
        write(store, content)
    assert found(store, "car") == []
    all_read(store)
    assert found(store, "car")[0] == "Automobile"
    assert found(store, "doctor")[0] == "Physician physician physician"


def test_texts_of_any_length_are_read_together_as_each_alone(tmp_path: Path) -> None:
    model = FolderModel(str(folder_with(tmp_path / "model")))
    texts = ["car", "tea blue club garage " * 200, "doctor", "budget funds", "holiday " * 700] * 9
    together = model.vectors(texts, is_question=False)
    for text, vector in zip(texts, together, strict=True):
        (alone,) = model.vectors([text], is_question=False)
        assert vector.tolist() == pytest.approx(alone.tolist(), abs=1e-6)
        assert len(vector) == DIMENSIONS
        assert float(vector @ vector) == pytest.approx(1.0)


def test_the_folder_says_of_which_tokens_how_many_and_after_what(tmp_path: Path) -> None:
    first = {"1_Pooling/config.json": {"pooling_mode_cls_token": True}}
    (made,) = FolderModel(str(folder_with(tmp_path / "a", files=first))).vectors(["car"], is_question=False)
    assert made[WORDS.index("[CLS]")] == 1.0
    short = {"sentence_bert_config.json": {"max_seq_length": 2}}
    (made,) = FolderModel(str(folder_with(tmp_path / "b", files=short))).vectors(
        ["tea car"], is_question=False
    )
    assert (made > 0).sum() == 2
    assert made[WORDS.index("tea")] > 0
    prompts = {"config_sentence_transformers.json": {"prompts": {"query": "query "}}}
    model = FolderModel(str(folder_with(tmp_path / "c", files=prompts)))
    for is_question in (True, False):
        (made,) = model.vectors(["car"], is_question=is_question)
        assert bool(made[WORDS.index("query")] > 0) is is_question


def test_a_graph_that_wants_kinds_of_tokens_is_given_them(tmp_path: Path) -> None:
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    model = FolderModel(str(folder_with(tmp_path / "model", inputs=inputs)))
    assert len(model.vectors(["car"], is_question=False)) == 1


def test_a_graph_in_the_folder_onnx_is_found(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "model")
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    FolderModel(str(folder)).check()
    assert len(FolderModel(str(folder)).vectors(["car"], is_question=True)) == 1


def test_a_model_in_the_place_of_another_of_the_same_size_is_another(store: Entries, tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "model")
    write(store, "automobile")
    all_read(store)
    folder_with(folder, turned=True)
    folder_model._models.clear()  # another process
    assert found(store, "car") == []
    write(store, "vehicle")
    all_read(store)
    assert found(store, "car") == ["vehicle"]
    moving.reindex(store.database, [job.texts for job in background.jobs()])
    all_read(store)
    assert sorted(found(store, "car")) == ["automobile", "vehicle"]


def test_a_text_of_which_the_model_makes_nothing_keeps_no_other_back(store: Entries, tmp_path: Path) -> None:
    folder_with(tmp_path / "model", starts=False)
    write(store, "nothing known")
    write(store, "automobile")
    jobs = all_read(store)
    assert not any(job.problem for job in jobs)
    assert found(store, "car") == ["automobile"]
    assert note_of("unheard") == (
        "Searched only by words: the model in --embeddings-folder: "
        "expected finite numbers, not all of them 0."
    )


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("model.onnx", b"no graph", "it cannot be loaded: "),
        ("tokenizer.json", b"{}", "it cannot be loaded: "),
        ("1_Pooling/config.json", b"[]", "1_Pooling/config.json: expected a JSON object"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_one_clear_note(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    folder = folder_with(tmp_path / "model")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    note = note_of("car")
    assert note.startswith("Searched only by words: the model in --embeddings-folder: it cannot be loaded: ")
    assert says in note


def test_a_graph_that_wants_other_inputs_is_one_clear_note(tmp_path: Path) -> None:
    folder_with(tmp_path / "model", inputs=("input_ids", "pixel_values"))
    assert "expected the inputs input_ids and attention_mask, got pixel_values" in note_of("car")


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_a_model_is_refused_at_the_start(tmp_path: Path, missing: str) -> None:
    (folder_with(tmp_path / "model") / missing).unlink()
    with pytest.raises(UsageError, match=f"--embeddings-folder: .* there is no {missing}"):
        background.jobs()


def test_a_library_that_is_missing_is_named_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_with(tmp_path / "model")
    monkeypatch.setattr(folder_model, "LIBRARIES", {"no_such_module": "Nothing"})
    with pytest.raises(UsageError, match=r'needs Nothing: pip install "fastrpc-mcp\[local-embeddings\]"'):
        background.jobs()


def test_two_models_are_one_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_with(tmp_path / "model")
    monkeypatch.setenv(_settings.EMBEDDINGS.name, "http://127.0.0.1:9/v1")
    with pytest.raises(UsageError, match="--embeddings-folder names a model, too"):
        background.jobs()
