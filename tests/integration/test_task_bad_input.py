"""Requests about tasks that are wrong, on both wires: each has one error, and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.task_client import SESSION, TaskClient
from support.waiting import SECONDS

from fastrpc import Context, Server
from fastrpc.protocol.versions import STATELESS

both_wires = pytest.mark.parametrize("version", [SESSION, STATELESS])
INVALID = -32602


def converse(folder: Path, monkeypatch: Any, talk: Callable[[Server], Awaitable[Any]]) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(folder))
    app = Server("shop", version="1")

    @app.tool(effect="write", task="required")
    async def ask(ctx: Context) -> str:
        """Ask for a number."""
        await asyncio.sleep(0.001)
        answer = await ctx.elicit("How many?", int, key="count")
        return f"{answer.action} {answer.value}"

    @app.tool(effect="read", task="required")
    async def quick() -> str:
        """Return at once."""
        return "quick"

    async def run() -> None:
        try:
            await talk(app)
        finally:
            await app.runtime.leave()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def methods_of(version: str) -> tuple[str, ...]:
    return ("tasks/get", "tasks/cancel", "tasks/result" if version == SESSION else "tasks/update")


@both_wires
@pytest.mark.parametrize("id", [None, 5, [], {}, True])
def test_an_id_of_another_type_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, id: Any
) -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app, version=version)
        for method in methods_of(version):
            error = await client.error(method, {"taskId": id, "inputResponses": {}})
            assert (error["code"], error["message"]) == (INVALID, "taskId: expected a string")
            missing = await client.error(method, {"inputResponses": {}})
            assert (missing["code"], missing["message"]) == (INVALID, "taskId: missing")
        client.close()

    converse(tmp_path, monkeypatch, talk)


@both_wires
def test_a_task_of_another_caller_is_unknown_to_every_method_and_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    async def talk(app: Server) -> None:
        client, other = TaskClient(app, version=version), TaskClient(app, "eve", version)
        id = await client.task("ask")
        await client.until(id, "input_required")
        answer = {"count": {"action": "accept", "content": {"value": 1}}}
        for method in methods_of(version):
            unknown = await other.error(method, {"taskId": "0" * 32, "inputResponses": answer})
            error = await other.error(method, {"taskId": id, "inputResponses": answer})
            assert error == {**unknown, "message": unknown["message"].replace("0" * 32, id)}
        assert (await client.get(id))["status"] == "input_required"
        client.close()
        other.close()

    converse(tmp_path, monkeypatch, talk)


@both_wires
@pytest.mark.parametrize("task", [5, "x", [], None, {"ttl": "x"}, {"ttl": -1}, {"ttl": True}, {"ttl": []}])
def test_a_wrong_wish_for_a_task_is_an_error_in_a_session_and_ignored_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, task: Any
) -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app, version=version)
        params = {"name": "quick", "arguments": {}, "task": task}
        if version == STATELESS:
            assert (await client.result("tools/call", params))["resultType"] == "task"
        else:
            error = await client.error("tools/call", params)
            assert error["code"] == INVALID
            assert error["message"].startswith("task")
        client.close()

    converse(tmp_path, monkeypatch, talk)


@pytest.mark.parametrize("responses", ["missing", None, 5, "x", []])
def test_answers_that_are_no_object_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, responses: Any
) -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app)
        id = await client.task("ask")
        await client.until(id, "input_required")
        params = {"taskId": id} if responses == "missing" else {"taskId": id, "inputResponses": responses}
        assert (await client.error("tasks/update", params))["code"] == INVALID
        assert list((await client.get(id))["inputRequests"]) == ["count"]
        client.close()

    converse(tmp_path, monkeypatch, talk)


def test_answers_to_other_keys_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app)
        id = await client.task("ask")
        await client.until(id, "input_required")
        answer = {"action": "accept", "content": {"value": 1}}
        for keys in (["other"], ["count-2", ""], ["x" * 100_000], []):
            await client.result("tasks/update", {"taskId": id, "inputResponses": dict.fromkeys(keys, answer)})
            now = await client.get(id)
            assert (now["status"], list(now["inputRequests"])) == ("input_required", ["count"])
        done = await client.task("quick")
        await client.ended(done)
        await client.result("tasks/update", {"taskId": done, "inputResponses": {"count": answer}})
        assert (await client.get(done))["status"] == "completed"
        client.close()

    converse(tmp_path, monkeypatch, talk)


@pytest.mark.parametrize(
    "answer",
    [
        5,
        None,
        "accept",
        [],
        {},
        {"action": "perhaps"},
        {"action": "accept"},
        {"action": "accept", "content": 5},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"value": "many"}},
        {"action": "accept", "content": {"value": 1.5}},
        {"roots": []},
    ],
)
def test_an_answer_that_does_not_fit_is_asked_for_once_more_and_then_ends_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app)
        id = await client.task("ask")
        key = "count"
        for again in (False, True):
            waiting = await client.until(id, "input_required")
            while list(waiting["inputRequests"]) == [key] and again:
                waiting = await client.until(id, "input_required")
            ((key, question),) = waiting["inputRequests"].items()
            assert ("could not be used" in question["params"]["message"]) is again
            await client.result("tasks/update", {"taskId": id, "inputResponses": {key: answer}})
        ended = await client.ended(id)
        assert ended["result"]["isError"] is True
        said = ended["result"]["content"][0]["text"]
        assert said.startswith("the client's answer to elicitation/create cannot be used: ")
        assert len(said) < 1000
        assert (await client.ended(await client.task("quick")))["status"] == "completed"
        client.close()

    converse(tmp_path, monkeypatch, talk)


@both_wires
def test_to_cancel_a_task_that_is_completed_leaves_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    async def talk(app: Server) -> None:
        client = TaskClient(app, version=version)
        id = await client.task("quick")
        before = await client.ended(id)
        answer = await client.send("tasks/cancel", {"taskId": id})
        if version == STATELESS:
            assert set(answer["result"]) == {"resultType", "_meta"}
        else:
            assert answer["error"]["code"] == INVALID
        assert await client.get(id) == before
        client.close()

    converse(tmp_path, monkeypatch, talk)
