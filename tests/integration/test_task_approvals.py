"""Calls that wait for the approval of a person as tasks: what clients see, how they end, what survives."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.guarded_folder import variables
from support.http_server import FASTRPC
from support.stdio import Process, serve
from support.task_client import EXTENSION, SESSION, TaskClient
from support.task_host import TaskHost
from support.waiting import SECONDS, eventually

from fastrpc import Server
from fastrpc.guard.approvals.store import STATES, Approval, ApprovalDecision, ApprovalStore, NotWaiting
from fastrpc.guard.serving import GuardedServing
from fastrpc.protocol.versions import STATELESS
from fastrpc.storage.database import Database
from fastrpc.tasks import board

both_wires = pytest.mark.parametrize("version", [SESSION, STATELESS])

GUARD = """
[expose]
tools = ["*"]
[approvals]
hold_seconds = 0.05
timeout_seconds = {timeout}
approvers = {approvers}
"""


class Shop:
    """A guarded server in memory, and the database of its approvals."""

    def __init__(
        self, folder: Path, timeout: float = 100, approvers: str = '["os:grace", "os:linus"]', more: str = ""
    ) -> None:
        guard = GUARD.format(timeout=timeout, approvers=approvers)
        (folder / "guard.toml").write_text(guard.replace("[approvals]", f"{more}\n[approvals]"))
        self.ran: list[str] = []
        app = Server("shop", version="1")

        @app.tool(effect="exec", task="allowed", after_seconds=60)
        async def wipe(place: str) -> str:
            """Wipe a place."""
            self.ran.append(place)
            return f"wiped {place}"

        @app.tool(effect="write", task="required")
        async def store(place: str) -> str:
            """Run as a task only."""
            self.ran.append(place)
            return f"stored {place}"

        @app.tool(effect="exec")
        async def plain(place: str) -> str:
            """Make a task only while somebody has to decide."""
            self.ran.append(place)
            return f"wiped {place} plainly"

        self.app = GuardedServing(str(folder / "guard.toml"), "http").guarded(app)
        self.database = Database(f"sqlite:///{folder / 'guard.sqlite3'}")
        self.approvals = ApprovalStore(self.database)

    def only(self, *states: str) -> Approval:
        (found,) = self.approvals.list(states or ("waiting",))
        return found

    def decide(self, approves: bool = True) -> None:
        self.approvals.decide(
            self.only().id, ApprovalDecision(approves, "os:grace", "command line", "as said")
        )


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(board, "SWEEP_SECONDS", 0.1)


def converse(shop: Shop, talk: Callable[[], Awaitable[Any]]) -> None:
    async def run() -> None:
        try:
            await talk()
        finally:
            await shop.app.runtime.leave()
            shop.database.close()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


async def outcome(client: TaskClient, id: str) -> dict[str, Any]:
    """The result or the error of a task that has ended."""
    found = await client.ended(id)
    if client.version == STATELESS:
        return found["result"] if found["status"] == "completed" else found["error"]
    answer = await client.send("tasks/result", {"taskId": id})
    return answer.get("result") or answer["error"]


async def begun(shop: Shop, client: TaskClient) -> str:
    """Begin a task of `wipe`; return its id once it waits for its approval."""
    id = await client.task("wipe", place="x")
    while not shop.approvals.list():
        await asyncio.sleep(0.01)
    while shop.only().id not in (await client.get(id)).get("statusMessage", ""):
        await asyncio.sleep(0.01)
    return id


@both_wires
def test_a_call_that_waits_for_an_approval_is_a_task_and_runs_once_it_is_approved(
    tmp_path: Path, version: str
) -> None:
    shop = Shop(tmp_path)

    async def talk() -> None:
        client = TaskClient(shop.app, version=version, forms=False)
        id = await begun(shop, client)
        approval = shop.only()
        now = await client.get(id)
        assert now["status"] == "working"
        assert now["statusMessage"] == f"waiting for the approval of os:grace, os:linus: {approval.id}"
        await asyncio.sleep(0.2)  # longer than a call is held
        assert (await client.get(id))["status"] == "working"
        assert shop.ran == []
        shop.decide()
        assert (await outcome(client, id))["content"][0]["text"] == "wiped x"
        assert shop.ran == ["x"]
        assert shop.only("used").id == approval.id
        client.close()

    converse(shop, talk)


@both_wires
def test_a_rejected_task_has_the_error_that_the_call_would_have_had(tmp_path: Path, version: str) -> None:
    shop = Shop(tmp_path)

    async def talk() -> None:
        client = TaskClient(shop.app, version=version, forms=False)
        id = await begun(shop, client)
        shop.decide(approves=False)
        as_task = await outcome(client, id)
        assert (await client.get(id))["status"] == "failed"
        without = TaskClient(shop.app, version=version, forms=False, declares=False)
        plainly = await without.error("tools/call", {"name": "wipe", "arguments": {"place": "x"}})
        assert as_task == plainly
        assert as_task["data"]["reason"] == "approval_rejected"
        assert shop.ran == []
        client.close()
        without.close()

    converse(shop, talk)


@both_wires
def test_a_task_that_is_not_approved_in_time_ends_as_the_call_would_have(
    tmp_path: Path, version: str
) -> None:
    shop = Shop(tmp_path, timeout=1)

    async def talk() -> None:
        client = TaskClient(shop.app, version=version, forms=False)
        result = await outcome(client, await client.task("wipe", place="x"))
        assert result["isError"] is True
        assert result["content"][0]["text"] == "wipe was not approved within 1 s"
        assert shop.ran == []
        client.close()

    converse(shop, talk)


@both_wires
def test_to_cancel_a_task_withdraws_its_approval(tmp_path: Path, version: str) -> None:
    shop = Shop(tmp_path)

    async def talk() -> None:
        client = TaskClient(shop.app, version=version, forms=False)
        id = await begun(shop, client)
        approval = shop.only()
        await client.result("tasks/cancel", {"taskId": id})
        assert (await client.get(id))["status"] == "cancelled"
        assert shop.only("void").comment == "its task was cancelled"
        with pytest.raises(NotWaiting):
            shop.approvals.decide(approval.id, ApprovalDecision(True, "os:grace", "command line"))
        assert shop.ran == []
        client.close()

    converse(shop, talk)


@both_wires
def test_to_cancel_one_of_two_tasks_leaves_the_approval_to_the_other(tmp_path: Path, version: str) -> None:
    shop = Shop(tmp_path)

    async def talk() -> None:
        client = TaskClient(shop.app, version=version, forms=False)
        ids = [await begun(shop, client) for _ in range(2)]
        await client.result("tasks/cancel", {"taskId": ids[0]})
        shop.decide()
        assert (await outcome(client, ids[1]))["content"][0]["text"] == "wiped x"
        assert shop.ran == ["x"]
        client.close()

    converse(shop, talk)


@pytest.mark.parametrize("answers", [True, False])
def test_a_task_whose_client_is_asked_runs_with_the_answer_or_when_another_has_decided(
    tmp_path: Path, answers: bool
) -> None:
    shop = Shop(tmp_path, approvers="[]")

    async def talk() -> None:
        client = TaskClient(shop.app, version=SESSION)
        id = await client.task("wipe", place="x")
        await client.until(id, "input_required")
        assert shop.only().id in (await client.get(id))["statusMessage"]
        if answers:
            assert (await outcome_by_form(client, id))["content"][0]["text"] == "wiped x"
        else:
            shop.decide()
            assert (await outcome(client, id))["content"][0]["text"] == "wiped x"
        assert shop.only("used").channel == ("client" if answers else "command line")
        assert shop.ran == ["x"]
        client.close()

    async def outcome_by_form(client: TaskClient, id: str) -> dict[str, Any]:
        return await client.result("tasks/result", {"taskId": id})

    converse(shop, talk)


def test_a_task_whose_client_does_not_answer_in_time_ends(tmp_path: Path) -> None:
    shop = Shop(tmp_path, approvers="[]", timeout=1)

    async def talk() -> None:
        client = TaskClient(shop.app, version=SESSION)
        id = await client.task("wipe", place="x")
        await client.until(id, "input_required")
        assert (await outcome(client, id))["content"][0]["text"] == "wipe was not approved within 1 s"
        assert shop.ran == []
        client.close()

    converse(shop, talk)


def test_a_client_without_tasks_is_held_and_calls_again_as_before(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    async def talk() -> None:
        client = TaskClient(shop.app, declares=False, forms=False)
        said = await client.call("wipe", place="x")
        assert said["content"][0]["text"].endswith("Call wipe again with the same arguments")
        client.close()

    converse(shop, talk)


def test_a_call_of_any_tool_is_a_task_while_it_waits_for_an_approval(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    async def talk() -> None:
        client = TaskClient(shop.app, forms=False)
        described = await client.result("server/discover")
        assert EXTENSION in described["capabilities"]["extensions"]
        id = await client.task("plain", place="x")
        approval = shop.only()
        assert approval.id in (await client.get(id))["statusMessage"]
        assert shop.ran == []
        shop.decide()
        assert (await outcome(client, id))["content"][0]["text"] == "wiped x plainly"
        assert shop.ran == ["x"]
        assert shop.only("used").id == approval.id
        client.close()

    converse(shop, talk)


@pytest.mark.parametrize("tool", ["wipe", "plain"])
@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ('tool_rates = {{ "{}" = "3/hour" }}', "rate_limit"),
        ('tool_budgets = {{ "{}" = ["3 calls/day"] }}', "budget"),
    ],
)
def test_a_task_is_counted_once_and_has_one_record(
    tmp_path: Path, tool: str, limits: str, reason: str
) -> None:
    shop = Shop(tmp_path, more=limits.format(tool))
    records: list[Any] = []
    shop.app.observe(records.extend)

    async def talk() -> None:
        client = TaskClient(shop.app, forms=False)
        for number in range(3):
            id = await client.task(tool, place=str(number))
            shop.decide()
            await outcome(client, id)
        if reason == "budget":  # it is counted when the call begins
            id = await client.task(tool, place="4")
            shop.decide()
            assert (await outcome(client, id))["data"]["reason"] == "budget"
        else:
            refused = await client.error("tools/call", {"name": tool, "arguments": {"place": "4"}})
            assert refused["data"]["reason"] == reason
        assert shop.ran == ["0", "1", "2"]
        client.close()

    converse(shop, talk)
    eventually(lambda: [each.outcome for each in records] == ["ok", "ok", "ok", "refused"])


@both_wires
@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (
            '[[rules]]\nid = "r"\ntools = ["store"]\nwhen = "args.place == \'b\'"\nthen = "deny"',
            "not_allowed",
        ),
        ('tool_rates = { "store" = "1/hour" }', "rate_limit"),
        ('tool_budgets = { "store" = ["1 calls/day"] }', "budget"),
    ],
)
def test_a_call_that_must_be_a_task_and_is_refused_ends_as_a_failed_task(
    tmp_path: Path, version: str, policy: str, reason: str
) -> None:
    shop = Shop(tmp_path, more=policy)
    records: list[Any] = []
    shop.app.observe(records.extend)

    async def talk() -> None:
        client = TaskClient(shop.app, version=version)
        assert (await outcome(client, await client.task("store", place="a")))["content"]
        id = await client.task("store", place="b")
        assert (await outcome(client, id))["data"]["reason"] == reason
        assert (await client.get(id))["status"] == "failed"
        assert shop.ran == ["a"]
        client.close()

    converse(shop, talk)
    eventually(lambda: [each.outcome for each in records] == ["ok", "refused"])


def test_a_guard_that_counts_on_its_host_keeps_the_tasks_of_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_TASK_WORKERS", "true")
    shop = Shop(tmp_path)

    async def talk() -> None:
        client = TaskClient(shop.app)
        assert (await client.ended(await client.task("store", place="a")))["status"] == "completed"
        client.close()

    converse(shop, talk)


# --- the end of the server ------------------------------------------------------------------------------

SERVER = """
import asyncio, os
from fastrpc import Server

app = Server("shop", version="1")

@app.tool(effect="exec", task="required")
async def wipe(place: str) -> str:
    with open("log", "a") as log:
        log.write(f"{os.getpid()}\\n")
    while place == "slow":
        await asyncio.sleep(1)
    return f"wiped {place}"
"""


class Folder:
    """A guarded server's folder, its processes, and its approvals."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._stack = stack
        self.path = folder
        (folder / "shop.py").write_text(SERVER)
        (folder / "guard.toml").write_text(GUARD.format(timeout=100, approvers='["os:grace"]'))

    def host(self) -> TaskHost:
        command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
        environment = variables(self.path)
        return TaskHost(
            self._stack.enter_context(serve(command=command, environment=environment, folder=str(self.path)))
        )

    def runs(self) -> int:
        log = self.path / "log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def approvals(self) -> ApprovalStore:
        database = Database(f"sqlite:///{self.path / 'state' / 'guard.sqlite3'}")
        self._stack.callback(database.close)
        return ApprovalStore(database)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with ExitStack() as stack:
        yield Folder(tmp_path, stack)


def kill(process: Process) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.process.wait()


@pytest.mark.parametrize("approved", ["while it is away", "afterwards"])
def test_a_task_waits_for_the_same_approval_although_its_server_was_killed(
    folder: Folder, approved: str
) -> None:
    host = folder.host()
    id = host.begin("wipe", place="x")
    eventually(lambda: "approval" in host.get(id).get("statusMessage", ""))
    store = folder.approvals()
    (approval,) = store.list()
    kill(host.server)
    decision = ApprovalDecision(True, "os:grace", "command line")
    if approved == "while it is away":
        store.decide(approval.id, decision)
    host = folder.host()
    if approved == "afterwards":
        eventually(lambda: approval.id in host.get(id).get("statusMessage", ""))
        assert host.get(id)["status"] == "working"
        store.decide(approval.id, decision)
    assert host.ended(id)["result"]["content"][0]["text"] == "wiped x"
    assert folder.runs() == 1
    assert [each.id for each in store.list(STATES)] == [approval.id]


def test_a_task_that_was_rejected_while_its_server_was_away_fails(folder: Folder) -> None:
    host = folder.host()
    id = host.begin("wipe", place="x")
    eventually(lambda: "approval" in host.get(id).get("statusMessage", ""))
    store = folder.approvals()
    (approval,) = store.list()
    kill(host.server)
    store.decide(approval.id, ApprovalDecision(False, "os:grace", "command line", "not now"))
    host = folder.host()
    assert host.ended(id)["error"]["message"] == "wipe was not approved by os:grace: not now"
    assert folder.runs() == 0
    assert [each.id for each in store.list(STATES)] == [approval.id]


def test_a_task_whose_server_is_killed_after_the_approval_does_not_run_again(folder: Folder) -> None:
    host = folder.host()
    id = host.begin("wipe", place="slow")
    eventually(lambda: "approval" in host.get(id).get("statusMessage", ""))
    store = folder.approvals()
    (approval,) = store.list()
    store.decide(approval.id, ApprovalDecision(True, "os:grace", "command line", uses=2))
    eventually(lambda: folder.runs() == 1)
    kill(host.server)
    host = folder.host()
    assert "was not run again" in host.ended(id)["error"]["message"]
    assert folder.runs() == 1
