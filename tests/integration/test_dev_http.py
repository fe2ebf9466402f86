"""`fastrpc dev --http`: sessions over HTTP that outlive reloads, and the view of calls on a terminal."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from support.child_processes import none_left
from support.command_line import assert_mistake, run
from support.http_server import HttpProcess
from support.ports import free_port
from support.rewriting import rewrite
from support.terminal import on_terminal
from support.waiting import eventually

from fastrpc import Client, RemoteError

SERVER = """
from fastrpc import Server

app = Server("dev")
calls = 0

@app.tool
def say(word: str) -> str:
    "Say it."
    global calls
    calls += 1
    return f"VERSION {word} {calls}"

@app.tool
def fail(reason: str) -> str:
    "Fail."
    raise ValueError(reason)
"""


def write(folder: Path, version: str) -> str:
    rewrite(folder / "app.py", SERVER.replace("VERSION", version))
    return str(folder / "app.py")


def said(client: Any) -> str:
    """Call it, again if it was called while the server was replaced."""
    try:
        text: str = client.call_tool("say", {"word": "b"}).text
    except RemoteError:
        return ""
    return text


def test_a_session_over_http_outlives_reloads(tmp_path: Path) -> None:
    pytest.importorskip("httpx", reason="the client over HTTP stands on it: pip install httpx")
    mark = str(tmp_path)
    environment = {**os.environ, "FASTRPC_TEST_MARK": mark}
    with HttpProcess(
        "dev", "--http", "127.0.0.1:0", write(tmp_path, "one"), environment=environment
    ) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        with Client.sync(url, version="2025-11-25") as client:
            assert client.call_tool("say", {"word": "a"}).text == "one a 1"
            assert client.call_tool("say", {"word": "a"}).text == "one a 2"
            write(tmp_path, "two")
            eventually(lambda: said(client).startswith("two b"))
        assert '→ 2 tools/call say {"word": "a"}' in re.sub(r"→ \d+ tools", "→ 2 tools", server.stderr)
        assert "-- app.py changed; reloaded in" in server.stderr
        server.kill()
        assert server.wait() == 0
    none_left(mark)


def test_only_loopback_is_served_without_a_token(place: Any) -> None:
    write(place, "one")
    assert_mistake(
        run(place, "dev", "--http", "0.0.0.0:0", "app.py"),
        "FASTRPC_TOKEN in the environment dev serves loopback addresses only",
    )
    assert_mistake(run(place, "dev", "--plain", "app.py"), "--plain is for HTTP")
    assert_mistake(run(place, "dev", "--http", "8000", "app.py"), "did you mean 127.0.0.1:8000?")


def test_a_terminal_shows_calls_as_they_come_and_makes_one_again(place: Any) -> None:
    pytest.importorskip("textual", reason="the view is drawn by it: pip install textual")
    pytest.importorskip("httpx", reason="the client over HTTP stands on it: pip install httpx")
    write(place, "one")
    port = free_port()
    address = f"127.0.0.1:{port}"
    with on_terminal(place, "dev", "--http", address, "app.py", shows_output=True, columns=120) as there:
        there.until(f"serving at http://{address}/mcp")
        with Client.sync(f"http://{address}/mcp") as client:
            client.call_tool("fail", {"reason": "it\x1b[2J broke"})
            shown = there.until("tool_error")
            row = shown[shown.rindex("fail") :]
            assert "\x1b[2J" not in row
            client.call_tool("say", {"word": "a"})
            there.until('"one a 1"')
            there.type("a")
            there.until('"one a 2"')
            write(place, "two")
            there.until("app.py changed; reloaded in")
            there.type("a")
            there.until('"two a 1"')
        there.type("q")
        there.rest()
        assert there.end() == (0, "")


def test_a_port_that_is_in_use_ends_the_view_with_one_line(place: Any) -> None:
    pytest.importorskip("textual", reason="the view is drawn by it: pip install textual")
    write(place, "one")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with on_terminal(place, "dev", "--http", address, "app.py", shows_output=True) as there:
            shown = there.rest()
            assert there.end()[0] == 2
    assert re.search(r"fastrpc: .*in use", shown)
