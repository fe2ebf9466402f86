"""A reaper, its guardian or both are killed: no process lives on, and the error is true."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from fastrpc.tools.agent import _tasks
from fastrpc.tools.agent.background_bash import background_bash
from fastrpc.tools.agent.bash import bash as bash_tool
from support.child_processes import (
    SECONDS,
    bash,
    children_of,
    environment,
    gone,
    marked,
    on_asyncio,
    reaper_below,
    reapers,
)
from support.waiting import until
from test_processes import LEAVING, SHAPES, all_running, mark, patient

from fastrpc import Context, ToolError, processes
from fastrpc._core.client_stream import ClientStream
from fastrpc.client.stdio import HeardProcess

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
__all__ = ["mark", "patient"]  # fixtures

VICTIMS: dict[str, Callable[[int], list[int]]] = {
    "reaper": lambda guardian: [reaper_below(guardian)],
    "guardian": lambda guardian: [guardian],
}
ENDED = "supervisor of this program was killed; the program was ended with it"


def kill(victim: str, before: list[int] | tuple[()] = ()) -> None:
    """Kill one of each pair that was started since."""
    for guardian in set(reapers()) - set(before):
        for pid in VICTIMS[victim](guardian):
            with contextlib.suppress(ProcessLookupError):  # the other one of a pair that was killed before
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_call_whose_reaper_is_killed_fails_once_no_process_is_left(mark: str, victim: str) -> None:
    async def end() -> None:
        calls = [asyncio.ensure_future(bash(command, mark)) for command, _ in SHAPES.values()]
        await all_running(mark)
        kill(victim)
        outcomes = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), SECONDS)
        assert not marked(mark)  # at once: the errors say so
        for name, outcome in zip(SHAPES, outcomes, strict=True):
            assert isinstance(outcome, processes.ProgramError), name
            assert ENDED in str(outcome), name

    on_asyncio(end())


@pytest.mark.parametrize("victim", VICTIMS)
def test_one_killed_reaper_ends_no_other_call(mark: str, victim: str) -> None:
    async def end() -> None:
        kept = await processes.start(["bash", "-c", "sleep 60 & sleep 60"], env=environment(mark))
        before = reapers()
        lost = await processes.start(["bash", "-c", "sleep 60 & sleep 60"], env=environment(mark))
        while len(marked(mark)) < 6:
            await asyncio.sleep(0.01)
        kill(victim, before)
        with pytest.raises(processes.ProgramError, match=ENDED):
            await asyncio.wait_for(lost.wait(), SECONDS)
        assert lost.gone
        assert len(marked(mark)) == 3
        assert await kept.terminate()
        assert not marked(mark)

    on_asyncio(end())


@pytest.mark.parametrize("victim", VICTIMS)
def test_no_program_is_handed_to_one_that_was_killed_while_the_loop_was_held(victim: str) -> None:
    async def hold_the_loop() -> None:
        await bash("true")
        (guardian,) = reapers()
        below = reaper_below(guardian)
        kill(victim)
        for pid in (guardian, below) if victim == "reaper" else (guardian,):
            gone(pid)
        assert (await bash("echo on")).output.head == b"on\n"

    on_asyncio(hold_the_loop())


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("confirmed", [False, True])
def test_a_reaper_killed_at_any_moment_of_a_start_leaves_no_process(
    mark: str, victim: str, confirmed: bool
) -> None:
    command = "setsid -f sleep 60; sleep 60 & ( ( sleep 60 & ) & ); sleep 60; :"

    async def start(delay_seconds: float) -> None:
        await bash("true")  # an idle reaper is there: the program starts at once

        async def run() -> processes.Process:
            process = await processes.start(
                ["bash", "-c", command], env=environment(mark), confirmed=confirmed
            )
            await process.wait()
            return process

        call = asyncio.ensure_future(run())
        await asyncio.sleep(0)  # the request is written
        time.sleep(delay_seconds)
        kill(victim)
        with pytest.raises(processes.ProgramError, match="supervisor"):
            await asyncio.wait_for(call, SECONDS)
        assert not marked(mark), f"after {delay_seconds} s"

    async def rounds() -> None:
        for number in range(30):
            await start(number * 0.0003)

    on_asyncio(rounds())


@pytest.mark.parametrize("victim", VICTIMS)
def test_those_left_behind_by_a_program_end_with_its_reaper_and_its_result_stays(
    mark: str, victim: str
) -> None:
    async def end() -> None:
        left = [await bash(command, mark) for command in LEAVING.values()]
        assert all(process.exit_code == 0 and not process.gone for process in left)
        kill(victim)
        await asyncio.wait_for(asyncio.gather(*[process.wait_gone() for process in left]), SECONDS)
        assert not marked(mark)
        for process in left:
            await process.wait()  # no error
            assert (process.exit_code, process.children_left, process.gone) == (0, 0, True)

    on_asyncio(end())


@pytest.mark.parametrize("victim", VICTIMS)
def test_an_idle_reaper_that_is_killed_is_not_used_again(mark: str, victim: str) -> None:
    async def on() -> None:
        await asyncio.gather(*[bash("true") for _ in range(3)])
        before = reapers()
        assert before
        kill(victim)
        while processes.reapers.idle:  # a program handed to one that is dying is lost with it
            await asyncio.sleep(0.01)
        assert (await asyncio.wait_for(bash("echo on"), SECONDS)).output.head == b"on\n"
        assert not set(before) & set(reapers())

    on_asyncio(on())


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_peer_ends_with_its_reaper(mark: str, victim: str) -> None:
    async def end() -> None:
        ends: list[str] = []
        lines: list[bytes] = []
        command = ["bash", "-c", "setsid -f sleep 60; sleep 60 & echo up; sleep 60; :"]
        stream = ClientStream()
        stream.on_unreadable = lines.append
        server = HeardProcess(command, None, environment(mark), stream, ends.append)
        stream.attach(asyncio.get_running_loop())
        while not lines:
            await asyncio.sleep(0.01)
        kill(victim)
        await asyncio.wait_for(server.gone, SECONDS)
        assert not marked(mark)
        assert ends == ["its supervisor was killed"]

    on_asyncio(end())


def test_a_command_that_kills_its_parent_ends_itself_and_all_it_has_started(mark: str) -> None:
    async def end() -> None:
        with pytest.raises(processes.ProgramError, match=ENDED):
            await bash("sleep 60 & setsid -f sleep 60; kill -9 $PPID; sleep 60", mark, timeout_ms=60_000)
        assert not marked(mark)

    on_asyncio(end())


def test_a_stopped_reaper_ends_with_the_server_that_is_gone(mark: str) -> None:
    """The guardian wakes it up: the socket's end alone would wait for ever."""

    async def end() -> None:
        process = await processes.start(["bash", "-c", "sleep 60; :"], env=environment(mark))
        for guardian in reapers():
            os.kill(reaper_below(guardian), signal.SIGSTOP)
        assert await process.terminate()
        assert not marked(mark)

    on_asyncio(end())


def both(guardian: int) -> list[int]:
    return [*children_of(guardian), guardian]


# What the program has started, and how many of it run.
UNGUARDED = {
    "its group": ("sleep 60 & sleep 60 >/dev/null 2>&1 & sleep 60; :", 4),
    "a session of its own": ("setsid -f sleep 60; sleep 60; :", 3),
    "job control": ("set -m; sleep 60 >/dev/null 2>&1 & sleep 60; :", 3),
}


@pytest.mark.parametrize("shape", UNGUARDED)
def test_when_both_are_killed_who_holds_the_output_and_its_session_end_and_the_error_is_not_sure(
    mark: str, shape: str
) -> None:
    command, count = UNGUARDED[shape]

    async def end() -> None:
        call = asyncio.ensure_future(bash(command, mark))
        while len(marked(mark)) < count:
            await asyncio.sleep(0.01)
        (guardian,) = reapers()
        victims = both(guardian)
        for pid in victims:
            os.kill(pid, signal.SIGSTOP)  # so that neither sees the other end
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(processes.ProgramError, match="others may still run"):
            await asyncio.wait_for(call, SECONDS)
        await until(lambda: not marked(mark))  # they are killed: on a busy machine they need a moment

    on_asyncio(end())


def test_whoever_was_started_by_something_else_outlives_a_lost_call(mark: str) -> None:
    """A process of the server's own that has inherited a descriptor of the pipe is not the program's."""

    async def end() -> None:
        process = await processes.start(["bash", "-c", "sleep 60 & sleep 60"], env=environment(mark))
        own = os.fork()
        if own == 0:  # it holds what the server holds
            time.sleep(2 * SECONDS)
            os._exit(0)
        try:
            (guardian,) = reapers()
            for pid in both(guardian):
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(processes.ProgramError):
                await asyncio.wait_for(process.wait(), SECONDS)
            assert os.waitpid(own, os.WNOHANG) == (0, 0)
        finally:
            os.kill(own, signal.SIGKILL)
            os.waitpid(own, 0)

    on_asyncio(end())


# --- the tools -------------------------------------------------------------------------------------------


@pytest.fixture
def shell(mark: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Bash and BackgroundBash start bears the mark."""
    monkeypatch.setenv("FASTRPC_TEST_MARK", mark)
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))


COMMAND = "sleep 60 & setsid -f sleep 60; ( ( sleep 60 & ) & ); sleep 60; :"


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("victim", VICTIMS)
def test_Bash_says_that_it_ended_once_no_process_is_left(mark: str, victim: str) -> None:
    async def end() -> None:
        call = asyncio.ensure_future(bash_tool(COMMAND, Context()))
        while len(marked(mark)) < 5:
            await asyncio.sleep(0.01)
        kill(victim)
        with pytest.raises(ToolError, match=ENDED):
            await asyncio.wait_for(call, SECONDS)
        assert not marked(mark)

    on_asyncio(end())


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_background_task_runs_until_no_process_is_left_and_then_was_lost(mark: str, victim: str) -> None:
    async def end() -> None:
        began = (await background_bash(COMMAND, Context())).meta or {}
        task = _tasks.find(Context().principal, began["fastrpc/facts"]["task_id"])
        while len(marked(mark)) < 5:
            await asyncio.sleep(0.01)
        kill(victim)
        await asyncio.wait_for(task.process.wait_gone(), SECONDS)
        assert not marked(mark)
        assert not task.running
        assert task.state == "lost with its supervisor"

    on_asyncio(end())
