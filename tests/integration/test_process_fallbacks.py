"""Programs and the stdio transport on systems that lack a feature of Linux's, with real processes.

Nothing in the code switches a feature off. Where the kernel offers it at run time, a filter of system calls
refuses it to the reaper as it was built, as an older kernel or a container does. What other systems than
Linux get is compiled from the same file (-DAS_ELSEWHERE) and put in the reaper's place. What a lack does not
touch is held by the tests of `test_processes` themselves, which are run again here.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import test_process_output as output
import test_processes as whole
from support.child_processes import SECONDS, bash, environment, marked, none_left, on_asyncio, reapers
from support.stdio import encode, serve
from support.waiting import eventually, until
from test_processes import mark, patient, run
from test_stdio import INITIALIZE, SERVER, call

from fastrpc import processes
from fastrpc._core.client_stream import ClientStream
from fastrpc.client.stdio import HeardProcess

COMPILER = shutil.which(os.environ.get("CC", "cc"))
pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc"),
    pytest.mark.skipif(COMPILER is None, reason="compiles the reaper anew"),
]
__all__ = ["mark", "patient", "run"]  # fixtures

SOURCE = os.path.join(whole.REPOSITORY, "fastrpc", "_core", "reaper.c")
TEXT = ["-x", "c", "-"]
BUILT = os.path.join(whole.REPOSITORY, "fastrpc", "_core", "reaper")

# Refuses one system call, for all values of its argument AT or for one, to itself and those below it, and
# becomes another program.
REFUSING = """
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef F_SETPIPE_SZ
#define F_SETPIPE_SZ 1031
#endif
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define ANSWER(code) BPF_STMT(BPF_RET | BPF_K, code)
int main(int count, char **arguments) {
    struct sock_filter rules[] = {
#ifdef VALUE
        LOAD(nr), UNLESS(CALL, 3), LOAD(args[AT]), UNLESS(VALUE, 1),
#else
        LOAD(nr), UNLESS(CALL, 1),
#endif
        ANSWER(SECCOMP_RET_ERRNO | REFUSAL), ANSWER(SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 100;
    arguments[0] = BECOMES;
    execv(BECOMES, arguments);
    return count ? 101 : 102;
}
"""
PR_SET_CHILD_SUBREAPER = 36
REFUSED = {
    "no sub-reaper": ("-DCALL=SYS_prctl", "-DAT=0", "-DVALUE=PR_SET_CHILD_SUBREAPER", "-DREFUSAL=EINVAL"),
    "no parent-death signal": ("-DCALL=SYS_prctl", "-DAT=0", "-DVALUE=PR_SET_PDEATHSIG", "-DREFUSAL=EINVAL"),
    "no pidfd": ("-DCALL=434", "-DREFUSAL=ENOSYS"),
    "no close_range": ("-DCALL=436", "-DREFUSAL=ENOSYS"),
}
BY_GROUP = ["elsewhere", "no sub-reaper", "no /proc", "another's /proc"]

# What is in the program's group, or leaves it. With each: how many of its processes there are, and how many
# of them have made a separate session.
ESCAPED = {"setsid": 1, "setsid fork": 1, "hidden and deaf": 3, "all of it at once": 3}
STAYING = {name: shape for name, shape in whole.SHAPES.items() if name not in ESCAPED}
STAYING_COUNT = sum(count for _, count in STAYING.values())
ESCAPING = {name: (*whole.SHAPES[name], escaped) for name, escaped in ESCAPED.items()}


def build(folder: Any, *flags: str, text: str = "") -> str:
    """Compile the reaper, or a text that passes for it, and return the program's path."""
    os.makedirs(folder / "_core")
    path = str(folder / "_core" / "reaper")
    command = [str(COMPILER), "-O1", "-Wall", "-Werror", *flags, "-o", path, *(TEXT if text else [SOURCE])]
    subprocess.run(command, input=text.encode(), check=True, timeout=60)
    return path


@pytest.fixture(scope="session")
def reaper_for(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return what builds the reaper that a system with a certain lack has."""
    made: dict[str, str] = {}

    def make(lack: str) -> str:
        folder = tmp_path_factory.mktemp("lack")
        if lack in REFUSED:
            return build(folder, *REFUSED[lack], f'-DBECOMES="{BUILT}"', text=REFUSING)
        if lack == "elsewhere":
            return build(folder, "-DAS_ELSEWHERE")
        proc = folder / "proc"
        if lack == "another's /proc":  # it tells of other processes by the same numbers
            proc.mkdir()
            (proc / "self").symlink_to("1")
        return build(folder, f'-DPROC="{proc}"')

    def reaper(lack: str) -> str:
        if lack not in made:
            made[lack] = make(lack)
        return made[lack]

    return reaper


@pytest.fixture
def lack(request: pytest.FixtureRequest, reaper_for: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Take a feature away from this test."""
    monkeypatch.setattr(processes.reapers, "REAPER", reaper_for(request.param))
    return str(request.param)


@pytest.fixture
def burial() -> Iterator[None]:
    """Have orphans buried at once, as launchd and systemd do it: a group counts as alive until its last
    member is buried, and the first process of a container may take its time. So they come to this one."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture(autouse=True)
def everywhere_else(request: pytest.FixtureRequest) -> None:
    """What `test_processes` promises is promised elsewhere too: those tests name nothing that they lack."""
    if request.function.__module__ == whole.__name__:
        request.getfixturevalue("monkeypatch").setattr(
            processes.reapers, "REAPER", request.getfixturevalue("reaper_for")("elsewhere")
        )
        request.getfixturevalue("burial")


DIFFERENT_BY_GROUP = {
    "test_a_timeout_leaves_no_process",
    "test_a_cancelled_call_leaves_no_process",
    "test_close_leaves_no_process",
    "test_the_death_of_the_server_leaves_no_process",
    "test_a_finished_command_leaves_only_those_that_are_named_and_they_end_with_the_server",
    "test_a_reaper_started_by_hand_ends_at_once",  # the built one
}
globals().update(
    (name, value)
    for name, value in vars(whole).items()
    if name.startswith("test_") and name not in DIFFERENT_BY_GROUP
)


def lacking(*lacks: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("lack", lacks, indirect=True)


async def running(mark: str, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(marked(mark)) < count:
        assert time.monotonic() < deadline, f"{len(marked(mark))} of {count} processes run"
        await asyncio.sleep(0.02)


def session_of(pid: int) -> int:
    """The session of a process; 0 for one that has ended."""
    with contextlib.suppress(OSError):
        return os.getsid(pid)
    return 0


# --- the tree ends: all that has stayed in the program's group ------------------------------------------


@pytest.mark.long
@lacking(*BY_GROUP)
@pytest.mark.parametrize("end", ["timeout", "cancellation", "close"])
@pytest.mark.usefixtures("burial")
def test_by_process_group_a_tree_ends_with_its_call(lack: str, mark: str, end: str) -> None:
    async def shapes() -> None:
        timeout_ms = 1500 if end == "timeout" else None
        tasks = [
            asyncio.ensure_future(bash(command, mark, timeout_ms=timeout_ms))
            for command, _ in STAYING.values()
        ]
        if end != "timeout":  # which on a busy machine comes before all are there
            await running(mark, STAYING_COUNT)
        if end == "close":
            await processes.close(grace_seconds=0.3)
        elif end == "cancellation":
            for task in tasks:
                task.cancel()
        ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), SECONDS)
        none_left(mark)
        if end == "timeout":
            assert all(process.timed_out and process.gone for process in ended)

    on_asyncio(shapes())


@pytest.mark.long
@lacking("elsewhere", "no sub-reaper", "no pidfd", "no parent-death signal")
@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "a fork holds the sockets"])
@pytest.mark.usefixtures("burial")
def test_without_a_feature_a_tree_ends_with_the_server(lack: str, mark: str, end: str) -> None:
    source = whole.SERVER.replace(
        "async def main", "processes.reapers.REAPER = os.environ['REAPER']\nasync def main"
    )
    variables = {**os.environ, "FASTRPC_TEST_MARK": mark, "REAPER": processes.reapers.REAPER}
    if end.startswith("a fork"):
        variables["FORK_HOLDS"] = "1"
    commands = [command for command, _ in STAYING.values()]
    server = subprocess.Popen([sys.executable, "-c", source, whole.REPOSITORY, *commands], env=variables)
    try:
        asyncio.run(running(mark, STAYING_COUNT + 1))
        if end.startswith("a fork"):
            eventually(lambda: sum(map(whole.is_python, marked(mark))) == 2)
        server.send_signal(signal.SIGTERM if end == "SIGTERM" else signal.SIGKILL)
        server.wait(SECONDS)
        deadline = time.monotonic() + SECONDS
        while left := [pid for pid in marked(mark) if not whole.is_python(pid)]:
            assert time.monotonic() < deadline, left
            time.sleep(0.02)
    finally:
        server.kill()
        server.wait()


@lacking(*BY_GROUP)
@pytest.mark.parametrize("shape", ESCAPING)
@pytest.mark.usefixtures("burial")
def test_by_process_group_only_a_session_of_its_own_escapes_and_the_call_still_ends(
    lack: str, mark: str, shape: str
) -> None:
    command, count, escaped = ESCAPING[shape]

    async def end() -> None:
        process = await processes.start(["bash", "-c", command], env=environment(mark))
        await running(mark, count)
        while sum(session_of(pid) not in (0, process.pid) for pid in marked(mark)) < escaped:
            await asyncio.sleep(0.02)
        assert await process.terminate(grace_seconds=0.1)
        await asyncio.wait_for(process.wait(), SECONDS)
        left = marked(mark)
        assert len(left) == escaped
        assert process.pid not in {session_of(pid) for pid in left}

    on_asyncio(end())


@lacking(*BY_GROUP)
@pytest.mark.parametrize("shape", ["background", "nohup", "double fork", "deaf", "many"])
@pytest.mark.usefixtures("burial")
def test_by_process_group_those_left_behind_are_known_as_a_group_and_end_with_the_server(
    lack: str, mark: str, shape: str
) -> None:
    async def leave() -> None:
        process = await bash(whole.LEAVING[shape], mark)
        assert process.exit_code == 0
        await process.refresh_children()
        assert not process.gone
        assert process.children_left == 1
        assert [(child.pid, child.name) for child in process.children] == [(process.pid, "")]
        await processes.close()
        none_left(mark)

    on_asyncio(leave())


@lacking(*BY_GROUP)
@pytest.mark.usefixtures("burial")
def test_by_process_group_the_end_of_those_left_behind_is_noticed(lack: str, mark: str) -> None:
    whole.test_the_reaper_of_a_command_that_left_children_is_used_again_once_they_have_ended(mark)


# A member of the group that has ended but is not buried, for its parent has left the group and cares not.
UNBURIED = """
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(60)
    os.setpgid(0, 0)
    print("up", flush=True)
    time.sleep(60)
time.sleep(60)
"""


@lacking("elsewhere")
def test_a_group_that_does_not_end_holds_up_neither_the_call_nor_the_reapers_end(
    lack: str, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STUBBORN_SECONDS", 2.0)

    async def end() -> None:
        process = await processes.start([sys.executable, "-c", UNBURIED], env=environment(mark))
        while b"up" not in process.output.head:
            await asyncio.sleep(0.01)
        assert not await process.terminate(grace_seconds=0.1)
        assert process.ended
        assert reapers()

    on_asyncio(end())
    deadline = time.monotonic() + SECONDS
    while reapers():
        assert time.monotonic() < deadline, "the reaper lives on, without a server"
        time.sleep(0.05)
        processes.reapers.reap_zombies()


# --- the reaper is killed -------------------------------------------------------------------------------


@lacking("no parent-death signal")
@pytest.mark.parametrize("stage", ["running", "just started", "idle", "children left"])
def test_without_a_parent_death_signal_a_killed_reaper_is_an_error_and_no_hang(
    lack: str, mark: str, stage: str
) -> None:
    whole.test_a_killed_reaper_is_an_error_and_no_hang(mark, stage)


@lacking("elsewhere", "no parent-death signal")
def test_without_a_parent_death_signal_a_peer_ends_with_its_reaper(lack: str, mark: str) -> None:
    async def kill() -> None:
        ends: list[str] = []
        lines: list[bytes] = []
        command = ["bash", "-c", "trap '' PIPE; sleep 60 & echo up; sleep 60; :"]
        stream = ClientStream()
        stream.on_unreadable = lines.append
        server = HeardProcess(command, None, environment(mark), stream, ends.append)
        stream.attach(asyncio.get_running_loop())
        while not lines:
            await asyncio.sleep(0.01)
        (pid,) = reapers()
        os.kill(pid, signal.SIGKILL)
        await asyncio.wait_for(server.gone, SECONDS)
        assert ends == ["its supervisor was killed"]
        none_left(mark)

    on_asyncio(kill())


# --- what the program gets, and what stays open ---------------------------------------------------------


@lacking("elsewhere", *REFUSED)
def test_without_a_feature_output_is_whole(lack: str, tmp_path: Any) -> None:
    output.test_head_tail_and_file_are_exact(tmp_path)


@lacking("no close_range")
def test_without_close_range_a_program_still_sees_three_descriptors(lack: str) -> None:
    whole.test_a_program_sees_three_descriptors_its_own_session_and_default_signals()


@pytest.fixture(params=["no such function", "refused by the kernel"])
def no_memory_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param.startswith("no such"):
        monkeypatch.delattr(os, "memfd_create")
    else:

        def refuse(*_: object) -> int:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

        monkeypatch.setattr(os, "memfd_create", refuse)


@pytest.mark.usefixtures("no_memory_files")
def test_without_memory_files_input_script_and_environment_arrive_whole_and_nothing_stays(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gc.collect()  # what it closes is not counted
    before = len(os.listdir("/proc/self/fd"))
    whole.test_standard_input_holds_the_bytes_that_were_given()
    whole.test_a_large_environment_and_a_script_arrive_whole()
    assert os.listdir(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == before


def parents_of_zombies() -> set[int]:
    found = set()
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit():
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state == b"Z":
                    found.add(int(parent))
    return found


def is_tidy() -> bool:
    """Whether few reapers are there, without a zombie or a descriptor that they need no more."""
    there = reapers()
    with contextlib.suppress(OSError):  # one has just ended
        most = max(len(os.listdir(f"/proc/{pid}/fd")) for pid in there)
        # Four that it is given, a pipe, one end of another, the server's pidfd.
        return len(there) <= 4 and most <= 8 and not parents_of_zombies().intersection(there)
    return False


@lacking("elsewhere", *REFUSED)
def test_without_a_feature_many_commands_leave_no_zombie_no_descriptor_and_no_process(
    lack: str, mark: str
) -> None:
    before = whole.at_rest()
    command = "(sleep 0.01 &); sleep 0.05 | cat; echo"
    if lack in BY_GROUP:  # there the system buries orphans, at its leisure
        command = "sleep 0.05 | cat; echo"

    async def many() -> None:
        for _ in range(5):
            await asyncio.gather(*[bash(command, mark) for _ in range(10)])
        await until(is_tidy)

    on_asyncio(many())
    whole.comes_to(before)
    none_left(mark)


# --- the source -----------------------------------------------------------------------------------------


def test_nothing_of_linux_is_needed_where_it_is_not_there() -> None:
    options = ["-std=c99", "-D_XOPEN_SOURCE=700", "-U__linux__", "-Wall", "-Werror", "-fsyntax-only"]
    done = subprocess.run([str(COMPILER), *options, SOURCE], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()


# --- standard input and output --------------------------------------------------------------------------

WITHOUT_PROC = """
import os, runpy
system = os.open
def opened(path, *rest, **named):
    if str(path).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file or directory", path)
    return system(path, *rest, **named)
os.open = opened
runpy.run_module("fastrpc", run_name="__main__", alter_sys=True)
"""


@contextlib.contextmanager
def pipes() -> Iterator[tuple[int, int, int, int]]:
    both = (*os.pipe(), *os.pipe())
    try:
        yield both
    finally:
        for descriptor in both:
            with contextlib.suppress(OSError):
                os.close(descriptor)


@pytest.mark.parametrize("end", ["end of input", "SIGTERM"])
def test_without_proc_pipes_are_served_and_given_back_in_blocking_mode(tmp_path: Any, end: str) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    command = [sys.executable, "-c", WITHOUT_PROC, "serve", str(tmp_path / "server.py")]
    with (
        pipes() as (their_input, our_output, our_input, their_output),
        serve(command=command, stdin=their_input, stdout=their_output) as server,
    ):
        os.write(our_output, encode(INITIALIZE) + encode(call(1, "cold", text="x")))
        answers = b""
        while answers.count(b"\n") < 2:
            answers += os.read(our_input, 65536)
        assert not os.get_blocking(their_input)  # it was not reopened
        if end == "SIGTERM":
            server.signal(signal.SIGTERM)
        else:
            os.close(our_output)
        assert server.wait() == 0
        assert os.get_blocking(their_input)
        assert os.get_blocking(their_output)


@pytest.mark.parametrize("system", ["as it is", "no wider pipes", "no /proc"])
def test_large_messages_are_whole_through_pipes_of_any_width(
    system: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    command = [sys.executable, "-m", "fastrpc", "serve", str(tmp_path / "server.py")]
    if system == "no wider pipes":
        refusal = ("-DCALL=SYS_fcntl", "-DAT=1", "-DVALUE=F_SETPIPE_SZ", "-DREFUSAL=EPERM")
        command[0] = build(tmp_path, *refusal, f'-DBECOMES="{sys.executable}"', text=REFUSING)
    elif system == "no /proc":
        command[1:3] = ["-c", WITHOUT_PROC]
    texts = [chr(0x61 + number) * 700_000 for number in range(8)]
    with serve(command=command) as server:
        server.initialize()
        server.send(b"".join(encode(call(f"n{at}", "echo", text=text)) for at, text in enumerate(texts)))
        answers = server.answers(len(texts))
        assert [answer["result"]["content"][0]["text"] for answer in answers] == texts
        if system == "no wider pipes":
            assert server.stdin is not None
            assert fcntl.fcntl(server.stdin, fcntl.F_GETPIPE_SZ) == 64 * 1024
        server.close_stdin()
        assert server.wait() == 0
