"""What a start does not import: after the handshake and the list of tools, nothing that only a call needs.

Python itself says what it imports, line by line on standard error (``-X importtime``), in the very process
that serves. Once with the end of input right behind the list, so that nothing else has happened; once
with a client that stays, after the quiet moment in which the event loop is imported beforehand.
"""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any

import pytest
from support.protocol import SESSION_VERSIONS
from support.stdio import STATELESS_META, encode, serve

LIBRARIES = (
    "PIL",
    "playwright",
    "greenlet",
    "httpx",
    "h2",
    "httpcore",
    "anyio",
    "sqlalchemy",
    "sqlite3",
    "_sqlite3",
    "ddgs",
    "primp",
    "lxml",
    "bs4",
    "markdownify",
    "pypdf",
    "yaml",
    "pydantic",
    "simdjson",
    "jsonschema_rs",
    "cryptography",
)
"""What calls need: not there before the first one, however long a client waits."""

STANDARD = (
    "asyncio",
    "uvloop",
    "orjson",
    "json",
    "email",
    "http",
    "urllib",
    "ssl",
    "socket",
    "subprocess",
    "multiprocessing",
    "concurrent",
    "logging",
    "hashlib",
    "tempfile",
    "shutil",
    "curses",
    "termios",
    "shlex",
    "difflib",
    "unicodedata",
    "datetime",
    "inspect",
    "dataclasses",
    "importlib.metadata",
)
"""What costs, and is not needed for the handshake and the list either."""

SMALL = ("collections", "contextlib", "enum", "functools", "operator", "re", "types", "typing")
"""What costs a millisecond or so each, and a server of one's own does not need for the handshake."""

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OWN = f"""
import sys
sys.path.insert(0, {REPOSITORY!r})
from fastrpc import Server
app = Server("own")
@app.tool(run="inline")
def echo(text: str) -> str:
    return text
app.run()
"""

HANDSHAKE = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": SESSION_VERSIONS[-1],
            "capabilities": {"roots": {}, "elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
]


def server(folder: Any, working: Any = None) -> Any:
    (folder / "home" / ".claude" / "skills" / "own").mkdir(parents=True, exist_ok=True)
    (folder / "home" / ".claude" / "skills" / "own" / "SKILL.md").write_text(
        "---\nname: own\ndescription: >\n  With a skill of the user's\n  own.\n---\n"
    )
    return serve(
        command=[sys.executable, "-X", "importtime", "-m", "fastrpc", "serve"],
        environment={"HOME": str(folder / "home"), "FASTRPC_STATE_DIR": str(folder / "state")},
        folder=str(working or folder),
    )


def imported(stderr: str) -> set[str]:
    """The modules that were imported, and the packages that they lie in."""
    names = re.findall(r"^import time:\s+\d+ \|\s+\d+ \|\s*([\w.]+)$", stderr, re.MULTILINE)
    assert "fastrpc.tools.agent.bash" in names, stderr[-2000:]
    names = names[names.index("site") + 1 :]  # what an installation's own start brings in is not ours
    found = set()
    for name in names:
        parts = name.split(".")
        found |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    return found


@pytest.mark.parametrize("working", [None, "/"])
def test_the_handshake_and_the_list_import_nothing_that_only_calls_need(tmp_path: Any, working: Any) -> None:
    """Every tool: the handshake and the list import no library that only calls need."""
    with server(tmp_path, working) as process:
        process.send(b"".join(map(encode, HANDSHAKE)))
        process.close_stdin()
        assert process.wait() == 0
        lines = process.rest().splitlines()
        assert len(lines) == 2
        assert b"- own: With a skill of the user's own." in lines[1]
        found = imported(process.stderr)
    assert sorted(found & {*LIBRARIES, *STANDARD}) == []


def test_a_server_of_ones_own_imports_hardly_anything_for_the_handshake() -> None:
    # Without site, so that an editable installation imports nothing of these first.
    with serve(command=[sys.executable, "-S", "-X", "importtime", "-c", OWN]) as process:
        process.send(encode(HANDSHAKE[0]))
        process.close_stdin()
        assert process.wait() == 0
        names = set(re.findall(r"\|\s*([\w.]+)$", process.stderr, re.MULTILINE))
    assert "fastrpc.transports.stdio" in names
    assert sorted(names & {*SMALL, *STANDARD}) == []


def test_the_list_of_2026_07_28_imports_nothing_that_only_calls_need(tmp_path: Any) -> None:
    with server(tmp_path) as process:
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": STATELESS_META}}
        process.send(encode(listing))
        process.close_stdin()
        assert process.wait() == 0
        found = imported(process.stderr)
    assert sorted(found & {*LIBRARIES, *STANDARD}) == []


def test_a_client_that_waits_brings_in_the_event_loop_and_no_library(tmp_path: Any) -> None:
    with server(tmp_path) as process:
        process.send(b"".join(map(encode, HANDSHAKE)))
        process.answers(2)
        deadline = time.monotonic() + 20
        while "asyncio" not in imported(process.stderr):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(2.5)  # what is looked at from time to time has been looked at
        found = imported(process.stderr)
    assert sorted(found & set(LIBRARIES)) == []


def test_the_state_is_not_touched_before_a_call_needs_it(tmp_path: Any) -> None:
    with server(tmp_path) as process:
        process.send(b"".join(map(encode, HANDSHAKE)))
        process.answers(2)
        assert not (tmp_path / "state").exists() or not any((tmp_path / "state").iterdir())


def test_the_way_in_which_this_looks_sees_an_import(tmp_path: Any) -> None:
    with server(tmp_path) as process:
        process.send(b"".join(map(encode, HANDSHAKE)))
        process.answers(2)
        process.call("TaskManager", action="create", text="One", query="")
        deadline = time.monotonic() + 10
        while "sqlite3" not in imported(process.stderr):
            assert time.monotonic() < deadline
            time.sleep(0.05)
