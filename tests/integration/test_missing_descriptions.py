"""A tool without a description is named when serving begins, once, and nothing else changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.http_server import HttpProcess

SERVER = """
from functools import partial

from fastrpc import Server, tool

app = Server("shop")
inner = Server("inner")

@app.tool
def told() -> str:
    'Say it.'
    return "told"

@app.tool(description="Say it, too.")
def described() -> str:
    return "told"

@app.tool
def silent() -> str:
    return "told"

def add(a: int, b: int) -> int:
    return a + b

app.add_tool(tool(partial(add, 1), name="increment"))

@inner.tool
def within() -> str:
    return "told"

app.mount(inner, "inner")
if __name__ == "__main__":
    app.run()
"""
SWAPPED = """
from fastrpc.compat.fastmcp import FastMCP

app = FastMCP("swapped")

@app.tool
def silent() -> str:
    return "told"

if __name__ == "__main__":
    app.run(show_banner=False)
"""
MESSAGES = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
]  # fmt: skip
FASTRPC = [sys.executable, "-m", "fastrpc"]


def served(*command: str) -> list[str]:
    """Have a server list its tools twice; return the lines on standard error."""
    sent = "".join(json.dumps(message) + "\n" for message in MESSAGES)
    done = subprocess.run(command, input=sent, capture_output=True, text=True, timeout=100, check=True)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1, 2]
    return [line for line in done.stderr.splitlines() if not line.startswith("  ")]  # the source


def expected(path: Path) -> list[str]:
    places = (("silent", 18), ("increment", 22), ("inner_within", 27))
    return [
        f"{path}:{line}: UserWarning: the tool {name!r} has no description, by which a model chooses it: "
        "give it a docstring or description="
        for name, line in places
    ]


@pytest.fixture(autouse=True)
def warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show what the suite switches off."""
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)


@pytest.fixture
def server(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(SERVER)
    return path


def test_run_and_serve_name_each_tool_without_a_description_once(server: Path) -> None:
    assert served(sys.executable, str(server)) == expected(server)
    names = ("silent", "increment", "inner_within")
    lines = served(*FASTRPC, "serve", str(server))
    assert [line.partition("tool '")[2].partition("'")[0] for line in lines] == list(names)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_serving_over_http_names_them_once_for_all_workers(server: Path, workers: str) -> None:
    pytest.importorskip("httpx", reason="the client over HTTP stands on it: pip install httpx")
    arguments = ("serve", str(server), "--http", "127.0.0.1:0", "--no-auth", "--workers", workers)
    with HttpProcess(*arguments, environment=dict(os.environ)) as process:
        assert process.stderr.count("has no description") == 3


def test_an_asgi_application_names_them_when_it_is_made(server: Path) -> None:
    code = "import shop; shop.app.asgi(auth=None); shop.app.asgi(auth=None)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=server.parent,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert [line for line in done.stderr.splitlines() if not line.startswith("  ")] == expected(server)


def test_a_swapped_server_and_the_shipped_toolset_are_served_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "swapped.py"
    path.write_text(SWAPPED)
    assert served(sys.executable, str(path)) == []
    assert served(*FASTRPC, "serve", str(path)) == []
    assert served(*FASTRPC, "serve") == []


def test_the_warning_is_one_of_pythons_and_goes_by_its_filters(
    server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "ignore:the tool 'silent'")
    assert served(sys.executable, str(server)) == expected(server)[1:]
