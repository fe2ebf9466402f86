"""Budgets over real processes: workers, clients in parallel, kill -9, restarts, and `fastrpc budgets`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.guarded_folder import fastrpc, variables
from support.http_server import FASTRPC, HttpProcess
from support.waiting import eventually

from fastrpc import Client
from fastrpc.client.sync import SyncClient
from fastrpc.errors import RemoteError

TOOLS = """
import os, time
from fastrpc import Context, Server

app = Server("shop")

@app.tool(effect="read")
def search(text: str) -> str:
    with open("ran", "ab") as file:
        file.write(b"x")
    return text

@app.tool(effect="read", costs={"tokens": 0})
async def ask(ctx: Context, tokens: int) -> str:
    import asyncio
    ctx.spend(tokens, "tokens")
    await asyncio.sleep(0.01)
    with open("asked", "ab") as file:
        file.write(b"x")
    return "answered"

@app.tool(effect="read")
async def sleep() -> str:
    import asyncio
    with open("sleeps", "ab") as file:
        file.write(b"x")
    await asyncio.sleep(600)
    return "done"
"""
# Periods are months where a test goes beyond one call: a day ends too often between two of them.
GUARD = '[expose]\ntools = ["*"]\nbudget = ["100 calls/month", "1 hour/month"]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "guard.toml").write_text(GUARD)
    return tmp_path


def over_stdio(folder: Path) -> SyncClient:
    command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
    return Client.sync(command, cwd=str(folder), env=variables(folder))


def over_http(folder: Path, *options: str) -> HttpProcess:
    command = (
        "serve",
        "shop.py:app",
        "--guard",
        "guard.toml",
        "--http",
        "127.0.0.1:0",
        "--no-auth",
        *options,
    )
    return HttpProcess(*command, folder=folder, environment=variables(folder))


def outcome(client: SyncClient, tool: str = "search", **arguments: Any) -> Any:
    try:
        return client.call_tool(tool, arguments).text
    except RemoteError as error:
        return error.code


def used(folder: Path) -> dict[str, Any]:
    found = json.loads(fastrpc(folder, "budgets", "list", "--json"))
    return {each["budget"]: each["used"] for each in found}


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_of_many_calls_at_once_over_four_workers_as_many_run_as_the_budget_has(folder: Path) -> None:
    async def call(client: Any) -> Any:
        try:
            return (await client.call_tool("search", {"text": "x"})).text
        except RemoteError as error:
            return error.code

    async def run(port: int) -> list[Any]:
        clients = [Client(f"http://127.0.0.1:{port}/mcp") for _ in range(8)]
        for client in clients:
            await client.__aenter__()
        try:
            return await asyncio.gather(*(call(clients[at % 8]) for at in range(256)))
        finally:
            for client in clients:
                await client.__aexit__(None, None, None)

    with over_http(folder, "--workers", "4") as server:
        found = asyncio.run(asyncio.wait_for(run(server.port), 100))
    assert Counter(found) == {"x": 100, 402: 156}
    assert size(folder / "ran") == 100
    assert used(folder)["100 calls/month"] == 100


def test_a_budget_of_tokens_that_calls_spend_runs_out_for_all_workers_together(folder: Path) -> None:
    (folder / "guard.toml").write_text('[expose]\ntools = ["*"]\nbudget = ["1000 tokens/month"]\n')

    async def call(client: Any) -> Any:
        try:
            return (await client.call_tool("ask", {"tokens": 50})).text
        except RemoteError as error:
            return error.code

    async def run(port: int) -> list[Any]:
        clients = [Client(f"http://127.0.0.1:{port}/mcp") for _ in range(4)]
        for client in clients:
            await client.__aenter__()
        try:
            first = [await call(client) for client in clients for _ in range(2)]
            # What a call has reserved comes back with its record, behind its answer.
            await asyncio.to_thread(eventually, lambda: used(folder)["1000 tokens/month"] == 8 * 50)
            return first + await asyncio.gather(*(call(clients[at % 4]) for at in range(64)))
        finally:
            for client in clients:
                await client.__aexit__(None, None, None)

    with over_http(folder, "--workers", "2") as server:
        found = asyncio.run(asyncio.wait_for(run(server.port), 100))
        server.stop()  # with it the last records have come
    assert set(found) == {"answered", 402}
    ran = size(folder / "asked")
    assert found.count("answered") == ran
    assert used(folder)["1000 tokens/month"] == ran * 50, "each that has run, and no other"
    assert 14 <= ran <= 30, "a call counts twice until it has ended; each worker learns by one"
    with over_stdio(folder) as client:
        assert outcome(client, "search", text="x") == "x", "what costs nothing is served"


def test_two_servers_on_one_host_count_together(folder: Path) -> None:
    (folder / "guard.toml").write_text('[expose]\ntools = ["*"]\nbudget = ["3 calls/month"]\n')
    with over_stdio(folder) as one, over_stdio(folder) as other:
        found = [outcome(client, text="x") for client in (one, other, one, other)]
    assert found == ["x", "x", "x", 402]


def test_after_kill_9_the_calls_are_counted_and_the_estimates_have_come_back(folder: Path) -> None:
    with over_http(folder) as server:
        with Client.sync(f"http://127.0.0.1:{server.port}/mcp") as client:
            assert [outcome(client, text="x") for _ in range(3)] == ["x"] * 3
        sleeper = subprocess.Popen(
            [*FASTRPC, "call", f"http://127.0.0.1:{server.port}/mcp", "sleep"],
            cwd=folder,
            env=variables(folder),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(lambda: size(folder / "sleeps") == 1)
        eventually(lambda: used(folder)["1 hour/month"] > 0)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        sleeper.kill()
        sleeper.wait()
    before = used(folder)
    assert before["100 calls/month"] == 4
    assert before["1 hour/month"] * 3600 >= 0.99  # what was reckoned for the call that was running
    with over_http(folder) as server, Client.sync(f"http://127.0.0.1:{server.port}/mcp") as client:
        assert outcome(client, text="x") == "x"
        eventually(lambda: used(folder)["1 hour/month"] * 3600 < 0.99)
        assert used(folder)["100 calls/month"] == 5


def test_a_file_of_budgets_that_is_damaged_ends_the_start_and_is_left_as_it_is(folder: Path) -> None:
    (folder / "state").mkdir(mode=0o700)
    path = folder / "state" / "budgets"
    path.write_bytes(b"something else")
    path.chmod(0o600)
    said = fastrpc(folder, "serve", "shop.py:app", "--guard", "guard.toml", code=2)
    assert "budgets: not a budgets file; it is not changed" in said
    assert path.read_bytes() == b"something else"


def test_budgets_that_come_with_a_changed_file_count_from_then_on(folder: Path) -> None:
    (folder / "guard.toml").write_text('[expose]\ntools = ["*"]\n')
    with over_stdio(folder) as client:
        assert outcome(client, text="x") == "x"
        assert json.loads(fastrpc(folder, "budgets", "list", "--json")) == []
        (folder / "guard.toml").write_text('[expose]\ntools = ["*"]\nbudget = ["2 calls/month"]\n')
        eventually(lambda: outcome(client, text="x") == 402)
    assert used(folder) == {"2 calls/month": 2}


def test_the_command_shows_what_is_used_and_sets_it_to_zero(folder: Path) -> None:
    (folder / "guard.toml").write_text(
        '[expose]\ntools = ["*"]\nbudget = ["2 calls/day"]\ntool_budgets = { search = ["5 calls/month"] }\n'
    )
    assert "nothing is counted for ada" in fastrpc(folder, "budgets", "reset", "ada", code=2)
    with over_stdio(folder) as client:
        assert [outcome(client, text="x") for _ in range(3)] == ["x", "x", 402]
        head, *rows = fastrpc(folder, "budgets", "list").splitlines()
        assert head.split() == [
            "caller",
            "tool",
            "budget",
            "used",
            "limit",
            "percent",
            "resets",
            "at",
            "counted",
        ]
        caller = rows[0].split()[0]
        assert caller.startswith("os:")
        assert [row.split()[1:7] for row in rows] == [
            ["-", "2", "calls/day", "2", "2", "100"],
            ["search", "5", "calls/month", "2", "5", "40"],
        ]
        said = fastrpc(folder, "budgets", "reset", caller, "--tool", "search")
        assert f"1 budget of {caller} set to zero" in said
        assert used(folder) == {"2 calls/day": 2, "5 calls/month": 0}
        fastrpc(folder, "budgets", "reset", caller)
        assert outcome(client, text="x") == "x"
    assert json.loads(fastrpc(folder, "budgets", "list", "eve", "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lst"], "budgets: unknown action 'lst'; did you mean 'list'?"),
        (["reset"], "budgets reset: name the caller (see 'fastrpc budgets list')"),
    ],
)
def test_a_command_that_is_wrong_says_what_is_missing(folder: Path, arguments: list[str], said: str) -> None:
    assert said in fastrpc(folder, "budgets", *arguments, code=2)


def test_guard_check_shows_the_budgets_of_each_class(folder: Path) -> None:
    (folder / "guard.toml").write_text(
        '[expose]\ntools = ["*"]\nbudget = ["5 calls/day"]\n[classes.agent]\n'
        'tool_budgets = { "sea*" = ["1 hour/month"] }\n'
    )
    command = ("guard", "check", "guard.toml", "shop.py:app")
    table = fastrpc(folder, *command)
    assert "budgets of local: 5 calls/day\n" in table
    assert "budgets of agent: 5 calls/day, 1 hour/month of search\n" in table
    found = json.loads(fastrpc(folder, *command, "--json"))["budgets"]
    assert found["agent"][1] == {"tool": "search", "budget": "1 hour/month"}
