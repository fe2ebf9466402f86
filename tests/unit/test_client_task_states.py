"""What a client makes of tasks that servers describe badly, late, or in another order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.scripted_server import Asked, Saying, Scripted
from support.waiting import SECONDS

from fastrpc import Client, ConnectionLost, InvalidAnswer, RemoteError, TaskCancelled
from fastrpc.client.tasks import LONGEST_POLL_MS, POLL_MS, SHORTEST_POLL_MS, RemoteTask
from fastrpc.errors import Overloaded
from fastrpc.protocol.versions import CAPABILITIES_KEY, STATELESS, TASKS_EXTENSION

TASK = {"taskId": "t1", "status": "working", "lastUpdatedAt": "2026-11-01T00:00:01Z", "pollIntervalMs": 1}


class Tasks:
    """A server of 2026-07-28 that answers a call by `begins`, and each tasks/get by the next of `states`."""

    def __init__(self, *states: dict[str, Any], begins: dict[str, Any] | None = None) -> None:
        self.begins = {"resultType": "task", **TASK} if begins is None else begins
        self.states = list(states)
        self.updates: list[dict[str, Any]] = []
        self.declared: list[tuple[str, bool]] = []

    async def __call__(self, asked: Asked, say: Saying) -> None:
        if asked.rpc == "server/discover":
            capabilities = {"tools": {}, "extensions": {TASKS_EXTENSION: {}}}
            await say.result(asked, {"supportedVersions": [STATELESS], "capabilities": capabilities})
            return
        params = asked.message["params"]
        extensions = params["_meta"][CAPABILITIES_KEY].get("extensions", {})
        self.declared.append((asked.rpc, TASKS_EXTENSION in extensions))
        if asked.rpc == "tools/call":
            await say.result(asked, self.begins)
        elif asked.rpc == "tasks/get":
            assert asked.headers["mcp-name"] == "t1"
            state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
            if state.get("status_code"):
                await say.answer(state["status_code"])
            else:
                await say.result(asked, {"resultType": "complete", **TASK, **state})
        elif asked.rpc == "tasks/update":
            self.updates.append(params["inputResponses"])
            await say.result(asked, {"resultType": "complete"})
        else:
            await say.error(asked, 404, -32601, "no such method")


DONE = {
    "status": "completed",
    "result": {"resultType": "complete", "content": [{"type": "text", "text": "x"}]},
}
ASKS = {
    "status": "input_required",
    "inputRequests": {"k": {"method": "elicitation/create", "params": {"message": "Which?"}}},
}


def talk(server: Tasks, **options: Any) -> RemoteTask:
    """Call the server's tool as a task, wait for its end, and return it."""

    async def run() -> RemoteTask:
        async with (
            Scripted(server) as scripted,
            Client(
                scripted.url, version=STATELESS, **{"on_elicit": lambda params: {"a": 1}, **options}
            ) as client,
        ):
            task = await client.call_tool("one", task=True)
            assert (await task.wait()).text == "x"
            return task

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_every_request_about_tasks_declares_the_extension() -> None:
    server = Tasks({}, ASKS, DONE)
    talk(server)
    assert {method for method, _ in server.declared} == {
        "tools/call",
        "tasks/get",
        "tasks/update",
        "subscriptions/listen",
    }
    assert all(declared for _, declared in server.declared)


def test_a_call_without_a_task_does_not_declare_it() -> None:
    server = Tasks(begins=DONE["result"])

    async def run() -> None:
        async with Scripted(server) as scripted, Client(scripted.url, version=STATELESS) as client:
            assert (await client.call_tool("one")).text == "x"

    asyncio.run(run())
    assert server.declared == [("tools/call", False)]


def test_a_task_that_was_not_asked_for_is_an_invalid_answer() -> None:
    async def run() -> None:
        async with Scripted(Tasks()) as scripted, Client(scripted.url, version=STATELESS) as client:
            with pytest.raises(InvalidAnswer, match="resultType"):
                await client.call_tool("one")

    asyncio.run(run())


def test_a_question_that_is_still_listed_after_its_answer_is_not_asked_again() -> None:
    server = Tasks(ASKS, ASKS, ASKS, DONE)
    talk(server)
    assert server.updates == [{"k": {"action": "accept", "content": {"a": 1}}}]


def test_a_state_that_is_older_than_what_is_known_is_ignored_unless_it_is_the_end() -> None:
    task = RemoteTask(None, {**TASK, "statusMessage": "new"})  # type: ignore[arg-type]
    older = {**TASK, "lastUpdatedAt": "2026-11-01T00:00:00Z"}
    task.take("tasks/get", {**older, "statusMessage": "old"})
    assert task.status_message == "new"
    task.take("tasks/get", {**older, "status": "cancelled"})
    assert task.status == "cancelled"
    task.take("tasks/get", {**TASK, "lastUpdatedAt": "2026-11-01T00:00:09Z"})
    assert task.status == "cancelled"  # a task ends once


def test_a_cancelled_task_has_no_result() -> None:
    with pytest.raises(TaskCancelled, match="t1"):
        talk(Tasks({"status": "cancelled"}))


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_that_is_busy_for_a_moment_is_asked_again(status: int) -> None:
    assert talk(Tasks({}, {"status_code": status}, DONE)).status == "completed"


def test_a_task_that_failed_with_an_error_of_a_busy_server_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.client.tasks.PAUSES", ())  # nothing is attempted again
    with pytest.raises(RemoteError, match="busy") as caught:
        talk(Tasks({"status": "failed", "error": {"code": Overloaded.code, "message": "busy"}}))
    assert caught.value.code == Overloaded.code


def test_a_handler_that_loses_a_connection_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.client.tasks.PAUSES", ())
    calls: list[str] = []

    def fail(params: dict[str, Any]) -> None:
        calls.append(params["message"])
        raise ConnectionLost("of the handler's database")

    with pytest.raises(ConnectionLost, match=r"^of the handler's database$"):
        talk(Tasks(ASKS), on_elicit=fail)
    assert calls == ["Which?"]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"taskId": 1}, "taskId"),
        ({"taskId": ""}, "taskId"),
        ({"taskId": "another"}, "taskId"),
        ({"status": "asleep"}, "status"),
        ({"statusMessage": 1}, "statusMessage"),
        ({"ttlMs": "1"}, "ttlMs"),
        ({"pollIntervalMs": True}, "pollIntervalMs"),
        ({"lastUpdatedAt": 1}, "lastUpdatedAt"),
        ({"status": "completed"}, "result"),
        ({"status": "completed", "result": []}, "result"),
        ({"status": "failed", "error": "x"}, "error"),
        ({"status": "input_required", "inputRequests": {"k": 1}}, "inputRequests"),
    ],
)
def test_an_invalid_state_is_an_error_that_names_the_member(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidAnswer, match=named):
        talk(Tasks(changed))


@pytest.mark.parametrize("begins", [{"resultType": "task"}, {"resultType": "dream"}, {"resultType": 1}])
def test_an_invalid_beginning_is_an_error(begins: dict[str, Any]) -> None:
    with pytest.raises(InvalidAnswer, match=r"tools/call"):
        talk(Tasks(begins=begins))


@pytest.mark.parametrize(
    ("said", "used"),
    [
        (None, POLL_MS),
        (0, SHORTEST_POLL_MS),
        (-5, SHORTEST_POLL_MS),
        (10**400, LONGEST_POLL_MS),
        (2.5e3, 2500),
    ],
)
def test_no_server_makes_the_client_ask_in_a_rush_or_never_again(said: Any, used: float) -> None:
    task = RemoteTask(None, {**TASK, "pollIntervalMs": said})  # type: ignore[arg-type]
    assert task.poll_ms == used
