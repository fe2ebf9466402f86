"""The fault table of tasks: each kind of process is killed at each step of a task's life.

A step is reached without a race: the process that takes it stops there (`support/task_steps.py`) until the
victim is dead and its successor is started. Then no task may be lost, no tool that is not idempotent may have
run twice, and no child of a call may be left.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support import task_steps
from support.child_processes import children_of, is_alive, none_left, reaper_below
from support.task_fleet import Host, NoAnswer
from support.waiting import SECONDS, eventually

pytest_plugins = ["support.postgres"]

OPEN = ("working", "input_required")
ALL = ("server", "worker", "postgres")
WITH_TOOL = (*ALL, "tool", "reaper")
STEPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "writing the row": ("server", ALL),
    "before it is answered": ("server", ALL),
    "left to workers": ("worker", ALL),
    "taking": ("worker", ALL),
    "taken": ("worker", ALL),
    "running": ("", WITH_TOOL),
    "asking": ("worker", ALL),
    "asked": ("", ALL),
    "answering": ("server", ALL),
    "running with answers": ("", (*ALL, "reaper")),
    "result computed": ("worker", WITH_TOOL),
    "writing the result": ("worker", WITH_TOOL),
    "cancelling": ("server", WITH_TOOL),
    "ending what was cancelled": ("worker", WITH_TOOL),
    "ending what has expired": ("worker", WITH_TOOL),
}
"""For each step the process that takes it, and what is killed there."""
CELLS = [(step, victim) for step, (_, victims) in STEPS.items() for victim in victims]
QUESTIONS = ("asking", "asked", "answering", "running with answers")
ENDLESS = ("cancelling", "ending what was cancelled", "ending what has expired")
"""Steps of calls that do not end by themselves."""
RUNNING = ("running", *ENDLESS)


class Cell:
    """One server and one worker, and the tasks of one cell of the table."""

    def __init__(self, folder: Path, postgres: Any, step: str, is_lost: bool = False) -> None:
        self.folder = folder
        self.postgres = postgres
        self.step = step
        self.mark = secrets.token_hex(8)
        self.database = postgres.new_database()
        self.tools = ("asks",) if step in QUESTIONS else ("once", "again")
        if step == "cancelling":  # one that waits for its commit holds the next up: its task could end
            self.tools = ("once",)
        self.ids: dict[str, list[str]] = {tool: [] for tool in self.tools}
        self.threads = ThreadPoolExecutor(4)
        shutil.copy(task_steps.__file__, folder / "server.py")
        self.host = Host(
            folder,
            {
                "FASTRPC_STATE_DIR": str(folder / "state"),
                "FASTRPC_SECRET": secrets.token_hex(32),
                "FASTRPC_TASKS_DATABASE": postgres.url(self.database),
                "FASTRPC_TASK_WORKERS": "true",
                "FASTRPC_TEST_MARK": self.mark,
                "TEST_STEP": step,
                "TEST_ROLE": STEPS[step][0],
                "TEST_LOST": "true" if is_lost else "",
            },
            workers=1,
        )
        for maker in self.host.makers:
            maker()
        self.host.environ["TEST_ROLE"] = ""  # the successors do not stop

    def close(self) -> None:
        for name in ("released", "go"):
            (self.folder / name).touch()
        for at in range(2):
            self.host.kill(at)
        self.threads.shutdown()
        none_left(self.mark)

    # --- what clients do --------------------------------------------------------------------------------

    def begin(self) -> list[Future[None]]:
        return [self.threads.submit(self._begin, tool) for tool in self.tools]

    def _begin(self, tool: str) -> None:
        """Call a tool; again where the server says that the call may be sent again."""
        while True:
            try:
                answer = self.host.ask("tools/call", {"name": tool, "arguments": {}})
            except NoAnswer:
                return
            if "result" in answer:
                self.ids[tool].append(answer["result"]["taskId"])
                return
            assert answer["error"]["code"] == -31001, answer
            time.sleep(0.1)

    def answered(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request until it is answered, and not by an error of the database."""
        found: list[dict[str, Any]] = []

        def is_answered() -> bool:
            try:
                found.append(self.host.ask(method, params))
            except NoAnswer:
                return False
            return found[-1].get("error", {}).get("code") != -31001

        eventually(is_answered)
        return found[-1]

    def states(self) -> list[tuple[str, str, str]]:
        """The tool, the state and the error of each task in the database."""
        try:
            return self.postgres.execute("SELECT tool, state, error FROM fastrpc_tasks", self.database)  # type: ignore[no-any-return]
        except Exception:  # it begins, or has not been migrated
            return []

    def pids(self, tool: str) -> list[list[int]]:
        """For each run of a tool, the process that ran it and its child."""
        path = self.folder / tool
        lines = path.read_text().splitlines() if path.exists() else []
        return [[int(pid) for pid in line.split()] for line in lines]

    # --- to the step, and on from it ---------------------------------------------------------------------

    def reach(self) -> list[Future[Any]]:
        """Bring the tasks to the step. Returns the requests that may wait for its end."""
        requests: list[Future[Any]] = list(self.begin())
        if self.step == "running with answers" or self.step in ("answering", "asked"):
            eventually(lambda: [state for _, state, _ in self.states()] == ["input_required"])
        if self.step in ("answering", "running with answers"):
            requests.append(self.threads.submit(self.answer_questions))
        if self.step == "running with answers":
            eventually(lambda: self.pids("asks"))
        if self.step in RUNNING:
            eventually(lambda: all(map(self.pids, self.tools)))
        if self.step in ("result computed", "writing the result"):
            eventually(lambda: all(map(self.pids, self.tools)))  # they wait for the file
            (self.folder / "go").touch()
        if self.step in ("cancelling", "ending what was cancelled"):
            for (id,) in self.ids.values():
                requests.append(self.threads.submit(self.answered, "tasks/cancel", taskId=id))
        if self.step == "ending what has expired":
            self.postgres.execute("UPDATE fastrpc_tasks SET expires_at = 1", self.database)
        if STEPS[self.step][0]:
            eventually((self.folder / "reached").exists)
        return requests

    def answer_questions(self) -> None:
        for id in self.ids["asks"]:
            responses = {"which": {"action": "accept", "content": {"value": "blue"}}}
            self.answered("tasks/update", taskId=id, inputResponses=responses)

    def kill(self, victim: str) -> None:
        """Kill a process, and start what its operator would start again."""
        if victim == "postgres":
            self.postgres.stop()
            self.postgres.start()
        elif victim in ("server", "worker"):
            at = ("server", "worker").index(victim)
            assert self.host.kill(at)
            self.host.makers[at]()
        elif victim == "tool":
            os.kill(self.pids("once")[0][0], signal.SIGKILL)
        else:
            worker = self.host.workers[0]
            assert worker is not None
            os.kill(reaper_below(children_of(worker.pid)[0]), signal.SIGKILL)

    def finish(self, requests: list[Future[Any]]) -> None:
        """Let everything go on, to the end of all tasks."""
        (self.folder / "released").touch()
        if self.step not in ENDLESS:
            (self.folder / "go").touch()
        for request in requests:
            request.result(SECONDS)
        deadline = time.monotonic() + SECONDS
        while any(state in OPEN for _, state, _ in self.states()):
            assert time.monotonic() < deadline, (self.states(), self.log())
            if self.step in QUESTIONS and [state for _, state, _ in self.states()] == ["input_required"]:
                self.answer_questions()
            time.sleep(0.05)

    def log(self) -> str:
        return (self.folder / "workers.log").read_text()

    def check(self) -> None:
        """Raises AssertionError for a task that is lost, a tool that has run twice, a child that is left."""
        states = {tool: [each[1:] for each in self.states() if each[0] == tool] for tool in self.tools}
        for tool in self.tools:
            told = (tool, states[tool], self.pids(tool), self.log())
            if tool != "again":
                assert len(self.pids(tool)) <= 1, told
            if self.step == "ending what has expired":
                assert states[tool] == [], told
            elif "cancel" in self.step:
                assert [state for state, _ in states[tool]] == ["cancelled"], told
            else:
                assert len(self.ids[tool]) <= len(states[tool]), told
                assert len(states[tool]) >= 1 or not self.ids[tool], told
                for state, error in states[tool]:
                    assert state == "completed" or "not idempotent" in error, told
                    assert state == "completed" or tool != "again", told
            for id in self.ids[tool]:
                answer = self.answered("tasks/get", taskId=id)
                assert ("result" in answer) == (self.step != "ending what has expired"), (told, answer)
            for _, child in self.pids(tool):
                eventually(lambda child=child: not is_alive(child))  # type: ignore[misc]
            if self.step in ENDLESS:
                for pid, _ in self.pids(tool):
                    eventually(lambda pid=pid: not is_alive(pid))  # type: ignore[misc]


@pytest.fixture
def cells(tmp_path: Path, postgres: Any) -> Iterator[Any]:
    made: list[Cell] = []

    def cell(step: str, is_lost: bool = False) -> Cell:
        made.append(Cell(tmp_path, postgres, step, is_lost))
        return made[-1]

    yield cell
    for each in made:
        each.close()


@pytest.mark.long
@pytest.mark.parametrize(("step", "victim"), CELLS)
def test_nothing_is_lost_or_run_twice_when_a_process_is_killed(cells: Any, step: str, victim: str) -> None:
    cell = cells(step)
    requests = cell.reach()
    cell.kill(victim)
    cell.finish(requests)
    cell.check()


@pytest.mark.long
@pytest.mark.parametrize("step", task_steps.IN_STORE)
def test_nothing_is_lost_or_run_twice_when_the_answer_to_a_commit_is_lost(cells: Any, step: str) -> None:
    cell = cells(step, is_lost=True)
    requests = cell.reach()
    cell.finish(requests)
    cell.check()
