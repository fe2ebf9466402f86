"""A transport that is written against `fastrpc.transports.base`: served, drained and ended like our own."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastrpc import Context, Server
from fastrpc.errors import UsageError
from fastrpc.transports.base import Connections, Transport
from fastrpc.transports.memory import MemoryTransport

EXAMPLE = Path(__file__).parents[2] / "examples" / "unix_socket.py"
SECONDS = 60.0
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def example() -> Any:
    spec = importlib.util.spec_from_file_location("unix_socket_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line(id: int | None, method: str, **params: Any) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if id is not None:
        message["id"] = id
    return json.dumps(message).encode() + b"\n"


def call(id: int, tool: str, token: str | None = None, **arguments: Any) -> bytes:
    more = {} if token is None else {"_meta": {"progressToken": token}}
    return line(id, "tools/call", name=tool, arguments=arguments, **more)


def text_of(answer: Any) -> str:
    text: str = answer["result"]["content"][0]["text"]
    return text


class Tools:
    """A server whose calls can be held, and the state of them."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.release = asyncio.Event()
        self.began = asyncio.Event()
        self.over = asyncio.Event()
        self.app = app = Server("t", lifespan=self._life)

        @app.tool(run="inline")
        def echo(text: str) -> str:
            return text

        @app.tool
        async def steps(ctx: Context) -> str:
            for step in range(3):
                await ctx.progress(step, total=3)
                await asyncio.sleep(0)
            return "done"

        @app.tool
        async def hold() -> str:
            self.began.set()
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)  # cleaning up takes a turn
                self.log.append("cancelled")
                raise
            finally:
                self.over.set()
            self.log.append("ended")
            return "held"

    @contextlib.asynccontextmanager
    async def _life(self, server: Server) -> AsyncIterator[None]:
        yield
        self.log.append("left")


class Peer:
    """A client of the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def receive(self) -> Any:
        data = await asyncio.wait_for(self.reader.readline(), SECONDS)
        return json.loads(data) if data else None

    async def ask(self, sent: bytes) -> Any:
        self.writer.write(sent)
        return await self.receive()


async def connect(path: str) -> Peer:
    peer = Peer(*await asyncio.open_unix_connection(path, limit=2**26))
    assert (await peer.ask(line(0, "initialize", **HELLO)))["result"]["serverInfo"]["name"] == "t"
    peer.writer.write(line(None, "notifications/initialized"))
    return peer


def conversation(
    talk: Callable[[Tools, str, asyncio.Task[None]], Awaitable[None]], path: Path, **options: Any
) -> Tools:
    """Serve tools over the example's transport while `talk` runs; return them."""

    async def run() -> Tools:
        tools = Tools()
        transport = example().UnixSocket(str(path / "s"))
        serving = asyncio.ensure_future(tools.app.serve(transport, **options))
        while not (path / "s").exists():
            assert not serving.done(), serving.result()
            await asyncio.sleep(0.001)
        try:
            await talk(tools, str(path / "s"), serving)
        finally:
            serving.cancel()
            await asyncio.wait({serving})
        return tools

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


# --- the example, over a real socket ------------------------------------------------------------------


def test_the_example_is_short() -> None:
    assert EXAMPLE.read_text().count("\n") < 80


def test_each_client_has_its_own_conversation(tmp_path: Path) -> None:
    async def talk(tools: Tools, path: str, serving: Any) -> None:
        one, other = await connect(path), await connect(path)
        one.writer.write(call(1, "hold"))
        await tools.began.wait()
        assert text_of(await other.ask(call(1, "echo", text="other"))) == "other"
        tools.release.set()
        assert text_of(await one.receive()) == "held"
        assert [tool["name"] for tool in (await one.ask(line(2, "tools/list")))["result"]["tools"]] == [
            "echo",
            "steps",
            "hold",
        ]

    conversation(talk, tmp_path)


def test_progress_comes_before_the_answer(tmp_path: Path) -> None:
    async def talk(tools: Tools, path: str, serving: Any) -> None:
        peer = await connect(path)
        peer.writer.write(call(1, "steps", token="t"))
        told = [await peer.receive() for _ in range(3)]
        assert [message["params"]["progress"] for message in told] == [0, 1, 2]
        assert text_of(await peer.receive()) == "done"

    conversation(talk, tmp_path)


def test_a_call_can_be_cancelled(tmp_path: Path) -> None:
    async def talk(tools: Tools, path: str, serving: Any) -> None:
        peer = await connect(path)
        peer.writer.write(call(1, "hold"))
        await tools.began.wait()
        peer.writer.write(line(None, "notifications/cancelled", requestId=1))
        await tools.over.wait()
        assert (await peer.ask(line(2, "ping")))["id"] == 2  # and the other has no answer

    assert conversation(talk, tmp_path).log[0] == "cancelled"


def test_messages_come_in_any_parts_and_the_last_needs_no_newline(tmp_path: Path) -> None:
    async def talk(tools: Tools, path: str, serving: Any) -> None:
        peer = await connect(path)
        sent = call(1, "echo", text="é" * 10) + b"\n" + call(2, "echo", text="b") + line(3, "ping")[:-1]
        for byte in sent:
            peer.writer.write(bytes([byte]))
            await asyncio.sleep(0)
        peer.writer.write_eof()
        assert [(await peer.receive())["id"] for _ in range(3)] == [1, 2, 3]
        assert await peer.receive() is None

    conversation(talk, tmp_path)


def test_what_is_no_message_is_answered_with_an_error(tmp_path: Path) -> None:
    async def talk(tools: Tools, path: str, serving: Any) -> None:
        peer = await connect(path)
        assert (await peer.ask(b"{]\n"))["error"]["code"] == -32700
        long = await peer.ask(b"x" * (16 * 1024 * 1024 + 1) + b"\n")
        assert long["error"]["message"] == "Parse error: a line longer than the limit"
        assert text_of(await peer.ask(call(1, "echo", text="a"))) == "a"

    conversation(talk, tmp_path)


def test_a_client_that_reads_late_has_all_its_answers(tmp_path: Path) -> None:
    async def talk(tools: Tools, path: str, serving: Any) -> None:
        peer = await connect(path)
        text = "x" * 100_000
        for id in range(200):
            peer.writer.write(call(id, "echo", text=text))
        assert [(await peer.receive())["id"] for _ in range(200)] == list(range(200))

    conversation(talk, tmp_path)


def test_calls_of_a_client_that_has_sent_its_last_byte_are_still_answered(tmp_path: Path) -> None:
    async def talk(tools: Tools, path: str, serving: Any) -> None:
        peer = await connect(path)
        peer.writer.write(call(1, "hold"))
        peer.writer.write_eof()
        await tools.began.wait()
        tools.release.set()
        assert text_of(await peer.receive()) == "held"
        assert await peer.receive() is None

    conversation(talk, tmp_path)


def test_a_cancelled_serve_cancels_calls_and_leaves_the_lifespan(tmp_path: Path) -> None:
    async def talk(tools: Tools, path: str, serving: asyncio.Task[None]) -> None:
        others = asyncio.ensure_future(asyncio.Event().wait())
        peer = await connect(path)
        peer.writer.write(call(1, "hold"))
        await tools.began.wait()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert tools.log == ["cancelled", "left"]
        assert await peer.receive() is None
        assert not os.path.exists(path)
        assert not tools.app.runtime.dispatchers
        assert not others.done()  # what else runs in the loop is not ours
        others.cancel()

    conversation(talk, tmp_path)


def test_both_directions_can_be_traced(tmp_path: Path) -> None:
    async def talk(tools: Tools, path: str, serving: Any) -> None:
        await (await connect(path)).ask(call(1, "echo", text="traced"))

    conversation(talk, tmp_path, trace=str(tmp_path / "trace"))
    marks = [each.split(" ", 2)[0] for each in (tmp_path / "trace").read_text().splitlines()]
    assert marks == ["<", ">", "<", "<", ">"]


# --- in a separate process: signals -----------------------------------------------------------------

PROGRAM = """
import asyncio, contextlib, os, sys
sys.path.insert(0, sys.argv[2])
from unix_socket import UnixSocket
from fastrpc import Server

@contextlib.asynccontextmanager
async def life(server):
    yield
    print("left", flush=True)

app = Server("t", lifespan=life)

@app.tool
async def hold(seconds: float) -> str:
    print("began", flush=True)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        print("cancelled", flush=True)
        raise
    return "held"

@app.tool(run="inline")
def fork() -> str:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return "parent" if child else "child"

@app.tool
async def fork_later() -> str:
    await asyncio.sleep(0)
    return fork()

transport, seconds = UnixSocket(sys.argv[1]), float(sys.argv[3])
if sys.argv[4] == "run":
    app.run(transport=transport, drain_seconds=seconds, stats=True)
else:
    asyncio.run(app.serve(transport, drain_seconds=seconds))
print("over", flush=True)
"""


class Program:
    """The program above, and a client that has begun a call."""

    def __init__(self, folder: Path, drain_seconds: float, hold_seconds: float, how: str = "run") -> None:
        path = str(folder / "s")
        command = [
            sys.executable,
            "-c",
            textwrap.dedent(PROGRAM),
            path,
            str(EXAMPLE.parent),
            str(drain_seconds),
            how,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        while self.process.poll() is None:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                self.socket.connect(path)
                break
        self.lines = self.socket.makefile("rb")
        self.socket.sendall(line(0, "initialize", **HELLO))
        assert json.loads(self.lines.readline())["id"] == 0
        self.socket.sendall(call(1, "hold", seconds=hold_seconds))
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "began\n"


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    begun: list[Program] = []

    def start(**options: Any) -> Program:
        begun.append(Program(tmp_path, **options))
        return begun[-1]

    yield start
    for program in begun:
        program.socket.close()
        program.process.kill()
        program.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_lets_calls_in_flight_end(begin: Callable[..., Program], number: int) -> None:
    program = begin(drain_seconds=SECONDS, hold_seconds=0.2)
    program.process.send_signal(number)
    assert text_of(json.loads(program.lines.readline())) == "held"
    assert program.lines.readline() == b""
    shown, noise = program.process.communicate(timeout=SECONDS)
    assert (shown, program.process.returncode) == ("left\nover\n", 0)
    assert "hold" in noise  # its statistics
    assert "Traceback" not in noise


def test_a_call_that_goes_on_is_cancelled_when_the_time_is_over(begin: Callable[..., Program]) -> None:
    program = begin(drain_seconds=0.1, hold_seconds=10 * SECONDS)
    program.process.send_signal(signal.SIGTERM)
    shown, _ = program.process.communicate(timeout=SECONDS)
    assert (shown, program.process.returncode) == ("cancelled\nleft\nover\n", 0)


def test_a_second_signal_skips_the_wait(begin: Callable[..., Program]) -> None:
    program = begin(drain_seconds=10 * SECONDS, hold_seconds=10 * SECONDS)
    for _ in range(2):
        program.process.send_signal(signal.SIGTERM)
        late = socket.socket(socket.AF_UNIX)
        while True:  # until the first one has been taken: nothing new is let in
            try:
                late.connect(program.socket.getpeername())
            except (ConnectionRefusedError, FileNotFoundError):
                break
            late.close()
            late = socket.socket(socket.AF_UNIX)
        late.close()
    shown, _ = program.process.communicate(timeout=SECONDS)
    assert (shown, program.process.returncode) == ("cancelled\nleft\nover\n", 0)


@pytest.mark.parametrize("how", ["run", "serve"])
@pytest.mark.parametrize("tool", ["fork", "fork_later"])
def test_a_child_that_a_tool_forks_answers_nothing(
    begin: Callable[..., Program], tool: str, how: str
) -> None:
    program = begin(drain_seconds=SECONDS, hold_seconds=10 * SECONDS, how=how)
    program.socket.sendall(call(2, tool))
    assert text_of(json.loads(program.lines.readline())) == "parent"
    program.socket.sendall(line(3, "ping"))
    assert json.loads(program.lines.readline())["id"] == 3


# --- what a transport may do --------------------------------------------------------------------------


class Scripted(Transport):
    """Sends some lines by one connection; then `then` happens."""

    def __init__(self, sent: bytes, then: Callable[[], Awaitable[object]]) -> None:
        self.sent = sent
        self.then = then
        self.written = b""
        self.steps: list[str] = []

    async def start(self, connections: Connections) -> None:
        self.connection = connections.open(self.write, principal="ada")
        self.connection.feed_data(line(0, "initialize", **HELLO) + self.sent)

    def write(self, data: bytes) -> None:
        self.written += data

    async def wait_closed(self) -> None:
        await self.then()

    async def stop_accepting(self) -> None:
        self.steps.append("stop_accepting")

    async def drain(self) -> None:
        self.steps.append("drain")

    async def close(self) -> None:
        self.steps.append("close")


def served(make: Callable[[Tools], Transport], **options: Any) -> tuple[Tools, Any, BaseException | None]:
    """Serve tools over a transport; return them, the transport, and what was raised."""

    async def run() -> tuple[Tools, Any, BaseException | None]:
        tools = Tools()
        transport = make(tools)
        try:
            await tools.app.serve(transport, **options)
        except Exception as error:
            return tools, transport, error
        return tools, transport, None

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


def ids(written: bytes) -> list[int]:
    return [json.loads(each)["id"] for each in written.splitlines()]


def test_a_transport_that_is_closed_ends_after_its_calls() -> None:
    def make(tools: Tools) -> Transport:
        async def then() -> None:
            await tools.began.wait()
            asyncio.get_running_loop().call_later(0.05, tools.release.set)

        return Scripted(call(1, "hold"), then)

    tools, transport, raised = served(make, drain_seconds=SECONDS)
    assert raised is None
    assert tools.log == ["ended", "left"]
    assert transport.steps == ["stop_accepting", "drain", "close"]
    assert ids(transport.written) == [0, 1]


def test_what_a_transport_raises_is_raised_after_the_end() -> None:
    def make(tools: Tools) -> Transport:
        async def then() -> None:
            await tools.began.wait()
            raise ValueError("out of order")

        return Scripted(call(1, "hold"), then)

    tools, transport, raised = served(make, drain_seconds=SECONDS)
    assert str(raised) == "out of order"
    assert tools.log == ["cancelled", "left"]
    assert transport.steps == ["stop_accepting", "close"]


def test_a_transport_that_cannot_start_says_why() -> None:
    class Taken(Transport):
        async def start(self, connections: Connections) -> None:
            raise OSError("the address is taken")

    tools, _, raised = served(lambda tools: Taken())
    assert str(raised) == "the address is taken"
    assert not tools.app.runtime.dispatchers


def test_a_client_to_whom_nothing_can_be_written_is_gone() -> None:
    class Broken(Scripted):
        def write(self, data: bytes) -> None:
            raise BrokenPipeError

    def make(tools: Tools) -> Transport:
        async def then() -> None:
            assert transport.connection.closed

        transport = Broken(call(1, "hold"), then)
        return transport

    tools, _, raised = served(make)
    assert raised is None
    assert not tools.app.runtime.dispatchers


@pytest.mark.parametrize("hurried", [False, True])
def test_the_end_is_reported_to_clients_that_listen(hurried: bool) -> None:
    async def then() -> None:
        if hurried:
            raise ConnectionError

    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    listen = line(7, "subscriptions/listen", _meta=meta, notifications={"toolsListChanged": True})
    _, transport, _ = served(lambda tools: Scripted(listen, then))
    *_, last = transport.written.splitlines()
    assert json.loads(last)["id"] == 7
    assert "result" in json.loads(last)


def test_a_transport_names_the_principal_and_whether_callers_are_far() -> None:
    seen: list[Any] = []

    def make(tools: Tools) -> Transport:
        @tools.app.tool
        def who(ctx: Context) -> str:
            seen.extend((ctx.principal, ctx.server.over_http))
            return "seen"

        async def then() -> None:
            while not seen:
                await asyncio.sleep(0)

        return Scripted(call(1, "who"), then)

    served(make)
    assert seen == ["ada", True]
    assert not example().UnixSocket.remote


def test_the_transport_in_memory_is_served_as_any_other() -> None:
    async def run() -> None:
        tools = Tools()
        lines: list[bytes] = []
        transport = MemoryTransport(lines.append)
        serving = asyncio.ensure_future(tools.app.serve(transport))
        await asyncio.sleep(0)
        transport.send(line(0, "initialize", **HELLO).rstrip())
        transport.send(call(1, "hold").rstrip())
        await tools.began.wait()
        transport.disconnect()
        await serving
        assert tools.log == ["cancelled", "left"]
        assert [json.loads(each)["id"] for each in lines] == [0]

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_the_sync_way_takes_one_transport() -> None:
    with pytest.raises(UsageError, match="transport= excludes http="):
        Server("t").run(transport=example().UnixSocket("s"), http="127.0.0.1:0")  # type: ignore[call-overload]
