"""The dashboard costs a call nothing: for calls over HTTP, a server with it enters no Python function that
one without it does not. A request on the regular path, such as one whose token is checked again after a
second, passes through the front.

Functions, not times; what is compiled is the same, and has nothing of the dashboard to call."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import httpx
import pytest
from support.guarded_folder import fastrpc, variables
from support.http_server import HttpProcess
from support.waiting import eventually

pytestmark = pytest.mark.timeout(240)
CALLS = 200
TOOLS = """
from fastrpc import Server

app = Server("shop")

@app.tool(run="inline", effect="read")
def echo(text: str) -> str:
    "Return the text."
    return text
"""
COUNTED = """
import json, signal, sys
from collections import Counter

counts = Counter()

def begin(*given):
    counts.clear()
    print("counting", file=sys.stderr, flush=True)

def note(frame, event, value):
    if event == "call":
        counts[f"{frame.f_code.co_filename}:{frame.f_code.co_name}"] += 1

signal.signal(signal.SIGUSR1, begin)
sys.setprofile(note)
from fastrpc.__main__ import main
try:
    main()
finally:
    sys.setprofile(None)
    with open("counts.json", "w") as file:
        json.dump(counts, file)
"""
HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "echo",
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(client: httpx.Client, id: int) -> None:
    params = {"name": "echo", "arguments": {"text": f"hello {id}"}, "_meta": ENVELOPE}
    answer = client.post("/mcp", json={"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    assert answer.json()["result"]["content"][0]["text"] == f"hello {id}"


def entered(folder: Path, *options: str) -> dict[str, int]:
    """Return how often so many calls enter each function of the server's main thread."""
    folder.mkdir()
    (folder / "shop.py").write_text(TOOLS)
    (folder / "guard.toml").write_text('[expose]\ntools = ["echo"]\n')
    (folder / "counted.py").write_text(COUNTED)
    token = fastrpc(folder, "token", "create", "--owner", "ada").splitlines()[0]
    words = ("serve", "shop.py", "--http", "127.0.0.1:0", "--guard", "guard.toml", *options)
    command = (sys.executable, "counted.py")
    with HttpProcess(*words, command=command, folder=folder, environment=variables(folder)) as server:
        base = f"http://127.0.0.1:{server.port}"
        headers = {**HEADERS, "authorization": f"Bearer {token}"}
        with httpx.Client(base_url=base, headers=headers, trust_env=False, timeout=60) as client:
            for id in range(20):
                call(client, id)
            server.process.send_signal(signal.SIGUSR1)
            call(client, 20)  # a signal is handled when Python runs
            eventually(lambda: "counting" in server.stderr)
            for id in range(CALLS):
                call(client, id)
        assert server.stop() == 0
    counts: dict[str, int] = json.loads((folder / "counts.json").read_text())
    return {name.replace(str(folder), ""): count for name, count in counts.items()}


def test_a_call_enters_no_function_because_of_the_dashboard(tmp_path: Path) -> None:
    without, with_it = entered(tmp_path / "without"), entered(tmp_path / "with", "--dashboard")
    assert without["/shop.py:echo"] >= CALLS
    assert with_it["/shop.py:echo"] >= CALLS
    dashboard = {name.rpartition("/")[2] for name in with_it if "/dashboard/" in name}
    assert dashboard <= {"front.py:__call__", "front.py:is_below", "front.py:stop", "live.py:stop"}
    of_calls = {name for name, count in with_it.items() if count >= CALLS / 2 and "/dashboard/" not in name}
    assert len(of_calls) >= 5
    assert sorted(of_calls - without.keys()) == []
