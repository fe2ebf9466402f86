"""Runs programs through `fastrpc.processes` for tests, and finds every process that belongs to a test.

Who belongs to it is known by a mark in the environment, which every descendant inherits: sessions,
double forks and closed descriptors hide no one from it. Linux only: it looks into /proc.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fastrpc import processes
from support.waiting import SECONDS as SECONDS  # for tests that run beside others
from support.waiting import eventually

GONE_SECONDS = 2.0  # scorecard D1: no process is left after this; for tests marked `alone`


def marked(mark: str) -> list[int]:
    """The living processes that carry a mark."""
    wanted = f"FASTRPC_TEST_MARK={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                with open(f"/proc/{name}/environ", "rb") as file:
                    if wanted not in file.read().split(b"\0"):
                        continue
                with open(f"/proc/{name}/stat", "rb") as file:
                    if file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X"):
                        found.append(int(name))
    return found


def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no process that was killed be reported as one that the system cannot end, and no reaper of an
    earlier test be there: on a busy machine both take some seconds."""
    monkeypatch.setattr(processes, "STUBBORN_SECONDS", SECONDS)
    while processes.reapers.idle:
        processes.reapers.idle.pop().end()
    eventually(no_reapers)


def no_reapers() -> bool:
    processes.reapers.reap_zombies()
    return not reapers()


def none_left(mark: str, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while left := marked(mark):
        assert time.monotonic() < deadline, f"{len(left)} processes live on: {left}"
        time.sleep(0.02)


def runner(name: str) -> Callable[[Awaitable[Any]], Any]:
    """Return what runs a coroutine in a loop of that kind and cleans up behind it."""

    def run(coroutine: Awaitable[Any]) -> Any:
        async def whole() -> Any:
            try:
                return await coroutine
            finally:
                await processes.close()

        if name == "asyncio":
            return asyncio.run(whole())
        uvloop = pytest.importorskip("uvloop")
        loop = uvloop.new_event_loop()
        try:
            return loop.run_until_complete(whole())
        finally:
            loop.close()

    return run


on_asyncio = runner("asyncio")


def environment(mark: str) -> dict[str, str]:
    return processes.environment({"FASTRPC_TEST_MARK": mark})


def bash(command: str, mark: str = "", **options: Any) -> Any:
    return processes.run(["bash", "-c", command], env=environment(mark), **options)


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # it is gone, or goes while its file is read
        return False


def gone(pid: int, seconds: float = SECONDS) -> None:
    """Wait for the end of a process. Its descriptors are closed then."""
    deadline = time.monotonic() + seconds
    while is_alive(pid):
        assert time.monotonic() < deadline, f"{pid} lives on"
        time.sleep(0.002)


def reapers() -> list[int]:
    """The reapers of this process, each by the process that it has started for it: the guardian, if any."""
    return children_of(os.getpid())


def children_of(parent: int) -> list[int]:
    """The children of a process that are a reaper's program."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.readlink(f"/proc/{name}/exe").endswith("_core/reaper"):
                with open(f"/proc/{name}/stat", "rb") as file:
                    if int(file.read().rpartition(b")")[2].split()[1]) == parent:
                        found.append(int(name))
    return sorted(found)


def reaper_below(guardian: int) -> int:
    """The reaper that a guardian watches over; the process itself where there is no guardian."""
    return (children_of(guardian) or [guardian])[0]
