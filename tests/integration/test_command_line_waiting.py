"""`list`, `call`, `inspect` and `repl` with a server that does not answer: they say what they wait for."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.command_line import run
from support.terminal import on_terminal

pytestmark = pytest.mark.long

SECONDS = 60.0
COMMANDS = (["list"], ["call", "add"], ["inspect"], ["repl"])
# Answers `initialize`, and nothing after it.
HALF = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    elif message["method"] == "server/discover":
        error = {"code": -32601, "message": "no"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
"""
# Has one tool, which answers when it may.
SLOW = """
import os
from fastrpc import Context, Server

app = Server("slow")

@app.tool
def wait(path: str) -> str:
    'Wait.'
    with open(path) as file:
        return file.read()

@app.tool
def work(path: str, ctx: Context) -> str:
    'Work.'
    ctx.progress(1, 2)
    return wait(path)
"""
# Has one tool, which never ends and reports progress all the time.
ENDLESS = """
import asyncio
from fastrpc import Context, Server

app = Server("endless")

@app.tool
async def work(ctx: Context) -> str:
    'Work.'
    done = 0
    while True:
        done += 1
        ctx.progress(done)
        await asyncio.sleep(0.01)
"""
SILENT = "import sys; sys.stdin.read()"


@pytest.fixture
def silent_url() -> Iterator[str]:
    """The URL of a listener that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


def said_by_all(*target: str) -> dict[str, tuple[int, list[str]]]:
    """Run all commands at once; return for each its exit code and its lines on standard error."""
    running = {}
    for command in COMMANDS:
        words = [sys.executable, "-m", "fastrpc", *command, "--timeout", "3", *target]
        if command == ["call", "add"] and target[0] != "--":
            words.insert(-1, "--target")
        pipe = subprocess.PIPE
        running[command[0]] = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    found = {}
    for name, process in running.items():
        out, said = process.communicate("tools\n" if name == "repl" else "", timeout=SECONDS)
        assert out == ""
        found[name] = process.returncode, said.splitlines()
    return found


@pytest.mark.parametrize("kind", ["a program", "a URL"])
def test_a_server_that_never_answers_is_waited_for_aloud_and_given_up(kind: str, silent_url: str) -> None:
    shown = silent_url if kind == "a URL" else sys.executable
    target = [silent_url] if kind == "a URL" else ["--", sys.executable, "-c", SILENT]
    for name, (code, lines) in said_by_all(*target).items():
        assert code == 1, name
        assert lines == [
            f"fastrpc: {shown}: waiting for an answer to server/discover (--timeout sets the limit)",
            f"fastrpc: {shown} does not answer: initialize: no answer within 3 s (--timeout sets the limit)",
        ]


def test_a_list_that_never_comes_is_waited_for_aloud_and_given_up() -> None:
    for name, (code, lines) in said_by_all("--", sys.executable, "-c", HALF).items():
        assert lines[0] == (
            f"fastrpc: {sys.executable}: waiting for an answer to tools/list (--timeout sets the limit)"
        )
        assert code == (0 if name == "repl" else 1), name
        assert all("tools/list: no answer within 3 s" in line for line in lines[1:])
        assert len(lines) > 1


def test_a_terminal_shows_what_is_waited_for_and_for_how_long(place) -> None:
    """Also of a call, as long as the server shows nothing; then the line goes, and the result is there."""
    with on_terminal(place, "list", "--timeout", "6", "--", sys.executable, "-c", HALF) as there:
        there.until("waiting for an answer to tools/list, 1 s: ")
        there.until("waiting for an answer to tools/list, 2 s: ")
        assert "tools/list: no answer within 6 s" in there.rest()
    (place / "slow.py").write_text(SLOW)
    os.mkfifo(place / "pipe")
    with on_terminal(place, "call", "slow.py", "wait", "path=pipe") as there:
        there.until("waiting for an answer to tools/call, 1 s: slow.py (--timeout")
        (place / "pipe").write_text("done")
        shown = there.rest()
        assert shown.endswith("\r\x1b[K")
        assert there.end() == (0, "done\n")
    with on_terminal(place, "call", "slow.py", "work", "path=pipe") as there:
        there.until("50%")
        (place / "pipe").write_text("done")
        assert "waiting for an answer to tools/call" not in there.rest()


@pytest.mark.parametrize("command", ["list", "tools", "inspect"])
def test_a_time_limit_ends_all_of_a_command(place, command: str) -> None:
    done = run(place, command, "--time-limit", "1", "--", sys.executable, "-c", HALF)
    assert (done.returncode, done.stdout) == (1, "")
    said = f"fastrpc: {sys.executable} does not answer: not done within 1 s (--time-limit)\n"
    assert done.stderr == said
    server = f"{sys.executable} -c 'import sys; sys.stdin.read()'"
    done = run(place, command, "--time-limit", "1", "--command", server)
    assert done.stderr == said


def test_a_time_limit_of_a_session_by_hand_is_that_of_each_call(place) -> None:
    (place / "slow.py").write_text(SLOW)
    os.mkfifo(place / "pipe")
    lines = "call wait path=pipe\ncall wait path=there\n"
    (place / "there").write_text("there")
    done = run(place, "repl", "--time-limit", "1", "slow.py", text=lines)
    assert "tools/call: no answer within 1 s" in done.stderr
    assert done.stdout == "there\n"


@pytest.mark.parametrize("command", ["call", "repl"])
def test_a_time_limit_ends_a_call_that_reports_progress_for_ever(place, command: str) -> None:
    (place / "endless.py").write_text(ENDLESS)
    words = ["endless.py", "work"] if command == "call" else ["endless.py"]
    done = run(place, command, "--time-limit", "1", *words, text="call work\n")
    assert done.returncode == (1 if command == "call" else 0)
    assert "tools/call: no answer within 1 s" in done.stderr
    if command == "call":
        assert done.stderr.endswith("(--time-limit sets the limit)\n")
