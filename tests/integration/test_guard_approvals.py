"""Approvals by real processes: a server that is called, `fastrpc approvals` that decides, kill -9 between."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert, select
from support.command_line import assert_mistake, run
from support.guarded_folder import fastrpc, variables
from support.http_server import FASTRPC, HttpProcess
from support.rewriting import rewrite
from support.terminal import on_terminal
from support.waiting import eventually

from fastrpc import Client
from fastrpc.client.sync import SyncClient
from fastrpc.errors import RemoteError
from fastrpc.guard.approvals.binding import Binding
from fastrpc.guard.approvals.description import described
from fastrpc.guard.approvals.store import ApprovalDecision, ApprovalStore, Question, new_approval
from fastrpc.storage.database import Database
from fastrpc.storage.schema import approvals as table

if TYPE_CHECKING:
    from support.postgres import Cluster

pytest_plugins = ["support.postgres"]

TOOLS = """
import os
from fastrpc import Server

app = Server("shop")

@app.tool(effect="exec")
def wipe(place: str, count: int = 1) -> str:
    with open("log", "a") as log:
        log.write(f"{place} {count}\\n")
    return f"wiped {place} {count}"

@app.tool(effect="read")
def look() -> str:
    return "nothing"

@app.tool(effect="exec")
async def burn(place: str) -> str:
    return f"burnt {place}"
"""
GUARD = """
[expose]
tools = ["*"]
[approvals]
hold_seconds = {hold}
editable = ["wipe"]
most_waiting = 3
[risk]
burn = "critical"
[[rules]]
id = "never-home"
tools = ["wipe"]
when = "args.place == '/home'"
then = "deny"
"""
HELD = 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "guard.toml").write_text(GUARD.format(hold=HELD))
    return tmp_path


def approvals(folder: Path, *arguments: str, code: int = 0, **more: str) -> str:
    return fastrpc(folder, "approvals", *arguments, code=code, **more)


def waiting(folder: Path, url: str = "") -> list[dict[str, Any]]:
    """What `fastrpc approvals list --json` prints, without a separate process."""
    path = folder / "state" / "guard.sqlite3"
    if not url and not path.exists():
        return []
    database = Database(url or f"sqlite:///{path}")
    store = ApprovalStore(database)
    try:
        return [described(each, store.clock()) for each in store.list()]
    finally:
        database.close()


def over_stdio(folder: Path, **more: str) -> SyncClient:
    command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
    return Client.sync(command, cwd=str(folder), env=variables(folder, **more))


def called(client: SyncClient, tool: str, **arguments: Any) -> Any:
    try:
        return client.call_tool(tool, arguments).text
    except RemoteError as error:
        return error.code


def only_waiting(folder: Path, url: str = "") -> dict[str, Any]:
    eventually(lambda: len(waiting(folder, url)) == 1)
    return waiting(folder, url)[0]


def runs(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines() if (folder / "log").exists() else []


@pytest.fixture
def background() -> Any:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_a_call_is_held_until_somebody_approves_it_and_then_it_runs(folder: Path, background: Any) -> None:
    reports: list[Any] = []
    with over_stdio(folder) as client:

        def call() -> str:
            return client.call_tool("wipe", {"place": "x"}, on_progress=reports.append).text

        held = background.submit(call)
        approval = only_waiting(folder)
        assert (approval["name"], approval["risk"]) == ("wipe", "high")
        assert approval["arguments"] == {"place": "x", "count": 1}, "as they were bound"
        assert not runs(folder)
        assert "may run once" in approvals(folder, "approve", approval["id"])
        assert held.result(60) == "wiped x 1"
        assert any(approval["id"] in str(report) for report in reports)
    assert json.loads(approvals(folder, "list", "--all", "--json"))[0]["state"] == "used"


def test_the_audit_log_says_which_approval_let_a_call_run_or_refused_it(
    folder: Path, background: Any
) -> None:
    with over_stdio(folder) as client:
        held = background.submit(called, client, "wipe", place="x")
        first = only_waiting(folder)
        approvals(folder, "approve", first["id"])
        assert held.result(60) == "wiped x 1"
        held = background.submit(called, client, "wipe", place="y")
        second = only_waiting(folder)
        approvals(folder, "reject", second["id"])
        assert held.result(60) == 403
    lines = fastrpc(folder, "audit", "search", "--tool", "wipe", "--json").splitlines()
    records = [json.loads(line) for line in lines]
    ended = [each for each in records if each["category"] == "mcp_server"]
    said = [(each["outcome"], each["risk"], each["approval"]) for each in ended]
    assert said == [("ok", "high", first["id"]), ("refused", "high", second["id"])]
    told = fastrpc(folder, "guard", "why", ended[0]["id"], "guard.toml")
    assert "Allowed; risk high" in told
    assert f"Approval {first['id']}" in told


def test_a_call_that_cannot_be_held_comes_again_and_finds_its_approval(folder: Path) -> None:
    (folder / "guard.toml").write_text(GUARD.format(hold=0.1))
    with over_stdio(folder) as client:
        result = client.call_tool("wipe", {"place": "x"})
        assert result.is_error
        (approval,) = waiting(folder)
        expected = f"{approval['id']} is waiting for the approval of a person. Call wipe again"
        assert result.text.startswith(expected)
        assert called(client, "wipe", count=1, place="x").startswith(expected), (
            "the same call, otherwise spelt"
        )
        approvals(folder, "approve", approval["id"])
        assert called(client, "wipe", place="y") != "wiped y 1"
        assert called(client, "wipe", place="x") == "wiped x 1"
        assert called(client, "wipe", place="x").startswith("ap_"), "an approval is used once"
    assert runs(folder) == ["x 1"]


def test_a_rejected_call_is_refused_and_not_asked_for_again(folder: Path, background: Any) -> None:
    with over_stdio(folder) as client:
        held = background.submit(called, client, "wipe", place="x")
        approval = only_waiting(folder)
        approvals(folder, "reject", approval["id"], "--comment", "not on Fridays")
        assert held.result(60) == 403
        with pytest.raises(RemoteError, match=r"wipe was not approved by os:.*: not on Fridays"):
            client.call_tool("wipe", {"place": "x"})
        assert waiting(folder) == []


def test_an_approver_changes_the_arguments_and_what_a_rule_denies_stays_denied(
    folder: Path, background: Any
) -> None:
    with over_stdio(folder) as client:
        held = background.submit(called, client, "wipe", place="x")
        approval = only_waiting(folder)
        assert "wipe has no argument 'plase'" in approvals(folder, "edit", approval["id"], "plase=y", code=2)
        assert "count: expected integer" in approvals(folder, "edit", approval["id"], "count=few", code=2)
        approvals(folder, "edit", approval["id"], "place=attic", "count=3")
        assert held.result(60) == "wiped attic 3"
        shown = approvals(folder, "show", approval["id"])
        assert 'changed: place: "x" -> "attic"' in shown
        held = background.submit(called, client, "wipe", place="x")
        approvals(folder, "edit", only_waiting(folder)["id"], "place=/home")
        assert held.result(60) == 403
    assert runs(folder) == ["attic 3"]


def test_what_a_request_says_besides_its_arguments_is_shown_and_recorded(
    folder: Path, background: Any
) -> None:
    with over_stdio(folder) as client:
        meta = {"example.com/place": "x\u202e", "password": "Hunter2-99x"}
        held = background.submit(client.call_tool, "wipe", {"place": "x"}, meta=meta)
        approval = only_waiting(folder)
        shown = approvals(folder, "show", approval["id"])
        assert '"example.com/place": "x\\u202e"' in shown.partition("besides:")[2]
        assert "example.com/place" in approvals(folder, "list")
        approvals(folder, "approve", approval["id"])
        assert held.result(60).text == "wiped x 1"
    assert approval["extra_params"] == {"_meta": {"example.com/place": "x\u202e", "password": "****"}}
    lines = fastrpc(folder, "audit", "search", "--json").splitlines()
    records = [each for each in map(json.loads, lines) if each["category"] == "approval"]
    assert [sorted(each["extra_params"]) for each in records] == [["salt", "sha256"]] * 3
    assert "Hunter2" not in "".join(lines)


def test_critical_calls_are_not_approved_by_the_user_who_calls(folder: Path, background: Any) -> None:
    forms: list[Any] = []

    def accept(request: Any) -> dict[str, Any]:
        forms.append(request)
        return {"action": "accept", "content": {}}

    command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
    client = Client.sync(command, cwd=str(folder), env=variables(folder), on_elicit=accept)
    with client:
        held = background.submit(called, client, "burn", place="x")
        approval = only_waiting(folder)
        assert "another person must approve it" in approvals(folder, "approve", approval["id"], code=2)
        assert only_waiting(folder)["state"] == "waiting"
        approvals(folder, "reject", approval["id"])
        assert held.result(60) == 403
    assert forms == []


def test_a_form_is_withdrawn_when_somebody_else_has_approved(folder: Path, background: Any) -> None:
    asked: list[Any] = []

    async def never(request: Any) -> dict[str, Any]:
        asked.append(request)
        await asyncio.sleep(60)
        return {"action": "decline"}

    command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
    client = Client.sync(
        command, cwd=str(folder), env=variables(folder), on_elicit=never, version="2025-11-25"
    )
    with client:
        held = background.submit(called, client, "wipe", place="x")
        approval = only_waiting(folder)
        eventually(lambda: len(asked) == 1)
        approvals(folder, "approve", approval["id"])
        assert held.result(60) == "wiped x 1"


def test_a_caller_has_so_many_calls_that_wait(folder: Path) -> None:
    (folder / "guard.toml").write_text(GUARD.format(hold=0.1))
    with over_stdio(folder) as client:
        for number in range(3):
            assert called(client, "wipe", place="x", count=number).startswith("ap_")
        with pytest.raises(RemoteError, match="3 calls of this caller wait") as refused:
            client.call_tool("wipe", {"place": "x", "count": 4})
        assert refused.value.data["reason"] == "too_many_approvals"


def test_a_change_of_the_policy_makes_what_waits_void(folder: Path) -> None:
    async def outcome(client: Client, tool: str, **arguments: Any) -> Any:
        try:
            return (await client.call_tool(tool, arguments)).text
        except RemoteError as error:
            return error.code

    async def conversation() -> None:
        command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
        async with Client(command, cwd=str(folder), env=variables(folder)) as client:
            held = asyncio.create_task(outcome(client, "wipe", place="x"))
            approval = await asyncio.to_thread(only_waiting, folder)
            rewrite(folder / "guard.toml", GUARD.format(hold=0.1).replace('["*"]', '["wipe"]'))
            while await outcome(client, "look") != -32602:
                await asyncio.sleep(0.05)
            await asyncio.to_thread(approvals, folder, "approve", approval["id"])
            assert await held == 403, "it was asked about under another policy"
            text = await outcome(client, "wipe", place="x")
            assert f"{approval['id']} is void: the policy has changed" in text

    asyncio.run(asyncio.wait_for(conversation(), 60))
    assert runs(folder) == []


@pytest.mark.parametrize("killed_when", ["it waits", "it is approved"])
def test_approvals_outlive_every_process_and_a_call_runs_at_most_once(folder: Path, killed_when: str) -> None:
    (folder / "guard.toml").write_text(GUARD.format(hold=0.1))
    for number in range(3):
        with over_stdio(folder) as client:
            if number == 0:
                assert called(client, "wipe", place="x").startswith("ap_")
                (approval,) = waiting(folder)
                if killed_when == "it is approved":
                    approvals(folder, "approve", approval["id"])
            elif number == 1:
                if killed_when == "it waits":
                    assert waiting(folder) == [approval]
                    approvals(folder, "approve", approval["id"])
                assert called(client, "wipe", place="x") == "wiped x 1"
            else:
                assert called(client, "wipe", place="x").startswith("ap_")
            kill_servers(folder)
    assert runs(folder) == ["x 1"]


def kill_servers(folder: Path) -> None:
    """Kill every server in a folder, as a crash does."""
    found = servers(folder)
    assert found
    for pid in found:
        os.kill(pid, signal.SIGKILL)


def servers(folder: Path) -> list[int]:
    """The processes that serve in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            serves = b"shop.py:app" in (process / "cmdline").read_bytes().split(b"\0")
            if serves and (process / "cwd").resolve() == folder.resolve():
                found.append(int(process.name))
    return found


DECIDE = """
import sys
from fastrpc.guard.approvals.store import ApprovalError, ApprovalStore, ApprovalDecision
from fastrpc.storage import open_database
store = ApprovalStore(open_database(sys.argv[1]))
sys.stdin.readline()
for approval_id in sys.argv[3:]:
    try:
        store.decide(approval_id, ApprovalDecision(sys.argv[2] == "yes", "os:" + sys.argv[2], "command line"))
    except ApprovalError as error:
        print("late")
    else:
        print("first")
"""
USE = """
import sys
from fastrpc.guard.approvals.store import ApprovalStore
from fastrpc.storage import open_database
store = ApprovalStore(open_database(sys.argv[1]))
digests = [store.get(each).digest for each in sys.argv[2:]]
sys.stdin.readline()
for approval_id, digest in zip(sys.argv[2:], digests):
    print("first" if store.use(approval_id, digest) else "late")
"""


def at_once(*commands: list[str]) -> list[list[str]]:
    """Run programs that begin when they read a line, and return what each has printed."""
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", *each], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for each in commands
    ]
    try:
        for each in programs:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        return [each.communicate(timeout=60)[0].split() for each in programs]
    finally:
        for each in programs:
            each.kill()
            each.wait()


@pytest.mark.long
def test_of_two_approvers_and_of_two_calls_one_is_first(database_url: str) -> None:
    database = Database(database_url)
    store, found = ApprovalStore(database), []
    for number in range(40):
        call = {"caller": "ada", "server": "shop", "kind": "tool", "name": "wipe", "policy": "p"}
        binding = Binding(**call, arguments={"n": number}, schema={})
        question = Question(
            binding=binding, owner="ada", caller_class="x", risk="high", rule="", reason="", most_waiting=40
        )
        found.append(store.ask(question).approval.id)
    raced, others = found[:20], found[20:]
    yes, no = at_once([DECIDE, database_url, "yes", *raced], [DECIDE, database_url, "no", *raced])
    assert all({one, other} == {"first", "late"} for one, other in zip(yes, no, strict=True))
    approved = [each for each, said in zip(raced, yes, strict=True) if said == "first"]
    for each in others:  # chance may have had "no" be the first of all the others
        approved.append(store.decide(each, ApprovalDecision(True, "os:yes", "command line")).id)
    here, there = at_once([USE, database_url, *found], [USE, database_url, *found])
    used = [each for each, *both in zip(found, here, there, strict=True) if "first" in both]
    assert used == approved
    assert all([one, other].count("first") <= 1 for one, other in zip(here, there, strict=True))
    database.close()


def test_workers_share_what_waits_over_postgresql(folder: Path, postgres: Cluster) -> None:
    (folder / "guard.toml").write_text(GUARD.format(hold=HELD))
    url = postgres.url(postgres.new_database())
    command = ("serve", "shop.py:app", "--guard", "guard.toml", "--http", "127.0.0.1:0", "--no-auth")
    environment = variables(folder, FASTRPC_GUARD_DATABASE=url)

    async def both(port: int) -> list[str]:
        async def one() -> str:
            async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                try:
                    return (await client.call_tool("wipe", {"place": "x"})).text
                except RemoteError as error:
                    return str(error.code)

        return await asyncio.gather(one(), one())

    with HttpProcess(*command, "--workers", "2", folder=folder, environment=environment) as server:
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(lambda: asyncio.run(both(server.port)))
            first = only_waiting(folder, url)
            approvals(folder, "approve", first["id"], FASTRPC_GUARD_DATABASE=url)

            second = only_waiting(folder, url)  # of the call that came too late
            assert second["id"] != first["id"]
            eventually(lambda: runs(folder) == ["x 1"])  # the first may still be about to
            approvals(folder, "reject", second["id"], FASTRPC_GUARD_DATABASE=url)
            assert sorted(held.result(60)) == ["403", "wiped x 1"]
            assert runs(folder) == ["x 1"]
        assert server.stop() == 0


def test_whoever_watches_at_a_terminal_is_asked_about_each_that_comes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(folder / "state"))
    (folder / "guard.toml").write_text(GUARD.format(hold=0.1))
    with over_stdio(folder) as client:
        with on_terminal(folder, "approvals", "watch", shows_output=True) as terminal:
            terminal.until("no call waits for an approval (")
            terminal.until("no call waits for an approval (")
            called(client, "wipe", place="a\u202eb\n\x1b[2Jc\\nd")
            shown = terminal.until("[n]o")
            terminal.type("y\r")
            terminal.until("is approved: it may run once")
            called(client, "wipe", place="c")
            terminal.until("[n]o")
            terminal.type("no\r")
            terminal.until("is rejected")
            terminal.type("\x03")
            assert terminal.end()[0] == 0
        shown = shown.replace("\r\n", "\n")
        lines = '      "place": "a\\u202eb\\n"\n        "\\u001b[2Jc\\\\nd",\n'
        assert lines in shown, "what a terminal obeys is escaped"
        assert re.search(r"risk: \x1b\[[\d;]+m\w+\x1b\[0m\n", shown)
        place = "a\u202eb\n\x1b[2Jc\\nd"
        assert called(client, "wipe", place=place) == f"wiped {place} 1"
        assert called(client, "wipe", place="c") == 403


def test_what_is_typed_before_a_call_is_shown_does_not_approve_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(folder / "state"))
    (folder / "guard.toml").write_text(GUARD.format(hold=0.1))
    with over_stdio(folder) as client:
        with on_terminal(folder, "approvals", "watch", shows_output=True) as terminal:
            terminal.until("no call waits for an approval (")
            terminal.type("y\r")
            terminal.until("no call waits for an approval (")
            called(client, "wipe", place="a")
            terminal.until("[n]o")
            terminal.type("n\r")
            terminal.until(" is ")
            assert terminal.until("ed") == "rejected"
        assert called(client, "wipe", place="a") == 403


def test_a_call_that_is_longer_than_the_terminal_is_named_again_where_the_question_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(folder / "state"))
    (folder / "guard.toml").write_text(GUARD.format(hold=0.1))
    watching = on_terminal(folder, "approvals", "watch", shows_output=True)
    with over_stdio(folder) as client, watching as terminal:
        terminal.until("no call waits for an approval (")
        called(client, "wipe", place="a\n" * 200)
        terminal.until("wipe: its arguments have 203 lines; scroll up to read all of them")
        terminal.until("else: later  ")
        terminal.type("n\r")
        called(client, "wipe", place="short")
        assert "scroll up" not in terminal.until("else: later  ")
        terminal.type_until_it_ends("\x03")
        assert "^C\r\n" in terminal.rest()
        assert terminal.end()[0] == 0


@pytest.mark.parametrize(("word", "meant"), [("deny", "reject"), ("allow", "approve")])
def test_an_action_of_another_name_leads_to_the_one_here(folder: Path, word: str, meant: str) -> None:
    assert_mistake(run(folder, "approvals", word, "ap_1"), f"here it is '{meant}'")


@pytest.mark.long
def test_ten_thousand_that_wait_are_rows_which_outlive_a_crash_and_run_at_most_once(folder: Path) -> None:
    """They hold neither memory nor threads of a server that calls of them come to."""
    (folder / "guard.toml").write_text(
        GUARD.format(hold=0.1).replace("most_waiting = 3", "most_waiting = 20000")
    )
    with over_stdio(folder) as client:
        called(client, "wipe", place="first")
        before = memory_kb(folder)
        fill(folder, 10_000)
        assert called(client, "wipe", place="7").startswith("ap_")
        approved = {each["id"]: each["arguments"]["place"] for each in waiting(folder)[-70:-50]}
        assert len(approved) == 20
        for approval_id in approved:
            approve(folder, approval_id)
        places = list(approved.values())
        for place in places[:10]:
            assert called(client, "wipe", place=place) == f"wiped {place} 1"
        assert memory_kb(folder) - before < 20_000
        kill_servers(folder)
    with over_stdio(folder) as client:
        for place in places:
            ran = called(client, "wipe", place=place) == f"wiped {place} 1"
            assert ran == (place in places[10:])
    assert sorted(runs(folder)) == sorted(f"{place} 1" for place in places)


def fill(folder: Path, count: int) -> None:
    """Have so many calls wait that are like the one that does."""
    database = Database(f"sqlite:///{folder}/state/guard.sqlite3")
    with database.changing() as connection:
        (known,) = connection.execute(select(table)).all()
        schema, asked = json.loads(known.schema), []
        for number in range(count):
            call = {name: getattr(known, name) for name in ("caller", "server", "kind", "name", "policy")}
            arguments = {"place": str(number if number >= count - 100 else 0), "count": 1}
            if number in (0, *range(count - 100, count)):
                binding = Binding(**call, arguments=arguments, schema=schema)
            if number < count - 100:  # of calls that do not come
                binding.digest, binding.call_digest = os.urandom(32), os.urandom(32)
            question = Question(
                binding=binding,
                owner=known.owner,
                caller_class=known.caller_class,
                risk=known.risk,
                rule="",
                reason="",
            )
            asked.append(vars(new_approval(question, known.asked_at + number * 1e-4)))
        connection.execute(insert(table), asked)
    database.close()


def approve(folder: Path, approval_id: str) -> None:
    database = Database(f"sqlite:///{folder}/state/guard.sqlite3")
    ApprovalStore(database).decide(approval_id, ApprovalDecision(True, "os:grace", "command line"))
    database.close()


def memory_kb(folder: Path) -> int:
    """The resident memory of the server in a folder."""
    (pid,) = servers(folder)
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])
