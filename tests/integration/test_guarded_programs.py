"""`GuardedServer`: programs of one's own behind the guard: over stdio, over HTTP, under an ASGI server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.guarded_folder import fastrpc, records, variables
from support.http_server import HttpProcess
from support.rewriting import rewrite
from support.waiting import eventually

from fastrpc import Client
from fastrpc.client import SyncClient
from fastrpc.errors import HttpStatusError, RemoteError

PROGRAM = """
import sys

from fastrpc import Server
from fastrpc.guard import GuardedServer

app = Server("shop")


@app.tool(effect="write")
def order(item: str, count: int = 1) -> str:
    return f"ordered {count} {item}"


@app.tool(effect="write")
def wipe(place: str) -> str:
    return f"wiped {place}"


guarded = GuardedServer(app, "guard.toml")
if __name__ == "__main__":
    if sys.argv[1:]:
        guarded.run(http="127.0.0.1:0", workers=int(sys.argv[1]), token=sys.argv[2:] or None)
    guarded.run()
"""
GUARD = """
[expose]
tools = ["order"]

[[rules]]
id = "small-orders"
tools = ["order"]
when = "args.count > 10"
then = "deny"
"""
OTHER_TOKEN = "a-token-that-the-program-gives"
HOW = {
    "run": ([sys.executable, "shop.py", "2"], r"serving at (\S+)/mcp"),
    "asgi": (
        [sys.executable, "-m", "uvicorn", "web:asgi", "--port", "0"],
        r"running on (http://127.0.0.1:\d+)",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM)
    (tmp_path / "web.py").write_text("from shop import guarded\n\nasgi = guarded.asgi()\n")
    (tmp_path / "guard.toml").write_text(GUARD)
    return tmp_path


def outcome(client: SyncClient, tool: str = "order", **arguments: Any) -> Any:
    try:
        return client.call_tool(tool, arguments).text
    except RemoteError as error:
        return error.code
    except HttpStatusError as error:
        return error.status


def test_over_stdio_a_program_is_guarded_and_its_calls_are_recorded(folder: Path) -> None:
    command = [sys.executable, "shop.py"]
    with Client.sync(command, cwd=str(folder), env=variables(folder)) as client:
        assert [tool["name"] for tool in client.list_tools()] == ["order"]
        assert outcome(client, item="pen", count=3) == "ordered 3 pen"
        assert outcome(client, item="pen", count=11) == 403
        assert outcome(client, "wipe", place="x") == -32602
    assert sorted(each["outcome"] for each in records(folder)) == ["ok", "refused", "unknown"]
    assert "verified: 1 chains" in fastrpc(folder, "audit", "verify")


@pytest.mark.parametrize("how", HOW)
def test_over_http_a_program_has_the_callers_of_the_guard_and_follows_its_file(
    folder: Path, how: str
) -> None:
    command, ready = HOW[how]
    token = fastrpc(folder, "token", "create", "--owner", "ada").strip()
    with HttpProcess(command=command, folder=folder, environment=variables(folder), ready=ready) as server:
        url = f"{server.place}/mcp"
        with Client.sync(url, token=token) as ada:
            assert [tool["name"] for tool in ada.list_tools()] == ["order"]
            assert outcome(ada, item="pen", count=3) == "ordered 3 pen"
            assert outcome(ada, item="pen", count=11) == 403
            rewrite(folder / "guard.toml", GUARD.replace("> 10", "> 20"))
            eventually(lambda: outcome(ada, item="pen", count=11) == "ordered 11 pen")
            fastrpc(folder, "token", "revoke", token.split("_")[1])
            eventually(lambda: outcome(ada, item="pen") == 401)
        with pytest.raises(HttpStatusError) as refused, Client.sync(url):
            pass
        assert refused.value.status == 401
        server.stop()
    assert {each["actor"].partition("#")[0] for each in records(folder)} == {"ada"}
    assert "verified" in fastrpc(folder, "audit", "verify")


def test_tokens_of_the_program_are_valid_besides(folder: Path) -> None:
    token = fastrpc(folder, "token", "create", "--owner", "ada").strip()
    command, ready = HOW["run"]
    with HttpProcess(
        OTHER_TOKEN, command=command, folder=folder, environment=variables(folder), ready=ready
    ) as server:
        for each in (token, OTHER_TOKEN):
            with Client.sync(f"{server.place}/mcp", token=each) as client:
                assert outcome(client, item="pen") == "ordered 1 pen"
                assert outcome(client, item="pen", count=11) == 403
        server.stop()


def test_a_program_whose_guard_has_a_mistake_ends_at_once_and_names_the_line(folder: Path) -> None:
    (folder / "guard.toml").write_text(GUARD.replace("args.count", "args.cont"))
    done = subprocess.run(
        [sys.executable, "shop.py"],
        cwd=folder,
        env=variables(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert "line 8: rules[0].when: column 6: args.cont: the tool order has no such argument" in done.stderr
