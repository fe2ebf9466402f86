"""A fleet whose processes are killed at random: three hosts of a server and two workers, one database.

    with Storm(folder, url) as storm:
        found = storm.rage(20)
        found.check(cancel_seconds=2)

A host is a server on a port of its own and the workers that are started beside it. Each second one of the
nine processes is killed (SIGKILL) and started anew, while clients call tools over HTTP at any server that
answers, and cancel some calls. `Outcome` is what a client knows: an attempt without an answer may have become
a task, and that task runs at most once.
"""

from __future__ import annotations

import contextlib
import random
import secrets
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.child_processes import is_alive, none_left
from support.task_fleet import Host, NoAnswer
from support.waiting import eventually

HOSTS = 3
WORKERS = 2  # of a host
CLIENTS = 4
PAUSE_SECONDS = 0.1

SERVER = '''
import asyncio, os, subprocess, time
from fastrpc import Server
app = Server("storm", version="1")
FOLDER = os.path.dirname(os.path.abspath(__file__))

async def work(name):
    with open(os.path.join(FOLDER, name), "a") as file:
        file.write(f"{os.getpid()}\\n")
    await asyncio.sleep(0.3)
    return f"{name} done"

@app.tool(effect="write", task="required")
async def once(name: str) -> str:
    """Must not run twice."""
    return await work(name)

@app.tool(effect="read", task="required")
async def again(name: str) -> str:
    """May run twice."""
    return await work(name)

@app.tool(effect="exec", task="required", run="process", timeout_seconds=600)
def endless(name: str) -> str:
    """Run in a process, with a child in another session."""
    child = subprocess.Popen(["setsid", "sleep", "600"])
    path = os.path.join(FOLDER, name)
    with open(path + ".new", "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    os.replace(path + ".new", path)
    while True:
        time.sleep(1)
'''


@dataclass
class Attempt:
    """A call of a tool: `id` is its task's, "" if no answer came."""

    tool: str
    name: str
    id: str = ""
    task: dict[str, Any] = field(default_factory=dict)


@dataclass
class Outcome:
    """How the calls have ended. `cancelled` has, for each acknowledged cancel, the seconds until the last
    process of the call was gone."""

    folder: Path
    attempts: list[Attempt]
    cancelled: list[float]
    kills: int
    unanswered: int

    def check(self, cancel_seconds: float) -> None:
        """Raises AssertionError."""
        for each in self.attempts:
            path = self.folder / each.name
            runs = len(path.read_text().split("\n")) - 1 if path.exists() and each.tool != "endless" else 0
            state = each.task.get("status", "")
            told = (each, runs)
            assert runs <= 1 or each.tool == "again", told
            if not each.id or each.tool == "endless":
                continue
            if state == "failed":
                assert each.tool == "once", told
                assert "not idempotent" in each.task["error"]["message"], told
            else:
                assert (state, runs >= 1) == ("completed", True), told
        assert self.cancelled, "no cancel was acknowledged"
        assert max(self.cancelled) <= cancel_seconds, sorted(self.cancelled)[-5:]

    def __str__(self) -> str:
        states = [each.task.get("status", "unknown") for each in self.attempts if each.id]
        counts = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
        ends = sorted(self.cancelled) or [0.0]
        return (
            f"{self.kills} kills, {len(states)} tasks ({counts}), {self.unanswered} requests without an "
            f"answer, {len(self.cancelled)} cancels: their processes gone after {ends[len(ends) // 2]:.2f} s "
            f"in the median, {ends[-1]:.2f} s at most"
        )


class Storm:
    """The hosts, what kills them, and their clients."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._mark = secrets.token_hex(8)
        (folder / "server.py").write_text(SERVER)
        environ = {
            "FASTRPC_STATE_DIR": str(folder / "state"),
            "FASTRPC_TASKS_DATABASE": url,
            "FASTRPC_TASK_WORKERS": "true",
            "FASTRPC_TEST_MARK": self._mark,
        }
        self.hosts = [Host(folder, environ, WORKERS) for _ in range(HOSTS)]
        self.seed = random.randrange(1 << 32)
        self._chance = random.Random(self.seed)
        self._over = threading.Event()
        self._restarts = ThreadPoolExecutor(4)
        self._attempts: list[Attempt] = []
        self._cancelled: list[float] = []
        self._unanswered = 0

    def __enter__(self) -> Storm:
        print(f"seed {self.seed}")
        with ExitStack() as undo:
            undo.callback(self.__exit__)
            for begun in [self._restarts.submit(maker) for host in self.hosts for maker in host.makers]:
                begun.result()
            undo.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._restarts.shutdown()
        for host in self.hosts:
            for at in range(1 + WORKERS):
                host.kill(at)
        none_left(self._mark)

    def rage(self, seconds: float) -> Outcome:
        """Kill a process each second while clients call tools; wait for the end of all tasks."""
        with ThreadPoolExecutor(CLIENTS + 1) as threads:
            clients = [threads.submit(self._call, number) for number in range(CLIENTS)]
            clients.append(threads.submit(self._cancel))
            try:
                kills = self._kill_for(seconds)
            finally:
                self._over.set()
            for client in clients:
                client.result()
        for attempt in self._attempts:
            if attempt.id:
                eventually(lambda attempt=attempt: self._has_ended(attempt))  # type: ignore[misc]
        return Outcome(self._folder, self._attempts, self._cancelled, kills, self._unanswered)

    def _kill_for(self, seconds: float) -> int:
        kills = 0
        restarts: list[Future[None]] = []
        ending = time.monotonic() + seconds
        while time.monotonic() < ending:
            host, at = self._chance.choice(self.hosts), self._chance.randrange(1 + WORKERS)
            if host.kill(at):
                kills += 1
                restarts.append(self._restarts.submit(host.makers[at]))
            time.sleep(1)
        for restart in restarts:
            restart.result()
        return kills

    # --- clients ----------------------------------------------------------------------------------------

    def _answered(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask one server after the other until one answers."""
        while True:
            try:
                return random.choice(self.hosts).ask(method, params)
            except NoAnswer:
                self._unanswered += 1
                time.sleep(0.02)

    def _begin(self, tool: str, name: str) -> Attempt:
        attempt = Attempt(tool, name)
        self._attempts.append(attempt)
        with contextlib.suppress(NoAnswer):
            params = {"name": tool, "arguments": {"name": name}}
            answer = random.choice(self.hosts).ask("tools/call", params)
            assert "result" in answer, (attempt, answer)
            attempt.id = answer["result"]["taskId"]
            return attempt
        self._unanswered += 1
        return attempt

    def _call(self, number: int) -> None:
        count = 0
        while not self._over.wait(PAUSE_SECONDS):
            count += 1
            tool = random.choice(("once", "again"))
            self._begin(tool, f"{tool}-{number}-{count}")

    def _cancel(self) -> None:
        """Begin what does not end by itself, and cancel it, again and again."""
        count = 0
        while not self._over.is_set():
            count += 1
            attempt = self._begin("endless", f"endless-{count}")
            path = self._folder / attempt.name
            if not attempt.id:
                self._over.wait(PAUSE_SECONDS)
                continue
            eventually(lambda attempt=attempt, path=path: path.exists() or self._has_ended(attempt))  # type: ignore[misc]
            answer = self._answered("tasks/cancel", taskId=attempt.id)
            began = time.monotonic()
            if not path.exists():
                continue
            pids = [int(each) for each in path.read_text().split()]
            eventually(lambda pids=pids: not any(map(is_alive, pids)))  # type: ignore[misc]
            if "result" in answer:
                self._cancelled.append(time.monotonic() - began)

    def _has_ended(self, attempt: Attempt) -> bool:
        answer = self._answered("tasks/get", taskId=attempt.id)
        assert "result" in answer, (attempt, answer)
        attempt.task = answer["result"]
        return attempt.task["status"] in ("completed", "failed", "cancelled")
