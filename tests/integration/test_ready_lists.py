"""Lists of the real server, `fastrpc serve` with the agent's tools: ready bytes, and nothing beside them.

The server runs with every function of `os` that asks the file system, and the dispatcher, writing down that
it was called; skills are looked at once an hour, so that whatever is written down is the list's own doing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.agent_tools import EFFECTS
from support.http_client import Serving, request
from support.protocol import SESSION_VERSIONS, STATELESS
from support.stdio import SECONDS, STATELESS_META, Process, serve

LISTS = 200
NOTED = """
import os, sys

noted = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def note(owner, name, of=lambda arguments: arguments[0] if arguments else ""):
    function = getattr(owner, name)
    def noting(*arguments, **options):
        os.write(noted, f"{name} {of(arguments)}".encode("utf-8", "replace") + b"\\n")
        return function(*arguments, **options)
    setattr(owner, name, noting)

import builtins
import fastrpc.__main__
import fastrpc.engine.dispatcher
import fastrpc.tools.agent.invoke_skill

fastrpc.tools.agent.invoke_skill.LOOK_SECONDS = 3600
note(fastrpc.engine.dispatcher.Dispatcher, "dispatch", lambda arguments: arguments[1].method)
note(builtins, "open")
for name in ("access", "getcwd", "listdir", "lstat", "open", "readlink", "scandir", "stat"):
    note(os, name)
sys.exit(fastrpc.__main__.main())
"""


class Notes:
    """What a server has written down so far."""

    def __init__(self, path: Any) -> None:
        self.path = path
        self.seen = 0

    def more(self) -> list[str]:
        """Return what was written down since the last time."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found, self.seen = lines[self.seen :], len(lines)
        return found


@pytest.fixture
def environment(tmp_path: Any) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return {"HOME": str(tmp_path / "home"), "FASTRPC_STATE_DIR": str(tmp_path / "state")}


@pytest.fixture
def notes(tmp_path: Any) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture
def server(tmp_path: Any, notes: Notes, environment: dict[str, str]) -> Iterator[Process]:
    command = [sys.executable, "-c", NOTED, str(notes.path), "serve"]
    with serve(command=command, environment=environment, folder=str(tmp_path / "work")) as process:
        yield process


def lists_become_ready(notes: Notes, ask: Callable[[], Any]) -> None:
    """Ask until a list comes about without anything written down."""
    deadline = time.monotonic() + SECONDS
    while True:
        notes.more()
        ask()
        if not notes.more():
            return
        assert time.monotonic() < deadline, "each list is still made by the dispatcher"
        time.sleep(0.01)


def lister(server: Process, version: str) -> Callable[[], Any]:
    """Return a function that asks a server for its tools on a version's wire."""
    if version == STATELESS:
        return lambda: server.request("tools/list", {"_meta": STATELESS_META})["result"]["tools"]
    server.initialize(version)
    return lambda: server.request("tools/list", {})["result"]["tools"]


@pytest.mark.parametrize("version", [*SESSION_VERSIONS, STATELESS])
def test_a_list_asks_neither_the_file_system_nor_the_dispatcher(
    server: Process, notes: Notes, version: str
) -> None:
    """InvokeSkill: a list itself looks at no folder."""
    ask = lister(server, version)
    tools = ask()
    assert len(tools) == len(EFFECTS)
    assert any(line.startswith("listdir ") for line in notes.more())  # the first one has looked
    lists_become_ready(notes, ask)
    for _ in range(LISTS):
        assert ask() == tools
    assert notes.more() == []


def serving(tmp_path: Any, notes: Notes, environment: dict[str, str]) -> Serving:
    command = [sys.executable, "-c", NOTED, str(notes.path)]
    options = ("serve", "--http", "127.0.0.1:0")
    return Serving(*options, command=command, folder=tmp_path / "work", **environment)


def test_a_list_over_http_asks_neither_the_file_system_nor_the_dispatcher(
    tmp_path: Any, notes: Notes, environment: dict[str, str]
) -> None:
    with serving(tmp_path, notes, environment) as served:

        def ask() -> Any:
            return served.stateless_request("tools/list", {}).json["result"]["tools"]

        tools = ask()
        assert len(tools) == len(EFFECTS)
        lists_become_ready(notes, ask)
        for _ in range(LISTS):
            assert ask() == tools
        assert notes.more() == []


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_a_list_of_a_session_over_http_asks_no_file_system(
    tmp_path: Any, notes: Notes, environment: dict[str, str], version: str
) -> None:
    with serving(tmp_path, notes, environment) as served:
        session = served.session(version)

        def ask() -> Any:
            return session.send(request("tools/list", {})).json["result"]["tools"]

        tools = ask()
        assert len(tools) == len(EFFECTS)
        notes.more()
        for _ in range(LISTS):
            assert ask() == tools
        assert set(notes.more()) <= {"dispatch tools/list"}


WATCHING = """
import os
from fastrpc import Server

app = Server("watching")

@app.tool(run="inline")
def place() -> str:
    "as it was"
    return "here"

def look() -> None:
    text = "changed" if os.path.exists("changed") else "as it was"
    if app.tools.get("place").description != text:
        app.tools.get("place").description = text
        app.tools.changed()

app.watch(look, every_seconds=0.05)
"""


def test_a_server_that_needs_the_loop_for_nothing_else_tells_of_a_change_to_a_silent_client(
    tmp_path: Any,
) -> None:
    with serve(WATCHING, folder=str(tmp_path)) as server:
        server.initialize()
        assert server.request("tools/list")["result"]["tools"][0]["description"] == "as it was"
        (tmp_path / "changed").touch()
        assert server.answer()["method"] == "notifications/tools/list_changed"
        assert server.request("tools/list")["result"]["tools"][0]["description"] == "changed"
