"""The stdio transport, as promised about processes: real ones, over real descriptors of every kind."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from support.protocol import message
from support.protocol import tool_call as call
from support.stdio import SECONDS, decode, encode, no_frame_is_torn, serve
from support.waiting import eventually

SERVER = """
import asyncio
import ctypes
import os
import sys
import threading
import time
import warnings

from fastrpc import Context, Server

app = Server("process")


@app.tool(run="inline")
def echo(text: str) -> str:
    return text


@app.tool
def cold(text: str) -> str:
    return text


@app.tool
async def sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"


@app.tool(run="thread")
def block(seconds: float) -> str:
    time.sleep(seconds)
    return "blocked"


@app.tool
async def noisy() -> str:
    print("print")
    sys.stdout.flush()
    os.write(1, b"os.write\\n")
    libc = ctypes.CDLL(None)
    libc.printf(b"printf\\n")
    libc.fflush(None)
    warnings.warn("warning")
    os.system("echo child")
    return "noisy"


@app.tool
async def noisy_in_buffers() -> str:
    print("print")
    ctypes.CDLL(None).printf(b"printf\\n")
    return "noisy"


@app.tool(run="inline")
def read_stdin() -> str:
    return repr(sys.stdin.readline())
"""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


def ids(lines: bytes) -> list[Any]:
    return [decode(line)["id"] for line in lines.splitlines()]


# --- the end of the input -----------------------------------------------------------------------------


@pytest.mark.alone
def test_closing_stdin_while_idle_ends_the_server_at_once_with_exit_code_0() -> None:
    for warm in (False, True):
        with serve(SERVER) as server:
            server.initialize()
            if warm:
                server.call("cold", text="x")
            began = time.monotonic()
            server.close_stdin()
            assert server.wait() == 0
            assert time.monotonic() - began <= 0.5
            assert server.stderr == ""


@pytest.mark.alone
@pytest.mark.parametrize("tool", ["sleep", "block"])
def test_closing_stdin_with_a_call_that_does_not_end_takes_at_most_1_5_seconds(tool: str) -> None:
    with serve(SERVER) as server:
        server.initialize()
        server.ask("tools/call", {"name": tool, "arguments": {"seconds": 60}})
        server.ask("tools/call", {"name": "sleep", "arguments": {"seconds": 60}})
        server.request("ping")
        began = time.monotonic()
        server.close_stdin()
        assert server.wait() == 0
        assert time.monotonic() - began <= 1.5
        assert "Fatal" not in server.stderr


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 21, 34, 64])
@pytest.mark.parametrize("source", ["pipe", "file"])
def test_every_call_that_was_sent_before_the_end_is_answered(count: int, source: str, tmp_path: Any) -> None:
    tools = ["echo", "cold", "sleep", "block"]
    messages = [INITIALIZE]
    for number in range(1, count + 1):
        tool = tools[number % 4]
        messages.append(call(number, tool, **({"seconds": 0.2} if number % 4 > 1 else {"text": "x"})))
    patient = ("--drain-seconds", "60")  # a busy machine may take longer than the second that is usual
    data = b"".join(map(encode, messages))
    if source == "file":
        (tmp_path / "input").write_bytes(data)
        with open(tmp_path / "input", "rb") as file, serve(SERVER, *patient, stdin=file) as server:
            answered = ids(server.rest())
            assert server.wait() == 0
    else:
        with serve(SERVER, *patient) as server:
            server.send(data)
            server.close_stdin()
            answered = ids(server.rest())
            assert server.wait() == 0
    assert sorted(answered) == list(range(count + 1))


def test_a_file_as_input_gives_calls_all_the_time_they_need(tmp_path: Any) -> None:
    (tmp_path / "input").write_bytes(encode(INITIALIZE) + encode(call(1, "sleep", seconds=1.6)))
    with open(tmp_path / "input", "rb") as file, serve(SERVER, stdin=file) as server:
        assert ids(server.rest()) == [0, 1]
        assert server.wait() == 0


def test_drain_seconds_is_how_long_calls_may_take_at_the_end() -> None:
    with serve(SERVER, "--drain-seconds", "30") as server:
        server.send_message(INITIALIZE, call(1, "sleep", seconds=1.5))
        server.close_stdin()
        assert ids(server.rest()) == [0, 1]
    with serve(SERVER, "--drain-seconds", "0.1") as server:
        server.send_message(INITIALIZE, call(1, "sleep", seconds=60))
        server.close_stdin()
        assert ids(server.rest()) == [0]
        assert server.wait() == 0


def test_a_last_line_without_a_newline_is_served() -> None:
    with serve(SERVER) as server:
        server.send(encode(INITIALIZE) + encode(call(1, "echo", text="last"))[:-1])
        server.close_stdin()
        assert ids(server.rest()) == [0, 1]


# --- the hand-over to the loop ------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["cold", "sleep"])
def test_the_hand_over_to_the_loop_loses_and_reorders_nothing(first: str) -> None:
    arguments = {"text": "x"} if first == "cold" else {"seconds": 0}
    messages = [INITIALIZE, *(call(number, "echo", text="é" * number) for number in range(1, 20))]
    messages.insert(8, call("first", first, **arguments))
    data = b"".join(map(encode, messages))
    with serve(SERVER) as server:
        for at in range(len(data)):  # byte by byte, and the hand-over is in the middle
            server.send(data[at : at + 1])
        answers = server.answers(len(messages))
    assert [answer["id"] for answer in answers if answer["id"] != "first"] == list(range(20))
    assert {answer["id"] for answer in answers} == {*range(20), "first"}
    for answer in answers:
        if answer["id"] not in (0, "first"):
            assert answer["result"]["content"][0]["text"] == "é" * answer["id"]


def test_lines_after_the_call_that_needs_the_loop_are_served_in_the_same_chunk() -> None:
    source = (
        SERVER
        + """
gate = asyncio.Event()


@app.tool
async def hold() -> str:
    await gate.wait()
    return "held"


@app.tool
async def let_go() -> None:
    gate.set()
"""
    )
    with serve(source) as server:
        server.send_message(INITIALIZE, call("h", "hold"), *(call(n, "echo", text="x") for n in range(1, 50)))
        assert [answer["id"] for answer in server.answers(50)] == [0, *range(1, 50)]
        server.send_message(call("l", "let_go"))
        assert {answer["id"] for answer in server.answers(2)} == {"h", "l"}


def test_the_first_messages_are_answered_before_asyncio_is_imported() -> None:
    source = (
        SERVER
        + """
@app.tool(run="inline")
def loaded() -> str:
    return " ".join(name for name in ("uvloop", "orjson", "msgspec") if name in sys.modules)
"""
    )
    with serve(
        source.replace("import asyncio\n", "").replace("await asyncio.sleep(seconds)", "pass")
    ) as server:
        server.send_message(
            INITIALIZE, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, call(2, "loaded")
        )
        answers = server.answers(3)
        assert answers[2]["result"]["content"][0]["text"] == ""
        server.call("cold", text="x")
        assert "uvloop" in server.call("loaded")["content"][0]["text"]


# --- signals and broken pipes -------------------------------------------------------------------------


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("state", ["starting", "idle", "in the loop", "in a call"])
def test_one_signal_ends_the_server_with_exit_code_0(number: int, state: str) -> None:
    with serve(SERVER) as server:
        if state == "starting":
            server.request("ping")
        else:
            server.initialize()
        if state == "in the loop":
            server.call("cold", text="x")
        if state == "in a call":
            server.ask("tools/call", {"name": "block", "arguments": {"seconds": 60}})
            server.ask("tools/call", {"name": "sleep", "arguments": {"seconds": 60}})
            server.request("ping")
        began = time.monotonic()
        server.signal(number)
        assert server.wait() == 0
        assert time.monotonic() - began <= 1.5


@pytest.mark.parametrize("warm", [False, True])
def test_a_reader_that_has_gone_ends_the_server_cleanly(warm: bool) -> None:
    with serve(SERVER) as server:
        server.initialize()
        if warm:
            server.call("cold", text="x")
        server.close_stdout()
        server.send_message(call(1, "echo", text="x"))
        assert server.wait() == 0
        assert "Traceback" not in server.stderr


@pytest.mark.alone
def test_a_signal_ends_a_server_whose_output_is_full() -> None:
    with serve(SERVER) as server:
        server.initialize()
        with contextlib.suppress(AssertionError):
            for number in range(40):
                server.send(encode(call(number, "echo", text="x" * 100_000)), seconds=0.3, reading=False)
        server.signal(signal.SIGTERM)
        began = time.monotonic()
        while server.returncode is None and time.monotonic() - began < 10:
            time.sleep(0.01)
        assert server.returncode == 0
        assert time.monotonic() - began <= 1.5


# --- back-pressure ------------------------------------------------------------------------------------


@pytest.mark.parametrize("warm", [False, True])
def test_a_reader_that_stalls_stops_the_reading_and_loses_nothing(warm: bool) -> None:
    with serve(SERVER) as server:
        server.initialize()
        if warm:
            server.call("cold", text="x")
        lines = [encode(call(number, "echo", text="x" * 50_000)) for number in range(200)]
        sent = 0
        with contextlib.suppress(AssertionError):
            for sent, line in enumerate(lines):  # noqa: B007
                server.send(line, seconds=0.5, reading=False)
        assert sent < 150, "the server took everything though nobody read its answers"
        # The line that stalled went in part; the rest of it follows.
        with open(f"/proc/{server.pid}/statm") as file:
            pages = int(file.read().split()[1])
        assert pages * os.sysconf("SC_PAGESIZE") < 80 * 1024 * 1024
        for answer in server.answers(sent):
            assert len(answer["result"]["content"][0]["text"]) == 50_000


# --- what is standard input, what is standard output --------------------------------------------------


def converse(read: Any, write: Any) -> list[Any]:
    """A short conversation over our ends; returns the answers."""
    write(
        encode(INITIALIZE) + encode(call(1, "echo", text="inline")) + encode(call(2, "cold", text="thread"))
    )
    data = b""
    while data.count(b"\n") < 3:
        data += read()
    return [json.loads(line) for line in data.splitlines()]


def assert_conversation(answers: list[Any]) -> None:
    assert [answer["id"] for answer in answers] == [0, 1, 2]
    assert answers[2]["result"]["content"][0]["text"] == "thread"


def test_a_socket_as_both_streams_is_given_back_in_blocking_mode() -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(SECONDS)
    with ours, theirs, serve(SERVER, stdin=theirs, stdout=theirs) as server:
        assert_conversation(converse(lambda: ours.recv(65536), ours.sendall))
        ours.shutdown(socket.SHUT_WR)
        assert server.wait() == 0
        assert theirs.gettimeout() is None
        assert os.get_blocking(theirs.fileno())


@pytest.mark.parametrize("end", ["close", "kill"])
def test_pipes_are_left_in_blocking_mode_even_by_a_killed_server(end: str) -> None:
    input_read, input_write = os.pipe()
    output_read, output_write = os.pipe()
    with serve(SERVER, stdin=input_read, stdout=output_write) as server:
        assert_conversation(
            converse(lambda: os.read(output_read, 65536), lambda data: os.write(input_write, data))
        )
        assert os.get_blocking(input_read)
        assert os.get_blocking(output_write)
        if end == "kill":
            server.kill()
        else:
            os.close(input_write)
        server.wait()
        assert os.get_blocking(input_read)
        assert os.get_blocking(output_write)
    for descriptor in (input_read, output_read, output_write, *([input_write] if end == "kill" else [])):
        os.close(descriptor)


def test_a_terminal_as_both_streams_works_and_keeps_its_mode() -> None:
    leader, follower = pty.openpty()
    import termios

    modes = termios.tcgetattr(follower)
    modes[1] &= ~termios.OPOST
    modes[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(follower, termios.TCSANOW, modes)
    with serve(SERVER, stdin=follower, stdout=follower, environment={"FASTRPC_LOG_LEVEL": "error"}) as server:
        assert_conversation(converse(lambda: os.read(leader, 65536), lambda data: os.write(leader, data)))
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert os.get_blocking(follower)
    os.close(leader)
    os.close(follower)


def test_files_as_both_streams(tmp_path: Any) -> None:
    (tmp_path / "in").write_bytes(encode(INITIALIZE) + encode(call(1, "cold", text="x")))
    with (
        open(tmp_path / "in", "rb") as source,
        open(tmp_path / "out", "wb") as sink,
        serve(SERVER, stdin=source, stdout=sink) as server,
    ):
        assert server.wait() == 0
    assert ids((tmp_path / "out").read_bytes()) == [0, 1]


def test_dev_null_as_input_is_an_empty_input() -> None:
    with serve(SERVER, stdin=subprocess.DEVNULL) as server:
        assert server.rest() == b""
        assert server.wait() == 0


def run_in_bash(script: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", "-c", script], capture_output=True, timeout=SECONDS, **options)


@pytest.mark.parametrize("closed", [0, 1])
def test_a_closed_standard_descriptor_is_a_users_mistake(closed: int) -> None:
    script = f"exec {closed}{'<' if closed == 0 else '>'}&-; exec {sys.executable} -m fastrpc serve"
    done = run_in_bash(script, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"standard" in done.stderr


def test_closed_standard_error_harms_no_one() -> None:
    script = (
        f"exec 2>&-; exec {sys.executable} -c 'import sys; from fastrpc import Server; Server(\"x\").run()'"
    )
    done = run_in_bash(script, input=encode(INITIALIZE))
    assert ids(done.stdout) == [0]
    assert done.returncode == 0


# --- descriptor 1 is the protocol's ----------------------------------------------------------------------


def test_nothing_but_protocol_reaches_stdout() -> None:
    with serve(SERVER, environment={"PYTHONWARNINGS": None}) as server:
        server.initialize()
        for _ in range(3):
            assert server.call("noisy")["content"][0]["text"] == "noisy"
        server.close_stdin()
        assert server.rest() == b""
        for word in ("print", "os.write", "printf", "warning", "child"):
            assert word in server.stderr


def test_what_is_still_buffered_at_the_end_does_not_reach_stdout_either() -> None:
    with serve(SERVER, environment={"PYTHONUNBUFFERED": ""}) as server:
        server.initialize()
        assert server.call("noisy_in_buffers")["content"][0]["text"] == "noisy"
        server.close_stdin()
        assert server.rest() == b""
        assert server.wait() == 0
        for word in ("print", "printf"):
            assert word in server.stderr.split()


def test_a_tool_that_reads_standard_input_gets_nothing_of_the_wire() -> None:
    with serve(SERVER) as server:
        server.initialize()
        server.send_message(call(1, "read_stdin"), call(2, "echo", text="still here"))
        answers = server.answers(2)
        assert answers[0]["result"]["content"][0]["text"] == "''"
        assert answers[1]["result"]["content"][0]["text"] == "still here"


# --- load ---------------------------------------------------------------------------------------------


@pytest.mark.alone
def test_eight_blocking_tools_do_not_delay_a_probe() -> None:
    with serve(SERVER) as server:
        server.initialize()
        server.call("cold", text="warm")
        for number in range(8):
            server.send_message(call(f"block {number}", "block", seconds=0.7))
        delays = []
        for number in range(200):
            began = time.monotonic()
            server.send_message(call(number, "echo", text="probe"))
            assert server.answer()["id"] == number
            delays.append(time.monotonic() - began)
        assert sorted(delays)[int(len(delays) * 0.99)] < 0.05
        assert {answer["id"] for answer in server.answers(8)} == {f"block {number}" for number in range(8)}


def test_ten_thousand_calls_in_flight_are_all_answered() -> None:
    with serve(SERVER) as server:
        server.initialize()
        server.send(b"".join(encode(call(number, "sleep", seconds=0.3)) for number in range(10_000)))
        assert {answer["id"] for answer in server.answers(10_000, seconds=60)} == set(range(10_000))


def test_short_writes_tear_no_frame() -> None:
    """A pipe of one page takes every answer in pieces."""
    import fcntl

    output_read, output_write = os.pipe()
    fcntl.fcntl(output_write, 1031, 4096)  # F_SETPIPE_SZ
    with serve(SERVER, stdout=output_write) as server:
        os.close(output_write)
        server.send_message(INITIALIZE)
        text = "".join(chr(32 + at % 90) for at in range(30_000))
        lines = b"".join(encode(call(number, "echo", text=text)) for number in range(1, 21))
        sender = threading.Thread(target=server.send, args=(lines,))
        sender.start()
        data = b""
        while data.count(b"\n") < 21:
            data += os.read(output_read, 777)
        sender.join()
        answers = [decode(line) for line in data.splitlines()]
        assert [answer["id"] for answer in answers] == list(range(21))
        assert all(answer["result"]["content"][0]["text"] == text for answer in answers[1:])
    os.close(output_read)


@pytest.mark.parametrize("warm", [False, True])
def test_signals_that_interrupt_reads_and_writes_tear_no_frame(warm: bool) -> None:
    source = SERVER + "\nimport signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\n"
    with serve(source) as server:
        server.initialize()
        if warm:
            server.call("cold", text="x")
        no_frame_is_torn(server, signal.SIGUSR1)


def test_a_client_that_asks_without_a_pause_does_not_starve_the_loop() -> None:
    source = (
        SERVER
        + """
ticks = 0


async def tick() -> None:
    global ticks
    while True:
        await asyncio.sleep(0.005)
        ticks += 1


ticker = None


@app.tool
async def start_ticking() -> str:
    global ticker
    ticker = asyncio.create_task(tick())
    return "started"


@app.tool(run="inline")
def count() -> str:
    return str(ticks)
"""
    )
    with serve(source) as server:
        server.initialize()
        server.call("start_ticking")
        calls = ticks = 0
        deadline = time.monotonic() + SECONDS
        while calls < 100 or ticks <= 20:  # each answer is asked for at once, as agent loops do
            assert time.monotonic() < deadline, f"{ticks} ticks while {calls} calls were answered"
            server.send(encode(call(calls, "count")))
            ticks = int(server.answer()["result"]["content"][0]["text"])
            calls += 1


@pytest.mark.parametrize("given", [64 * 1024, 512 * 1024])
def test_many_answers_at_once_widen_the_pipe_that_takes_them_unless_it_is_wider(given: int) -> None:
    """Else client and server would wait for each other after every 64 KiB, on two cores most of the time."""
    import fcntl

    source = "from fastrpc import Server\n\napp = Server('s')\n\n@app.tool(run='inline')\n"
    source += "def fill(size: int) -> str:\n    return 'x' * size\n\napp.run()\n"
    output_read, output_write = os.pipe()
    fcntl.fcntl(output_write, 1031, given)  # F_SETPIPE_SZ
    with serve(source, stdout=output_write) as server:
        os.close(output_write)
        server.send(
            encode(INITIALIZE) + b"".join(encode(call(id, "fill", size=9000)) for id in range(1, 101))
        )
        wide = max(given, 256 * 1024)
        eventually(lambda: fcntl.fcntl(output_read, 1032) == wide, SECONDS)  # F_GETPIPE_SZ
        assert server.stdin is not None
        assert fcntl.fcntl(server.stdin, 1032) == 64 * 1024
        data = b""
        while data.count(b"\n") < 101:
            data += os.read(output_read, 65536)
        assert [decode(line)["id"] for line in data.splitlines()] == list(range(101))
        assert fcntl.fcntl(output_read, 1032) == wide
    os.close(output_read)


# --- a guard that decides later -----------------------------------------------------------------------


DEFERRING = """
import asyncio

from fastrpc import Server

app = Server("deferring")


@app.tool(effect="write")
def act() -> str:
    \"\"\"Act.\"\"\"
    return "acted"


app.guard(lambda call: asyncio.sleep(10))
app.run()
"""


def test_the_decision_about_a_call_that_is_cancelled_before_there_is_a_loop_is_closed() -> None:
    with serve(DEFERRING) as server:
        server.initialize("2025-03-26")
        server.send_message([call(2, "act"), message("notifications/cancelled", {"requestId": 2})])
        server.close_stdin()
        assert server.wait() == 0
        assert server.rest() == b""
        assert server.stderr == ""
