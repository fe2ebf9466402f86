"""Models of the knowledge toolset as it is served and by its commands: nothing waits for them, their key is
shown nowhere, and nothing is imported where none is named."""

from __future__ import annotations

import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.guarded_folder import fastrpc, variables
from support.model_folder import folder_with
from support.model_server import KEY, Model, served
from support.process_list import read
from support.waiting import eventually

from fastrpc import Client
from fastrpc.client import SyncClient

SERVE = [sys.executable, "-m", "fastrpc", "serve", "fastrpc.tools.knowledge"]


@pytest.fixture
def model() -> Iterator[Model]:
    with served() as found:
        yield found


def client_of(folder: Path, model: Model, *options: str, **more: str) -> SyncClient:
    """A client of a server with this model, whose process id and standard error are files of the folder."""
    command = shlex.join([*SERVE, "--embeddings", model.url, "--embeddings-model", "m", *options])
    environment = variables(folder, **(more or {"FASTRPC_KNOWLEDGE_EMBEDDINGS_KEY": KEY}))
    shell = ["sh", "-c", f"echo $$ > pid; exec {command} 2>> log"]
    return Client.sync(shell, env=environment, cwd=str(folder))


def called(client: SyncClient, tool: str, **arguments: Any) -> Any:
    result = client.call_tool(tool, arguments)
    assert not result.is_error, result.text
    return result.structured


def contents(client: SyncClient, query: str) -> list[str]:
    return [each["content"] for each in called(client, "memory.search", query=query)["entries"]]


def database(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "state" / "knowledge.sqlite3", timeout=60)


def test_what_was_written_is_soon_found_by_meaning(tmp_path: Path, model: Model) -> None:
    with client_of(tmp_path, model) as client:
        called(client, "memory.write", content="An automobile.")
        called(client, "document.add", name="a.md", content="# Health\n\nThe physician is in.")
        eventually(lambda: contents(client, "car") == ["An automobile."])
        found = eventually(lambda: called(client, "document.query", query="doctor")["passages"])
        assert [each["name"] for each in found] == ["a.md"]
        assert "note" not in called(client, "memory.search", query="car")
    assert model.keys == {f"Bearer {KEY}"}


def test_what_was_written_before_there_was_a_model_is_read_when_there_is_one(
    tmp_path: Path, model: Model
) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        called(client, "memory.write", content="An automobile.")
    with client_of(tmp_path, model) as client:
        eventually(lambda: contents(client, "car") == ["An automobile."])


def test_where_the_model_is_away_words_are_searched_and_the_answer_says_so(
    tmp_path: Path, model: Model
) -> None:
    model.status, model.says = 500, KEY
    with client_of(tmp_path, model) as client:
        called(client, "memory.write", content="A car.")
        result = client.call_tool("memory.search", {"query": "car"})
        assert result.text.startswith("Found 1 entry:\n")
        assert result.text.endswith(
            "\n[Searched only by words: the model that --embeddings names: it answers 500 Internal Server "
            "Error.]"
        )
        assert result.structured["note"] == result.text.rpartition("\n")[2].strip("[]")
        found = called(client, "document.query", query="car")
        assert found["note"] == result.structured["note"]


def test_no_write_waits_for_a_model_that_hangs(tmp_path: Path, model: Model) -> None:
    model.holds = True
    with client_of(tmp_path, model) as client:
        for number in range(3):
            called(client, "memory.write", content=f"Automobile {number}.")
        eventually(lambda: model.waiting)
        called(client, "memory.write", content="One more.")
        assert len(called(client, "memory.search", query="tag:none")["entries"]) == 0
        model.holds = False
        eventually(lambda: len(model.embedded) == 4)


def test_a_server_that_is_killed_between_a_write_and_its_vector_loses_neither(
    tmp_path: Path, model: Model
) -> None:
    model.holds = True
    with client_of(tmp_path, model) as client:
        called(client, "memory.write", content="An automobile.")
        eventually(lambda: model.waiting)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    model.holds = False
    with database(tmp_path) as connection:
        assert connection.execute("SELECT done FROM knowledge_entry_vectors").fetchall() == [(0,)]
        connection.execute("UPDATE knowledge_entry_vectors SET claimed_until = 0")  # time passes
    with client_of(tmp_path, model) as client:
        eventually(lambda: contents(client, "car") == ["An automobile."])


def test_the_key_is_in_no_process_list_no_error_and_no_log(tmp_path: Path, model: Model) -> None:
    model.status, model.says = 401, f"wrong key {KEY}"
    settings = tmp_path / ".scorpiox"
    settings.mkdir()
    lines = f"FASTRPC_KNOWLEDGE_EMBEDDINGS_KEY={KEY}\n"
    (settings / "scorpiox-env.txt").write_text(lines)
    (settings / "scorpiox-env.txt").chmod(0o600)
    with client_of(tmp_path, model, HOME=str(tmp_path)) as client:
        called(client, "memory.write", content="A car.")
        assert "401" in called(client, "memory.search", query="car")["note"]
        assert KEY not in client.call_tool("memory.search", {"query": "car"}).text
        eventually(lambda: len(model.bodies) > 1)
        for each in filter(str.isdigit, os.listdir("/proc")):
            assert KEY.encode() not in read(f"/proc/{each}/cmdline")
    assert model.keys == {f"Bearer {KEY}"}
    assert KEY not in (tmp_path / "log").read_text()
    named = ["--embeddings", model.url, "--embeddings-model", "m"]
    failed = fastrpc(tmp_path, "knowledge", "reindex", *named, code=1, FASTRPC_KNOWLEDGE_EMBEDDINGS_KEY=KEY)
    assert "401 Unauthorized" in failed
    assert KEY not in failed


def test_a_model_needs_a_name(tmp_path: Path, model: Model) -> None:
    done = subprocess.run(
        [*SERVE, "--embeddings", model.url],
        env=variables(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "--embeddings-model: expected the name of the model of --embeddings" in done.stderr


@pytest.mark.long
def test_reindexing_makes_vectors_anew_and_the_statistics_count_them(tmp_path: Path, model: Model) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        called(client, "memory.write", content="An automobile.")
        called(client, "document.add", name="a.md", content="# Health\n\nThe physician is in.")
    named = ["--embeddings", model.url, "--embeddings-model", "first"]
    assert "2 entries and passages indexed" in fastrpc(tmp_path, "knowledge", "reindex", *named)
    statistics = " ".join(fastrpc(tmp_path, "knowledge", "stats").split())
    assert "vectors 2 first 2 read by model 0" in statistics
    fastrpc(tmp_path, "knowledge", "reindex")
    assert "first 2" in " ".join(fastrpc(tmp_path, "knowledge", "stats").split())
    named[-1] = "second"
    fastrpc(tmp_path, "knowledge", "reindex", *named)
    assert "vectors 2 second 2" in " ".join(fastrpc(tmp_path, "knowledge", "stats").split())
    assert "whole" in fastrpc(tmp_path, "knowledge", "check")


def test_a_model_in_a_folder_reads_after_the_writing_and_in_commands(tmp_path: Path) -> None:
    named = ["--embeddings-folder", str(folder_with(tmp_path / "model"))]
    with Client.sync([*SERVE, *named], env=variables(tmp_path)) as client:
        called(client, "memory.write", content="automobile")
        eventually(lambda: contents(client, "car") == ["automobile"])
    fastrpc(tmp_path, "knowledge", "reindex", *named)
    assert "vectors 1 model@" in " ".join(fastrpc(tmp_path, "knowledge", "stats").split())


def test_where_no_model_is_named_nothing_of_models_is_imported(tmp_path: Path) -> None:
    program = (
        "import sys; from fastrpc import Server; import fastrpc.tools.knowledge as knowledge; "
        "from fastrpc.testing import Client; app = Server('k'); app.include(knowledge); "
        "import asyncio\n"
        "async def main():\n"
        "    async with Client(app) as client:\n"
        "        await client.call_tool('memory.write', {'content': 'A car.'})\n"
        "        await client.call_tool('memory.search', {'query': 'car'})\n"
        "asyncio.run(main())\n"
        "print(sorted(name for name in sys.modules "
        "if name.partition('.')[0] in ('numpy', 'httpx', 'onnxruntime') "
        "or '_models.' in name or name.endswith('vectors')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=variables(tmp_path), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n", done.stderr
