"""The shell tools in the real server: cancellation, the end of input and the death of the server."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.child_processes import gone
from support.stdio import Process, serve
from support.waiting import eventually


@pytest.fixture
def server(tmp_path: Any) -> Iterator[Process]:
    with serve(environment={"FASTRPC_STATE_DIR": str(tmp_path / "state")}, folder=str(tmp_path)) as process:
        process.initialize()
        yield process


def text_of(result: Any) -> str:
    return str(result["content"][0]["text"])


def pids(path: str, count: int) -> list[int]:
    """The process ids that a command has written to a file."""

    def written() -> list[str]:
        if not os.path.exists(path):
            return []
        with open(path) as file:
            found = file.read().split()
        return found if len(found) == count else []

    return [int(pid) for pid in eventually(written)]


RUNNING = "setsid sleep 60 & echo $! > pids; echo $$ >> pids; wait"


def test_a_shell_command_over_the_wire(server: Process) -> None:
    result = server.call("Bash", command="echo سلام; exit 3")
    assert text_of(result) == "سلام\n[exit code 3]"
    assert result["isError"] is True
    assert result["_meta"]["fastrpc/facts"]["exit_code"] == 3
    assert "structuredContent" not in result
    assert server.call("ListBgTasks")["structuredContent"] == {"tasks": []}


def test_a_cancelled_call_is_not_answered_and_its_processes_are_gone(server: Process, tmp_path: Any) -> None:
    """Every tool: the processes of a cancelled call are gone within 2 s."""
    request = server.ask("tools/call", {"name": "Bash", "arguments": {"command": RUNNING}})
    found = pids(str(tmp_path / "pids"), 2)
    server.notify("notifications/cancelled", {"requestId": request})
    for pid in found:
        gone(pid)
    assert server.request("ping")["result"] == {}


@pytest.mark.alone
@pytest.mark.parametrize("end", ["end of input", "SIGTERM", "SIGKILL"])
def test_no_task_and_no_call_outlives_the_server(server: Process, tmp_path: Any, end: str) -> None:
    """KillBgTask: no task outlives the server, however that ends."""
    server.call(
        "BackgroundBash", command="setsid sleep 60 & echo $! > task; echo $$ >> task; trap '' TERM; wait"
    )
    server.call("Bash", command="nohup sleep 60 >/dev/null 2>&1 & echo $! > left")
    server.ask("tools/call", {"name": "Bash", "arguments": {"command": RUNNING}})
    found = [
        *pids(str(tmp_path / "task"), 2),
        *pids(str(tmp_path / "left"), 1),
        *pids(str(tmp_path / "pids"), 2),
    ]
    if end == "end of input":
        server.close_stdin()
    else:
        server.signal(signal.SIGTERM if end == "SIGTERM" else signal.SIGKILL)
    began = time.monotonic()
    code = server.wait()
    assert code == (-signal.SIGKILL if end == "SIGKILL" else 0)
    assert time.monotonic() - began < 2.0  # C1: 1.5 s, of which 1 s is the drain
    for pid in found:
        gone(pid)


def test_output_comes_as_progress_before_the_result(server: Process, tmp_path: Any) -> None:
    """Every tool: what a command prints comes as progress, if the call has a `progressToken`."""
    params = {
        "name": "Bash",
        "arguments": {"command": "echo one; until [ -e heard ]; do sleep 0.01; done; echo two"},
        "_meta": {"progressToken": "p"},
    }
    request = server.ask("tools/call", params)
    report = server.answer()
    assert report["method"] == "notifications/progress"
    assert report["params"] == {"progressToken": "p", "progress": 4, "message": "one\n"}
    (tmp_path / "heard").touch()
    while (message := server.answer()).get("id") != request:
        assert message["method"] == "notifications/progress"
    assert text_of(message["result"]) == "one\ntwo"


def test_nothing_that_a_command_writes_reaches_the_wire(server: Process) -> None:
    shown = server.call(
        "Bash", command="echo x > /dev/stdout; ls -l /proc/self/fd | grep -c -e socket -e pipe; cat"
    )
    assert text_of(shown) == "x\n2"
    assert server.request("ping")["result"] == {}


@pytest.mark.alone
def test_eight_slow_commands_do_not_delay_a_probe(server: Process) -> None:
    calls = {
        server.ask("tools/call", {"name": "Bash", "arguments": {"command": "sleep 1"}}) for _ in range(8)
    }
    late = []
    while calls:  # G1: p99 below 50 ms
        began = time.monotonic()
        probe = server.ask("ping")
        while (message := server.answer())["id"] != probe:
            calls.discard(message["id"])
        late.append(time.monotonic() - began)
        time.sleep(0.005)
    assert sorted(late)[int(len(late) * 0.99)] < 0.05
