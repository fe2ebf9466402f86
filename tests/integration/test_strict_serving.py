"""The audit mode strict in real servers: killed with calls in flight, and with a full disk (G8).

An answer that a client has got has its record, whenever the server is killed; without room on disk calls are
refused, and it goes on when there is some.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import threading
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest
from support.guarded_folder import variables
from support.http_server import FASTRPC, HttpProcess
from support.waiting import eventually

from fastrpc import Client
from fastrpc.errors import RemoteError
from fastrpc.guard.audit import segments, verify
from fastrpc.protocol.versions import STATELESS

SECONDS = 60
TOOLS = """
import asyncio
import os
from fastrpc import Server

app = Server("shop")

@app.tool(effect="read")
def process() -> int:
    return os.getpid()

@app.tool(effect="read")
def search(text: str) -> str:
    return text

@app.tool(effect="read")
async def wait(text: str) -> str:
    await asyncio.sleep(0.001)
    return text
"""
GUARD = '[expose]\ntools = ["*"]\n[audit]\nmode = "strict"\n'
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "guard.toml").write_text(GUARD)
    return tmp_path


def call_of(id: int, tool: str) -> bytes:
    params = {"name": tool, "arguments": {"text": str(id)}, "_meta": ENVELOPE}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode()


def lines_of(folder: Path) -> list[dict[str, Any]]:
    place = folder / "state" / "audit"
    lines = [line for name in segments.names_in(str(place)) for line in (place / name.file).open("rb")]
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def check(folder: Path, answered: list[int]) -> None:
    """All answers have records, each of which says when it began; and the chains are whole."""
    records = [line for line in lines_of(folder) if "id" in line]
    recorded = {each["request"]: each for each in records if each["outcome"] == "ok"}
    begun = {each["id"] for each in records if each["outcome"] == "begun"}
    assert set(answered) <= recorded.keys()
    assert {each["begun"] for each in recorded.values()} <= begun
    assert verify.verify(str(folder / "state" / "audit")).faults == []


def test_over_stdio_a_killed_server_has_recorded_every_answer_that_was_read(folder: Path) -> None:
    chance = random.Random(8)
    answered: list[int] = []
    first = 0
    for _ in range(5):
        command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
        with subprocess.Popen(
            command, cwd=folder, env=variables(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            lines = [
                call_of(id, chance.choice(("search", "wait"))) + b"\n" for id in range(first, first + 300)
            ]
            first += 300
            server.stdin.write(b"".join(lines))
            server.stdin.flush()
            read = [server.stdout.readline() for _ in range(chance.randint(1, 250))]
            server.kill()
            read += server.stdout.readlines()
        answered += [json.loads(line)["id"] for line in read if line.endswith(b"\n")]
    assert len(answered) > 100
    check(folder, answered)


def test_over_http_a_killed_server_has_recorded_every_answer_that_was_read(folder: Path) -> None:
    answered: list[int] = []

    def ask(port: int, first: int) -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers |= {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": "search"}
        try:
            for id in range(first, first + 10_000):
                connection.request("POST", "/mcp", call_of(id, "search"), headers)
                found = json.loads(connection.getresponse().read())
                assert found["result"]["content"][0]["text"] == str(id)
                answered.append(id)
        except (OSError, HTTPException, ValueError):
            pass  # it was killed
        finally:
            connection.close()

    command = ("serve", "shop.py:app", "--guard", "guard.toml", "--http", "127.0.0.1:0", "--no-auth")
    with HttpProcess(*command, folder=folder, environment=variables(folder)) as server:
        callers = [threading.Thread(target=ask, args=(server.port, 10_000 * each)) for each in range(4)]
        for caller in callers:
            caller.start()
        eventually(lambda: len(answered) > 40)
        server.process.kill()
        for caller in callers:
            caller.join(SECONDS)
    assert len(answered) > 40
    check(folder, answered)


def test_on_a_full_disk_calls_are_refused_and_served_again_when_there_is_room(folder: Path) -> None:
    """The disk is full as far as the server is concerned: no file of it may grow beyond some bytes."""
    command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
    with Client.sync(command, cwd=str(folder), env=variables(folder)) as client:
        pid = int(client.call_tool("process", {}).text)
        (name,) = segments.names_in(str(folder / "state" / "audit"))
        size = (folder / "state" / "audit" / name.file).stat().st_size
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
        for _ in range(3):
            with pytest.raises(RemoteError) as refused:
                client.call_tool("search", {"text": "meanwhile"})
            assert refused.value.code == 503
            assert refused.value.data == {"reason": "audit_unavailable", "has_run": False}
        assert len(client.list_tools()) == 3
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

        def is_served() -> bool:
            try:
                return client.call_tool("search", {"text": "behind"}).text == "behind"
            except RemoteError:
                return False

        eventually(is_served)
    lines = lines_of(folder)
    outcomes = [line["outcome"] for line in lines if "id" in line]
    assert outcomes[:2] == ["begun", "ok"]
    assert outcomes[-2:] == ["begun", "ok"]
    assert sum(line["lost"] for line in lines if line.get("kind") == "gap") >= 2
    assert verify.verify(str(folder / "state" / "audit")).faults == []
