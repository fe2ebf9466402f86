"""Programs that a tool starts by asyncio inherit their three standard descriptors, and nothing else.

A program that becomes a daemon closes those; with a copy left in it, its caller would wait as long as the
daemon lives.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from support.stdio import serve

from fastrpc.transports.loop import new_loop

pytest.importorskip("uvloop", reason="the loop that leaves copies: pip install uvloop")

SERVER = """
import asyncio
import sys

from fastrpc import Server

app = Server("starts")
PIPES = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
LIST = "import os; print(*sorted(int(name) for name in os.listdir('/dev/fd'))[:-1])"

@app.tool
async def inherited() -> str:
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", LIST, **PIPES)
    output, _ = await program.communicate()
    return output.decode().strip()

@app.tool
async def daemon() -> str:
    command = "(exec 0<&- 1>&- 2>&-; exec sleep 60) & echo $!"
    program = await asyncio.create_subprocess_shell(command, **PIPES)
    output, _ = await program.communicate()
    return output.decode().strip()
"""


def test_a_program_inherits_the_standard_descriptors_alone() -> None:
    with serve(SERVER) as server:
        server.initialize("2025-11-25")
        assert server.call("inherited")["content"][0]["text"] == "0 1 2"


def test_a_daemon_that_a_program_starts_keeps_no_one_waiting() -> None:
    with serve(SERVER) as server:
        server.initialize("2025-11-25")
        answer = server.call("daemon")  # within the seconds of `serve`: the daemon sleeps longer
        daemon = int(answer["content"][0]["text"])
        os.kill(daemon, signal.SIGKILL)


def test_descriptors_that_are_passed_arrive_and_functions_before_it_are_called(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    marker = tmp_path / "marker"
    command = f"import os; os.write({writing}, b'passed')"

    async def start() -> None:
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", command, pass_fds=(writing,), preexec_fn=marker.touch
        )
        assert await program.wait() == 0
        with pytest.raises(FileNotFoundError):
            await asyncio.create_subprocess_exec(str(tmp_path / "missing"))

    loop = new_loop()
    try:
        loop.run_until_complete(start())
        assert os.read(reading, 10) == b"passed"
        assert marker.exists()
    finally:
        loop.close()
        os.close(reading)
        os.close(writing)
