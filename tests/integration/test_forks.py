"""A child process that a tool forks never reads or answers on the server's connections.

It does its own work, its exit code is what it would be elsewhere, signals of its own end it and nothing else,
and it keeps neither pipes nor ports of the server open. Over standard input and output and over HTTP.
"""

from __future__ import annotations

import os
import signal
import socket
import ssl
from typing import Any

import pytest
from support import certificates
from support.child_processes import gone, is_alive
from support.http_client import TOKEN, Serving
from support.stdio import Process, encode, serve

pytestmark = pytest.mark.long

SERVER = """
import asyncio, os, signal, subprocess, sys, time
from concurrent.futures import ProcessPoolExecutor
import multiprocessing
from fastrpc import Context, Server, ToolError

if os.environ.get("WITHOUT"):
    sys.modules["uvloop"] = None

app = Server("forks")
fork = multiprocessing.get_context("fork")

@app.tool(run="inline")
def echo(text: str) -> str:
    return text

@app.tool(run="inline")
def count(path: str) -> str:
    with open(path, "a") as file:
        file.write(".")
    return "counted"

def end(how):
    if how == "exit":
        sys.exit(7)
    if how == "word":
        sys.exit("a word of the child")
    if how == "raise":
        raise ValueError("a failure of the child")
    if how == "refuse":
        raise ToolError("a refusal of the child")
    if how == "exec":
        os.execv("/bin/sh", ["sh", "-c", "exit 9"])
    if how == "_exit":
        os._exit(11)
    if how == "interrupt":
        raise KeyboardInterrupt
    return "returned"

def forks(how):
    pid = os.fork()
    if pid == 0:
        print("the child prints")
        return end(how)
    return str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

@app.tool(run="thread")
def on_thread(how: str) -> str:
    return forks(how)

@app.tool(run="inline")
def inline(how: str) -> str:
    return forks(how)

@app.tool(run="inline")
def inline_with_context(how: str, context: Context) -> str:
    return forks(how)

@app.tool
async def in_loop(how: str) -> str:
    return forks(how)

@app.resource("forks://{how}", run="inline")
def resource(how: str) -> str:
    return forks(how)

@app.tool
async def waits_in_the_child(path: str) -> str:
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.2, lambda: future.done() or future.set_result(None))
    pid = os.fork()
    await future  # the child gives the loop its turn
    if pid == 0:
        open(path, "w").close()
        return "the child goes on"
    for _ in range(1500):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return str(os.waitstatus_to_exitcode(status))
        await asyncio.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "the child did not end"

@app.tool(run="thread")
def stays() -> str:
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    return str(pid)

@app.tool(run="thread")
def stays_without_descriptors() -> str:
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    for descriptor in taken:
        os.close(descriptor)
    return str(pid)

def square(number):
    return number * number

def leave(code):
    sys.exit(code)

def sleep(begun=None):
    if begun is not None:
        begun.set()
    for _ in range(6000):  # a signal that comes just before a sleep is taken behind it, by CPython
        time.sleep(0.01)

def processes():
    child = fork.Process(target=leave, args=(5,))
    child.start()
    child.join()
    stopped = fork.Process(target=sleep)
    stopped.start()
    stopped.terminate()
    stopped.join()
    begun = fork.Event()
    interrupted = fork.Process(target=sleep, args=(begun,))
    interrupted.start()
    begun.wait()
    os.kill(interrupted.pid, signal.SIGINT)
    interrupted.join()
    with ProcessPoolExecutor(2, mp_context=fork) as pool:
        squares = list(pool.map(square, range(4)))
    with fork.Pool(2) as pool:
        squares += pool.map(square, range(4))
    out = subprocess.run(["sh", "-c", "exit 3"], preexec_fn=lambda: None)
    return f"{child.exitcode} {stopped.exitcode} {interrupted.exitcode} {squares} {out.returncode}"

@app.tool(run="thread")
def processes_on_thread() -> str:
    return processes()

@app.tool(run="inline")
def processes_inline() -> str:
    return processes()

@app.tool
async def processes_in_loop() -> str:
    return processes()
"""

CODES = {"exit": 7, "word": 1, "raise": 1, "refuse": 1, "exec": 9, "_exit": 11, "interrupt": 1, "return": 0}
PLACES = ["on_thread", "inline", "inline_with_context", "in_loop"]
EXPECTED = "5 -15 1 [0, 1, 4, 9, 0, 1, 4, 9] 3"
"""What `processes` says: exit codes, also of what a signal has ended, and results."""


@pytest.fixture(params=["uvloop", "asyncio"])
def process(request: pytest.FixtureRequest) -> Any:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    with serve(SERVER, environment={"WITHOUT": "1"} if request.param == "asyncio" else {}) as process:
        process.initialize()
        yield process
        process.close_stdin()
        assert process.rest() == b""  # no child has anything to say, and none keeps the pipe
        assert process.wait() == 0


def text_of(answer: Any) -> Any:
    return answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("place", PLACES)
def test_a_child_that_comes_back_from_its_call_ends_there(process: Process, place: str) -> None:
    for how, code in CODES.items():
        assert text_of(process.request("tools/call", {"name": place, "arguments": {"how": how}})) == str(code)
        for _ in range(8):  # each would be answered by two, by chance
            assert process.call("echo", text=how)["content"][0]["text"] == how
    assert "a word of the child\n" in process.stderr
    assert "a failure of the child" in process.stderr
    assert process.stderr.count("the child prints") >= len(CODES) - 2  # exec and _exit flush nothing


def test_a_resource_that_forks_is_read_once(process: Process) -> None:
    for how, code in CODES.items():
        contents = process.request("resources/read", {"uri": f"forks://{how}"})["result"]["contents"]
        assert contents[0]["text"] == str(code)
        process.request("ping")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", ["exit", "return", "raise"])
def test_calls_that_came_with_the_one_that_forks_run_once(
    process: Process, tmp_path: Any, place: str, how: str
) -> None:
    path = str(tmp_path / "counted")
    calls = [("count", {"path": path})] * 3 + [(place, {"how": how})] + [("count", {"path": path})] * 20
    lines = [
        encode(
            {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": given}}
        )
        for id, (name, given) in enumerate(calls, 100)
    ]
    process.send(b"".join(lines))
    answers = process.answers(len(calls))
    assert sorted(answer["id"] for answer in answers) == list(range(100, 100 + len(calls)))
    assert process.request("ping")["result"] == {}
    with open(path) as file:
        assert file.read() == "." * 23


def test_the_last_call_of_the_input_may_fork() -> None:
    with serve(SERVER) as process:
        process.initialize()
        call = {"name": "inline", "arguments": {"how": "return"}}
        process.send(encode({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call}).rstrip())
        process.close_stdin()
        assert text_of(process.answer()) == "0"
        assert process.rest() == b""
        assert process.wait() == 0


def test_a_child_that_gives_the_loop_its_turn_ends(process: Process, tmp_path: Any) -> None:
    path = str(tmp_path / "path")
    assert process.call("waits_in_the_child", path=path)["content"][0]["text"] == "0"
    assert not os.path.exists(path)


@pytest.mark.parametrize("place", ["processes_on_thread", "processes_inline", "processes_in_loop"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_processes_of_multiprocessing_work_and_end_as_everywhere(process: Process, place: str) -> None:
    for _ in range(2):
        assert process.call(place, seconds=60)["content"][0]["text"] == EXPECTED
        assert process.call("echo", text="after")["content"][0]["text"] == "after"


@pytest.mark.parametrize("tool", ["stays", "stays_without_descriptors"])
def test_a_child_that_stays_keeps_no_pipe_open(tool: str) -> None:
    with serve(SERVER) as process:
        process.initialize()
        pid = int(process.call(tool)["content"][0]["text"])
        try:
            process.close_stdin()
            assert process.rest() == b""  # which ends, although the child goes on
            assert process.wait() == 0
            assert is_alive(pid)
        finally:
            os.kill(pid, signal.SIGKILL)


def test_a_signal_for_a_child_does_not_end_the_server(process: Process) -> None:
    pid = int(process.call("stays")["content"][0]["text"])
    os.kill(pid, signal.SIGTERM)
    gone(pid)
    assert process.call("echo", text="after")["content"][0]["text"] == "after"


# --- over HTTP ----------------------------------------------------------------------------------------


@pytest.fixture(params=["one", "asyncio", "workers"])
def served(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    (tmp_path / "server.py").write_text(SERVER)
    options = ["--workers", "2"] if request.param == "workers" else []
    more = {"WITHOUT": "1"} if request.param == "asyncio" else {}
    with Serving(
        "serve", "server.py", "--http", "127.0.0.1:0", *options, folder=tmp_path, FASTRPC_TOKEN=TOKEN, **more
    ) as server:
        yield server
        assert server.stop() == 0
        assert "takes its place" not in server.stderr


@pytest.mark.parametrize("place", PLACES)
def test_over_http_a_child_that_comes_back_from_its_call_ends_there(served: Serving, place: str) -> None:
    session = served.session()
    for how, code in CODES.items():
        assert served.call(place, how=how) == str(code)
        assert session.call(place, how=how).text == str(code)
        for _ in range(4):
            assert served.call("echo", text=how) == how


def test_over_http_calls_that_came_with_the_one_that_forks_run_once(served: Serving, tmp_path: Any) -> None:
    path = str(tmp_path / "counted")
    for how in ("exit", "return", "raise"):
        requests = b"".join(
            request_of(served, name, given)
            for name, given in [
                ("count", {"path": path}),
                ("inline", {"how": how}),
                ("count", {"path": path}),
            ]
        )
        connection = served.connection()
        for _ in range(2):  # the first makes the head known: the second goes the fast path
            connection.connect()
            connection.sock.sendall(requests)
            data = b""
            while data.count(b"HTTP/1.1 200") < 3 or not data.endswith(b"}"):
                part = connection.sock.recv(65536)
                assert part, data
                data += part
            connection.close()
    with open(path) as file:
        assert file.read() == "." * 12


def request_of(served: Serving, tool: str, arguments: dict[str, Any]) -> bytes:
    from support.http_client import stateless_request

    message, more = stateless_request("tools/call", {"name": tool, "arguments": arguments})
    body = encode(message)
    headers = {**served.headers(**more), "Host": f"127.0.0.1:{served.port}", "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {served.path} HTTP/1.1\r\n{head}\r\n".encode() + body


@pytest.mark.parametrize("place", ["processes_on_thread", "processes_inline", "processes_in_loop"])
def test_over_http_processes_of_multiprocessing_work_and_end_as_everywhere(
    served: Serving, place: str
) -> None:
    assert served.call(place) == EXPECTED
    assert served.call("echo", text="after") == "after"


def test_over_http_a_child_that_stays_keeps_neither_port_nor_connection(served: Serving) -> None:
    connection = served.connection()
    connection.connect()
    connection.sock.sendall(request_of(served, "stays", {}))
    data = b""
    while not data.endswith(b"}"):
        data += connection.sock.recv(65536)
    pid = int(data.rpartition(b'"text":"')[2].partition(b'"')[0])
    try:
        assert is_alive(pid)
        served.kill()
        assert served.process.wait(20) == 0  # the child holds its standard output: that has no end yet
        assert connection.sock.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            served.connection().connect()
    finally:
        os.kill(pid, signal.SIGKILL)


def test_over_tls_a_child_that_stays_keeps_no_handshake(tmp_path: Any) -> None:
    pytest.importorskip("cryptography.x509")
    certificate, key = certificates.for_localhost(tmp_path)
    (tmp_path / "server.py").write_text(SERVER)
    options = ("--http", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key)
    tls = ssl.create_default_context(cafile=certificate)
    with (
        Serving("serve", "server.py", *options, folder=tmp_path, tls=tls, FASTRPC_TOKEN=TOKEN) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=20) as silent,
    ):
        assert server.call("echo", text="before") == "before"  # the silent one was accepted before
        pid = int(server.call("stays"))
        try:
            server.kill()
            assert server.process.wait(20) == 0
            assert is_alive(pid)
            assert silent.recv(1) == b""
        finally:
            os.kill(pid, signal.SIGKILL)
