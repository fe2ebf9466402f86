"""What `fastrpc.processes` promises, with real programs (scorecard D1, D2, D5)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from support.child_processes import (
    GONE_SECONDS,
    SECONDS,
    bash,
    environment,
    gone,
    marked,
    no_reapers,
    none_left,
    on_asyncio,
    patience,
    reapers,
    runner,
)
from support.waiting import eventually, until

from fastrpc import processes

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# What a command may do to be left behind, and how many processes it has once it runs.
SHAPES: dict[str, tuple[str, int]] = {
    "plain": ("sleep 60; :", 2),
    "background": ("sleep 60 & sleep 60; :", 3),
    "nohup": ("nohup sleep 60 >/dev/null 2>&1 & sleep 60; :", 3),
    "setsid": ("setsid sleep 60 & sleep 60; :", 3),
    "setsid fork": ("setsid -f sleep 60; sleep 60; :", 3),
    "double fork": ("( ( sleep 60 & ) & ); sleep 60; :", 3),
    "disown": ("sleep 60 & disown; sleep 60; :", 3),
    "exec": ("exec sleep 60", 1),
    "ignores TERM": ("trap '' TERM INT HUP; sleep 60; sleep 60", 2),
    "stopped": ("sleep 60 & kill -STOP $!; kill -STOP $$; :", 2),
    "pipeline": ("sleep 60 | sleep 60 | cat", 4),
    "closes descriptors": ("exec 0<&- 1>&- 2>&-; sleep 60; :", 2),
    "fifty forks": ("for i in {1..50}; do sleep 60 & done; wait", 51),
    "hidden and deaf": ("setsid bash -c \"trap '' TERM; setsid sleep 60 & sleep 60; :\" & sleep 60; :", 5),
    "all of it at once": ("for i in 1 2 3; do setsid -f sleep 60; (sleep 60 &); done; sleep 60 | cat", 9),
    "goes on forking": ("while :; do ( sleep 60 & ); sleep 0.02; done", 3),
}
LEAVING = {
    "background": "sleep 60 & :",
    "nohup": "nohup sleep 60 >/dev/null 2>&1 & :",
    "setsid": "setsid -f sleep 60; :",
    "double fork": "( ( sleep 60 & ) & )",
    "deaf": "(trap '' TERM; exec sleep 60) & :",
    "many": "for i in {1..12}; do sleep 60 & done",
}
LEFT = {**dict.fromkeys(LEAVING, 1), "many": 12}
"""How many processes each of them leaves."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    patience(monkeypatch)


@pytest.fixture
def mark() -> Iterator[str]:
    """A mark of its own for each test, and a broom for what should not be there."""
    value = uuid.uuid4().hex
    yield value
    for pid in marked(value):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[Any]], Any]:
    return runner(request.param)


async def all_running(mark: str) -> None:
    """Wait until every shape has started all its processes."""
    wanted = sum(count for _, count in SHAPES.values())
    deadline = time.monotonic() + 60
    while len(marked(mark)) < wanted:
        assert time.monotonic() < deadline, f"{len(marked(mark))} of {wanted} processes run"
        await asyncio.sleep(0.05)


# --- D1: no process is left ---------------------------------------------------------------------------------


def test_a_timeout_leaves_no_process(run: Any, mark: str) -> None:
    """Bash: a time-out ends every process of the call, one that called `setsid` as well."""

    async def shapes() -> list[processes.Process]:
        calls = [bash(command, mark, timeout_ms=1500) for command, _ in SHAPES.values()]
        return list(await asyncio.gather(*calls))  # on a busy machine some are not all there by then

    for name, process in zip(SHAPES, run(shapes()), strict=True):
        assert process.timed_out, name
        assert process.gone, name
    assert not marked(mark)


@pytest.mark.alone
def test_a_cancelled_call_leaves_no_process(run: Any, mark: str) -> None:
    async def shapes() -> None:
        tasks = [asyncio.ensure_future(bash(command, mark)) for command, _ in SHAPES.values()]
        await all_running(mark)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        deadline = time.monotonic() + GONE_SECONDS
        while left := marked(mark):
            assert time.monotonic() < deadline, left
            await asyncio.sleep(0.02)

    run(shapes())


@pytest.mark.alone
def test_close_leaves_no_process(run: Any, mark: str) -> None:
    async def shapes() -> None:
        tasks = [asyncio.ensure_future(bash(command, mark)) for command, _ in SHAPES.values()]
        await all_running(mark)
        began = time.monotonic()
        await processes.close(grace_seconds=0.3)
        assert time.monotonic() - began < GONE_SECONDS
        assert not marked(mark)
        await asyncio.gather(*tasks, return_exceptions=True)

    run(shapes())


SERVER = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
from fastrpc import processes
async def main():
    for command in sys.argv[2:]:
        asyncio.ensure_future(processes.run(["bash", "-c", command]))
    if os.environ.get("FORK_HOLDS"):
        await asyncio.sleep(0.5)
        import ctypes, time
        if ctypes.CDLL(None).fork() == 0:  # behind Python's back: the sockets stay open in the fork
            time.sleep(60); os._exit(0)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "a fork holds the sockets"])
def test_the_death_of_the_server_leaves_no_process(mark: str, end: str) -> None:
    """Every tool: when the client goes away, or the server ends in any other way, no process of a call lives
    on.
    """
    variables = {**os.environ, "FASTRPC_TEST_MARK": mark}
    if end.startswith("a fork"):
        # The fork has no FASTRPC_TEST_MARK of its own to hide: it is counted out below.
        variables["FORK_HOLDS"] = "1"
    commands = [command for command, _ in SHAPES.values()]
    server = subprocess.Popen([sys.executable, "-c", SERVER, REPOSITORY, *commands], env=variables)
    try:
        asyncio.run(all_running(mark))
        if end.startswith("a fork"):
            eventually(lambda: sum(map(is_python, marked(mark))) == 2)
        server.send_signal(signal.SIGTERM if end == "SIGTERM" else signal.SIGKILL)
        server.wait(SECONDS)
        deadline = time.monotonic() + SECONDS
        while left := [pid for pid in marked(mark) if not is_python(pid)]:
            assert time.monotonic() < deadline, left
            time.sleep(0.02)
    finally:
        server.kill()


def is_python(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"python" in file.read().partition(b"\0")[0]
    except OSError:
        return False


@pytest.mark.parametrize("shape", LEAVING)
def test_a_finished_command_leaves_only_those_that_are_named_and_they_end_with_the_server(
    mark: str, shape: str
) -> None:
    async def leave() -> None:
        process = await bash(LEAVING[shape], mark)
        assert process.exit_code == 0
        await until(lambda: [name_of(pid) for pid in marked(mark)] == ["sleep"] * LEFT[shape])
        await process.refresh_children()
        assert not process.gone
        assert sorted(child.pid for child in process.children) == sorted(marked(mark))
        assert process.children_left == len(process.children)
        assert all(child.name for child in process.children)
        await processes.close()
        assert not marked(mark)

    on_asyncio(leave())


def name_of(pid: int) -> str:
    """The name of what a process runs; empty for one that has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as file:
        return file.read().strip()
    return ""


def test_the_reaper_of_a_command_that_left_children_is_used_again_once_they_have_ended(mark: str) -> None:
    async def leave() -> None:
        process = await bash("sleep 60 >/dev/null 2>&1 & :", mark)
        assert process.children_left == 1
        (left,) = marked(mark)
        os.kill(left, signal.SIGKILL)
        await asyncio.wait_for(process.wait_gone(), SECONDS)
        assert process.children_left == 0
        before = reapers()
        await bash("true", mark)
        assert reapers() == before

    on_asyncio(leave())


def test_processes_that_fork_faster_than_they_can_be_listed_are_ended(mark: str) -> None:
    async def chase() -> None:
        hop = "trap '' TERM; hop() { hop & }; hop & hop & hop & echo up; sleep 60; sleep 60"
        process = await processes.start(["bash", "-c", hop], env=environment(mark))
        while b"up" not in process.output.head:
            await asyncio.sleep(0.01)
        assert await process.terminate(grace_seconds=0.1)
        assert process.killed
        none_left(mark, 0.1)

    on_asyncio(chase())


def test_a_stopped_program_gets_to_act_on_SIGTERM(mark: str) -> None:
    async def stop() -> None:
        command = "trap 'echo bye; exit 0' TERM; echo up; kill -STOP $$; sleep 1"
        process = await processes.start(["bash", "-c", command], env=environment(mark))
        while b"up" not in process.output.head:
            await asyncio.sleep(0.01)
        await until(lambda: state_of(process.pid) == "T")
        assert await process.terminate(grace_seconds=SECONDS)
        assert (process.exit_code, process.killed, process.output.head) == (0, False, b"up\nbye\n")

    on_asyncio(stop())


def state_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


# --- how a call ends ------------------------------------------------------------------------------------


def test_a_child_in_the_background_delays_nothing(run: Any, mark: str) -> None:
    """Bash: a child in the background delays the answer by the draining of at most 100 ms."""

    async def hi() -> processes.Process:
        process = await bash("sleep 600 & echo hi", mark)
        assert marked(mark)
        return process

    assert run(hi()).output.head == b"hi\n"


def test_a_child_that_was_left_behind_can_go_on_writing(mark: str) -> None:
    async def write() -> None:
        process = await bash(
            "( for i in {1..300}; do printf %1000d 1; done; exec sleep 0.2 ) & echo hi", mark
        )
        await asyncio.wait_for(process.wait_gone(), SECONDS)
        assert process.output.head.startswith(b"hi\n") or b"hi\n" in process.output.head

    on_asyncio(write())


@pytest.mark.parametrize("follow", [False, True])
def test_output_after_the_end_is_kept_only_where_it_is_followed(
    mark: str, tmp_path: Any, follow: bool
) -> None:
    os.mkfifo(tmp_path / "go")
    command = f"( read line < {tmp_path}/go; echo late ) & echo early"

    async def read() -> bytes:
        process = await processes.start(["bash", "-c", command], env=environment(mark))
        process.follow = follow
        await process.wait()
        with open(tmp_path / "go", "w"):  # it waits there: what it reads is the end
            pass
        await process.wait_gone()
        return process.output.head

    assert on_asyncio(read()) == (b"early\nlate\n" if follow else b"early\n")


def test_every_exit_code_is_reported() -> None:
    async def codes() -> list[int | None]:
        found = []
        for start in range(0, 256, 16):
            calls = [bash(f"exit {code}") for code in range(start, start + 16)]
            found += [process.exit_code for process in await asyncio.gather(*calls)]
        return found

    assert on_asyncio(codes()) == list(range(256))


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGPIPE", "SIGHUP"])
def test_a_signal_that_ends_a_program_is_named(name: str) -> None:
    """Bash: a signal that ends a command is named."""
    process = on_asyncio(bash(f"kill -{name[3:]} $$"))
    assert (process.exit_code, process.signal) == (None, name)


def test_a_program_that_ends_at_SIGTERM_is_not_killed(mark: str) -> None:
    async def end() -> None:
        process = await processes.start(
            ["bash", "-c", "trap 'echo bye; exit 7' TERM; echo up; sleep 60 & wait"], env=environment(mark)
        )
        while b"up" not in process.output.head:
            await asyncio.sleep(0.01)
        assert await process.terminate(grace_seconds=SECONDS)
        assert (process.exit_code, process.killed) == (7, False)
        assert process.output.head == b"up\nbye\n"

    on_asyncio(end())


def test_errors_at_the_start_are_clear(tmp_path: Any) -> None:
    async def fail(*command: str, **options: Any) -> str:
        with pytest.raises(processes.ProgramError) as caught:
            await processes.run(command, **options)
        with pytest.raises(processes.ProgramError):
            await processes.start(command, **options)
        return str(caught.value)

    script = tmp_path / "script"
    script.write_text("echo hi")
    assert (
        on_asyncio(fail("no-such-program"))
        == "The program no-such-program cannot be started: No such file or directory."
    )
    assert "Permission denied" in on_asyncio(fail(str(script)))
    assert on_asyncio(fail("true", cwd="/no/such/folder")) == (
        "The working directory /no/such/folder cannot be entered: No such file or directory."
    )
    assert "Not a directory" in on_asyncio(fail("true", cwd=str(script)))
    assert "NUL" in on_asyncio(fail("echo", "a\0b"))
    assert "surrogate" in on_asyncio(fail("echo", "\ud800"))
    assert "empty" in on_asyncio(fail())
    assert "Argument list too long" in on_asyncio(fail("echo", "x" * 3_000_000))


@pytest.mark.parametrize("stage", ["running", "just started", "idle", "children left"])
def test_a_killed_reaper_is_an_error_and_no_hang(mark: str, stage: str) -> None:
    async def kill() -> None:
        before = reapers()
        if stage == "idle":
            await bash("true")
        else:
            commands = {
                "running": "sleep 60; :",
                "just started": "exec sleep 60",
                "children left": "sleep 60 & :",
            }
            process = await processes.start(
                ["bash", "-c", commands[stage]], env=environment(mark), confirmed=stage != "just started"
            )
            await asyncio.sleep(0.1)
            if stage == "children left":
                await process.wait()
        for pid in set(reapers()) - set(before):
            os.kill(pid, signal.SIGKILL)
            gone(pid)
        if stage in ("running", "just started"):
            with pytest.raises(processes.ProgramError, match="supervisor"):
                await asyncio.wait_for(process.wait(), SECONDS)
            none_left(mark)
        elif stage == "children left":
            await asyncio.wait_for(process.wait_gone(), SECONDS)
        assert (await asyncio.wait_for(bash("echo on"), SECONDS)).output.head == b"on\n"

    on_asyncio(kill())


def test_a_reaper_takes_no_notice_of_signals_and_can_be_woken_when_stopped(mark: str) -> None:
    async def disturb() -> None:
        before = reapers()
        process = await processes.start(["bash", "-c", "sleep 60; :"], env=environment(mark))
        (pid,) = set(reapers()) - set(before)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGSTOP):
            os.kill(pid, number)
        assert await process.terminate()
        assert process.signal == "SIGTERM"
        none_left(mark)

    on_asyncio(disturb())


# --- what the program sees (D5) ---------------------------------------------------------------------------


def test_a_program_sees_three_descriptors_its_own_session_and_default_signals() -> None:
    reading, writing = os.pipe()  # two descriptors that must not come through, even marked inheritable
    os.set_inheritable(writing, True)
    code = (
        "import os, signal; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:3], "
        "len(os.listdir('/proc/self/fd')), os.getsid(0) == os.getpid() == os.getpgrp(), "
        "os.readlink('/proc/self/fd/0'), signal.pthread_sigmask(signal.SIG_BLOCK, []), "
        "[l.split()[1] for l in open('/proc/self/status') if l.startswith(('SigIgn', 'SigBlk'))])"
    )
    try:
        process = on_asyncio(processes.run([sys.executable, "-S", "-c", code]))
    finally:
        os.close(reading)
        os.close(writing)
    blocked, ignored = "0" * 16, "0000000001001000"  # Python itself ignores SIGPIPE and SIGXFSZ
    expected = f"[0, 1, 2] 4 True /dev/null set() ['{blocked}', '{ignored}']\n"
    assert process.output.head.decode() == expected


@pytest.mark.parametrize(
    "command",
    [
        "cat", "read line", "head -c 1", "sort", "wc -c", "tee /dev/null", "bash", "sh", "python3 -", "tac",
        "sed p", "awk 1", "grep x", "tr a b", "cut -c1", "uniq", "od", "xargs echo", "md5sum", "dd count=1",
    ],
)  # fmt: skip
def test_programs_that_read_standard_input_take_nothing_of_the_servers(command: str) -> None:
    """Bash: the command runs as `bash -c` in a session of its own whose standard input is empty."""
    reading, writing = os.pipe()
    kept = os.dup(0)
    os.write(writing, b"the wire\n")
    os.dup2(reading, 0)
    try:
        process = on_asyncio(bash(command, timeout_ms=60_000))
        assert not process.timed_out
        assert b"wire" not in process.output.head
        assert os.read(0, 100) == b"the wire\n"
    finally:
        os.dup2(kept, 0)
        for descriptor in (reading, writing, kept):
            os.close(descriptor)


def test_standard_input_holds_the_bytes_that_were_given() -> None:
    data = bytes(range(256)) * 8192
    process = on_asyncio(processes.run(["cat"], stdin=data, output=processes.Output(4 * 1024 * 1024)))
    assert process.output.head == data


def test_arguments_of_any_bytes_and_environment_come_through() -> None:
    arguments = ["", "two words", "سلام", "'\"$`\\", "\udcff"]
    command = ["bash", "-c", 'printf "%s|" "$@" "$NAME" "$FASTRPC_API_TOKEN"', "-", *arguments]
    process = on_asyncio(processes.run(command, env={**os.environ, "NAME": "x=y\nz"}))
    assert process.output.head == "|two words|سلام|'\"$`\\|".encode() + b"\xff|x=y\nz||"


def test_the_servers_secrets_are_not_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bash: the server's own secrets are not in the environment of a command."""
    for name in ("FASTRPC_TOKEN", "FASTRPC_DB_PASSWORD", "FASTRPC_SECRET_1", "FASTRPC_SIGNING_KEY"):
        monkeypatch.setenv(name, "planted")
    monkeypatch.setenv("MY_TOKEN", "mine")
    monkeypatch.setenv("FASTRPC_STATE_DIR", "/somewhere")
    shown = on_asyncio(processes.run(["env"])).output.head
    assert b"planted" not in shown
    assert b"MY_TOKEN=mine" in shown
    assert b"FASTRPC_STATE_DIR=/somewhere" in shown


def test_the_working_directory_is_the_servers_present_one(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bash: the command runs in the working directory that the server has at that time."""

    async def where() -> list[bytes]:
        first = await processes.run(["pwd"])
        monkeypatch.chdir(tmp_path)  # the reaper is older than this
        return [first.output.head, (await processes.run(["pwd"])).output.head]

    before = os.getcwd()
    assert on_asyncio(where()) == [f"{before}\n".encode(), f"{tmp_path}\n".encode()]


def test_the_environment_is_the_servers_present_one_with_the_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def shown(**options: Any) -> bytes:
        return (await processes.run(["bash", "-c", "echo $PLACE $MORE"], **options)).output.head.strip()

    monkeypatch.setenv("PLACE", "here")
    assert on_asyncio(shown()) == on_asyncio(shown()) == b"here"
    assert on_asyncio(shown(changes={"MORE": "and more"})) == b"here and more"
    monkeypatch.setenv("PLACE", "there")
    assert on_asyncio(shown(changes={"MORE": "and more"})) == b"there and more"
    assert on_asyncio(shown(changes={"PLACE": "elsewhere"})) == b"elsewhere"
    monkeypatch.delenv("PLACE")
    assert on_asyncio(shown()) == b""


def test_a_program_is_looked_up_along_the_path_that_it_is_given(tmp_path: Any) -> None:
    def put(folder: str) -> None:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "named").write_text(f"#!/bin/sh\necho {folder}\n")
        (tmp_path / folder / "named").chmod(0o755)

    async def found(*folders: str, cwd: str | None = None) -> str:
        process = await processes.run(["named"], env={"PATH": ":".join(folders)}, cwd=cwd)
        return process.output.head.decode().strip()

    async def look() -> None:
        first, second = str(tmp_path / "first"), str(tmp_path / "second")
        put("second")
        assert await found(first, second) == await found(first, second) == "second"
        put("first")
        assert await found(first) == "first"
        assert await found(second, first) == "second"
        os.unlink(os.path.join(second, "named"))
        assert await found(second, first) == "first"  # what was found last is gone
        put("second")
        assert await found(second, first) == "second"
        (tmp_path / "first" / "named").chmod(0o644)
        assert await found(first, second) == "second"
        assert await found("", first, cwd=second) == "second"  # the program's own working directory
        with pytest.raises(processes.ProgramError, match="Permission denied"):
            await found(first)

    on_asyncio(look())


def test_a_large_environment_and_a_script_arrive_whole() -> None:
    variables = {**os.environ, **{f"BIG_{number}": "x" * 50_000 for number in range(20)}}
    process = on_asyncio(
        processes.run(["bash", "-c", "env | wc -c; wc -c <&3"], env=variables, script=b"s" * 300_000)
    )
    size, script = process.output.head.split()
    assert int(size) > 1_000_000
    assert script == b"300000"


# --- nothing piles up ---------------------------------------------------------------------------------------


def at_rest() -> tuple[int, int, int]:
    """The same once nothing is left that the garbage collector would close."""
    gc.collect()
    return state()


def comes_to(before: tuple[int, int, int]) -> None:
    """Wait until this process has again what it had: a reaper that has been ended takes a moment."""

    def is_so() -> bool:
        processes.reapers.reap_zombies()
        return state() == before

    eventually(is_so)


def state() -> tuple[int, int, int]:
    """Descriptors, threads and children of this process."""
    children = 0
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit():
                with open(f"/proc/{name}/stat", "rb") as file:
                    children += int(file.read().rpartition(b")")[2].split()[1]) == os.getpid()
    return len(os.listdir("/proc/self/fd")), threading.active_count(), children


def test_many_commands_leave_descriptors_threads_and_children_at_base(run: Any) -> None:
    run(bash("true"))  # uvloop keeps a pipe for as long as the process lives
    before = at_rest()

    async def many() -> None:
        for _ in range(200):
            await bash("true")
        in_use = state()
        await asyncio.gather(*[bash("echo $RANDOM") for _ in range(20)])
        for _ in range(9):
            await asyncio.gather(*[bash("echo $RANDOM") for _ in range(20)])
        await until(lambda: len(reapers()) <= 4)
        assert state()[0] <= in_use[0] + 4

    run(many())
    comes_to(before)


def test_two_loops_in_turn_share_the_idle_reapers() -> None:
    assert asyncio.run(bash("echo 1")).output.head == b"1\n"
    kept = reapers()
    assert kept
    assert asyncio.run(bash("echo 2")).output.head == b"2\n"
    assert reapers() == kept
    on_asyncio(asyncio.sleep(0))
    eventually(no_reapers)


def test_a_loop_that_ends_too_early_leaves_no_process(mark: str) -> None:
    async def leave() -> None:
        await processes.start(["bash", "-c", "sleep 60; :"], env=environment(mark))

    asyncio.run(leave())
    on_asyncio(bash("true"))
    none_left(mark)


def test_a_reaper_started_by_hand_ends_at_once() -> None:
    path = os.path.join(REPOSITORY, "fastrpc", "_core", "reaper")
    assert subprocess.run([path], timeout=SECONDS, stdin=subprocess.DEVNULL).returncode == 2


def test_a_process_that_ends_closes_the_sockets_of_idle_reapers_before_the_interpreter_goes() -> None:
    code = (
        "import asyncio, atexit; "
        "atexit.register(lambda: print([each.fileno() for each in kept])); "  # what came first goes last
        "from fastrpc.processes import reapers, run; asyncio.run(run(['true'])); "
        "kept = [each.socket for each in reapers.idle]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS)
    assert (done.stdout, done.stderr) == ("[-1]\n", "")
