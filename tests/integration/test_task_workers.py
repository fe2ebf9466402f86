"""Tasks that processes of `fastrpc worker` run: real servers and workers on one database, killed at each step
of a task's life."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.child_processes import gone, is_alive
from support.stdio import Process, serve
from support.task_client import TaskClient
from support.task_host import META, TaskHost, begun_in
from support.waiting import eventually, until

from fastrpc import Server

pytest_plugins = ["support.postgres"]

SERVER = '''
import asyncio, os, subprocess, time
from fastrpc import Context, Server
app = Server("shared", version="1")
FOLDER = os.path.dirname(os.path.abspath(__file__))

def note(what):
    with open(os.path.join(FOLDER, what), "a") as file:
        file.write(f"{os.getpid()}\\n")

async def work(name):
    note(name)
    while not os.path.exists(os.path.join(FOLDER, "go")):
        await asyncio.sleep(0.01)
    return f"{name} done"

@app.tool(effect="write", task="required")
async def once(name: str = "once") -> str:
    """Must not run twice."""
    return await work(name)

@app.tool(effect="read", task="required")
async def again(name: str = "again") -> str:
    """May run twice."""
    return await work(name)

@app.tool(effect="write", task="required")
async def asks(ctx: Context) -> str:
    """Ask, then work."""
    note("asked")
    answer = await ctx.elicit("Which?", str, key="which")
    return await work(answer.value)

@app.tool(effect="write", task="allowed", after_seconds=0.2)
async def later() -> str:
    """Begin where it is called."""
    return await work("later")

@app.tool(effect="exec", task="required", run="process")
def endless() -> str:
    """Run in a process, with a child in another session."""
    child = subprocess.Popen(["setsid", "sleep", "600"])
    with open(os.path.join(FOLDER, "new"), "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    os.replace(os.path.join(FOLDER, "new"), os.path.join(FOLDER, "pids"))
    while True:
        time.sleep(1)

if __name__ == "__main__":
    app.run()
'''


class Fleet:
    """The folder of a server, its database, and its processes."""

    def __init__(self, folder: Path, url: str, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.environment = {
            "FASTRPC_STATE_DIR": str(folder / "state"),
            "FASTRPC_TASKS_DATABASE": url,
            "FASTRPC_TASK_WORKERS": "true",
        }
        (folder / "server.py").write_text(SERVER)

    def _start(self, *command: str) -> Process:
        place = str(self.folder / "server.py")
        line = [sys.executable, *command, place]
        return self._stack.enter_context(serve(command=line, environment=self.environment))

    def host(self) -> TaskHost:
        return TaskHost(self._start())

    def worker(self) -> Process:
        return self._start("-m", "fastrpc", "worker")

    def runs(self, name: str) -> list[int]:
        """The processes in which this work was begun, in order."""
        return begun_in(self.folder, name)

    def let_go(self) -> None:
        (self.folder / "go").touch()


def kill(process: Process) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.process.wait()


@pytest.fixture
def fleet(tmp_path: Path, database_url: Any) -> Iterator[Fleet]:
    """On a database of each kind."""
    with ExitStack() as stack:
        yield Fleet(tmp_path, database_url, stack)


@pytest.fixture
def postgres_fleet(tmp_path: Path, postgres: Any) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(tmp_path, postgres.url(postgres.new_database()), stack)


def test_a_worker_runs_what_a_server_leaves_to_it(fleet: Fleet) -> None:
    host = fleet.host()
    id = host.begin("once")
    assert host.get(id)["status"] == "working"
    assert fleet.runs("once") == []
    worker = fleet.worker()
    eventually(lambda: fleet.runs("once") == [worker.pid])
    fleet.let_go()
    assert host.ended(id)["result"]["content"][0]["text"] == "once done"


@pytest.mark.long
def test_a_call_that_becomes_a_task_later_goes_on_where_it_began(postgres_fleet: Fleet) -> None:
    host, _ = postgres_fleet.host(), postgres_fleet.worker()
    id = host.begin("later")
    postgres_fleet.let_go()
    assert host.ended(id)["status"] == "completed"
    assert postgres_fleet.runs("later") == [host.server.pid]


def test_a_worker_needs_no_libraries_but_those_of_its_extras(postgres_fleet: Fleet) -> None:
    blocked = ("cryptography", "re2", "rfc8785", "tree_sitter", "dbos", "httpx", "httptools", "yaml")
    (postgres_fleet.folder / "blocked").mkdir()
    text = "".join(f"import sys\nsys.modules[{name!r}] = None\n" for name in blocked)
    (postgres_fleet.folder / "blocked" / "sitecustomize.py").write_text(text)
    postgres_fleet.environment["PYTHONPATH"] = str(postgres_fleet.folder / "blocked")
    host, worker = postgres_fleet.host(), postgres_fleet.worker()
    postgres_fleet.let_go()
    assert host.ended(host.begin("once"))["status"] == "completed"
    assert postgres_fleet.runs("once") == [worker.pid]


def test_workers_share_the_tasks_and_each_runs_once(postgres_fleet: Fleet) -> None:
    fleet = postgres_fleet
    host, workers = fleet.host(), [fleet.worker(), fleet.worker()]
    fleet.let_go()
    ids = [host.begin("once", name=f"n{number}") for number in range(30)]
    assert all(host.ended(id)["status"] == "completed" for id in ids)
    runs = [fleet.runs(f"n{number}") for number in range(30)]
    assert all(len(each) == 1 for each in runs)
    assert {pid for (pid,) in runs} <= {worker.pid for worker in workers}


# --- killed at each step --------------------------------------------------------------------------------


@pytest.mark.long
def test_a_task_is_run_although_its_server_was_killed_before_a_worker_took_it(postgres_fleet: Fleet) -> None:
    first = postgres_fleet.host()
    id = first.begin("once")
    kill(first.server)
    second, worker = postgres_fleet.host(), postgres_fleet.worker()
    postgres_fleet.let_go()
    assert second.ended(id)["status"] == "completed"
    assert postgres_fleet.runs("once") == [worker.pid]


@pytest.mark.long
def test_a_task_goes_on_although_its_server_was_killed(postgres_fleet: Fleet) -> None:
    first, worker = postgres_fleet.host(), postgres_fleet.worker()
    id = first.begin("once")
    eventually(lambda: postgres_fleet.runs("once"))
    kill(first.server)
    postgres_fleet.let_go()
    second = postgres_fleet.host()
    assert second.ended(id)["result"]["content"][0]["text"] == "once done"
    assert postgres_fleet.runs("once") == [worker.pid]


@pytest.mark.parametrize(("tool", "state"), [("once", "failed"), ("again", "completed")])
def test_a_task_whose_worker_was_killed_is_run_again_if_that_may_be(
    fleet: Fleet, tool: str, state: str
) -> None:
    host, first = fleet.host(), fleet.worker()
    id = host.begin(tool)
    eventually(lambda: fleet.runs(tool) == [first.pid])
    kill(first)
    second = fleet.worker()
    if state == "completed":
        eventually(lambda: fleet.runs(tool) == [first.pid, second.pid])
        fleet.let_go()
    found = host.ended(id)
    assert found["status"] == state
    if state == "failed":
        assert "not idempotent" in found["error"]["message"]
        assert fleet.runs(tool) == [first.pid]


@pytest.mark.long
def test_a_task_that_waits_for_an_answer_outlives_its_worker(postgres_fleet: Fleet) -> None:
    fleet = postgres_fleet
    host, first = fleet.host(), fleet.worker()
    id = host.begin("asks")
    assert list(host.until(id, "input_required")["inputRequests"]) == ["which"]
    kill(first)
    answer = {"which": {"action": "accept", "content": {"value": "blue"}}}
    host.ask("tasks/update", taskId=id, inputResponses=answer)
    second = fleet.worker()
    fleet.let_go()
    assert host.ended(id)["result"]["content"][0]["text"] == "blue done"
    assert (fleet.runs("asked"), fleet.runs("blue")) == ([first.pid, second.pid], [second.pid])


@pytest.mark.parametrize("how", ["cancelled", "killed"])
def test_no_process_outlives_a_task_that_a_worker_runs(fleet: Fleet, how: str) -> None:
    host, worker = fleet.host(), fleet.worker()
    id = host.begin("endless")
    eventually(lambda: (fleet.folder / "pids").exists())
    pids = [int(each) for each in (fleet.folder / "pids").read_text().split()]
    assert len(pids) == 2
    assert all(map(is_alive, pids))
    if how == "cancelled":
        host.ask("tasks/cancel", taskId=id)
    else:
        kill(worker)
    for pid in pids:
        gone(pid)
    assert host.get(id)["status"] == ("cancelled" if how == "cancelled" else "working")


@pytest.mark.long
def test_a_worker_that_ends_in_order_finishes_its_tasks_and_takes_no_more(postgres_fleet: Fleet) -> None:
    fleet = postgres_fleet
    host, first = fleet.host(), fleet.worker()
    id = host.begin("once")
    eventually(lambda: fleet.runs("once"))
    os.kill(first.pid, signal.SIGTERM)
    time.sleep(0.3)  # it has begun to end
    other = host.begin("once", name="other")
    fleet.let_go()
    assert first.wait() == 0
    assert host.get(id)["status"] == "completed"
    assert host.get(other)["status"] == "working"
    assert fleet.runs("other") == []
    second = fleet.worker()
    assert host.ended(other)["status"] == "completed"
    assert fleet.runs("other") == [second.pid]


def test_a_change_in_a_worker_is_pushed_to_the_client_of_a_server(postgres_fleet: Fleet) -> None:
    host = postgres_fleet.host()
    id = host.begin("again")
    listen = {"notifications": {"taskIds": [id]}, "_meta": META}
    host.server.send_message(
        {"jsonrpc": "2.0", "id": "listen", "method": "subscriptions/listen", "params": listen}
    )
    postgres_fleet.let_go()
    postgres_fleet.worker()
    while True:
        message = host.server.answer()
        if message.get("method") == "notifications/tasks" and message["params"]["status"] == "completed":
            break
    assert message["params"]["result"]["content"][0]["text"] == "again done"


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_guarded_server_runs_its_tasks_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_guarded: bool
) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("FASTRPC_TASK_WORKERS", "true")
    app = Server("guarded")
    decided: list[str] = []
    if is_guarded:
        app.guard(lambda call: decided.append(call.name))

    @app.tool(task="required")
    async def quick() -> str:
        """End at once."""
        return "done"

    async def conversation() -> str:
        client = TaskClient(app)
        id = await client.task("quick")
        if is_guarded:
            await client.ended(id)
        await asyncio.sleep(0.1)
        found = await client.get(id)
        client.close()
        await until(lambda: not app.runtime.dispatchers)
        await app.runtime.leave()
        return str(found["status"])

    status = asyncio.run(asyncio.wait_for(conversation(), 60))
    assert (status, decided) == (("completed", ["quick"]) if is_guarded else ("working", []))


def test_the_command_line_refuses_a_password_and_a_number_below_one(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    for options, said in (
        (["--database", "postgresql://me:hidden@db/tasks"], "belongs into FASTRPC_TASKS_DATABASE"),
        (["--database", "postgresql://me@db/tasks?password=hidden"], "belongs into FASTRPC_TASKS_DATABASE"),
        (["--tasks", "0"], "expected a number from 1 up"),
        (["--database", "mysql://db/tasks"], "expected sqlite:///PATH or postgresql://"),
    ):
        command = [sys.executable, "-m", "fastrpc", "worker", *options, str(tmp_path / "server.py")]
        with serve(command=command) as worker:
            assert worker.wait() == 2
            assert said in worker.stderr
            assert "hidden" not in worker.stderr


@pytest.mark.long
def test_workers_and_clients_hear_of_changes_again_when_the_database_was_away(
    postgres_fleet: Fleet, postgres: Any
) -> None:
    host = postgres_fleet.host()
    postgres_fleet.worker()
    postgres_fleet.let_go()
    assert host.ended(host.begin("again"))["status"] == "completed"
    postgres.stop()
    postgres.start()
    answers: list[dict[str, Any]] = []

    def is_accepted() -> bool:
        params = {"name": "again", "arguments": {}, "_meta": META}
        answers.append(host.server.request("tools/call", params))
        return "result" in answers[-1]

    eventually(is_accepted)
    id = answers[-1]["result"]["taskId"]
    assert all(each["error"]["code"] == -31001 for each in answers[:-1])
    assert host.ended(id)["status"] == "completed"


@pytest.mark.long
def test_a_worker_that_starts_while_the_database_is_away_waits_for_it(
    postgres_fleet: Fleet, postgres: Any
) -> None:
    host = postgres_fleet.host()
    id = host.begin("again")
    postgres_fleet.let_go()
    postgres.stop()
    try:
        worker, other = postgres_fleet.worker(), postgres_fleet.worker()
        eventually(lambda: all("it is tried again" in each.stderr for each in (worker, other)))
        os.kill(other.pid, signal.SIGTERM)
        assert other.wait() == 0
    finally:
        postgres.start()
    assert host.ended(id)["status"] == "completed"
    assert postgres_fleet.runs("again") == [worker.pid]
