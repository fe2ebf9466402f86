"""The knowledge toolset where processes are killed, the disk is full, the database goes away, and many write
at once: one clear error for each call that fails, and nothing is lost that was answered."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastrpc.tools import knowledge
from fastrpc.tools.knowledge import _extraction
from fastrpc.tools.knowledge._store.entries import Entries
from fastrpc.tools.knowledge._store.kind import KNOWLEDGE
from support.guarded_folder import variables
from support.knowledge_entries import write
from support.workflows import called, served

from fastrpc import Server, testing
from fastrpc.storage import open_database, sqlite

if TYPE_CHECKING:
    from support.postgres import Cluster

pytestmark = pytest.mark.long

pytest_plugins = ["support.postgres"]

KILLED = """
import os, signal, sys; sys.path += sys.argv[6:]
import document_worker as worker, _system_calls
_system_calls.confine_if_possible = lambda *more: None  # it sends no signal
extract = worker.Library.extract
def killed(self, data, *arguments, **options):
    if data != b"start":
        os.kill(os.getpid(), signal.SIGKILL)
    return extract(self, data, *arguments, **options)
worker.Library.extract = killed
worker.main()
"""
CLIENTS = 25
NO_ROOM = ("database or disk is full", "disk I/O error", "File too large")


def contents_of(client: Any) -> set[str]:
    found = called(client, "memory.search", query="", limit=100)
    return {each["content"] for each in found["entries"]}


def limit_files(pid: int, size: int) -> None:
    """Let a process write no file beyond a size, as if the disk were full."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_a_document_whose_reader_is_killed_has_failed_and_is_read_when_it_is_added_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def conversation() -> None:
        app = Server("knowledge")
        app.include(knowledge)
        async with testing.Client(app) as client:
            with monkeypatch.context() as patched:
                patched.setattr(_extraction, "BOOTSTRAP", KILLED)
                failed = await client.call("document.add", name="a.csv", content="a,b")
            assert failed.is_error
            assert "a.csv: the program that reads it ended with SIGKILL. It is kept as doc_" in failed.text
            listed = await client.call("document.list")
            assert [each["state"] for each in listed.structured["documents"]] == ["failed"]
            again = await client.call("document.add", name="a.csv", content="a,b")
            assert again.structured["document"]["state"] == "ready"

    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))
    asyncio.run(asyncio.wait_for(conversation(), 60))


@pytest.mark.parametrize("size", [4096] if hasattr(resource, "prlimit") else [])
def test_on_a_full_disk_a_call_is_one_error_and_what_was_answered_is_there(tmp_path: Path, size: int) -> None:
    with served(tmp_path) as client:
        called(client, "memory.write", content="before")
        pid = int(client.call_tool("pid", {}).text)
        limit_files(pid, size)
        for number in range(3):
            written = client.call_tool("memory.write", {"content": f"meanwhile {number} {'x' * 9000}"})
            added = client.call_tool("document.add", {"name": f"{number}.txt", "content": "y" * 9000})
            for failed in (written, added):
                assert failed.is_error
                assert any(each in failed.text for each in NO_ROOM), failed.text
                assert "\n" not in failed.text
        assert contents_of(client) == {"before"}
        limit_files(pid, resource.RLIM_INFINITY)
        called(client, "memory.write", content="behind")
        document = called(client, "document.add", name="0.txt", content="y" * 9000)["document"]
        assert document["state"] == "ready"
        assert contents_of(client) == {"before", "behind"}
    checked = command(tmp_path, "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def command(folder: Path, *arguments: str, size: int | None = None) -> subprocess.CompletedProcess[str]:
    limit = resource.RLIM_INFINITY if size is None else size
    return subprocess.run(
        [sys.executable, "-m", "fastrpc", "knowledge", *arguments],
        env=variables(folder),
        capture_output=True,
        text=True,
        timeout=110,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)),
    )


def test_an_import_onto_a_full_disk_is_one_error_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(f'{{"content": "entry {number} {"x" * 3000}"}}\n' for number in range(2500)))
    assert command(tmp_path, "stats").returncode == 0
    failed = command(tmp_path, "import", str(lines), size=2_000_000)
    assert failed.returncode == 2
    assert any(each in failed.stderr for each in NO_ROOM), failed.stderr
    assert "Traceback" not in failed.stderr
    assert command(tmp_path, "check").returncode == 0
    done = command(tmp_path, "import", str(lines))
    assert done.returncode == 0, done.stderr
    exported = command(tmp_path, "export").stdout.splitlines()
    assert len({json.loads(line)["content"] for line in exported}) == len(exported) == 2500


def test_a_writer_waits_for_others_as_long_as_the_kind_of_database_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However short SQLite's own patience is."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    path = f"{tmp_path}/store.sqlite3"
    store = Entries(open_database(f"sqlite:///{path}", KNOWLEDGE._replace(wait_seconds=60.0)))
    other = sqlite.connect(path)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write, store, "behind the other one")
        assert not wait([writing], 0.5).done
        other.execute("COMMIT")
        assert writing.result(60).content == "behind the other one"
    other.close()
    store.database.close()


WRITER = """
import sys
from fastrpc.tools.knowledge._store import current
from fastrpc.tools.knowledge._store.entries import Reader
store = current()
print("ready", flush=True)
sys.stdin.readline()
for number in range(8):
    done = store.write(Reader("ada", ""), f"writer {sys.argv[1]} number {number}", "fact", "user", [], "")
    print(done[0].content, flush=True)
"""


def test_twenty_five_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    environment = {
        **variables(tmp_path),
        "FASTRPC_KNOWLEDGE_DATABASE": f"sqlite:///{tmp_path}/shared.sqlite3",
    }
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(number)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(CLIENTS)
    ]  # fmt: skip
    try:
        for each in writers:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        answered: set[str] = set()
        for each in writers:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        for each in writers:
            out, err = each.communicate(timeout=100)
            assert each.returncode == 0, err
            answered |= set(out.splitlines())
    finally:
        for each in writers:
            each.kill()
            each.wait()
    assert len(answered) == 8 * CLIENTS
    done = command(tmp_path, "export", "--owner", "ada", "--database", f"sqlite:///{tmp_path}/shared.sqlite3")
    assert {json.loads(line)["content"] for line in done.stdout.splitlines()} == answered


def test_a_database_that_goes_and_comes_back_loses_nothing_that_was_answered(
    postgres: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """25 clients write all the while."""
    answered: set[str] = set()
    errors: list[str] = []
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("FASTRPC_KNOWLEDGE_DATABASE", postgres.url(postgres.new_database()))

    async def conversation() -> None:
        app = Server("knowledge")
        app.include(knowledge)
        over = asyncio.Event()

        async def write(client: Any, number: int) -> None:
            turn = 0
            while not over.is_set():
                turn += 1
                done = await client.call("memory.write", content=f"client {number} turn {turn}")
                if done.is_error:
                    errors.append(done.text)
                    await asyncio.sleep(0.05)
                else:
                    answered.add(f"client {number} turn {turn}")

        async def come_to(is_so: Any) -> None:
            while not is_so():
                await asyncio.sleep(0.01)

        async with testing.Client(app) as client:
            writing = [asyncio.ensure_future(write(client, number)) for number in range(CLIENTS)]
            for _ in range(2):
                before, wrong = len(answered), len(errors)
                await come_to(lambda before=before: len(answered) > before + CLIENTS)
                await asyncio.to_thread(postgres.stop)
                await come_to(lambda wrong=wrong: len(errors) > wrong + CLIENTS)
                postgres.start()
                before = len(answered)
                await come_to(lambda before=before: len(answered) > before + CLIENTS)
            over.set()
            await asyncio.gather(*writing)
            found = set()
            for number in range(CLIENTS):
                seen = await client.call("memory.search", query=f'"client {number} turn"', limit=100)
                found |= {each["content"] for each in seen.structured["entries"]}
                assert len(seen.structured["entries"]) < 100
            assert answered <= found

    asyncio.run(asyncio.wait_for(conversation(), 110))
    kinds = ("DatabaseUnavailable", "CommitUnknown")  # the second: it may have been written
    starts = tuple(f"{kind}: the knowledge store: postgresql://****@" for kind in kinds)
    assert all(each.startswith(starts) for each in errors), set(errors)
    assert not any("\n" in each for each in errors), set(errors)
