"""The bar S1: how soon a task begins after its call, taken to what does the least (`make bench-guard`).

    python benchmarks/task_pickup.py           both bars, a minute
    python benchmarks/task_pickup.py --write   and writes results/task_pickup.json

`embedded`: from a call over stdio until its task has begun in a process of the server and the client has the
task's id, which comes when the row is on disk (SQLite); less a call of a ProcessPoolExecutor, which has no
row, and a ping over stdio, which a pool in the same process does not need.
`fleet`: from a call over stdio until its task has begun in a process of `fastrpc worker` (PostgreSQL, which
flushes to the disk), by the same of a job of procrastinate. A queue by hand with psycopg alone is shown
beside it, without a bar.
All take turns, one job at a time. A bar holds if the medians hold it or the tenth centiles: other programs
only ever add time. What is over a quarter worse than its bar in each of three repetitions fails.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)
sys.path[:0] = [REPOSITORY, os.path.join(REPOSITORY, "tests")]

from support.postgres import program, running  # noqa: E402
from support.programs import extend_path  # noqa: E402
from support.stdio import serve  # noqa: E402
from support.task_host import META, TaskHost  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Measured: TypeAlias = "dict[str, Any]"

EMBEDDED_BAR_MS = 2.0
FLEET_BAR = 1.5
WORSE = 1.25
TURNS = 150
WARM = 10
REPETITIONS = 3
PAUSE_SECONDS = 0.02  # between two jobs: the ends of the one before are written
QUEUES = os.path.join(HERE, "queues")
SERVER = os.path.join(HERE, "servers", "task_noop.py")
ENGINE = os.path.join(HERE, ".cache", "procrastinate")
ENGINE_NEEDS = ("procrastinate==3.10.0", "psycopg[binary]==3.3.9")
RECORD = os.path.join(HERE, "results", "task_pickup.json")


class Starts:
    """A named pipe to which jobs write the times at which they begin."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "starts")
        os.mkfifo(self.path)
        self._pipe = os.open(self.path, os.O_RDWR)

    def next(self) -> int:
        return next_number(self._pipe)


def next_number(pipe: int) -> int:
    """The number on the next line of a pipe. Raises TimeoutError."""
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([pipe], [], [], 60)[0] or not (read := os.read(pipe, 64)):
            raise TimeoutError("a job has not begun within 60 s")
        line += read
    return int(line)


def started() -> int:
    """What the pool of processes runs."""
    return time.monotonic_ns()


def in_turns(jobs: dict[str, Callable[[], int]], turns: int) -> dict[str, list[float]]:
    """The milliseconds of each kind of job, one after the other in each turn."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(WARM + turns):
        for name, job in jobs.items():
            taken = job()
            if turn >= WARM:
                found[name].append(taken / 1e6)
            time.sleep(PAUSE_SECONDS)
    return found


def task(host: TaskHost, tool: str, starts: Starts, with_id: bool) -> int:
    """Nanoseconds from a call until its task has begun, and, `with_id`, its client has the id."""
    began = time.monotonic_ns()
    host.begin(tool)
    answered = time.monotonic_ns()
    start = starts.next()
    return (max(start, answered) if with_id else start) - began


def embedded(stack: ExitStack, folder: str) -> dict[str, Callable[[], int]]:
    starts = Starts(folder)
    environment = {"FASTRPC_STATE_DIR": os.path.join(folder, "state"), "TASK_STARTS": starts.path}
    host = TaskHost(stack.enter_context(serve(command=[sys.executable, SERVER], environment=environment)))
    pool = stack.enter_context(ProcessPoolExecutor(1, get_context("spawn")))

    def pooled() -> int:
        began = time.monotonic_ns()
        return pool.submit(started).result() - began

    def hop() -> int:
        began = time.monotonic_ns()
        host.server.request("ping", {"_meta": META})
        return time.monotonic_ns() - began

    return {
        "pool": pooled,
        "hop": hop,
        "task": lambda: task(host, "in_process", starts, with_id=True),
    }


def queue(stack: ExitStack, python: str, script: str, url: str) -> Callable[[], int]:
    """A queue of `queues`, with one worker."""
    path = os.path.join(QUEUES, script)
    subprocess.run([python, path, "prepare", url], check=True)

    def process(kind: str) -> subprocess.Popen[bytes]:
        made = subprocess.Popen(
            [python, path, kind, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(made.wait)
        stack.callback(made.kill)
        return made

    worker, submitter = process("worker"), process("submit")
    assert worker.stdout is not None
    assert submitter.stdin is not None
    assert submitter.stdout is not None
    line, said, begun = submitter.stdin, submitter.stdout.fileno(), worker.stdout.fileno()

    def job() -> int:
        line.write(b"\n")
        line.flush()
        began = next_number(said)
        return next_number(begun) - began

    return job


def fleet(stack: ExitStack, folder: str) -> dict[str, Callable[[], int]]:
    extend_path()
    cluster = stack.enter_context(
        running(program("initdb"), program("postgres"), "PostgreSQL is not installed", fsync="on")
    )
    starts = Starts(folder)
    environment = {
        "FASTRPC_STATE_DIR": os.path.join(folder, "state"),
        "FASTRPC_TASKS_DATABASE": cluster.url(cluster.new_database()),
        "FASTRPC_TASK_WORKERS": "true",
        "TASK_STARTS": starts.path,
    }
    server, worker = [sys.executable, SERVER], [sys.executable, "-m", "fastrpc", "worker", SERVER]
    host = TaskHost(stack.enter_context(serve(command=server, environment=environment)))
    stack.enter_context(serve(command=worker, environment=environment))
    return {
        "engine": queue(stack, engine(), "engine.py", cluster.url(cluster.new_database())),
        "task": lambda: task(host, "noop", starts, with_id=False),
        "by hand": queue(stack, sys.executable, "plain.py", cluster.url(cluster.new_database())),
    }


def engine() -> str:
    """The Python that has procrastinate, made where there is none."""
    python = os.path.join(ENGINE, "bin", "python")
    if not os.path.exists(os.path.join(ENGINE, ".made")):
        shutil.rmtree(ENGINE, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", ENGINE], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *ENGINE_NEEDS], check=True)
        with open(os.path.join(ENGINE, ".made"), "w"):
            pass
    return python


def measure(kind: Callable[[ExitStack, str], dict[str, Callable[[], int]]], turns: int) -> Measured:
    """The milliseconds of each kind of job, `centiles`, and the machine's load before and behind."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        before = os.getloadavg()[0]
        times = in_turns(kind(stack, folder), turns)
    found: Measured = {name: centiles(each) for name, each in times.items()}
    found["load"] = [round(before, 1), round(os.getloadavg()[0], 1)]
    tasks = found["task"]
    if kind is embedded:
        rest = zip(tasks, found["pool"], found["hop"], strict=True)
        compared, bar = [task - pool - hop for task, pool, hop in rest], EMBEDDED_BAR_MS
    else:
        compared, bar = [task / job for task, job in zip(tasks, found["engine"], strict=True)], FLEET_BAR
    found["above" if kind is embedded else "ratio"] = [round(each, 3) for each in compared]
    found["holds"], found["fails"] = min(compared) <= bar, min(compared) > bar * WORSE
    return found


def centiles(times: list[float]) -> list[float]:
    """The median, and the tenth: what a job takes while no other program wants the processor or the disk."""
    return [round(statistics.median(times), 3), round(statistics.quantiles(times, n=10)[0], 3)]


def holds(name: str, kind: Any, turns: int) -> Measured:
    for _ in range(REPETITIONS):
        found = measure(kind, turns)
        print(f"{name:<9} {json.dumps(found)}", flush=True)
        if found["holds"]:
            break
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fail when tasks begin later than their bar.")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--only", choices=("embedded", "fleet"))
    parser.add_argument("--write", action="store_true", help=f"write {os.path.relpath(RECORD, REPOSITORY)}")
    given = parser.parse_args(arguments)
    kinds = {"embedded": embedded, "fleet": fleet}
    found = {
        name: holds(name, kind, given.turns) for name, kind in kinds.items() if given.only in (None, name)
    }
    if given.write:
        with open(RECORD, "w", encoding="utf-8") as file:
            json.dump({"turns": given.turns, "cores": os.cpu_count(), **found}, file, indent=1)
            file.write("\n")
    return 1 if any(each["fails"] for each in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
