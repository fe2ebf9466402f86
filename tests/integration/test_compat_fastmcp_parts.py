"""What is FastMCP's own under the swap, with FastMCP itself: user interfaces, code mode, logins.

FastMCP is in an environment of its own (`make fastmcp`), where it would be beside a server that is swapped.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.login import log_in
from support.ports import free_port, is_open
from support.skips import not_prepared
from support.waiting import eventually

import fastrpc

SECONDS = 240
pytestmark = pytest.mark.timeout(300)  # FastMCP imports for seconds, twice in each comparison
REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(fastrpc.__file__)))
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SERVERS = os.path.join(TESTS, "fixtures", "compat", "fastmcp_parts")
PYTHON = os.path.join(os.path.dirname(TESTS), ".cache", "fastmcp", "bin", "python")
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": REPOSITORY, "FASTMCP_CHECK_FOR_UPDATES": "off"}


@pytest.fixture(autouse=True)
def need_fastmcp() -> None:
    if not os.path.exists(PYTHON):
        pytest.skip(not_prepared("FastMCP"))


def compared(server: str, calls: list[dict[str, Any]], folder: Any) -> dict[str, Any]:
    """Run a server as it is and on fastrpc; return what `fastrpc compare` says."""
    file = folder / "calls.json"
    file.write_text(json.dumps(calls))
    command = [PYTHON, "-m", "fastrpc", "compare", "--json", "--calls", str(file), "--", PYTHON]
    done = subprocess.run(
        [*command, os.path.join(SERVERS, server)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=folder,
        env={**ENVIRONMENT, "HOME": str(folder)},
    )
    assert done.stdout, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def unwanted(found: dict[str, Any]) -> list[Any]:
    return [each for each in found["differences"] if not each.get("reason")]


@pytest.mark.long
def test_user_interfaces_are_described_and_answered_like_the_original(tmp_path) -> None:
    calls = [
        {"tool": "chart", "arguments": {"title": "North"}},
        {"tool": "map_of", "arguments": {"place": "Rome"}},
        {"tool": "team_crm_manager", "arguments": {}},
        {"tool": "team_crm_save", "arguments": {"name": "Ann"}},
        {"tool": "request_approval", "arguments": {"summary": "Deploy"}},
        {"tool": "choose", "arguments": {"prompt": "Which?", "options": ["a", "b"]}},
        {"tool": "collect_order", "arguments": {"prompt": "What?"}},
        {"tool": "file_manager", "arguments": {}},
        {"tool": "plain", "arguments": {"a": 1}},
    ]
    found = compared("interfaces.py", calls, tmp_path)
    assert unwanted(found) == []
    swapped = found["swapped"]
    assert {call["tool"] for call in calls} <= {tool["name"] for tool in swapped["tools"]}


def test_code_mode_finds_and_calls_tools_like_the_original(tmp_path) -> None:
    calls = [
        {"tool": "search", "arguments": {"query": "numbers"}},
        {"tool": "get_schema", "arguments": {"tools": ["add"]}},
        {"tool": "execute", "arguments": {"code": "return await call_tool('add', {'a': 1, 'b': 2})"}},
        {"tool": "execute", "arguments": {"code": "return await call_tool('none', {})"}},
    ]
    found = compared("code_mode.py", calls, tmp_path)
    assert unwanted(found) == []


# --- logins ------------------------------------------------------------------------------------------------


@pytest.fixture(params=["original", "swapped"])
def address(request: pytest.FixtureRequest, tmp_path) -> Iterator[str]:
    """Serve logins.py, as it is or swapped."""
    port = free_port()
    command = [PYTHON, os.path.join(SERVERS, "logins.py"), str(port)]
    if request.param == "swapped":
        command = [PYTHON, "-m", "fastrpc", "swap", "--run", "--", *command]
    with (
        open(tmp_path / "log", "w", encoding="utf-8") as log,
        subprocess.Popen(
            command, env={**ENVIRONMENT, "HOME": str(tmp_path)}, stdout=log, stderr=log
        ) as server,
    ):
        try:
            eventually(lambda: server.poll() is not None or is_open(port), SECONDS)
            assert server.poll() is None, (tmp_path / "log").read_text()[-2000:]
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


@pytest.mark.long
def test_a_login_of_fastmcp_issues_the_tokens_that_the_server_wants(address: str) -> None:
    with httpx.Client(base_url=address, timeout=SECONDS) as http:
        refused = http.post("/mcp", json={})
        assert refused.status_code == 401
        where = f"{address}/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{where}"' in refused.headers["www-authenticate"]
        resource = http.get(where).json()
        assert resource["resource"] == f"{address}/mcp"
        assert resource["authorization_servers"] == [f"{address}/"]
        assert resource["scopes_supported"] == ["read"]
        token = asyncio.run(logged_in(address))
        assert called(http, token) == ["read"]
        assert http.post("/mcp", json={}, headers={"authorization": "Bearer other"}).status_code == 401


async def logged_in(address: str) -> str:
    async with httpx.AsyncClient(base_url=address, timeout=SECONDS) as http:
        return await log_in(http, scope="read", method="client_secret_post")


def called(http: httpx.Client, token: str) -> Any:
    """Return what the tool `who` says to the owner of a token."""
    with fastrpc.Client.sync(str(http.base_url.copy_with(path="/mcp")), token=token) as client:
        return client.call_tool("who").structured["result"]
