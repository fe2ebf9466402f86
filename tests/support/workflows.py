"""Servers that run workflows: the knowledge toolset with a few tools besides, in a separate folder, over
stdio or behind a guard over HTTP; and what its clients do with it."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from fastrpc import Client
from fastrpc.client import SyncClient
from support.guarded_folder import fastrpc, variables
from support.http_server import HttpProcess
from support.waiting import eventually

TOOLSET = "fastrpc.tools.knowledge"
SERVER = """
import os, time
import fastrpc.tools.knowledge
from fastrpc import Server

app = Server("flows")
app.include(fastrpc.tools.knowledge)


def note(text):
    with open("notes", "a") as file:
        file.write(text + "\\n")


def wait(name):
    end = time.monotonic() + 60
    while os.path.exists(f"hold {name}") and time.monotonic() < end:
        time.sleep(0.02)


@app.tool(effect="write", run="thread")
def pay(to: str) -> dict[str, str]:
    note(f"pay {to}")
    wait("pay")
    return {"paid": to}


@app.tool(effect="read", run="thread")
def look(at: str) -> dict[str, list[str]]:
    note(f"look {at}")
    wait("look")
    return {"items": [at, at.upper()]}


@app.tool(effect="read")
def pid() -> int:
    return os.getpid()


if __name__ == "__main__":
    app.run()
"""


def workflow(id: str, *nodes: dict[str, Any], edges: str = "", **members: Any) -> dict[str, Any]:
    """A definition; edges are such as ``a>b`` and ``a>b:true``."""
    listed = []
    for each in edges.split():
        ends, _, when = each.partition(":")
        source, target = ends.split(">")
        listed.append({"from": source, "to": target, **({"when": when == "true"} if when else {})})
    return {
        "id": id, "name": id.title(), "version": "1", "trigger": {"type": "manual"}, "nodes": list(nodes),
        "edges": listed, **members,
    }  # fmt: skip


def served(
    folder: Path,
    *,
    source: str = SERVER,
    on_sample: Any = None,
    version: str | None = None,
    **more: str,
) -> SyncClient:
    """A client of a server in this folder, which has these variables."""
    (folder / "server.py").write_text(source)
    command = [sys.executable, "server.py"]
    options: Any = {"on_sample": on_sample, "version": version}
    return Client.sync(command, cwd=str(folder), env=variables(folder, **more), **options)


def called(client: SyncClient, tool: str, **arguments: Any) -> Any:
    result = client.call_tool(tool, arguments)
    assert not result.is_error, result.text
    return result.structured


def ended(client: SyncClient, run: str) -> Any:
    """A run that has ended."""

    def look() -> Any:
        found = called(client, "workflow.run", run_id=run)
        return found if found["state"] not in ("queued", "running", "waiting") else None

    return eventually(look)


def killed_in(client: SyncClient, folder: Path, tool: str) -> None:
    """Kill the server as soon as a tool has begun."""
    eventually(lambda: (folder / "notes").exists() and tool in (folder / "notes").read_text())
    os.kill(called(client, "pid")["result"], signal.SIGKILL)


def token_of(folder: Path, owner: str) -> Any:
    return json.loads(fastrpc(folder, "token", "create", "--owner", owner, "--json"))


def guarded(folder: Path, policy: str, *options: str, **more: str) -> HttpProcess:
    """A server behind a guard, over HTTP."""
    (folder / "guard.toml").write_text(policy)
    command = ("serve", TOOLSET, "--http", "127.0.0.1:0", "--guard", str(folder / "guard.toml"), *options)
    return HttpProcess(*command, environment=variables(folder, **more))
