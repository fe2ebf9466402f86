"""`fastrpc knowledge import`, `export`, `stats`, `check` and `reindex`, as a person runs them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from fastrpc.tools.knowledge import _moving_documents
from fastrpc.tools.knowledge._extraction import Extracted, passages
from fastrpc.tools.knowledge._store import moving
from fastrpc.tools.knowledge._store.documents import Documents
from fastrpc.tools.knowledge._store.entries import Reader
from fastrpc.tools.knowledge._store.kind import KNOWLEDGE
from support.guarded_folder import variables
from support.waiting import eventually

from fastrpc import Client
from fastrpc.storage import open_database

pytest_plugins = ["support.postgres"]
COMMAND = [sys.executable, "-m", "fastrpc", "knowledge"]
SERVE = [sys.executable, "-m", "fastrpc", "serve", "fastrpc.tools.knowledge"]
BASIC_MEMORY = """---
title: Roof
permalink: house/roof
tags: [house]
date: 2024-03-01
---
# Roof
Slate, from 1902.

- [fact] It leaks in the north #leak (seen in May)
- [ ] call Ada
- repaired_by [[Ada]]
"""


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env=variables(tmp_path),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def exported(tmp_path: Path, *options: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in run(tmp_path, "export", *options).stdout.splitlines()]


def contents(tmp_path: Path) -> list[object]:
    return [each["content"] for each in exported(tmp_path)]


def test_what_is_imported_is_found_and_twice_adds_nothing(tmp_path: Path) -> None:
    line = {
        "content": "The deadline is in May.",
        "category": "preference",
        "tags": ["Work"],
        "date": "2024-05-01",
    }
    (tmp_path / "m.jsonl").write_text(json.dumps(line) + "\n\n")
    assert (
        run(tmp_path, "import", str(tmp_path / "m.jsonl")).stdout == "1 added, 0 known already, 0 skipped\n"
    )
    again = run(tmp_path, "import", str(tmp_path / "m.jsonl"))
    assert (again.stdout, again.stderr, again.returncode) == ("0 added, 1 known already, 0 skipped\n", "", 0)
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        found = client.call_tool("memory.search", {"query": "deadlines tag:work"}).structured["entries"]
        assert [(each["category"], each["date"]) for each in found] == [
            ("preference", "2024-05-01T00:00:00Z")
        ]


def test_a_broken_line_is_named_and_the_others_are_imported(tmp_path: Path) -> None:
    lines = [
        b'{"content": "one"}', b"{broken", b"[1]", b'{"text": "x"}', b'{"content": 5}', b"\xff",
        b"[" * 100_000,
        b'{"content": "a", "category": "rumour"}', b'{"content": "a", "tags": "x"}',
        b'{"content": "a\\u0000"}',
        b'{"content": "a", "date": "soon"}', b'{"content": "a", "scope": ["user"]}', b'{"content": "two"}',
        b'{"content": "' + b"x" * 5_000_000 + b'"}', b'{"content": "three"}',
    ]  # fmt: skip
    (tmp_path / "m.jsonl").write_bytes(b"\n".join(lines))
    done = run(tmp_path, "import", str(tmp_path / "m.jsonl"))
    assert done.stdout == "3 added, 0 known already, 12 skipped\n"
    assert done.returncode == 1
    assert [each.split(": ")[:2] for each in done.stderr.splitlines()] == [
        ["m.jsonl:2", "expected a JSON object on the line"],
        ["m.jsonl:3", "expected a JSON object, got list"],
        ["m.jsonl:4", "content"],
        ["m.jsonl:5", "content"],
        ["m.jsonl:6", "expected UTF-8, broken at byte 0"],
        ["m.jsonl:7", "expected a JSON object on the line"],
        ["m.jsonl:8", "category"],
        ["m.jsonl:9", "tags"],
        ["m.jsonl:10", "content"],
        ["m.jsonl:11", "date"],
        ["m.jsonl:12", "scope"],
        ["m.jsonl:14", "expected a line of at most 4,194,304 bytes"],
    ]
    assert contents(tmp_path) == ["one", "two", "three"]


def test_what_other_memories_export_is_understood(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "a.md").write_text("hidden")
    (folder / "deep" / "roof.md").write_text(BASIC_MEMORY)
    (folder / "plain.md").write_text("Just a note.")
    (folder / "long.md").write_text("\n\n".join(f"word{at} " * 800 for at in range(8)))
    (folder / "linked.md").symlink_to(tmp_path / "mem0.json")
    graph = [
        {
            "type": "entity",
            "name": "Ada",
            "entityType": "person",
            "observations": ["likes slate", "is precise"],
        },
        {"type": "relation", "from": "Ada", "to": "Roof", "relationType": "repairs"},
    ]
    (tmp_path / "memory.jsonl").write_text("\n".join(map(json.dumps, graph)))
    mem0 = {"results": [{"id": "x", "memory": "Likes tea", "created_at": "2024-01-02T03:04:05.123456-07:00"}]}
    (tmp_path / "mem0.json").write_text(json.dumps(mem0))
    for name in ("memory.jsonl", "mem0.json"):
        assert run(tmp_path, "import", str(tmp_path / name)).returncode == 0
    assert contents(tmp_path) == [
        "Ada (person): likes slate",
        "Ada (person): is precise",
        "Ada repairs Roof",
        "Likes tea",
    ]
    done = run(tmp_path, "import", str(folder))
    assert done.stderr == "linked.md: a symbolic link, not a regular file: skipped\n"
    found = {each["content"]: each for each in exported(tmp_path)[4:]}
    leak = found["Roof: It leaks in the north #leak (seen in May)"]
    assert leak["tags"] == ["house", "fact", "leak"]
    assert leak["source"] == os.path.join("deep", "roof.md")
    assert leak["date"] == 1709251200.0
    assert "Roof repaired_by Ada" in found
    assert found["# Roof\nSlate, from 1902.\n\n- [ ] call Ada"]["category"] == "fact"
    assert "plain\n\nJust a note." in found
    assert sum(each["source"] == "long.md" for each in found.values()) == 3
    assert len(found) == 7


def test_an_export_brings_everything_back(tmp_path: Path) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        id = client.call_tool("memory.write", {"content": "May", "tags": ["a"]}).structured["id"]
        client.call_tool("memory.write", {"content": "June\n会议", "supersedes": id, "source": "mail"})
        client.call_tool("memory.write", {"content": "own", "scope": "agent"})
    before = exported(tmp_path)
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, before)))
    other = f"sqlite:///{tmp_path}/other.sqlite3"
    assert run(tmp_path, "import", str(tmp_path / "all.jsonl"), "--database", other).returncode == 0
    assert exported(tmp_path, "--database", other) == before
    assert before[0]["superseded_by"] == before[1]["id"]
    assert exported(tmp_path, "--database", other, "--owner", "bob") == []


@pytest.mark.long
def test_an_import_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    number = 4000
    wanted = [f"entry {at} of many" for at in range(number)]
    (tmp_path / "m.jsonl").write_text("\n".join(json.dumps({"content": each}) for each in wanted))
    database = tmp_path / "k.sqlite3"
    command = [*COMMAND, "import", str(tmp_path / "m.jsonl"), "--database", f"sqlite:///{database}"]
    with subprocess.Popen(command, env=variables(tmp_path), stdout=subprocess.DEVNULL) as process:

        def has_begun() -> bool:
            if not database.exists():
                return False
            try:
                with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
                    return bool(connection.execute("SELECT count(*) FROM knowledge_entries").fetchone()[0])
            except sqlite3.OperationalError:
                return False

        eventually(has_begun)
        process.send_signal(signal.SIGKILL)
    assert subprocess.run(command, env=variables(tmp_path), timeout=100, check=False).returncode == 0
    found = exported(tmp_path, "--database", f"sqlite:///{database}")
    assert [each["content"] for each in found] == wanted
    assert run(tmp_path, "check", "--database", f"sqlite:///{database}").returncode == 0


def test_a_damaged_index_is_named_and_made_anew(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    database = open_database(database_url, KNOWLEDGE)
    records = [moving.Record(f"entry {at}", "fact", "", [], "") for at in range(700)]
    assert moving.add(database, "ada", records) == 700
    assert moving.add(database, "ada", records) == 0
    assert moving.problems(database) == []
    is_sqlite = database_url.startswith("sqlite") or not database_url
    key = "rowid" if is_sqlite else "number"
    with database.changing() as connection:
        connection.exec_driver_sql(f"DELETE FROM knowledge_words WHERE {key} <= 5")
        connection.exec_driver_sql("UPDATE knowledge_entries SET content = 'other' WHERE number = 9")
    assert moving.problems(database) == [
        "5 entries that the index of words does not have: fastrpc knowledge reindex mends it",
        "1 entries whose content is not what was written",
    ]
    assert moving.reindex(database) == 700
    assert moving.problems(database) == ["1 entries whose content is not what was written"]
    assert moving.counts(database)["entries"] == 700
    database.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("import", "none"), "none: No such file or directory"),
        (("import",), "required: path"),
        (("export", "--ownr", "x"), "--owner"),
        (("imprt",), "imprt"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


# --- all of an owner's -------------------------------------------------------------------------------------


def filled(url: str) -> Documents:
    """A store with documents of each kind that there may be."""
    store, ada = Documents(open_database(url, KNOWLEDGE)), Reader("ada", "")
    for number, extracted in enumerate(
        (
            Extracted(["one\n\ntwo", ""], markdown=["# One\n\ntwo", ""], title="T", warnings=["a", "b"]),
            Extracted(["the harbour"], media_type="application/pdf", language="de"),
        )
    ):
        document, _ = store.begin(ada, f"file {number}.pdf", b"file %d" % number, ["work", f"n{number}"])
        store.finish(document.number, extracted, passages(extracted))
    document, _ = store.begin(ada, "broken.pdf", b"broken", ())
    store.fail(document.number, "it is damaged")
    store.begin(Reader("bob", ""), "bobs.pdf", b"Bob's own", ())
    return store


def held(url: str, owner: str) -> list[object]:
    """What an owner has, but for the numbers of rows and when a state was set."""
    database = open_database(url, KNOWLEDGE)
    store, reader = Documents(database), Reader(owner, "")
    found: list[object] = [vars_of(each) for each in moving.everything(database, owner)]
    for each in store.page(reader, None, 100):
        facts = {name: getattr(each, name) for name in each.__slots__ if name != "number"}
        text = store.text(each, 1, 99, 10**6), store.text(each, 1, 99, 10**6, as_markdown=True)
        found.append((sorted(facts.items(), key=repr), text, store.original(each)))
    with database.reading() as connection:
        rows = connection.exec_driver_sql(
            "SELECT d.id, p.position, p.page, p.heading, p.content FROM knowledge_passages AS p JOIN "
            "knowledge_documents AS d ON d.number = p.document ORDER BY d.id, p.position"
        )
        found += [tuple(row) for row in rows]
    assert moving.problems(database) == []
    database.close()
    return found


def vars_of(record: moving.Record) -> dict[str, object]:
    return dict(vars(record))


@pytest.mark.long
def test_what_is_exported_into_a_folder_is_the_same_where_it_is_imported(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    store = filled(database_url)
    (document,) = store.page(Reader("ada", ""), None, 1, state="ready")
    store.begin(Reader("ada", ""), "second name.txt", store.original(document), ())
    assert moving.add(
        store.database, "ada", [moving.Record("The deadline.", "fact", "", ["work"], "mail", 1000.0)]
    )
    folder, other = str(tmp_path / "out"), f"sqlite:///{tmp_path}/state/other.sqlite3"
    done = run(tmp_path, "export", folder, "--database", database_url, "--owner", "ada")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    text = "".join(path.read_text() for path in (tmp_path / "out").glob("**/*") if path.is_file())
    assert "Bob" not in text
    imported = run(tmp_path, "import", folder, "--database", other, "--owner", "ada")
    assert imported.stdout == (
        "1 added, 0 known already, 0 skipped\ndocuments: 3 added, 0 known already, 0 skipped\n"
    )
    assert held(other, "ada") == held(database_url, "ada")
    again = run(tmp_path, "import", folder, "--database", other, "--owner", "ada")
    assert again.stdout == (
        "0 added, 1 known already, 0 skipped\ndocuments: 0 added, 3 known already, 0 skipped\n"
    )
    found = Documents(open_database(other, KNOWLEDGE))
    assert [each.content for each in searched(found, "harbour")] == ["the harbour"]


def searched(store: Documents, words: str) -> list[object]:
    from fastrpc.tools.knowledge._search import question

    return list(store.search(Reader("ada", ""), question.read(words), (), (), 5))


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"digest": "../../secret"}, "digest: expected a SHA-256"),
        ({"digest": "0" * 64}, "No such file"),
        ({"name": "../a.pdf"}, "name: expected the name of a file"),
        ({"tags": ["a\nb"]}, "tags[0]: expected a line"),
        ({"state": "extracting"}, "state: expected ready or failed"),
        ({"title": 7}, "title: expected a text"),
        ({"date": "soon"}, "date: expected ISO 8601"),
    ],
)
def test_a_document_of_a_folder_that_is_not_right_is_named_and_skipped(
    tmp_path: Path, change: dict[str, object], why: str
) -> None:
    url, folder = f"sqlite:///{tmp_path}/state/a.sqlite3", tmp_path / "out"
    filled(url).database.close()
    assert run(tmp_path, "export", str(folder), "--database", url, "--owner", "ada").returncode == 0
    lines = (folder / "documents.jsonl").read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), **change})
    (folder / "documents.jsonl").write_text("\n".join(lines) + "\n")
    done = run(tmp_path, "import", str(folder), "--owner", "ada")
    assert done.returncode == 1
    assert f"documents.jsonl:1: {why}" in done.stderr or why in done.stderr
    assert "documents: 2 added, 0 known already, 1 skipped" in done.stdout


def test_an_original_that_was_changed_and_a_text_that_is_none_are_skipped(tmp_path: Path) -> None:
    url, folder = f"sqlite:///{tmp_path}/state/a.sqlite3", tmp_path / "out"
    filled(url).database.close()
    run(tmp_path, "export", str(folder), "--database", url, "--owner", "ada")
    digests = [json.loads(line)["digest"] for line in (folder / "documents.jsonl").read_text().splitlines()]
    (folder / "originals" / digests[0]).write_bytes(b"another file")
    (folder / "texts" / f"{digests[1]}.json").write_text('{"pages": ["a"], "markdown": []}')
    (folder / "originals" / digests[2]).unlink()
    (folder / "originals" / digests[2]).symlink_to("/etc/hostname")
    done = run(tmp_path, "import", str(folder), "--owner", "ada")
    assert done.returncode == 1
    assert "it is not the file that its name says" in done.stderr
    assert "expected pages, and markdown of as many or null" in done.stderr
    assert "documents: 0 added, 0 known already, 3 skipped" in done.stdout
    assert _moving_documents.is_in(str(folder))
