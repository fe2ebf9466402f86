"""When the function of a task begins: while its row is flushed if it may be run again, else after that.

The server's commits of new tasks wait until the file `flushed` is there, or fail. A hook before the calls of
tasks notes whether it was there.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.child_processes import gone
from support.stdio import serve
from support.task_host import META, TaskHost, begun_in
from support.waiting import SECONDS, eventually

SERVER = f'''
import asyncio, os, sqlite3, time
from contextlib import contextmanager
from fastrpc import Context, Server
from fastrpc.storage import CommitUnknown
from fastrpc.storage.database import Database
from fastrpc.tasks import store

app = Server("slow disk", version="1")
FOLDER = os.path.dirname(os.path.abspath(__file__))
original_changing, original_create = Database.changing, store.create
created = []

def is_there(name):
    return os.path.exists(os.path.join(FOLDER, name))

def note(name, line=""):
    with open(os.path.join(FOLDER, name), "a") as file:
        file.write(f"{{line}}\\n")

def wait_for(name):
    deadline = time.monotonic() + {SECONDS}
    while not is_there(name):
        if time.monotonic() > deadline:
            raise TimeoutError(name)
        time.sleep(0.005)

def create(connection, record):
    original_create(connection, record)
    created.append(record)

@contextmanager
def changing(database, *kept):
    with original_changing(database, *kept) as connection:
        yield connection
        if created:
            created.clear()
            note("written")
            wait_for("flushed")
            if is_there("fails"):
                note("failed")
                raise sqlite3.OperationalError("disk I/O error")
            if is_there("lost") and not is_there("again begun"):
                wait_for("again begun")
                raise CommitUnknown("the answer to COMMIT is lost")

store.create, Database.changing = create, changing
store.MOST_OPEN = int(os.environ.get("MOST_OPEN", "1000"))

@app.before
def note_call(call):
    note("calls", f"{{call.name}} {{is_there('flushed')}}")

def work(name):
    note(f"{{name}} begun", os.getpid())
    wait_for("go")
    return f"{{name}} done"

@app.tool(effect="read", task="required", run="process")
def again() -> str:
    """May run twice."""
    return work("again")

@app.tool(effect="write", task="required", run="process")
def once() -> str:
    """Must not run twice."""
    return work("once")

@app.tool(effect="write", task="required", run="process", resumable=True)
def resumes() -> str:
    """Knows its work by the id of its task."""
    return work("resumes")

@app.tool(effect="read", task="required")
async def here() -> str:
    """Run in the process of the server."""
    return "here done"

@app.tool(effect="read", task="required", run="inline")
def holds() -> str:
    """Hold the event loop until the client has the task's id."""
    wait_for("answered")
    return "holds done"

@app.tool(effect="write", task="allowed", after_seconds=0)
async def reports(ctx: Context) -> str:
    """Report something while the row is flushed."""
    ctx.progress(1, 3, "one")
    while not is_there("written"):
        await asyncio.sleep(0.005)
    ctx.progress(2, 3, "two")
    note("reported")
    while not is_there("go"):
        await asyncio.sleep(0.005)
    return "reports done"

if __name__ == "__main__":
    app.run()
'''

LATER = ("once", "resumes", "here")
"""Tools whose calls begin when the row is there."""


class SlowDisk(TaskHost):
    """A server, and its folder."""

    def __init__(self, folder: Path, server: Any) -> None:
        super().__init__(server)
        self.folder = folder

    def ask_for(self, tool: str) -> int:
        """Call a tool without waiting; return the id of the request."""
        found: int = self.server.ask("tools/call", {"name": tool, "arguments": {}, "_meta": META})  # type: ignore[union-attr]
        return found

    def answer(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.answer()  # type: ignore[union-attr]
        return found

    def make(self, *names: str) -> None:
        for name in names:
            (self.folder / name).touch()

    def until_there(self, name: str) -> None:
        eventually((self.folder / name).exists)

    @property
    def calls(self) -> list[str]:
        """The calls that have begun, and whether the row was flushed then."""
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def rows(self, column: str) -> list[str]:
        database = sqlite3.connect(self.folder / "state" / "tasks.sqlite3", timeout=SECONDS)
        try:
            return [row[0] for row in database.execute(f"SELECT {column} FROM fastrpc_tasks")]
        finally:
            database.close()

    def pids(self, tool: str) -> list[int]:
        return begun_in(self.folder, f"{tool} begun")


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SlowDisk]:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    environment = {"FASTRPC_STATE_DIR": str(tmp_path / "state"), **getattr(request, "param", {})}
    with serve(command=[sys.executable, str(path)], environment=environment) as server:
        yield SlowDisk(tmp_path, server)
        assert "Traceback" not in server.stderr, server.stderr


def test_what_may_run_again_begins_while_its_row_is_flushed_and_is_answered_afterwards(
    disk: SlowDisk,
) -> None:
    disk.ask_for("again")
    disk.until_there("again begun")
    assert disk.rows("id") == []
    disk.make("flushed")
    id = disk.answer()["result"]["taskId"]
    assert disk.rows("id") == [id]
    disk.make("go")
    assert disk.ended(id)["result"]["content"][0]["text"] == "again done"
    assert disk.calls == ["again False"]
    assert len(disk.pids("again")) == 1


@pytest.mark.parametrize("tool", LATER)
def test_what_must_not_run_twice_begins_when_its_row_is_there(disk: SlowDisk, tool: str) -> None:
    disk.make("go")
    disk.ask_for(tool)
    disk.until_there("written")
    ping = disk.server.ask("ping", {"_meta": META})  # type: ignore[union-attr]
    assert disk.answer()["id"] == ping
    disk.make("flushed")
    id = disk.answer()["result"]["taskId"]
    assert disk.ended(id)["result"]["content"][0]["text"] == f"{tool} done"
    assert disk.calls == [f"{tool} True"]


@pytest.mark.parametrize("tool", ["again", *LATER])
def test_a_flush_that_fails_ends_the_call_and_leaves_no_task(disk: SlowDisk, tool: str) -> None:
    disk.make("fails")
    disk.ask_for(tool)
    if tool == "again":
        disk.until_there("again begun")
    disk.make("flushed")
    assert disk.answer()["error"]["code"] == -31001
    assert disk.rows("id") == []
    for pid in disk.pids(tool):
        gone(pid)
    assert disk.calls == (["again False"] if tool == "again" else [])
    (disk.folder / "fails").unlink()
    disk.make("go")
    id = disk.begin(tool)
    assert disk.ended(id)["result"]["content"][0]["text"] == f"{tool} done"
    assert disk.rows("state") == ["completed"]


@pytest.mark.parametrize("disk", [{"MOST_OPEN": "1"}], indirect=True)
def test_a_task_too_many_does_not_begin(disk: SlowDisk) -> None:
    disk.make("flushed")
    id = disk.begin("again")
    disk.ask_for("again")
    assert disk.answer()["error"]["code"] == -31001
    disk.make("go")
    assert disk.ended(id)["status"] == "completed"
    assert len(disk.calls) == 1


@pytest.mark.parametrize("tool", ["again", *LATER])
def test_a_request_that_is_cancelled_while_its_row_is_flushed_ends_its_call(
    disk: SlowDisk, tool: str
) -> None:
    request = disk.ask_for(tool)
    disk.until_there("again begun" if tool == "again" else "written")
    disk.server.notify("notifications/cancelled", {"requestId": request})  # type: ignore[union-attr]
    ping = disk.server.ask("ping", {"_meta": META})  # type: ignore[union-attr]
    assert disk.answer()["id"] == ping
    disk.make("flushed")
    eventually(lambda: disk.rows("state") == ["cancelled"])
    for pid in disk.pids(tool):
        gone(pid)
    assert len(disk.calls) == (tool == "again")


def test_a_flush_that_fails_for_a_request_that_was_cancelled_is_no_error_of_the_server(
    disk: SlowDisk,
) -> None:
    disk.make("fails")
    request = disk.ask_for("once")
    disk.until_there("written")
    disk.server.notify("notifications/cancelled", {"requestId": request})  # type: ignore[union-attr]
    ping = disk.server.ask("ping", {"_meta": META})  # type: ignore[union-attr]
    assert disk.answer()["id"] == ping
    disk.make("flushed", "go")
    disk.until_there("failed")
    (disk.folder / "fails").unlink()
    id = disk.begin("once")
    assert disk.ended(id)["status"] == "completed"
    # what was written together with the row is tried again alone, and so is the row
    assert set(disk.rows("state")) <= {"completed", "cancelled"}


def test_a_server_that_is_killed_while_a_row_is_flushed_leaves_no_task_and_no_process(disk: SlowDisk) -> None:
    disk.ask_for("again")
    disk.until_there("again begun")
    disk.server.kill()  # type: ignore[union-attr]
    for pid in disk.pids("again"):
        gone(pid)
    assert disk.rows("id") == []


def test_a_row_that_is_written_in_a_second_attempt_begins_its_call_once(disk: SlowDisk) -> None:
    disk.make("lost", "flushed")
    id = disk.begin("again")
    disk.make("go")
    assert disk.ended(id)["status"] == "completed"
    assert len(disk.calls) == len(disk.pids("again")) == 1


def test_a_function_that_holds_the_event_loop_begins_when_the_client_has_the_id(disk: SlowDisk) -> None:
    disk.make("flushed")
    id = disk.begin("holds")
    disk.make("answered")
    assert disk.ended(id)["result"]["content"][0]["text"] == "holds done"


def test_what_a_call_reports_while_its_row_is_flushed_is_in_the_row(disk: SlowDisk) -> None:
    disk.ask_for("reports")
    disk.until_there("reported")
    disk.make("flushed")
    id = disk.answer()["result"]["taskId"]
    eventually(lambda: disk.rows("message") == ["two"])
    disk.make("go")
    assert disk.ended(id)["status"] == "completed"
