"""A server over standard input and output in an event loop that the program runs itself: real processes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.stdio import serve

from fastrpc import Server
from fastrpc.compat.stdio import serve_stdio
from fastrpc.errors import UsageError

PROGRAM = """
import asyncio
import sys
from contextlib import asynccontextmanager

from fastrpc import Server
from fastrpc.compat.stdio import serve_stdio


@asynccontextmanager
async def lifespan(server):
    yield "state"
    print("left the lifespan", file=sys.stderr, flush=True)


app = Server("demo", lifespan=lifespan)


@app.tool
async def sleep(time: float) -> str:
    await asyncio.sleep(time)
    return "slept"


@app.tool
async def noisy() -> str:
    print("noise", flush=True)
    return "noisy"


@app.tool
async def ticks() -> int:
    return ticked


ticked = 0


async def tick():
    global ticked
    while True:
        await asyncio.sleep(0.001)
        ticked += 1


async def main():
    task = asyncio.ensure_future(tick())
    try:
        await serve_stdio(app)
    finally:
        print("served", file=sys.stderr, flush=True)
    await asyncio.sleep(0.01)
    print("the program goes on" if not task.done() else "the task is gone", flush=True)


try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", file=sys.stderr, flush=True)
    sys.exit(130)
"""


def test_calls_are_served_beside_the_programs_own_tasks_and_nothing_but_the_protocol_is_written() -> None:
    with serve(command=[sys.executable, "-c", PROGRAM]) as server:
        server.initialize()
        assert server.call("noisy")["content"][0]["text"] == "noisy"
        for _ in range(100):
            ticked = int(server.call("ticks")["content"][0]["text"])
            server.call("sleep", time=0.005)
            if ticked:
                break
        assert ticked
        assert "noise" in server.stderr


def test_at_the_end_of_input_calls_in_flight_are_answered_and_the_program_goes_on() -> None:
    with serve(command=[sys.executable, "-c", PROGRAM]) as server:
        server.initialize()
        server.ask("tools/call", {"name": "sleep", "arguments": {"time": 0.05}})
        server.close_stdin()
        assert server.answer()["result"]["content"][0]["text"] == "slept"
        assert server.rest() == b"the program goes on\n"  # standard output is the program's again
        assert server.wait() == 0
        assert "left the lifespan" in server.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_without_a_handler_ends_the_process_after_the_lifespan_is_left(number: int) -> None:
    with serve(command=[sys.executable, "-c", PROGRAM]) as server:
        server.initialize()
        server.call("sleep", time=0)
        server.ask("tools/call", {"name": "sleep", "arguments": {"time": 60}})
        server.request("ping")
        server.signal(number)
        assert server.wait() == -number
        assert "left the lifespan" in server.stderr
        assert "served" not in server.stderr


def test_an_interrupt_is_the_programs_own() -> None:
    with serve(command=[sys.executable, "-c", PROGRAM]) as server:
        server.initialize()
        server.call("sleep", time=0)
        server.ask("tools/call", {"name": "sleep", "arguments": {"time": 60}})
        server.request("ping")
        server.signal(signal.SIGINT)
        assert server.wait() == 130
        assert "left the lifespan" in server.stderr
        assert "interrupted" in server.stderr


@pytest.mark.parametrize(("closed", "name"), [("<&-", "input"), (">&-", "output")])
def test_a_closed_standard_descriptor_is_named(closed: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = f'exec "{sys.executable}" "{path}" {closed}'
    ended = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    assert ended.returncode == 1
    assert f"standard {name} must not be closed" in ended.stderr


def test_without_a_loop_of_asyncio_it_says_so() -> None:
    coroutine = serve_stdio(Server("demo"))
    with pytest.raises(UsageError, match="event loop of asyncio"):
        coroutine.send(None)
    assert asyncio.iscoroutine(coroutine)


REDIRECTED = """
import asyncio
import os
import sys

from fastrpc.compat.mcp import FastMCP

mcp = FastMCP("demo")


@mcp.tool()
def noisy() -> str:
    os.write(1, b"noise of a library\\n")
    return "noisy"


client = os.dup(1)
os.dup2(2, 1)  # what libraries write to descriptor 1 must not reach the client
sys.stdout = os.fdopen(client, "w")
if sys.argv[1] == "run":
    mcp.run()
else:
    asyncio.run(mcp.run_stdio_async())
sys.stdout.write("the program goes on\\n")
sys.stdout.flush()
"""


@pytest.mark.parametrize("way", ["run", "run_stdio_async"])
def test_the_client_is_where_the_program_has_put_its_standard_output(way: str) -> None:
    with serve(command=[sys.executable, "-c", REDIRECTED, way]) as server:
        server.initialize()
        assert server.call("noisy")["content"][0]["text"] == "noisy"
        server.close_stdin()
        assert server.rest() == b"the program goes on\n"
        assert server.wait() == 0
        assert "noise of a library" in server.stderr
