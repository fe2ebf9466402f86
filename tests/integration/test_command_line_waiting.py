"""`list`, `call`, `inspect` and `repl` with a server that does not answer: they say what they wait for."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

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
