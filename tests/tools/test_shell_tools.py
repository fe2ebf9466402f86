"""Bash, BackgroundBash, ReadBgOutput, ListBgTasks and KillBgTask, called as functions, with real commands."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import stat
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from fastrpc.tools.agent import _output_files, _shell, _tasks, _text
from fastrpc.tools.agent.background_bash import background_bash
from fastrpc.tools.agent.bash import bash
from fastrpc.tools.agent.kill_bg_task import kill_bg_task
from fastrpc.tools.agent.list_bg_tasks import list_bg_tasks
from fastrpc.tools.agent.read_bg_output import read_bg_output
from support.loop_clock import LoopClock
from support.waiting import until

from fastrpc import Context, ToolError, ToolResult, processes

begin_task = partial(background_bash, ctx=Context())
list_tasks = partial(list_bg_tasks, ctx=Context())
read_task = partial(read_bg_output, ctx=Context())
kill_task = partial(kill_bg_task, ctx=Context())


@pytest.fixture(autouse=True)
def state(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A state folder and a list of tasks of its own for each test."""
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(_tasks, "_tasks", {})
    monkeypatch.setattr(_tasks, "_last_id", 0)
    monkeypatch.setattr(_output_files, "_tidied", 0.0)
    return str(tmp_path / "state")


def run(coroutine: Awaitable[Any]) -> Any:
    async def whole() -> Any:
        try:
            return await coroutine
        finally:
            await processes.close()
            await asyncio.sleep(0.01)

    return asyncio.run(whole())


def call(command: str, timeout: int | None = None, context: Context | None = None) -> ToolResult:
    result: ToolResult = run(bash(command, context or Context(), timeout))
    return result


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[processes.Process]:
    """The processes of the commands that were begun: what of their output has arrived is seen here."""
    found: list[processes.Process] = []
    start = _shell.start

    async def kept(*arguments: Any, **options: Any) -> processes.Process:
        found.append(await start(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(_shell, "start", kept)
    return found


def gates_in(folder: Any, count: int) -> list[Any]:
    """FIFOs `gate1` and on, for a command to wait at: one for each time, since a reader that leaves late
    takes away what was meant for the next one."""
    gates = [folder / f"gate{number + 1}" for number in range(count)]
    for gate in gates:
        os.mkfifo(gate)
    return gates


def facts(result: ToolResult) -> dict[str, Any]:
    found: dict[str, Any] = (result.meta or {})["fastrpc/facts"]
    return found


def test_programs_learn_that_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bash: programs find `TERM=dumb` and no pager."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PAGER", "less")
    text = call("echo $TERM $PAGER $GIT_PAGER $MANPAGER; echo [$AWS_PAGER]").content
    assert text == "dumb cat cat cat\n[]"


# --- Bash: what is shown ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "text", "is_error"),
    [
        ("echo hi", "hi", False),
        ("true", "(no output)", False),
        ("false", "[exit code 1]", True),
        ("echo no; exit 77", "no\n[exit code 77]", True),
        ("printf 'no newline'; exit 3", "no newline\n[exit code 3]", True),
        ("kill -9 $$", "[killed by SIGKILL]", True),
        ("echo one; echo two >&2; echo three; echo four >&2", "one\ntwo\nthree\nfour", False),
        ("printf '\\xff\\xfeok\\xc3'", "\ufffd\ufffdok\ufffd", False),
        ("echo 'مرحبا بالعالم 🙂'", "مرحبا بالعالم 🙂", False),
        ("printf '\\033[1;31mred\\033[0m \\033]0;title\\007x\\n'", "red x", False),
        ("printf '10%%\\r50%%\\r100%%\\ndone\\r\\n'", "100%\ndone", False),
        ("printf 'a|\\b/\\b-\\bz'", "az", False),
        ("echo $TERM $PAGER $GIT_PAGER", "dumb cat cat", False),
        ("readlink /proc/self/fd/0", "/dev/null", False),
        ("echo $0", "bash", False),
        ("printf '\\n\\n  x\\n'", "\n\n  x", False),
    ],
)
def test_a_result_shows_the_output_and_how_it_ended(command: str, text: str, is_error: bool) -> None:
    """Bash: the output is both streams as they came, escape sequences and redraws collapsed, bad UTF-8 as
    U+FFFD; `isError` is true exactly where a last line names an exit code, a signal or a time-out; an
    empty success is `(no output)`.
    """
    result = call(command)
    assert (result.content, result.is_error) == (text, is_error)


def test_the_facts_of_a_result_are_in_meta_and_nothing_is_structured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tool: a result is one text block, always has `isError`, and holds its facts in
    `_meta["fastrpc/facts"]`.
    Bash: exit code, signal, time-out, duration, truncation, path and task are facts in `_meta`.
    """
    began = time.monotonic()
    result = call("exit 9")
    found = facts(result)
    assert 0 < found.pop("duration_ms") <= (time.monotonic() - began) * 1000 + 1
    assert found == {
        "exit_code": 9,
        "signal": None,
        "timed_out": False,
        "truncated": False,
        "output_path": None,
        "task_id": None,
    }
    assert result.structured is None
    monkeypatch.setenv("FASTRPC_STRUCTURED", "1")
    assert call("exit 9").structured["exit_code"] == 9


def test_the_end_of_the_shell_ends_the_call_and_children_are_named() -> None:
    """Bash: a call returns as soon as the shell ends, with a note of children that still run."""
    is_there = 'until [ "$(</proc/$!/comm)" = sleep ]; do :; done'  # before that it has the shell's name
    result = call(f"sleep 600 & {is_there}; echo hi")
    text = str(result.content)
    assert text.startswith("hi\n[1 child still runs: ")
    assert "sleep" in text
    assert not result.is_error


def test_a_timeout_returns_what_was_printed(begun: list[processes.Process]) -> None:
    """Bash: what was printed before a time-out is returned."""

    async def time_out() -> ToolResult:
        clock = LoopClock()
        command = "trap '' TERM; echo before; sleep 60; sleep 60"
        task = asyncio.ensure_future(bash(command, Context(), timeout=40_000))
        await until(lambda: begun and begun[0].output.total)
        clock.advance(10)
        await asyncio.sleep(0.01)
        assert not begun[0].timed_out
        clock.advance(30)
        return await task

    result = run(time_out())
    assert (result.content, result.is_error) == ("before\n[timed out after 40000 ms]", True)
    assert facts(result)["timed_out"] is True


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_timeout_that_is_none_is_refused(timeout: int) -> None:
    """Bash: a `timeout` of zero or less is refused."""
    with pytest.raises(ToolError, match=f"timeout: expected .* got {timeout}"):
        call("true", timeout)


def test_a_timeout_above_the_longest_is_taken_as_the_longest_and_said() -> None:
    """Bash: a `timeout` above 600,000 ms is taken as 600,000, and the result says so."""
    assert call("true", 600_001).content == (
        "(no output)\n[timeout 600001 ms is taken as 600000 ms, the longest]"
    )
    assert call("true", 600_000).content == "(no output)"


@pytest.mark.parametrize("size", [30_000, 140_000, 1_000_000])
def test_a_command_of_any_length_runs_as_a_short_one_does(size: int) -> None:
    """Bash: a command above the system's limit of arguments runs as a short one does; it goes in through a
    descriptor.
    """
    command = (
        f": '{'x' * size}'\n"
        'echo "$0 $# [$BASH_SUBSHELL] $LINENO $(ls /proc/self/fd | tr "\\n" " ")"; cat; '
        "declare -p | grep -c __fastrpc\n"
        "exit 5 # no newline at the end"
    )
    # `ls` itself opens the fourth descriptor; BASH_EXECUTION_STRING names the variable where there is one.
    lines = str(call(command).content).splitlines()
    assert lines[0] == "bash 0 [0] 2 0 1 2 3 "
    assert int(lines[1]) <= 1
    assert lines[2:] == ["[exit code 5]"]


def test_a_long_command_of_wide_characters_comes_whole() -> None:
    assert call(f"x='{'س' * 70_000}'; echo ${{#x}}").content == "70000"


@pytest.mark.parametrize(
    "command", ["echo \0", "echo \ud800", "x" * 200_000 + "\0", "x" * 200_000 + "\ud800"]
)
def test_a_command_that_no_shell_can_be_given_is_refused(command: str) -> None:
    with pytest.raises(ToolError, match=r"NUL|surrogate"):
        call(command)


# --- Bash: size ---------------------------------------------------------------------------------------------


def kept(result: ToolResult) -> bytes:
    with open(facts(result)["output_path"], "rb") as file:
        return file.read()


def test_a_long_output_keeps_head_and_tail_and_names_the_file_that_holds_all() -> None:
    """Every tool: of an output that is too long the first third and the last two thirds of what fits are
    kept, and a line between them says how much is left out and which file holds it.
    """
    result = call("seq 1 50000; exit 2")
    text = str(result.content)
    whole = "".join(f"{number}\n" for number in range(1, 50_001))
    head, _, rest = text.partition("[... ")
    line, _, tail = rest.partition(" ...]\n")
    assert len(text) < 30_000
    assert whole.startswith(head)
    assert tail.endswith("50000\n[exit code 2]")
    assert whole.endswith(tail.removesuffix("[exit code 2]"))
    assert 0.4 < len(head) / len(tail) < 0.6
    left_out = whole[len(head) : len(whole) - len(tail.removesuffix("[exit code 2]"))]
    assert line.startswith(f"{len(left_out):,} characters in {left_out.count(chr(10)):,} lines left out; ")
    path = facts(result)["output_path"]
    assert path in line
    assert facts(result)["truncated"] is True
    assert kept(result).decode() == whole
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


def test_more_output_than_memory_holds_is_cut_and_counted_exactly() -> None:
    result = call("echo first; seq 1 500000; echo last")
    text = str(result.content)
    whole = "first\n" + "".join(f"{number}\n" for number in range(1, 500_001)) + "last\n"
    head, _, rest = text.partition("[... ")
    line, _, tail = rest.partition(" ...]\n")
    assert head.startswith("first\n1\n2\n")
    assert tail.endswith("500000\nlast")
    left_out = whole[len(head) : len(whole) - len(tail) - 1]
    assert line.startswith(f"{len(left_out):,} characters in {left_out.count(chr(10)):,} lines left out")
    assert kept(result).decode() == whole


def test_wide_text_is_cut_by_tokens() -> None:
    """Every tool: a character that is not ASCII counts as a token, of the others four make one."""
    result = call("for i in {1..3000}; do echo 'النتيجة سليمة'; done")
    text = str(result.content)
    assert 12_000 < _text.tokens_of(text) <= 20_000
    assert "\ufffd" not in text
    assert facts(result)["truncated"]


@pytest.mark.parametrize(
    "command", ["head -c 29000 /dev/zero | tr '\\0' x", "head -c 28998 /dev/zero | tr '\\0' x"]
)
def test_a_result_stays_below_the_limit_at_its_edge(command: str) -> None:
    """Every tool: a result stays below 30,000 characters and about 20,000 tokens."""
    assert len(str(call(command).content)) < 30_000


def test_one_endless_line_is_cut_too() -> None:
    result = call("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo the end")
    text = str(result.content)
    assert 25_000 < len(text) < 30_000
    assert text.endswith("x\nthe end")


def test_an_output_over_the_files_limit_keeps_both_ends_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tool: an output file over its limit holds head and latest tail, and the result says so."""
    monkeypatch.setenv("FASTRPC_OUTPUT_FILE_BYTES", str(2 * 1024 * 1024))
    result = call("seq 1 1000000")
    assert "the first and the last 1 MiB of all output" in str(result.content)
    data = kept(result)
    assert data.startswith(b"1\n2\n3\n")
    assert data.endswith(b"999999\n1000000\n")
    assert b"bytes are missing here" in data
    assert len(data) < 2 * 1024 * 1024 + 100


def test_a_state_folder_that_cannot_be_written_costs_only_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", "/proc/nothing")
    result = call("seq 1 50000")
    assert "could not be stored" in str(result.content)
    assert str(result.content).endswith("\n50000")
    assert facts(result)["output_path"] is None


def test_old_files_go_and_then_the_oldest_of_too_many(tmp_path: Any) -> None:
    """Every tool: output files go after 24 hours or, the oldest first, when all hold over 2 GiB."""
    now = time.time()
    for name, age, size in [
        ("old", 90_000, 1),
        ("a", 500, 600),
        ("b", 400, 600),
        ("c", 300, 600),
        ("held", 99_999, 1),
    ]:
        (tmp_path / name).write_bytes(b"x" * size)
        os.utime(tmp_path / name, (now - age, now - age))
    with open(tmp_path / "held") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # another server writes it
        _output_files.tidy(str(tmp_path), keep_bytes=1300)
        assert sorted(os.listdir(tmp_path)) == ["b", "c", "held"]


# --- Bash: cancellation, progress, hand-over ---------------------------------------------------------------


def test_a_cancelled_call_ends_its_processes_and_keeps_no_file(state: str, tmp_path: Any) -> None:
    note = tmp_path / "pid"

    async def cancel() -> None:
        command = f"seq 1 500000; setsid sleep 60 & echo $! > {note}; wait"
        task = asyncio.ensure_future(bash(command, Context()))
        while not note.exists() or not note.read_text().strip():
            await asyncio.sleep(0.02)
        while not os.listdir(os.path.join(state, "output")):
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        deadline = time.monotonic() + 20
        while os.path.exists(f"/proc/{note.read_text().strip()}") or os.listdir(
            os.path.join(state, "output")
        ):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)

    run(cancel())


class ProgressChannel:
    """As much of a call's outbound channel as a tool's progress needs."""

    token = "progress"
    task = None

    def __init__(self, progress: Callable[[dict[str, Any]], object]) -> None:
        self.progress = progress


def progress_context(on_report: Callable[[], object] = list) -> tuple[Context, list[dict[str, Any]]]:
    reports: list[dict[str, Any]] = []
    channel: Any = ProgressChannel(lambda report: (reports.append(report), on_report()))
    return Context(outbound_channel=channel), reports


def test_output_is_sent_as_progress_while_the_command_runs(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step waits for the report of the one before it."""
    gates = iter(gates_in(tmp_path, 3))
    context, reports = progress_context(lambda: next(gates).write_text("go\n"))
    steps = f'echo -e "\\e[1mstep $i\\e[0m"; read line < {tmp_path}/gate$i'
    result = call(f"for i in 1 2 3; do {steps}; done", context=context)
    assert len(reports) == 3
    assert "".join(report["message"] for report in reports) == "step 1\nstep 2\nstep 3\n"
    numbers = [report["progress"] for report in reports]
    assert numbers == sorted(set(numbers))
    assert result.content == "step 1\nstep 2\nstep 3"
    monkeypatch.setenv("STREAMING", "off")
    context, reports = progress_context()
    call("echo step; sleep 0.3", context=context)
    assert not reports


def test_progress_of_a_flood_is_bounded() -> None:
    context, reports = progress_context()

    async def flood() -> float:
        began = time.monotonic()
        task = asyncio.ensure_future(bash("yes", context))
        await until(lambda: reports and time.monotonic() > began + 0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - began

    assert len(reports) <= 3 + 5 * run(flood())
    assert reports
    assert all(len(report["message"]) <= 4_001 for report in reports)


def test_a_command_that_outlasts_the_clients_patience_goes_on_as_a_task(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, begun: list[processes.Process]
) -> None:
    """Every tool: no call outlasts the client's patience (`FASTRPC_PATIENCE_SECONDS`): Bash hands over to a
    background task, and the call's own `timeout` still counts.
    """
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    monkeypatch.setenv("FASTRPC_PATIENCE_SECONDS", "15")

    async def hand_over() -> None:
        clock = LoopClock()
        task = asyncio.ensure_future(bash(f"echo one; read line < {gate}; echo two; exit 4", Context()))
        await until(lambda: begun and begun[0].output.total)
        clock.advance(15)
        first = await task
        text = str(first.content)
        assert re.match(r"one\n\[still running after \d+ s: goes on as background task 1", text)
        assert not first.is_error
        found = facts(first)
        assert (found["task_id"], found["exit_code"], found["timed_out"]) == (1, None, False)
        second = await read_task(1, wait_ms=300)
        assert str(second.content).startswith("[task 1: running")
        gate.write_text("go\n")
        while facts(await read_task(1))["running"]:
            await asyncio.sleep(0.01)
        with open(found["output_path"]) as file:
            assert file.read() == "one\ntwo\n"

    run(hand_over())


def test_a_handed_over_command_is_read_on_without_a_gap_and_its_timeout_counts(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, begun: list[processes.Process]
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    monkeypatch.setenv("FASTRPC_PATIENCE_SECONDS", "15")
    size = len("".join(f"{number}\n" for number in range(1, 100_001)))

    async def hand_over() -> None:
        clock = LoopClock()
        command = f"seq 1 100000; read line < {gate}; echo more; sleep 60"
        task = asyncio.ensure_future(bash(command, Context(), timeout=100_000))
        await until(lambda: begun and begun[0].output.total == size)
        clock.advance(15)
        assert facts(await task)["truncated"]
        gate.write_text("go\n")
        await until(lambda: begun[0].output.total == size + len("more\n"))
        assert "running" in str(list_tasks().content)
        clock.advance(85)  # since its beginning it has had all of its time
        await until(lambda: "running" not in str(list_tasks().content))
        second = await read_task(1)
        assert re.match(r"more\n\[task 1: timed out after 100000 ms after \d+\.\d s", str(second.content))

    run(hand_over())


def test_without_a_limit_of_patience_nothing_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tool: with `FASTRPC_PATIENCE_SECONDS=0` a call is waited for as long as it takes."""
    monkeypatch.setenv("FASTRPC_PATIENCE_SECONDS", "0")
    assert call("sleep 0.2; echo done").content == "done"


# --- background tasks --------------------------------------------------------------------------------------


def test_a_background_task_from_start_to_end(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """BackgroundBash: it returns at once with id and pid, and ids count up from 1.
    ReadBgOutput: it returns only what is new, then a line with state and time.
    ListBgTasks: without tasks it says `No background tasks.`; the list is structured, too.
    KillBgTask: that a task has ended already is said and no error.
    """
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    monkeypatch.chdir(tmp_path)
    command = "echo one; read line < gate; echo two; exit 3"

    async def life() -> None:
        assert list_tasks().content == "No background tasks."
        assert list_tasks().structured == {"tasks": []}
        started = await begin_task(command)
        pid = facts(started)["pid"]
        assert started.content == f"Started background task 1 (pid {pid}): {command}"
        assert os.path.exists(f"/proc/{pid}")
        first = await read_task(1, wait_ms=20_000)
        assert re.match(r"one\n\[task 1: running, \d+\.\d s\]", str(first.content))
        nothing = await read_task(1)
        assert str(nothing.content).startswith("[task 1: running, ")
        listed = list_tasks()
        assert re.match(r"1  running, \d+\.\d s", str(listed.content))
        assert listed.structured["tasks"][0]["command"] == command
        gate.write_text("go\n")
        second = await read_task(1, wait_ms=20_000)
        assert str(second.content).startswith("two\n[task 1: ")
        last = await read_task(1, wait_ms=20_000)
        assert re.match(r"\[task 1: exited 3 after \d+\.\d s\]", str(last.content))
        assert not last.is_error
        assert facts(last)["exit_code"] == 3
        with open(facts(started)["output_path"]) as file:
            assert file.read() == "one\ntwo\n"

    run(life())


def test_wait_ms_ends_with_new_output_with_the_end_or_with_the_time(tmp_path: Any) -> None:
    """ReadBgOutput: `wait_ms` ends with new output, with the task's end, or with the time."""
    news, end = tmp_path / "news", tmp_path / "end"

    async def wait() -> None:
        for gate in (news, end):
            os.mkfifo(gate)
        await begin_task(f"read line < {news}; echo news; read line < {end}")
        waiting = asyncio.ensure_future(read_task(1, wait_ms=60_000))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        news.write_text("go\n")
        assert str((await waiting).content).startswith("news\n[task 1: running")
        began = time.monotonic()
        assert str((await read_task(1, wait_ms=100)).content).startswith("[task 1: running")
        assert time.monotonic() - began > 0.09
        waiting = asyncio.ensure_future(read_task(1, wait_ms=60_000))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        end.write_text("go\n")
        assert str((await waiting).content).startswith("[task 1: exited 0")

    run(wait())


def test_a_large_output_is_read_page_by_page_without_loss_or_repetition() -> None:
    """BackgroundBash: memory holds a rolling buffer, the file all of the output.
    ReadBgOutput: more than fits comes with the next read.
    """

    async def read() -> None:
        await begin_task('for i in {1..40000}; do echo "line $i ö"; done')
        text, pages = "", 0
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            result = await read_task(1, wait_ms=500)
            page, _, status = str(result.content).rpartition("[task 1: ")
            assert len(str(result.content)) < 30_000
            page, _, more = page.partition("\n[")
            text += page.removesuffix("\n") + "\n" * bool(page)
            pages += 1
            if not more and "exited" in status and not facts(result)["unread_bytes"]:
                break
        assert text == "".join(f"line {number} ö\n" for number in range(1, 40_001))
        assert pages > 15

    run(read())


def test_characters_and_escape_sequences_are_not_torn_between_two_reads(tmp_path: Any) -> None:
    gates = gates_in(tmp_path, 3)

    async def read() -> list[str]:
        pieces = zip(("a\\xd8", "\\xb3b\\033[3", "1mc"), gates, strict=True)
        await begin_task("; ".join(f"printf '{piece}'; read line < {gate}" for piece, gate in pieces))
        process, found, size = _tasks.find("", 1).process, [], 0
        for more, gate in zip((2, 5, 3), gates, strict=True):
            size += more
            while process.output.total < size:
                await asyncio.sleep(0.01)
            found.append(str((await read_task(1)).content).partition("\n")[0])
            gate.write_text("go\n")
        return found

    assert run(read()) == ["a", "سb", "c"]


def test_the_ninth_task_is_refused_with_the_list_of_those_that_run() -> None:
    """BackgroundBash: eight tasks run at a time; the ninth is refused with the list of those that run."""

    async def nine() -> None:
        for number in range(8):
            await begin_task(f"sleep 6{number}")
        with pytest.raises(ToolError, match=r"the limit is 8[\s\S]*8  running, \d+\.\d s  sleep 67"):
            await begin_task("sleep 68")
        await kill_task(3)
        assert facts(await begin_task("sleep 69"))["task_id"] == 9

    run(nine())


def test_killing_a_task_ends_all_of_it_before_the_answer() -> None:
    """KillBgTask: all of a task gets SIGTERM, a second later SIGKILL, and is reaped before the answer."""

    async def kill() -> None:
        await begin_task("setsid sleep 60 & echo $!; sleep 60")
        child = str((await read_task(1, wait_ms=20_000)).content).splitlines()[0]
        result = await kill_task(1)
        assert str(result.content).startswith("Killed background task 1 (SIGTERM, ")
        assert not os.path.exists(f"/proc/{child}")
        again = await kill_task(1)
        assert str(again.content).startswith("Background task 1 has already ended: killed by SIGTERM")
        assert not again.is_error
        await begin_task("trap '' TERM; echo deaf; while :; do sleep 1; done")
        await read_task(2, wait_ms=20_000)
        assert str((await kill_task(2)).content).startswith("Killed background task 2 (SIGKILL, ")

    run(kill())


def test_a_task_whose_shell_has_ended_runs_as_long_as_its_children_do(tmp_path: Any) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def leave() -> None:
        await begin_task(f"( read line < {gate}; echo late; sleep 600 ) & echo early")
        await _tasks.find("", 1).process.wait()
        gate.write_text("go\n")
        text = ""
        while "late" not in text:
            result = await read_task(1, wait_ms=20_000)
            text += str(result.content).partition("[task 1: ")[0]
        assert text == "early\nlate\n"
        assert "[task 1: exited 0 after " in str(result.content)
        assert "children still run" in str(result.content)
        assert facts(result)["running"]
        assert str((await kill_task(1)).content).startswith("Killed")

    run(leave())


@pytest.mark.parametrize("tool", [read_task, kill_task], ids=["ReadBgOutput", "KillBgTask"])
def test_an_unknown_task_is_an_error_with_the_ids_that_exist(tool: Any) -> None:
    """ReadBgOutput: an unknown id is an error with the ids that exist."""

    async def ask() -> None:
        with pytest.raises(ToolError, match=r"no background task 7\. Tasks: none\."):
            await tool(7)
        await begin_task("true")
        await begin_task("true")
        with pytest.raises(ToolError, match=r"no background task 7\. Tasks: 1, 2\."):
            await tool(7)

    run(ask())


def test_the_last_hundred_that_have_ended_stay_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    """ReadBgOutput: the last hundred tasks that have ended stay readable."""
    monkeypatch.setattr(_tasks, "ENDED_KEPT", 3)

    async def many() -> None:
        for number in range(1, 7):
            await begin_task(f"echo {number}")
            await _tasks.find("", number).process.wait_gone()
            while len(tasks := list_tasks().structured["tasks"]) > 3 or tasks[-1]["running"]:
                await asyncio.sleep(0.01)
        assert [task["task_id"] for task in list_tasks().structured["tasks"]] == [4, 5, 6]
        assert str((await read_task(4)).content).startswith("4\n[task 4: exited 0")

    run(many())


def test_a_task_in_the_list_is_cut_to_one_line() -> None:
    """ListBgTasks: a task is one line: id, state, run time and the command, cut at 80 characters."""

    async def listed() -> str:
        await begin_task("sleep 60\n# " + "long " * 100)
        return str(list_tasks().content)

    text = run(listed())
    assert "\n" not in text
    assert text.endswith("…")
    assert len(text.partition("s  ")[2]) == 80
