"""How a caller learns of its approval: by a form, held with progress, or told to come again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.guarded import guarded, shop

from fastrpc import CallInfo, Server
from fastrpc.errors import RemoteError
from fastrpc.guard.approvals import asking
from fastrpc.guard.approvals.asking import Approvals
from fastrpc.guard.approvals.store import ApprovalDecision, ApprovalStore
from fastrpc.protocol.versions import VERSIONS
from fastrpc.storage.database import Database
from fastrpc.testing import Client

pytest_plugins = ["support.guard_database"]

POLICY = '[expose]\ntools = ["*"]\n[approvals]\n'


def served(folder: Path, database: Database, text: str = "", events: list[str] | None = None) -> Any:
    note = (lambda event, *_: events.append(event)) if events is not None else None
    approvals = Approvals("shop", lambda: database, note)
    return guarded(folder, POLICY + text, shop(), approve=approvals)[0]


async def outcome(client: Client, tool: str = "wipe", **arguments: Any) -> Any:
    try:
        return (await client.call(tool, **(arguments or {"place": "x"}))).text
    except RemoteError as error:
        return error.data["reason"]


async def decided(database: Database, approves: bool = True, by: str = "os:grace") -> None:
    """Decide about the one that waits, once there is one."""
    store = ApprovalStore(database)
    while not (found := store.list()):
        await asyncio.sleep(0.01)
    store.decide(found[0].id, ApprovalDecision(approves, by, "command line"))


def accept(_: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {}}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_without_forms_is_held_until_somebody_approves(
    tmp_path: Path, database: Database, version: str
) -> None:
    events: list[str] = []
    app = served(tmp_path, database, events=events)

    async def conversation() -> tuple[Any, Any]:
        async with Client(app, version=version) as client:
            return await asyncio.gather(outcome(client), decided(database))

    assert asyncio.run(asyncio.wait_for(conversation(), 60))[0] == "wiped x"
    assert events == ["asked", "approved", "used"]


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= "2025-06-18"])
def test_the_answer_of_a_form_decides_and_is_kept(tmp_path: Path, database: Database, version: str) -> None:
    events: list[str] = []
    app = served(tmp_path, database, events=events)

    async def conversation() -> Any:
        async with Client(app, version=version, on_elicit=accept) as client:
            return await outcome(client)

    assert asyncio.run(asyncio.wait_for(conversation(), 60)) == "wiped x"
    (kept,) = ApprovalStore(database).list(("used",))
    assert kept.channel == "client"
    assert events == ["asked", "approved", "used"]


def test_no_one_deciding_in_time_means_no_while_the_call_is_held(tmp_path: Path, database: Database) -> None:
    app = served(tmp_path, database, "timeout_seconds = 0.3\n")

    async def conversation() -> Any:
        async with Client(app) as client:
            return await outcome(client)

    assert asyncio.run(asyncio.wait_for(conversation(), 60)) == "wipe was not approved within 0.3 s"


def test_where_approvers_are_named_the_form_of_another_person_is_not_shown(
    tmp_path: Path, database: Database
) -> None:
    shown: list[Any] = []

    def answer(request: Any) -> dict[str, Any]:
        shown.append(request)
        return accept(request)

    async def conversation(app: Any) -> Any:
        async with Client(app, on_elicit=answer) as client:
            return await outcome(client)

    app = served(tmp_path, database, 'hold_seconds = 0.1\napprovers = ["os:grace"]\n')
    assert "is waiting for the approval" in asyncio.run(conversation(app))
    assert shown == []
    app = served(tmp_path, database, 'approvers = ["tester"]\n')
    assert asyncio.run(conversation(app)) == "wiped x"
    assert len(shown) == 1


def test_two_calls_that_are_the_same_wait_for_one_approval_of_which_one_runs(
    tmp_path: Path, database: Database
) -> None:
    app, store = served(tmp_path, database), ApprovalStore(database)

    async def conversation() -> None:
        async with Client(app) as client:
            calls = [asyncio.ensure_future(outcome(client)) for _ in range(2)]
            await decided(database)
            done, others = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            assert [each.result() for each in done] == ["wiped x"]
            (other,) = others
            while not store.list():  # it waits for its own approval
                assert not other.done()
                await asyncio.sleep(0.01)
            await decided(database, approves=False)
            assert "wiped" not in await other

    asyncio.run(asyncio.wait_for(conversation(), 60))
    assert len(store.list(("used",))) == 1


def test_a_process_that_holds_many_calls_has_others_come_again_at_once(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "MOST_HELD", 0)
    app = served(tmp_path, database)

    async def conversation() -> Any:
        async with Client(app) as client:
            return await outcome(client)

    assert "is waiting for the approval" in asyncio.run(asyncio.wait_for(conversation(), 30))


def test_a_cancelled_call_waits_no_more_and_its_approval_is_there_for_the_next(
    tmp_path: Path, database: Database
) -> None:
    app = served(tmp_path, database)

    async def conversation() -> Any:
        async with Client(app) as client:
            id, waiting = client.begin("tools/call", {"name": "wipe", "arguments": {"place": "x"}})
            while not ApprovalStore(database).list():
                await asyncio.sleep(0.01)
            client.notify("notifications/cancelled", {"requestId": id})
            await decided(database)
            waiting.cancel()
            return await outcome(client)

    assert asyncio.run(asyncio.wait_for(conversation(), 60)) == "wiped x"


def test_a_database_that_fails_refuses_the_call(
    tmp_path: Path, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    app = served(tmp_path, database)
    (tmp_path / "guard.sqlite3").unlink()

    async def conversation() -> Any:
        async with Client(app, on_elicit=accept) as client:
            with pytest.raises(RemoteError, match=r"an approval, which cannot be stored now \(-32001\)$"):
                await client.call("wipe", place="x")
            return await outcome(client), await outcome(client, "search", text="x")

    assert asyncio.run(asyncio.wait_for(conversation(), 60)) == ("approval_rejected", "found x")
    assert str(tmp_path) in caplog.text  # the log says which database it is, the client does not learn it


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("changes", ["replaced", "within", "nothing"])
def test_a_hook_that_changes_what_was_approved_has_the_call_refused(
    tmp_path: Path, changes: str, is_async: bool
) -> None:
    app, ran = Server("shop"), []

    @app.tool(effect="exec")
    def send(to: list[str]) -> str:
        ran.append(to)
        return "sent"

    def change(call: CallInfo) -> None:
        if changes == "replaced":
            call.arguments = {"to": ["eve"]}
        elif changes == "within":
            call.arguments["to"].append("eve")

    async def change_later(call: CallInfo) -> None:
        change(call)

    app.before(change_later if is_async else change)
    guarded(tmp_path, POLICY, app)

    async def conversation() -> Any:
        async with Client(app, version="2025-06-18", on_elicit=accept) as client:
            return await outcome(client, "send", to=["ada"])

    said = asyncio.run(asyncio.wait_for(conversation(), 60))
    assert (said, ran) == (("sent", [["ada"]]) if changes == "nothing" else ("approval_rejected", []))
