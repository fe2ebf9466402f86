"""PlanMode: what it answers, what it refuses while it is on, and who goes on with a plan after a restart."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from fastrpc.tools import _project
from fastrpc.tools.agent import _instances, _state
from fastrpc.tools.agent import plan_mode as module
from fastrpc.tools.agent.plan_mode import attach, plan_mode
from support.state_folder import own_state
from support.stdio import serve

from fastrpc import Server
from fastrpc.testing import CallResult, Client

NOW = 1_000_000_000.0
ENTERED = "Plan mode activated. Write your plan as markdown."
LEFT = "Exiting plan mode. Returning to execution."


@pytest.fixture(autouse=True)
def project(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A state folder and a project of its own for each test."""
    monkeypatch.delenv("PLAN_ENFORCE", raising=False)
    for _ in own_state(tmp_path, monkeypatch):
        yield tmp_path / "project"


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that does not advance: writing takes as long as the disk does."""
    monkeypatch.setattr(module, "wall_clock", lambda: NOW)


@pytest.fixture
def enforced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAN_ENFORCE", "1")


def new_server() -> Server:
    """A server with plan mode and a tool of each effect, called for it; and one that calls itself as the
    tool that asks."""
    app = Server("test")
    app.add_tool(plan_mode)
    for effect in ("read", "write", "network", "exec"):
        app.add_tool(lambda: "done", name=effect, effect=effect, run="inline")
    app.add_tool(lambda: "done", name="AskUserQuestion", effect="write")
    app.add_tool(lambda: "done", name="unknown")
    attach(app)
    return app


def run(conversation: Callable[[Client], Awaitable[Any]], app: Server | None = None) -> Any:
    async def whole() -> Any:
        async with Client(app or new_server()) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(whole(), 60))


async def plan(client: Client, action: str, **arguments: Any) -> CallResult:
    return await client.call("PlanMode", action=action, **arguments)


async def said(client: Client, action: str, **arguments: Any) -> str:
    result = await plan(client, action, **arguments)
    assert result.is_error is False, result
    assert len(result.content) == 1
    return result.text


def rows() -> list[dict[str, Any]]:
    with _state.reading() as database:
        return [dict(row) for row in database.execute("SELECT * FROM plan_mode ORDER BY started_at")]


# --- answers ----------------------------------------------------------------------------------------------


def test_a_plan_from_its_beginning_to_its_end(project: Any, still: None) -> None:
    """PlanMode: enter answers `Plan mode activated. Write your plan as markdown.`
    PlanMode: exit answers `Plan saved to ./plans/x.md` and `Exiting plan mode. Returning to execution.`
    PlanMode: status answers `Plan mode: ACTIVE` with goal and duration, or `Plan mode: INACTIVE`.
    """

    async def conversation(client: Client) -> None:
        assert await said(client, "status") == "Plan mode: INACTIVE"
        assert await said(client, "enter", goal="Refactor the login") == ENTERED
        assert await said(client, "status") == (
            'Plan mode: ACTIVE\nGoal: "Refactor the login"\nDuration: 0m 0s'
        )
        (project / "plans").mkdir()
        (project / "plans" / "x.md").write_text("# Plan")
        assert await said(client, "exit", plan_file="./plans/x.md") == f"Plan saved to ./plans/x.md\n{LEFT}"
        assert await said(client, "status") == "Plan mode: INACTIVE"
        assert rows() == []

    run(conversation)


def test_exit_without_a_file_says_one_line(still: None) -> None:
    """PlanMode: exit without a plan_file answers with the second of its lines alone."""

    async def conversation(client: Client) -> None:
        await said(client, "enter")
        assert await said(client, "status") == "Plan mode: ACTIVE\nDuration: 0m 0s"
        assert await said(client, "exit") == LEFT

    run(conversation)


@pytest.mark.parametrize("path", ["plans/missing.md", "plans", "", "nul\0.md"])
def test_exit_with_a_file_that_is_not_there_is_an_error_and_plan_mode_stays_on(
    project: Any, path: str
) -> None:
    """PlanMode: exit with a plan_file that does not exist is an error, and plan mode stays on."""

    async def conversation(client: Client) -> None:
        await said(client, "enter", goal="g", plan_file=path or "plans/missing.md")
        refused = await plan(client, "exit", plan_file=path)
        assert refused.is_error
        assert refused.text.startswith(f"plan_file: there is no file {path or 'plans/missing.md'}. Plan mode")
        assert (await said(client, "status")).startswith("Plan mode: ACTIVE\n")

    (project / "plans").mkdir()
    run(conversation)


def test_a_file_named_at_the_beginning_is_remembered(project: Any) -> None:
    """PlanMode: a plan_file that was given to enter is remembered."""

    async def conversation(client: Client) -> None:
        assert await said(client, "enter", goal="g", plan_file="~/p.md") == ENTERED
        assert json.loads(await said(client, "json"))["plan_file"] == "~/p.md"
        assert (await plan(client, "exit")).is_error
        (project / "p.md").write_text("# Plan")
        os.environ["HOME"] = str(project)
        assert await said(client, "exit") == f"Plan saved to ~/p.md\n{LEFT}"

    home = os.environ.get("HOME", "")
    try:
        run(conversation)
    finally:
        os.environ["HOME"] = home


def test_json_says_everything_as_text_and_as_data() -> None:
    """PlanMode: json answers active, goal, plan_file and started_at in UTC, as text and structured."""

    async def conversation(client: Client) -> None:
        off = {"active": False, "goal": None, "plan_file": None, "started_at": None}
        assert (await plan(client, "json")).structured == off
        before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        await said(client, "enter", goal="Ship it")
        result = await plan(client, "json")
        assert result.structured == json.loads(result.text)
        started = result.structured.pop("started_at")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", started)
        assert before <= started <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        assert result.structured == {"active": True, "goal": "Ship it", "plan_file": None}
        assert result.text == (
            f'{{"active": true, "goal": "Ship it", "plan_file": null, "started_at": "{started}"}}'
        )
        assert (await plan(client, "status")).structured is None

    run(conversation)


def test_reset_ends_it_without_a_plan_whether_it_was_on_or_not() -> None:
    """PlanMode: reset answers `Plan mode reset. No plan saved.`"""

    async def conversation(client: Client) -> None:
        await said(client, "enter", goal="g", plan_file="missing.md")
        assert await said(client, "reset") == "Plan mode reset. No plan saved."
        assert await said(client, "status") == "Plan mode: INACTIVE"
        assert await said(client, "reset") == "Plan mode reset. No plan saved."

    run(conversation)


def test_exit_of_nothing_is_an_error() -> None:
    async def conversation(client: Client) -> None:
        refused = await plan(client, "exit")
        assert (refused.text, refused.is_error) == (
            "Plan mode is not active: there is nothing to exit.",
            True,
        )

    run(conversation)


def test_entering_again_changes_what_is_given_and_keeps_the_start() -> None:
    async def conversation(client: Client) -> None:
        await said(client, "enter", goal="one", plan_file="a.md")
        [first] = rows()
        assert await said(client, "enter", goal="two") == ENTERED
        [second] = rows()
        assert second == {**first, "goal": "two"}

    run(conversation)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.9, "0m 0s"),
        (59, "0m 59s"),
        (272, "4m 32s"),
        (3599, "59m 59s"),
        (3872, "1h 4m 32s"),
        (93784, "26h 3m 4s"),
        (-500, "0m 0s"),
    ],
)
def test_the_duration_is_never_negative(monkeypatch: pytest.MonkeyPatch, seconds: float, text: str) -> None:
    """PlanMode: the duration has the form `4m 32s` and is never negative."""

    async def conversation(client: Client) -> None:
        monkeypatch.setattr(module, "wall_clock", lambda: 1_000_000.0)
        await said(client, "enter")
        monkeypatch.setattr(module, "wall_clock", lambda: 1_000_000.0 + seconds)
        assert (await said(client, "status")).splitlines()[-1] == f"Duration: {text}"

    run(conversation)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            {"action": "leave"},
            'action: expected one of "enter", "exit", "status", "json", "reset", got "leave"',
        ),
        ({"action": "enter", "goal": "x" * 4097}, "goal: expected at most 4,096 characters, got 4,097."),
        (
            {"action": "exit", "plan_file": "x" * 4097},
            "plan_file: expected at most 4,096 characters, got 4,097.",
        ),
        ({"action": "enter", "goal": 5}, "goal: expected string, got 5"),
        ({}, "action: required, missing"),
    ],
)
def test_bad_input_is_an_error_that_names_the_parameter(arguments: dict[str, Any], complaint: str) -> None:
    """PlanMode: an error names the parameter, what is accepted and what came."""

    async def conversation(client: Client) -> None:
        result = await client.call("PlanMode", **arguments)
        assert (result.text, result.is_error) == (complaint, True)
        assert await said(client, "status") == "Plan mode: INACTIVE"

    run(conversation)


@pytest.mark.parametrize(
    "goal", ["إعادة بناء الواجهة", "👩\u200d🚀 e\u0301 é", 'a "quoted"\nline', "\u202bx\u202c"]
)
def test_any_text_comes_back_unchanged(project: Any, goal: str) -> None:
    """PlanMode: any Unicode passes unchanged."""

    async def conversation(client: Client) -> None:
        path = f"{goal}.md".replace("\n", " ")
        (project / path).write_text("x")
        await said(client, "enter", goal=goal, plan_file=path)
        assert f'Goal: "{goal}"\n' in await said(client, "status")
        shown = await said(client, "json")
        assert json.loads(shown)["goal"] == goal
        assert "\\u" not in shown
        assert await said(client, "exit") == f"Plan saved to {path}\n{LEFT}"

    run(conversation)


# --- the gate ---------------------------------------------------------------------------------------------


async def passes(client: Client) -> dict[str, bool]:
    names = ("read", "write", "network", "exec", "AskUserQuestion", "unknown")
    return {name: not (await client.call(name)).is_error for name in names}


ALL = dict.fromkeys(("read", "write", "network", "exec", "AskUserQuestion", "unknown"), True)


def test_enforced_it_refuses_what_writes_or_executes_and_says_why(enforced: None) -> None:
    """PlanMode: with `PLAN_ENFORCE=1` tools that write or execute are refused in a sentence that says why."""

    async def conversation(client: Client) -> None:
        assert await passes(client) == ALL
        await said(client, "enter", goal="g")
        assert await passes(client) == {**ALL, "write": False, "exec": False}
        assert (await client.call("exec")).text == (
            "exec is refused: it executes things, and plan mode is on (PLAN_ENFORCE). "
            "Finish the plan, then leave with PlanMode, action exit or reset."
        )
        assert (await client.call("write")).text.startswith("write is refused: it changes things, and plan")
        assert (await said(client, "status")).startswith("Plan mode: ACTIVE")
        await said(client, "exit")
        assert await passes(client) == ALL
        await said(client, "enter")
        assert await passes(client) == {**ALL, "write": False, "exec": False}
        await said(client, "reset")
        assert await passes(client) == ALL
        assert app._hooks == []

    app = new_server()
    run(conversation, app)


def test_a_failed_exit_leaves_the_gate_up(enforced: None) -> None:
    async def conversation(client: Client) -> None:
        await said(client, "enter")
        assert (await plan(client, "exit", plan_file="missing.md")).is_error
        assert (await client.call("exec")).is_error

    run(conversation)


@pytest.mark.parametrize("value", ["0", "off", ""])
def test_not_enforced_it_refuses_nothing(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """PlanMode: without `PLAN_ENFORCE` nothing is refused."""

    async def conversation(client: Client) -> None:
        await said(client, "enter", goal="g")
        assert await passes(client) == ALL
        assert app._hooks == []

    monkeypatch.setenv("PLAN_ENFORCE", value)
    app = new_server()
    run(conversation, app)


# --- who owns a plan --------------------------------------------------------------------------------------


def left_behind(goal: str = "left", **values: Any) -> None:
    """A plan as a server that was killed leaves it."""
    row = {
        "instance": "1-dead",
        "project": _project.key(),
        "goal": goal,
        "plan_file": None,
        "started_at": time.time() - 3872,
        **values,
    }
    os.makedirs(_instances.folder(), exist_ok=True)
    with open(os.path.join(_instances.folder(), row["instance"] + ".lock"), "w"):
        pass  # no one holds it
    with _state.changing() as database:
        database.execute(
            "INSERT INTO plan_mode VALUES (:instance, :project, :goal, :plan_file, :started_at)", row
        )


def test_a_server_goes_on_with_the_plan_of_a_dead_one(still: None) -> None:
    async def conversation(client: Client) -> None:
        assert await said(client, "status") == 'Plan mode: ACTIVE\nGoal: "left"\nDuration: 1h 4m 32s'
        assert [row["instance"] for row in rows()] == [_instances.own()]
        assert os.listdir(_instances.folder()) == [_instances.own() + ".lock"]
        assert await said(client, "exit") == LEFT

    left_behind(started_at=NOW - 3872)
    run(conversation)


def test_of_several_plans_the_latest_goes_on_and_the_others_end() -> None:
    async def conversation(client: Client) -> None:
        assert 'Goal: "latest"' in await said(client, "status")
        assert len(rows()) == 1

    left_behind("latest", instance="2-dead", started_at=time.time() - 5)
    left_behind("older", instance="1-dead")
    left_behind("oldest", instance="3-dead", started_at=1.0)
    run(conversation)


def test_plans_of_the_living_and_of_other_projects_are_left_alone() -> None:
    """PlanMode: a server takes over only what dead servers of its project have left."""

    async def conversation(client: Client) -> None:
        assert await said(client, "status") == "Plan mode: INACTIVE"
        assert await said(client, "reset") == "Plan mode reset. No plan saved."
        assert [row["goal"] for row in rows()] == ["other", "lives"]

    left_behind("lives", instance="2-alive")
    left_behind("other", project="/another/project", started_at=1.0)
    with open(os.path.join(_instances.folder(), "2-alive.lock")) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        run(conversation)


def test_no_call_passes_before_it_is_known_whether_a_plan_goes_on(
    enforced: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PlanMode: after a restart the gate is set again before the first call."""
    inherited = module._inherited

    def slow() -> Any:
        time.sleep(0.2)
        return inherited()

    async def planning(client: Client) -> None:
        assert (await client.call("exec")).is_error
        assert not (await client.call("read")).is_error
        await said(client, "reset")
        assert await passes(client) == ALL

    async def not_planning(client: Client) -> None:
        assert await passes(client) == ALL
        assert app._hooks == []

    monkeypatch.setattr(module, "_inherited", slow)
    left_behind()
    run(planning)
    left_behind(instance="2-dead", project="/another/project")
    app = new_server()
    run(not_planning, app)


def test_a_state_that_cannot_be_read_is_said_and_lets_nothing_through(enforced: None) -> None:
    async def conversation(client: Client) -> None:
        refused = await client.call("exec")
        assert refused.is_error
        assert _state.path() in refused.text
        assert not (await client.call("read")).is_error
        assert (await plan(client, "status")).is_error

    left_behind()
    _state.close()
    with open(_state.path(), "wb") as file:
        file.write(b"no database at all, for certain" * 1000)
    run(conversation)


def test_a_plan_survives_sigkill_and_stays_enforced_and_each_server_has_its_own(
    tmp_path: Any, project: Any
) -> None:
    """PlanMode: a plan belongs to the server that began it and survives that server's death."""
    environment = {"FASTRPC_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path), "PLAN_ENFORCE": "1"}

    def text(result: Any) -> str:
        return str(result["content"][0]["text"])

    with serve(environment=environment, folder=str(project)) as first:
        first.initialize()
        assert text(first.call("PlanMode", action="enter", goal="التصميم أولا")) == ENTERED
        with serve(environment=environment, folder=str(project)) as second:
            second.initialize()
            assert text(second.call("Bash", command="echo hi")) == "hi"
            assert text(second.call("PlanMode", action="status")) == "Plan mode: INACTIVE"
        assert text(first.call("Bash", command="echo hi > made")).startswith("Bash is refused: it executes")
        first.kill()
        first.wait()
    with serve(environment=environment, folder=str(project)) as third:
        third.initialize()
        refused = third.call("Bash", command="echo hi > made")
        assert refused["isError"] is True
        assert text(refused).startswith("Bash is refused: it executes things, and plan mode is on")
        assert 'Goal: "التصميم أولا"' in text(third.call("PlanMode", action="status"))
        assert text(third.call("ListBgTasks")) == "No background tasks."
        assert text(third.call("PlanMode", action="exit")) == LEFT
        assert text(third.call("Bash", command="echo hi")) == "hi"
        third.close_stdin()
        assert third.wait() == 0
        assert third.stderr == ""
    assert not (project / "made").exists()
