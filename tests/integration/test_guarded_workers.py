"""Tasks of guarded servers that processes of `fastrpc worker --guard` run: who decides, counts and records,
what a revoked token and a killed worker leave, and which workers run nothing of a guarded server."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.guarded_folder import fastrpc, records, variables
from support.http_client import Serving
from support.stdio import Process, serve
from support.task_client import EXTENSION
from support.task_host import TaskHost, begun_in
from support.waiting import eventually

pytest_plugins = ["support.postgres"]

SERVER = '''
import asyncio, os
from fastrpc import Server

app = Server("shop", version="1")

async def work(name):
    with open(name, "a") as file:
        file.write(f"{os.getpid()}\\n")
    while not os.path.exists("go"):
        await asyncio.sleep(0.01)
    return f"{name} done"

@app.tool(effect="read", task="required")
async def look() -> str:
    """May run twice."""
    return await work("look")

@app.tool(effect="write", task="required")
async def order(count: int) -> str:
    """Must not run twice."""
    return await work("order")

@app.tool(effect="exec", task="required")
async def wipe() -> str:
    """Needs an approval."""
    return await work("wipe")
'''
GUARD = """
[expose]
tools = ["*"]
[classes.agent]
tools = ["look", "order", "wipe"]
tool_rates = { "look" = "2/hour" }
tool_budgets = { "order" = ["2 calls/day"] }
[[rules]]
id = "small-orders"
tools = ["order"]
when = "args.count > 10"
then = "deny"
reason = "more than 10 need a person's approval"
[approvals]
hold_seconds = 0.05
"""
META = {
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}},
}


class Shop(TaskHost):
    """A guarded server over HTTP, its token, its database, and its workers."""

    meta = META

    def __init__(self, folder: Path, url: str, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.environ = {
            "FASTRPC_TASKS_DATABASE": url,
            "FASTRPC_GUARD_DATABASE": url,
            "FASTRPC_TASK_WORKERS": "true",
            "FASTRPC_STATE_DIR": str(folder / "state"),
        }
        (folder / "server.py").write_text(SERVER)
        (folder / "guard.toml").write_text(GUARD)
        self.token = self.fastrpc("token", "create", "--owner", "ada", "--class", "agent").split()[0]
        super().__init__(
            stack.enter_context(
                Serving(
                    "serve", "server.py", "--http", "127.0.0.1:0", "--guard", "guard.toml",
                    folder=folder, token=self.token, **self.environ,
                )
            )
        )  # fmt: skip

    def fastrpc(self, *arguments: str, code: int = 0) -> str:
        return fastrpc(self.folder, *arguments, code=code, **self.environ)

    def worker(self, *options: str, **environ: str) -> Process:
        command = [sys.executable, "-m", "fastrpc", "worker", *options, "server.py"]
        environment = variables(self.folder, **{**self.environ, **environ})
        return self._stack.enter_context(
            serve(command=command, environment=environment, folder=str(self.folder))
        )

    def guarded_worker(self) -> Process:
        return self.worker("--guard", "guard.toml")

    def runs(self, name: str) -> list[int]:
        return begun_in(self.folder, name)

    def let_go(self) -> None:
        (self.folder / "go").touch()

    def approval(self, id: str) -> str:
        """Return the approval for which a task waits."""
        eventually(lambda: "ap_" in self.get(id).get("statusMessage", ""))
        return str(self.get(id)["statusMessage"].rpartition(" ")[2])

    def records(self, tool: str) -> list[tuple[str, str, str]]:
        """The actor, the outcome and the reason of each record of a call of a tool."""
        found = [each for each in records(self.folder) if each.get("tool") == tool]
        calls = [each for each in found if each["category"] == "mcp_server"]
        return [(each["actor"].partition("#")[0], each["outcome"], each.get("why", "")) for each in calls]


def kill(process: Process) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.process.wait()


@pytest.fixture
def shop(tmp_path: Path, postgres: Any) -> Iterator[Shop]:
    with ExitStack() as stack:
        yield Shop(tmp_path, postgres.url(postgres.new_database()), stack)


def test_a_worker_with_the_guard_runs_a_task_which_is_decided_and_recorded_once(shop: Shop) -> None:
    id = shop.begin("look")
    assert shop.get(id)["status"] == "working"
    worker = shop.guarded_worker()
    eventually(lambda: shop.runs("look") == [worker.pid])
    shop.let_go()
    assert shop.ended(id)["result"]["content"][0]["text"] == "look done"
    refused = shop.ended(shop.begin("order", count=11))
    assert refused["status"] == "failed"
    assert refused["error"]["data"] == {"reason": "not_allowed", "rule": "small-orders"}
    assert shop.runs("order") == []
    eventually(lambda: shop.records("look") == [("ada", "ok", "")])
    eventually(lambda: shop.records("order") == [("ada", "refused", "not_allowed")])


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"), [("look", {}, "rate_limit"), ("order", {"count": 1}, "budget")]
)
def test_rates_and_budgets_count_the_tasks_of_all_workers_once(
    shop: Shop, tool: str, arguments: dict[str, Any], reason: str
) -> None:
    shop.let_go()
    first = shop.guarded_worker()
    assert shop.ended(shop.begin(tool, **arguments))["status"] == "completed"
    kill(first)
    second = shop.guarded_worker()
    assert shop.ended(shop.begin(tool, **arguments))["status"] == "completed"
    found = shop.ended(shop.begin(tool, **arguments))
    assert found["error"]["data"]["reason"] == reason
    assert shop.runs(tool) == [first.pid, second.pid]


def test_a_task_that_was_approved_runs_at_a_worker_although_the_one_that_asked_was_killed(shop: Shop) -> None:
    first = shop.guarded_worker()
    id = shop.begin("wipe")
    approval = shop.approval(id)
    kill(first)
    second = shop.guarded_worker()
    shop.fastrpc("approvals", "approve", approval)
    eventually(lambda: shop.runs("wipe") == [second.pid])
    shop.let_go()
    assert shop.ended(id)["result"]["content"][0]["text"] == "wipe done"
    assert shop.runs("wipe") == [second.pid]
    eventually(lambda: shop.records("wipe") == [("ada", "ok", "")])


def test_tasks_that_wait_for_approvals_keep_no_others_from_running(shop: Shop) -> None:
    shop.let_go()
    worker = shop.worker("--guard", "guard.toml", "--tasks", "1")
    waits = shop.begin("wipe")
    approval = shop.approval(waits)
    assert shop.ended(shop.begin("look"))["status"] == "completed"
    assert shop.get(waits)["status"] == "working"
    shop.fastrpc("approvals", "reject", approval)
    assert shop.ended(waits)["error"]["data"]["reason"] == "approval_rejected"
    assert (shop.runs("look"), shop.runs("wipe")) == ([worker.pid], [])


@pytest.mark.parametrize(("tool", "state"), [("order", "failed"), ("look", "completed")])
def test_a_killed_worker_leaves_its_tasks_to_one_with_the_same_guard(
    shop: Shop, tool: str, state: str
) -> None:
    first = shop.guarded_worker()
    id = shop.begin(tool, **({"count": 1} if tool == "order" else {}))
    eventually(lambda: shop.runs(tool) == [first.pid])
    kill(first)
    without, second = shop.worker(), shop.guarded_worker()
    shop.let_go()
    assert shop.ended(id)["status"] == state
    assert shop.runs(tool) == [first.pid, second.pid][: 1 + (state == "completed")]
    assert without.process.poll() is None


def test_the_task_of_a_token_that_was_revoked_meanwhile_does_not_run(shop: Shop) -> None:
    shop.begin("look")
    shop.fastrpc("token", "revoke", shop.fastrpc("token", "list").splitlines()[1].split()[0])
    shop.let_go()
    shop.guarded_worker()
    eventually(lambda: shop.records("look") == [("ada", "refused", "not_allowed")])
    assert shop.runs("look") == []
    (record,) = [each for each in records(shop.folder) if each.get("tool") == "look"]
    assert "no valid token any more" in shop.fastrpc("guard", "why", record["id"])


def test_a_worker_without_the_guard_runs_nothing_of_a_guarded_server(shop: Shop) -> None:
    shop.let_go()
    early = shop.worker()
    id = shop.begin("look")
    eventually(lambda: "their guard has its database in postgresql://" in early.stderr)
    late = shop.worker()
    assert late.wait() == 2
    assert "tasks of the server shop wait: their guard has its database in postgresql://" in late.stderr
    assert "a worker runs them with the same --guard FILE" in late.stderr
    other = shop.worker(
        "--guard", "guard.toml", FASTRPC_GUARD_DATABASE=f"{shop.environ['FASTRPC_GUARD_DATABASE']}"
    )
    assert shop.ended(id)["status"] == "completed"
    assert shop.runs("look") == [other.pid]


def test_a_worker_whose_guard_counts_by_itself_is_refused(shop: Shop) -> None:
    worker = shop.worker("--guard", "guard.toml", FASTRPC_GUARD_DATABASE="")
    assert worker.wait() == 2
    assert 'defaults.count_in = "database"' in worker.stderr
