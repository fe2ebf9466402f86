"""Long work on an audit log, in a process: who starts it, and that it ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from fastrpc.dashboard import log_jobs
from fastrpc.dashboard.log_jobs import LogJob
from fastrpc.guard.audit import AuditLog

THREADS, TURNS = 8, 50


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))
    AuditLog(str(tmp_path / "audit")).close()
    return str(tmp_path / "audit")


def at_once(work: Callable[[int], object]) -> None:
    """Do some work in several threads that begin together. Raises what one of them raises."""
    all_there = Barrier(THREADS, timeout=60)

    def begin(number: int) -> None:
        all_there.wait()
        work(number)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(begin, range(THREADS)))


def test_threads_that_write_a_state_at_once_leave_a_whole_one(folder: str, tmp_path: Path) -> None:
    job = LogJob("count", folder, str(tmp_path))

    def write(number: int) -> None:
        for turn in range(TURNS):
            job.write({"number": number, "turn": turn, "long": "x" * 10_000 * number})

    at_once(write)
    state = job.state()
    assert (state["turn"], len(state["long"])) == (TURNS - 1, 10_000 * state["number"])
    assert [each.name for each in tmp_path.glob("count-*")] == [Path(job._path).name]


def test_of_threads_that_start_a_job_at_once_one_starts_it_and_all_wait_for_its_end(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    really = subprocess.Popen

    def counted(*given: Any, **options: Any) -> Any:
        started.append(really(*given, **options))
        return started[-1]

    monkeypatch.setattr(log_jobs.subprocess, "Popen", counted)
    as_of: list[float] = []

    def start(number: int) -> None:
        job = LogJob("count", folder)
        job.start({}, 60.0, {"by": str(number)})
        as_of.append(job.state()["as_of"])

    for turn in (1, 2):  # what has ended is started again
        at_once(start)
        assert len(started) == turn
    assert len(set(as_of)) == 2


def test_the_process_ends_when_its_time_is_over_even_if_it_cannot_write_that(
    folder: str, tmp_path: Path
) -> None:
    place = tmp_path / "dashboard"
    place.mkdir(mode=0o700)
    code = (
        "import shutil, sys, time\n"
        "from fastrpc.dashboard import log_work\n"
        "def work(job, arguments):\n"
        "    shutil.rmtree(job.place)\n"
        "    time.sleep(60)\n"
        "log_work.MOST_SECONDS, log_work.LOOK_SECONDS, log_work.WORK = 0.2, 0.3, {'count': work}\n"
        "log_work.main(sys.argv[1:])\n"
    )
    words = ("count", folder, str(place), "{}")
    ended = subprocess.run([sys.executable, "-c", code, *words], timeout=30, capture_output=True, check=False)
    assert (ended.returncode, place.exists()) == (1, False), ended.stderr.decode()
