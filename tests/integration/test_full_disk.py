"""A disk that is full: what is written beside the answers says so once, and every message is answered.

The disk is full as far as a server is concerned: no file of it may grow beyond some bytes (RLIMIT_FSIZE).
"""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.guarded_folder import variables
from support.http_server import FASTRPC, HttpProcess
from support.waiting import eventually

from fastrpc import Client
from fastrpc.client.sync import SyncClient
from fastrpc.diagnostics import FILE_VARIABLE

UNLIMITED = resource.RLIM_INFINITY
FULL = "File too large"  # what the system says of the limit; of a full disk "No space left on device"
TOOLS = """
import os
from fastrpc import Server
from fastrpc import diagnostics

app = Server("t")

@app.tool(run="inline")
def process() -> int:
    return os.getpid()

@app.tool(run="inline")
def log(text: str) -> str:
    diagnostics.write("error", text)
    return text
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    return tmp_path


@contextmanager
def full(process: int, file: Path, room: int = 20) -> Iterator[None]:
    """Let no file of a process grow beyond the size of one of them and some room."""
    resource.prlimit(process, resource.RLIMIT_FSIZE, (file.stat().st_size + room, UNLIMITED))
    yield
    resource.prlimit(process, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))


def served(folder: Path, *options: str, **more: str) -> SyncClient:
    command = [*FASTRPC, "serve", "tools.py:app", *options]
    return Client.sync(command, cwd=str(folder), env=variables(folder, **more))


def test_the_log_goes_to_standard_error_while_its_file_cannot_be_written(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = folder / "log"
    with served(folder, **{FILE_VARIABLE: str(path)}) as client:
        process = int(client.call_tool("process", {}).text)
        client.call_tool("log", {"text": "before"})
        with full(process, path):
            for number in range(100):
                assert client.call_tool("log", {"text": f"record {number}"}).text == f"record {number}"
        client.call_tool("log", {"text": "behind"})
    first, *records = capfd.readouterr().err.splitlines()
    assert first == f"fastrpc: {FILE_VARIABLE}: {path}: {FULL}; the log is written here"
    assert [line.rpartition(": ")[2] for line in records] == [f"record {number}" for number in range(100)]
    before, cut, behind = path.read_text().splitlines()
    assert before.endswith(": before")
    assert len(cut) == 20
    assert behind.endswith(": behind")


def test_a_log_file_that_filled_the_disk_is_made_anew_once_it_is_moved(folder: Path) -> None:
    path = folder / "log"
    with served(folder, **{FILE_VARIABLE: str(path)}) as client:
        process = int(client.call_tool("process", {}).text)
        client.call_tool("log", {"text": "before" * 100})
        with full(process, path):
            client.call_tool("log", {"text": "meanwhile"})
            path.rename(folder / "old")
            client.call_tool("log", {"text": "behind"})
    assert path.read_text().endswith(": behind\n")


def test_a_trace_says_how_many_messages_it_lacks(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = folder / "trace"
    with served(folder, "--trace", str(path)) as client:
        process = int(client.call_tool("process", {}).text)
        with full(process, path):
            for number in range(100):
                assert client.call_tool("log", {"text": f"record {number}"}).text == f"record {number}"
        client.call_tool("process", {})
    errors = [line for line in capfd.readouterr().err.splitlines() if "--trace" in line]
    assert len(errors) == 1
    assert errors[0].endswith(f"--trace: cannot write {path}: {FULL}; messages are left out of it")
    lines = path.read_text().splitlines()
    (missing,) = [line for line in lines if line.startswith("#")]
    assert missing in {f"# {count} lines are missing here" for count in (200, 201)}  # the answer before, too
    assert "process" in lines[lines.index(missing) + 1]


@pytest.mark.parametrize("option", ["--trace", "--access-log"])
def test_over_http_requests_are_answered_while_what_notes_them_cannot_be_written(
    folder: Path, option: str
) -> None:
    path = folder / "notes"
    command = ("serve", "tools.py:app", "--http", "127.0.0.1:0", "--no-auth", option, str(path))
    more = ("--access-log-format", "json") if option == "--access-log" else ()
    with HttpProcess(*command, *more, folder=folder, environment=variables(folder)) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        with Client.sync(url) as client:
            client.call_tool("process", {})
            eventually(lambda: path.stat().st_size > 0)
            with full(server.pid, path):
                for number in range(20):
                    assert client.call_tool("log", {"text": f"record {number}"}).text == f"record {number}"
                eventually(lambda: FULL in server.stderr)
            assert client.call_tool("log", {"text": "behind"}).text == "behind"
        assert server.stop() == 0
        assert server.stderr.count(FULL) == 1
    whole = [line for line in path.read_text().splitlines() if is_whole(line)]
    assert any("missing" in line or "dropped" in line for line in whole)
    assert len(path.read_text().splitlines()) == len(whole) + 1, "one line was cut, and no other"


def is_whole(line: str) -> bool:
    try:
        return line.startswith("#") or bool(json.loads(line[line.index("{") :]))
    except ValueError:
        return False


def test_the_knowledge_store_refuses_what_it_cannot_keep_and_answers_from_what_it_has(folder: Path) -> None:
    command = [*FASTRPC, "serve", "fastrpc.tools.knowledge", "tools.py:app"]
    with Client.sync(command, cwd=str(folder), env=variables(folder)) as client:
        process = int(client.call_tool("process", {}).text)
        client.call_tool("memory.write", {"content": "the first entry"})
        store = folder / "state" / "knowledge.sqlite3-wal"
        with full(process, store):
            for _ in range(3):
                refused = client.call_tool("memory.write", {"content": "another entry " * 1000})
                assert refused.is_error
                assert "the knowledge store" in refused.text
                assert "disk" in refused.text
                assert "the first entry" in client.call_tool("memory.search", {"query": "first"}).text
        assert not client.call_tool("memory.write", {"content": "a later entry"}).is_error
        found = client.call_tool("memory.search", {"query": "entry"}).text
        assert "the first entry" in found
        assert "a later entry" in found
        assert "another entry" not in found
