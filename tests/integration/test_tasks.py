"""Calls that become tasks: when they do, who sees them, what they ask, how they end, on both wires."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.task_client import EXTENSION, SESSION, TaskClient
from support.waiting import SECONDS

from fastrpc import CallInfo, Context, ProtocolError, Server, ToolError
from fastrpc.client_requests import Form
from fastrpc.protocol.versions import STATELESS
from fastrpc.tasks import store

both_wires = pytest.mark.parametrize("version", [SESSION, STATELESS])


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))


def shop() -> Server:
    app = Server("shop", version="1")
    app.state_of_tools = state = {"let_go": asyncio.Event(), "cancelled": 0, "runs": 0}  # type: ignore[attr-defined]

    @app.tool(effect="write", task="allowed", after_seconds=0)
    async def build(ctx: Context, what: str = "ship") -> str:
        """Build something."""
        state["runs"] += 1
        ctx.progress(1, 2, "half of it")
        try:
            await state["let_go"].wait()
        except asyncio.CancelledError:
            state["cancelled"] += 1
            raise
        return f"built {what}"

    @app.tool(effect="read", task="required")
    def quick(fails: bool = False) -> str:
        """Return at once."""
        if fails:
            raise ToolError("it failed")
        return "quick"

    @app.tool(effect="read", task="allowed", after_seconds=60)
    def patient() -> str:
        """Return before it could become a task."""
        return "patient"

    @app.tool(effect="read", task="allowed", after_seconds=0)
    async def broken() -> str:
        """Fail with an error of the protocol."""
        await asyncio.sleep(0.01)
        raise ProtocolError("broken", {"why": "asked for"})

    @app.tool(effect="read", task="allowed", after_seconds=0)
    async def ask(ctx: Context, waits: bool = True) -> str:
        """Ask for two names."""
        if waits:
            await asyncio.sleep(0.001)
        answers = await ctx.ask(first=Form("First?", str), last=Form("Last?", str))
        again = await ctx.elicit("Really?", bool, key="sure")
        return f"{answers['first'].value} {answers['last'].value} {again.value}"

    @app.tool(effect="read")
    def plain() -> str:
        """No task."""
        return "plain"

    return app


def converse(conversation: Callable[[Server], Awaitable[Any]], app: Server | None = None) -> Any:
    async def run() -> Any:
        server = shop() if app is None else app
        try:
            return await conversation(server)
        finally:
            await server.runtime.leave()

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


def let_go(app: Any) -> None:
    app.state_of_tools["let_go"].set()


# --- which call becomes a task --------------------------------------------------------------------------


@both_wires
def test_a_call_that_waits_becomes_a_task_and_its_result_is_there_afterwards(version: str) -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app, version=version)
        id = await client.task("build", what="boat")
        found = await client.get(id)
        assert (found["status"], found["statusMessage"]) == ("working", "half of it")
        let_go(app)
        found = await client.ended(id)
        assert found["status"] == "completed"
        result = (
            found["result"] if version == STATELESS else await client.result("tasks/result", {"taskId": id})
        )
        assert (result["content"], result["isError"]) == ([{"type": "text", "text": "built boat"}], False)
        client.close()

    converse(talk)


def test_a_server_that_has_been_left_makes_tasks_in_another_loop() -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app)
        assert (await client.ended(await client.task("done")))["status"] == "completed"
        client.close()

    app = shop()
    app.add_tool(done, task="required")
    for _ in range(2):
        converse(talk, app)


def test_a_task_that_its_process_does_not_know_it_has_is_taken_for_lost() -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app)
        id = await client.task("build", what="boat")
        board: Any = app.runtime.tasks
        run = board._runs.pop(id)  # as if no answer had come to what has given it the task
        await board._rows.do(store.release, board.worker)
        await board._sweep()
        assert (await client.get(id))["status"] == "failed"
        run.cancel()
        client.close()

    converse(talk)


async def done() -> str:
    """End at once."""
    return "done"


def test_a_call_that_ends_soon_enough_is_answered_like_any_other() -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app)
        result = await client.call("patient")
        assert result["resultType"] == "complete"
        assert result["content"][0]["text"] == "patient"
        client.close()

    converse(talk)


def test_a_tool_that_requires_tasks_makes_one_however_short_its_call_is() -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app)
        done = await client.ended(await client.task("quick"))
        assert done["result"]["content"][0]["text"] == "quick"
        failed = await client.ended(await client.task("quick", fails=True))
        assert (failed["status"], failed["result"]["isError"]) == ("completed", True)
        client.close()

    converse(talk)


def test_a_client_that_does_not_declare_tasks_gets_the_result_as_before() -> None:
    async def talk(app: Server) -> None:
        let_go(app)
        client = TaskClient(app, declares=False)
        assert (await client.call("build"))["content"][0]["text"] == "built ship"
        error = await client.error("tools/call", {"name": "quick", "arguments": {}})
        assert error["code"] == -32021
        assert error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            refused = await client.error(method, {"taskId": "x", "inputResponses": {}})
            assert refused["code"] == -32021
        client.close()

    converse(talk)


def test_in_a_session_the_client_asks_for_the_task() -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app, version=SESSION)
        let_go(app)
        without = await client.result("tools/call", {"name": "build", "arguments": {}})
        assert without["content"][0]["text"] == "built ship"
        refused = await client.error("tools/call", {"name": "quick", "arguments": {}})
        assert refused["code"] == -32601
        bad = await client.error("tools/call", {"name": "build", "arguments": {}, "task": {"ttl": "long"}})
        assert bad["code"] == -32602
        found = await client.result("tools/call", {"name": "build", "arguments": {}, "task": {"ttl": 5000}})
        assert found["task"]["ttl"] == 5000
        client.close()

    converse(talk)


def test_a_plain_tool_makes_no_task_whatever_the_client_declares() -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app)
        result = await client.result("tools/call", {"name": "plain", "arguments": {}, "task": {"ttl": 5}})
        assert result["content"][0]["text"] == "plain"
        client.close()

    converse(talk)


def test_the_capability_is_declared_where_a_tool_has_tasks_and_in_the_form_of_each_wire() -> None:
    async def talk(app: Server) -> None:
        capabilities = (await TaskClient(app).result("server/discover"))["capabilities"]
        assert capabilities["extensions"] == {EXTENSION: {}}
        assert "tasks" not in capabilities
        session = TaskClient(app, version=SESSION)
        (first, *_) = (await session.result("tools/list"))["tools"]
        assert first["execution"] == {"taskSupport": "optional"}
        assert app.runtime.description.capabilities(SESSION)["tasks"] == {
            "list": {},
            "cancel": {},
            "requests": {"tools": {"call": {}}},
        }
        assert "tasks" not in app.runtime.description.capabilities("2025-06-18")
        without = Server("none")
        assert "extensions" not in without.runtime.description.capabilities(STATELESS)
        assert (await TaskClient(without).error("tasks/get", {"taskId": "x"}))["code"] == -32601

    converse(talk)


# --- who sees it ----------------------------------------------------------------------------------------


@both_wires
def test_a_task_exists_for_its_own_caller_alone(version: str) -> None:
    async def talk(app: Server) -> None:
        ada, bob = TaskClient(app, version=version), TaskClient(app, "bob", version)
        id = await ada.task("build")
        unknown = await bob.error("tasks/get", {"taskId": "no such id"})
        for method in ("tasks/get", "tasks/cancel", *(("tasks/result",) if version == SESSION else ())):
            error = await bob.error(method, {"taskId": id})
            assert (error["code"], error["message"]) == (
                -32602,
                unknown["message"].replace("no such id", id),
            )
        assert (await ada.get(id))["status"] == "working"

    converse(talk)


def test_a_list_has_pages_of_the_callers_own_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastrpc.methods import tasks

    monkeypatch.setattr(tasks, "PAGE", 2)

    async def talk(app: Server) -> None:
        let_go(app)
        client, other = TaskClient(app, version=SESSION), TaskClient(app, "bob", SESSION)
        made = [await client.task("build") for _ in range(5)]
        await other.task("build")
        seen: list[str] = []
        params: dict[str, Any] = {}
        while True:
            page = await client.result("tasks/list", params)
            seen += [task["taskId"] for task in page["tasks"]]
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
        assert sorted(seen) == sorted(made)
        assert (await client.error("tasks/list", {"cursor": "?"}))["code"] == -32602

    converse(talk)


# --- what it asks ---------------------------------------------------------------------------------------


def test_what_a_task_asks_is_answered_in_parts_and_each_key_once() -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app)
        id = await client.task("ask")
        waiting = await client.until(id, "input_required")
        assert sorted(waiting["inputRequests"]) == ["first", "last"]

        async def answer(**responses: Any) -> dict[str, Any]:
            given = {
                key: {"action": "accept", "content": {"value": value}} for key, value in responses.items()
            }
            return await client.result("tasks/update", {"taskId": id, "inputResponses": given})

        acknowledged = await answer(first="Ada", unknown="x")
        assert set(acknowledged) == {"resultType", "_meta"}
        half = await client.get(id)
        assert (half["status"], list(half["inputRequests"])) == ("input_required", ["last"])
        await answer(first="Eve")
        await answer(last="King")
        assert list((await client.until(id, "input_required"))["inputRequests"]) == ["sure"]
        await answer(sure="no boolean")
        assert list((await client.until(id, "input_required"))["inputRequests"]) == ["sure-2"]
        await answer(**{"sure-2": True})
        done = await client.ended(id)
        assert done["result"]["content"][0]["text"] == "Ada King True"

    converse(talk)


def test_what_a_call_asks_before_it_is_a_task_is_asked_of_its_client() -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app)
        params = {"name": "ask", "arguments": {"waits": False}}
        first = await client.result("tools/call", params)
        assert first["resultType"] == "input_required"
        assert "taskId" not in first
        answers = {key: {"action": "accept", "content": {"value": key}} for key in first["inputRequests"]}
        again = {**params, "inputResponses": answers, "requestState": first["requestState"]}
        assert (await client.result("tools/call", again))["resultType"] == "input_required"

    converse(talk)


def test_in_a_session_the_client_is_asked_while_it_waits_for_the_result() -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app, version=SESSION)
        id = await client.task("ask")
        result = await client.result("tasks/result", {"taskId": id})
        assert result["content"][0]["text"] == "First? Last? False"
        asked = [each for each in client.notified if each["method"] == "elicitation/create"]
        related = {"io.modelcontextprotocol/related-task": {"taskId": id}}
        assert len(asked) == 3
        assert all(each["params"]["_meta"] == related for each in asked)
        assert result["_meta"] == related

    converse(talk)


def test_in_a_session_a_question_that_is_refused_fails_the_task() -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app, version=SESSION)
        client.answers = False
        error = await client.error("tasks/result", {"taskId": await client.task("ask")})
        assert error["code"] == -32603
        assert "refused elicitation/create" in error["message"]

    converse(talk)


# --- how its client hears of it -------------------------------------------------------------------------


def test_a_stream_carries_the_changes_of_the_callers_own_tasks_and_no_others() -> None:
    async def talk(app: Server) -> None:
        ada, bob = TaskClient(app), TaskClient(app, "bob")
        id = await ada.task("build")
        for client in (ada, bob):
            client.send("subscriptions/listen", {"notifications": {"taskIds": [id]}})
        await asyncio.sleep(0)
        assert ada.notified[-1]["params"]["notifications"] == {"taskIds": [id]}
        let_go(app)
        pushed = await ada.pushed("notifications/tasks", "completed")
        got = await ada.get(id)
        assert {name: value for name, value in pushed.items() if name != "_meta"} == {
            name: value for name, value in got.items() if name not in ("_meta", "resultType")
        }
        await asyncio.sleep(0.05)
        assert [each["method"] for each in bob.notified] == ["notifications/subscriptions/acknowledged"]

    converse(talk)


def test_a_stream_of_tasks_is_for_clients_that_declare_them() -> None:
    async def talk(app: Server) -> None:
        wanted = {"notifications": {"taskIds": ["x"]}}
        refused = await TaskClient(app, declares=False).error("subscriptions/listen", wanted)
        assert refused["code"] == -32021
        wrong = await TaskClient(app).error("subscriptions/listen", {"notifications": {"taskIds": "x"}})
        assert wrong["code"] == -32602

    converse(talk)


def test_a_session_is_notified_of_its_own_tasks() -> None:
    async def talk(app: Server) -> None:
        client, other = TaskClient(app, version=SESSION), TaskClient(app, version=SESSION)
        id = await client.task("build")
        let_go(app)
        pushed = await client.pushed("notifications/tasks/status", "completed")
        assert pushed == {k: v for k, v in (await client.get(id)).items() if k != "_meta"}
        assert other.notified == []

    converse(talk)


# --- how it ends ----------------------------------------------------------------------------------------


@both_wires
def test_a_cancelled_task_ends_its_call_and_stays_cancelled(version: str) -> None:
    async def talk(app: Any) -> None:
        client = TaskClient(app, version=version)
        id = await client.task("build")
        result = await client.result("tasks/cancel", {"taskId": id})
        assert result.get("status") == (None if version == STATELESS else "cancelled")
        assert app.state_of_tools["cancelled"] == 1
        let_go(app)
        assert (await client.get(id))["status"] == "cancelled"
        if version == STATELESS:
            assert (await client.result("tasks/cancel", {"taskId": id}))["resultType"] == "complete"
        else:
            assert (await client.error("tasks/cancel", {"taskId": id}))["code"] == -32602
            assert (await client.error("tasks/result", {"taskId": id}))["code"] == -32602

    converse(talk)


@both_wires
def test_an_error_of_the_protocol_fails_the_task(version: str) -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app, version=version)
        id = await client.task("broken")
        found = await client.ended(id)
        assert found["status"] == "failed"
        error = found["error"] if version == STATELESS else await client.error("tasks/result", {"taskId": id})
        assert error == {"code": -32603, "message": "broken", "data": {"why": "asked for"}}

    converse(talk)


def test_a_request_that_is_cancelled_before_it_is_a_task_leaves_none() -> None:
    app = shop()

    @app.tool(effect="read", task="allowed", after_seconds=60)
    async def slow() -> str:
        """Wait."""
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("slow")
        return "late"

    ended: list[str] = []

    async def talk(app: Server) -> None:
        client = TaskClient(app)
        client.send("tools/call", {"name": "slow", "arguments": {}})
        await asyncio.sleep(0.05)
        client.cancel_request(1)
        await asyncio.sleep(0.05)
        assert ended == ["slow"]
        assert not app.runtime.tasks._rows.is_open

    converse(talk, app)


def test_a_task_outlives_the_connection_that_has_asked_for_it() -> None:
    async def talk(app: Server) -> None:
        keeper, first = TaskClient(app), TaskClient(app)
        id = await first.task("build")
        first.close()
        let_go(app)
        assert (await keeper.ended(id))["status"] == "completed"

    converse(talk)


# --- limits and refusals --------------------------------------------------------------------------------


def test_guards_decide_about_the_call_of_a_task() -> None:
    app = shop()

    @app.before
    def only_ada(call: CallInfo) -> None:
        if call.principal != "ada":
            raise ToolError("not for you")

    async def talk(app: Server) -> None:
        denied = await TaskClient(app, "bob").call("build")
        assert (denied["isError"], denied["content"][0]["text"]) == (True, "not for you")
        client = TaskClient(app)
        id = await client.task("build")
        let_go(app)
        assert (await client.ended(id))["status"] == "completed"

    converse(talk, app)


def test_one_caller_has_so_many_open_tasks_and_the_next_call_is_refused_or_runs_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "MOST_OPEN", 1)

    async def talk(app: Server) -> None:
        client = TaskClient(app)
        await client.task("build")
        assert (await client.error("tools/call", {"name": "quick", "arguments": {}}))["code"] == -31001
        second = client.send("tools/call", {"name": "build", "arguments": {"what": "second"}})
        await asyncio.sleep(0.1)
        let_go(app)
        assert (await second)["result"]["content"][0]["text"] == "built second"

    converse(talk)


def test_a_store_that_is_away_refuses_new_tasks_which_do_not_run_and_other_calls_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "tasks.sqlite3").write_bytes(b"this is no database" * 100)
    os.chmod(tmp_path / "tasks.sqlite3", 0o600)
    ran: list[str] = []

    async def talk(app: Server) -> None:
        @app.tool(effect="write", task="required")
        async def order() -> None:
            ran.append("ordered")

        client = TaskClient(app)
        assert (await client.error("tools/call", {"name": "order", "arguments": {}}))["code"] == -31001
        error = await client.error("tools/call", {"name": "quick", "arguments": {}})
        assert error["code"] == -31001
        assert error["message"].endswith("(the database is away); try again later")
        assert str(tmp_path) in caplog.text  # who serves learns which database it is
        assert (await client.call("plain"))["content"][0]["text"] == "plain"
        let_go(app)
        assert (await client.call("build"))["content"][0]["text"] == "built ship"
        assert not ran

    converse(talk)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"task": "sometimes"}, "task='sometimes' is not one of allowed, required"),
        ({"task": "allowed", "after_seconds": -1}, "after_seconds=-1 is not a number from 0"),
        ({"after_seconds": 1}, 'after_seconds= is for tools with task="allowed" or task="required"'),
    ],
)
def test_a_wrong_option_is_refused_at_once(options: dict[str, Any], problem: str) -> None:
    from fastrpc.errors import DefinitionError

    with pytest.raises(DefinitionError) as caught:
        Server("s").tool(name="x", **options)(lambda: "x")
    assert problem in str(caught.value)
