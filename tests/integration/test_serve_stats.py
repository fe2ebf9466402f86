"""``fastrpc serve --stats``: a table on standard error at the end and on SIGUSR1, and answers as ever."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.child_processes import is_alive
from support.http_client import TOKEN, Serving, children
from support.protocol import tool_call as call
from support.stdio import Process, no_frame_is_torn, serve
from support.waiting import SECONDS, eventually

TOOLS = """
import sys
from fastrpc import Server, ToolError

app = Server("counted")

@app.tool(run="inline")
def echo(text: str) -> str:
    if text == "no":
        raise ToolError("no")
    return text

COLD
"""
COLD = """
import asyncio, os, signal, subprocess, time
from fastrpc.processes import run

@app.tool
async def cold(seconds: float = 0) -> str:
    await asyncio.sleep(seconds)
    return str(os.getpid())

@app.tool(run="thread")
def slow(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"

ASK = "from signal import *; print(getsignal(SIGUSR1).name, pthread_sigmask(SIG_BLOCK, []))"

@app.tool(run="thread")
def disposition(how: str) -> str:
    if how == "subprocess":
        return subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True).stdout.strip()
    child = os.fork()
    if child == 0:
        time.sleep(30)
    os.kill(child, signal.SIGUSR1)
    return str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

@app.tool
async def of_a_program() -> str:
    return (await run([sys.executable, "-c", ASK])).output.head.decode().strip()
"""
WARM = TOOLS.replace("COLD", COLD)
FAST = TOOLS.replace("COLD", "")


def tables(text: str) -> list[dict[str, list[str]]]:
    """The tables that were printed: the cells of each row by name."""
    found: list[dict[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("fastrpc: calls"):
            found.append({"": [line]})
        elif re.match(r"(tool|resource|prompt) ", line):
            cells = line.split()
            found[-1][cells[1]] = cells
    return found


def await_table(server: Any, count: int) -> dict[str, list[str]]:
    """The table with this number, once a row of `echo` is there, which is always the last or only one."""
    eventually(lambda: len(tables(server.stderr)) >= count and "echo" in tables(server.stderr)[count - 1])
    return tables(server.stderr)[count - 1]


def count_echoes(server: Process, first_id: int, count: int) -> None:
    server.send_message(*(call(first_id + at, "echo", text="x") for at in range(count)))
    assert [answer["id"] for answer in server.answers(count)] == list(range(first_id, first_id + count))


def test_the_end_of_input_prints_the_table_to_standard_error_alone() -> None:
    with serve(FAST, "--stats") as server:
        server.initialize()
        count_echoes(server, 100, 20)
        assert server.call("echo", text="no")["isError"]
        assert server.request("tools/call", {"name": "nothing", "arguments": {}})["error"]
        server.close_stdin()
        assert server.rest() == b""
        assert server.wait() == 0
        (table,) = tables(server.stderr)
        assert table[""] == [f"fastrpc: calls: 22 (process {server.pid})"]
        assert table["echo"][2:4] == ["21", "1"]
        assert table["echo"][-2:] == ["1", "tool_error"]
        assert table["(unknown)"][2:4] == ["1", "1"]


def test_without_the_option_nothing_is_printed_and_the_signal_ends_the_process() -> None:
    with serve(FAST) as server:
        server.initialize()
        count_echoes(server, 100, 2)
        server.signal(signal.SIGUSR1)
        assert server.wait() == -signal.SIGUSR1
        assert server.stderr == ""


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("source", [FAST, WARM], ids=["before the loop", "in the loop"])
def test_a_signal_that_ends_the_server_prints_the_table_too(source: str, ending: int) -> None:
    with serve(source, "--stats") as server:
        server.initialize()
        count_echoes(server, 100, 3)
        server.signal(ending)
        assert server.wait() == 0
        assert tables(server.stderr)[-1]["echo"][2] == "3"


@pytest.mark.parametrize("source", [FAST, WARM], ids=["before the loop", "in the loop"])
def test_sigusr1_prints_a_table_and_the_server_goes_on(source: str) -> None:
    with serve(source, "--stats") as server:
        server.initialize()
        if source is WARM:
            server.call("cold")
        count_echoes(server, 100, 5)
        server.signal(signal.SIGUSR1)
        assert await_table(server, 1)["echo"][2] == "5"
        count_echoes(server, 200, 7)
        server.signal(signal.SIGUSR1)
        assert await_table(server, 2)["echo"][2] == "12"
        server.close_stdin()
        assert server.wait() == 0
        assert await_table(server, 3)["echo"][2] == "12"
        assert "Traceback" not in server.stderr


def test_sigusr1_before_any_message_prints_that_there_was_no_call_and_begins_no_loop() -> None:
    with serve(FAST, "--stats", environment={"PYTHONPROFILEIMPORTTIME": "1"}) as server:
        server.initialize("2025-11-25")
        server.signal(signal.SIGUSR1)
        eventually(lambda: f"fastrpc: calls so far: 0 (process {server.pid})\n" in server.stderr)
        count_echoes(server, 100, 2)
        server.close_stdin()
        assert server.wait() == 0
        assert "| fastrpc.telemetry.statistics\n" in server.stderr
        assert "| asyncio\n" not in server.stderr


@pytest.mark.parametrize("source", [FAST, WARM], ids=["before the loop", "in the loop"])
def test_a_storm_of_signals_tears_no_frame(source: str) -> None:
    with serve(source, "--stats") as server:
        server.initialize()
        if source is WARM:
            server.call("cold")
        no_frame_is_torn(server, signal.SIGUSR1)
        server.close_stdin()
        assert server.wait() == 0
        assert tables(server.stderr)[-1]["echo"][2] == "200"


@pytest.mark.parametrize("tool", ["cold", "slow"])
def test_calls_that_the_end_cancels_are_counted(tool: str) -> None:
    with serve(WARM, "--stats") as server:
        server.initialize()
        server.call("echo", text="x")
        server.ask("tools/call", {"name": tool, "arguments": {"seconds": 30}})
        server.call("echo", text="x")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        (table,) = tables(server.stderr)
        assert table["echo"][2] == "2"
        assert table[tool][-2:] == ["1", "cancelled"]


def test_programs_and_forked_children_take_the_signal_as_others_do() -> None:
    with serve(WARM, "--stats") as server:
        server.initialize()
        usual = "SIG_DFL set()"
        assert server.call("disposition", how="subprocess")["content"][0]["text"] == usual
        assert server.call("of_a_program")["content"][0]["text"] == usual
        assert server.call("disposition", how="fork")["content"][0]["text"] == str(-signal.SIGUSR1)
        assert tables(server.stderr) == []  # the child's signal was not the server's


def test_an_ignored_signal_is_taken_all_the_same_and_not_inherited() -> None:
    def ignore() -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    with serve(WARM, "--stats", preexec_fn=ignore) as server:
        server.initialize()
        server.call("echo", text="x")
        assert server.call("disposition", how="subprocess")["content"][0]["text"] == "SIG_DFL set()"
        server.signal(signal.SIGUSR1)
        assert await_table(server, 1)["echo"][2] == "1"


def test_standard_error_without_a_reader_does_not_hold_up_the_end(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(FAST)
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, bytes(65536))
    except BlockingIOError:
        os.set_blocking(write, True)
    process = subprocess.Popen(
        [sys.executable, "-m", "fastrpc", "serve", "--stats", "server.py"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=write,
    )
    os.close(write)
    try:
        out, _ = process.communicate(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', timeout=SECONDS)
        assert b'"result"' in out
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
        os.close(read)


SCRIPT = """
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: print("its own", file=sys.stderr))
app.run(stats=True)
os.kill(os.getpid(), signal.SIGUSR1)
print("over", file=sys.stderr)
"""


def test_a_script_that_runs_its_server_can_ask_for_them_too(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(FAST + SCRIPT)
    with serve(command=[sys.executable, str(tmp_path / "script.py")]) as server:
        server.initialize()
        count_echoes(server, 100, 4)
        server.signal(signal.SIGUSR1)
        assert await_table(server, 1)["echo"][2] == "4"
        server.close_stdin()
        assert server.wait() == 0
        assert len(tables(server.stderr)) == 2
        assert server.stderr.count("its own") == 1
        assert server.stderr.endswith("its own\nover\n")


# --- over HTTP --------------------------------------------------------------------------------------------


def serving(folder: Path, *options: str) -> Serving:
    (folder / "tools.py").write_text(WARM)
    return Serving(
        "serve", "tools.py", "--http", "127.0.0.1:0", "--stats", *options, folder=folder, FASTRPC_TOKEN=TOKEN
    )


def test_over_http_the_signal_and_the_end_print_the_table(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for _ in range(5):
            assert server.call("echo", text="x") == "x"
        os.kill(server.pid, signal.SIGUSR1)
        assert await_table(server, 1)["echo"][2] == "5"
        assert server.session().call("echo", text="x").text == "x"
        assert server.call("cold") == str(server.pid)
        assert server.stop() == 0
        table = tables(server.stderr)[-1]
        assert (table["echo"][2], table["cold"][2]) == ("6", "1")
        assert server.stdout == ""


def test_each_worker_prints_its_own_when_the_parent_or_itself_gets_the_signal(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2") as server:
        for _ in range(10):
            server.call("echo", text="x")
        workers = children(server.pid)
        assert len(workers) == 2
        os.kill(server.pid, signal.SIGUSR1)
        eventually(lambda: {printed_by(table) for table in tables(server.stderr)} == set(workers))
        eventually(lambda: sum(calls_of(table) for table in tables(server.stderr)) == 10)
        os.kill(workers[0], signal.SIGUSR1)
        eventually(lambda: [printed_by(table) for table in tables(server.stderr)].count(workers[0]) == 2)
        assert all(is_alive(worker) for worker in workers)
        assert children(server.pid) == workers
        assert server.stop() == 0
        ends = tables(server.stderr)[-2:]
        assert {printed_by(table) for table in ends} == set(workers)
        assert sum(calls_of(table) for table in ends) == 10


def test_a_worker_that_still_loads_its_tools_survives_the_signal(tmp_path: Path) -> None:
    early = "import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)\nos.kill(os.getppid(), signal.SIGUSR1)\n"
    (tmp_path / "tools.py").write_text(early + WARM)
    options = ("--http", "127.0.0.1:0", "--stats", "--workers", "2")
    with Serving("serve", "tools.py", *options, folder=tmp_path, FASTRPC_TOKEN=TOKEN) as server:
        assert server.call("echo", text="x") == "x"
        assert server.stop() == 0
        assert "ended by" not in server.stderr


def printed_by(table: dict[str, list[str]]) -> int:
    match = re.search(r"\(process (\d+)\)", table[""][0])
    assert match
    return int(match[1])


def calls_of(table: dict[str, list[str]]) -> int:
    match = re.search(r": (\d+) \(", table[""][0])
    assert match
    return int(match[1])


# --- observers --------------------------------------------------------------------------------------------

OBSERVED = """
@app.observe
def note(records):
    with open("seen", "a") as file:
        file.writelines(record.name + "\\n" for record in records)
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_observers_get_the_last_records_when_serving_over_http_ends(tmp_path: Path, workers: str) -> None:
    (tmp_path / "tools.py").write_text(FAST + OBSERVED)
    options = ("--http", "127.0.0.1:0", "--workers", workers)
    with Serving("serve", "tools.py", *options, folder=tmp_path, FASTRPC_TOKEN=TOKEN) as server:
        server.call("echo", text="x")
        assert server.stop() == 0
    assert (tmp_path / "seen").read_text() == "echo\n"
