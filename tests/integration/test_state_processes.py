"""Many real servers on one state, killed at random: what was acknowledged is there, once (scorecard E2).

`FASTRPC_E2_CHANGES=500` makes it the scorecard's long form.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.stdio import Process, decode, serve

SERVERS = 8
CHANGES = int(os.environ.get("FASTRPC_E2_CHANGES", "40"))
KILLED_EVERY = (10, 30) if CHANGES <= 100 else (30, 90)  # changes between two deaths of a server
LONGEST_SECONDS = 300 if CHANGES <= 100 else 1800


PATIENT = """
import sys
import fastrpc.__main__
from fastrpc.tools.agent import _state
_state.WAIT_SECONDS = 60.0
_state.reading.__defaults__ = _state.changing.__defaults__ = (60.0,)
sys.exit(fastrpc.__main__.main())
"""
"""The command, whose changes may wait for those of seven others on a disk that takes tenths of a second."""


class Worker:
    """A client whose server dies now and then; it notes what was acknowledged."""

    def __init__(self, number: int, environment: dict[str, str], folder: str) -> None:
        self.number = number
        self.environment = environment
        self.folder = folder
        self.random = random.Random(number)
        self.acknowledged: dict[int, str] = {}
        """Step id -> text."""
        self.completed: set[int] = set()
        self.unanswered: list[str] = []
        self.said: list[str] = []
        """Texts that are no check list."""
        self.kills = 0
        self.slowest = 0.0
        self.failure: BaseException | None = None
        self.task = 0

    def run(self) -> None:
        try:
            while len(self.acknowledged) + len(self.completed) < CHANGES:
                self.with_a_server(self.random.randint(*KILLED_EVERY))
        except BaseException as error:
            self.failure = error

    def with_a_server(self, changes: int) -> None:
        command = [sys.executable, "-c", PATIENT, "serve"]
        with serve(command=command, environment=self.environment, folder=self.folder) as server:
            server.initialize()
            for _ in range(changes):
                if len(self.acknowledged) + len(self.completed) >= CHANGES:
                    return
                self.change(server)
            self.change_and_kill(server)

    def change(self, server: Process) -> None:
        began = time.monotonic()
        arguments = self.next_change()
        self.note(arguments, server.call("TaskManager", seconds=60, **arguments))
        self.slowest = max(self.slowest, time.monotonic() - began)

    def next_change(self) -> dict[str, Any]:
        open_steps = [id for id in self.acknowledged if id not in self.completed]
        if not self.task:
            return {"action": "create", "query": "", "text": f"task of {self.number}"}
        if open_steps and self.random.random() < 0.3:
            return {"action": "complete", "query": "", "step_id": self.random.choice(open_steps)}
        text = f"{self.number}/{self.random.randrange(10**12)} خطوة"
        return {"action": "add", "query": "", "task_id": self.task, "text": text}

    def note(self, arguments: dict[str, Any], result: Any) -> None:
        """Take down what an answer acknowledges."""
        if result["isError"]:
            self.said.append(result["content"][0]["text"])
            return
        data = result["structuredContent"]
        if arguments["action"] == "create":
            self.task = data["task_id"]
        elif arguments["action"] == "add":
            self.acknowledged[data["step_id"]] = arguments["text"]
        else:
            self.completed.add(data["step_id"])

    def change_and_kill(self, server: Process) -> None:
        """Kill the server around the time at which it answers."""
        arguments = self.next_change()
        request = server.ask("tools/call", {"name": "TaskManager", "arguments": arguments})
        time.sleep(self.random.random() * 0.01)
        server.kill()
        self.kills += 1
        lines = server.rest().split(b"\n")
        answers = [decode(line) for line in lines[:-1] if b'"result"' in line]
        for answer in answers:
            assert answer["id"] == request
            self.note(arguments, answer["result"])
        if not answers and arguments["action"] == "add":
            self.unanswered.append(arguments["text"])


def rows(state: Path, query: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(f"file:{state}/state.sqlite3?mode=ro", uri=True)) as db:
        return db.execute(query).fetchall()


def project(tmp_path: Path) -> tuple[dict[str, str], str]:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return {"FASTRPC_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}, str(folder)


@pytest.mark.timeout(LONGEST_SECONDS + 60)
def test_servers_that_are_killed_at_random_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """State: eight servers share it and are killed at random, and none meets "database is locked"."""
    environment, folder = project(tmp_path)
    workers = [Worker(number, environment, folder) for number in range(SERVERS)]
    threads = [threading.Thread(target=worker.run, daemon=True) for worker in workers]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONGEST_SECONDS)
    took = time.monotonic() - began
    for worker in workers:
        if worker.failure is not None:
            raise worker.failure
        assert worker.said == []
        assert len(worker.acknowledged) + len(worker.completed) >= CHANGES

    steps = {
        id: (text, done) for id, text, done in rows(tmp_path / "state", "SELECT id, text, done_at FROM steps")
    }
    texts = Counter(text for text, _ in steps.values())
    assert max(texts.values()) == 1, "a change was made twice"
    assert sorted(steps) == list(range(1, len(steps) + 1))
    possible: set[str] = set()
    for worker in workers:
        lost = {id: text for id, text in worker.acknowledged.items() if steps.get(id, ("",))[0] != text}
        assert not lost, f"lost of server {worker.number}"
        assert not [id for id in worker.completed if steps[id][1] is None]
        possible |= {*worker.acknowledged.values(), *worker.unanswered}
    assert {text for text, _ in steps.values()} <= possible
    assert rows(tmp_path / "state", "PRAGMA integrity_check") == [("ok",)]
    figures = {
        "acknowledged": sum(len(worker.acknowledged) + len(worker.completed) for worker in workers),
        "unanswered": sum(len(worker.unanswered) for worker in workers),
        "kills": sum(worker.kills for worker in workers),
        "seconds": round(took, 1),
        "slowest call, seconds": round(max(worker.slowest for worker in workers), 3),
    }
    print(json.dumps(figures))
    assert figures["kills"] >= SERVERS


def test_a_change_is_there_when_the_server_is_killed_right_after_its_answer(tmp_path: Path) -> None:
    """State: SIGKILL loses nothing that was acknowledged."""
    environment, folder = project(tmp_path)
    with serve(environment=environment, folder=folder) as server:
        server.initialize()
        call = {"action": "create", "query": "", "text": "Build the shop"}
        server.ask("tools/call", {"name": "TaskManager", "arguments": call})
        line = server.line()
        server.kill()
    assert decode(line)["result"]["isError"] is False
    with serve(environment=environment, folder=folder) as server:
        server.initialize()
        listed = server.call("TaskManager", action="list", query="")
        assert listed["content"][0]["text"] == "Task 1: Build the shop (current)"


def test_a_task_list_survives_a_restart_and_belongs_to_its_project(tmp_path: Path) -> None:
    """State: tasks belong to the project and survive a restart."""
    environment, folder = project(tmp_path)
    with serve(environment=environment, folder=folder) as server:
        server.initialize()
        server.call("TaskManager", action="create", query="", text="Build the shop")
        server.call("TaskManager", action="add", query="", text="order shelves")
        server.close_stdin()
        assert server.wait() == 0
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["state.sqlite3"]
    inner = Path(folder) / "deep" / "down"
    inner.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    shown = {}
    for place in (inner, tmp_path / "elsewhere"):
        with serve(environment=environment, folder=str(place)) as server:
            server.initialize()
            shown[place.name] = server.call("TaskManager", action="list", query="")["content"][0]["text"]
    assert shown["down"] == "Task 1: Build the shop (current)\n  - [ ] 1. order shelves"
    assert shown["elsewhere"] == "No tasks."


def test_listing_the_tools_touches_no_state(tmp_path: Path) -> None:
    """State: listing the tools opens no state."""
    environment, folder = project(tmp_path)
    with serve(environment=environment, folder=folder) as server:
        server.initialize()
        names = [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]
        assert "TaskManager" in names
        server.close_stdin()
        server.wait()
    assert not (tmp_path / "state").exists()


def test_a_change_that_waits_for_another_program_delays_no_other_call(tmp_path: Path) -> None:
    environment, folder = project(tmp_path)
    with serve(environment=environment, folder=folder) as server:
        server.initialize()
        server.call("TaskManager", action="create", query="", text="Build")
        with contextlib.closing(
            sqlite3.connect(tmp_path / "state" / "state.sqlite3", isolation_level=None)
        ) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = server.ask(
                "tools/call", {"name": "TaskManager", "arguments": {"action": "add", "text": "x"}}
            )
            time.sleep(0.1)
            ping = server.ask("ping")
            assert server.answer()["id"] == ping
            other.execute("ROLLBACK")
        answer = server.answer()
        assert answer["id"] == waiting
        assert answer["result"]["isError"] is False
