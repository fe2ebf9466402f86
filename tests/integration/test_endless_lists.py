"""A server whose lists have no end: what has come is used, by a client, a proxy and a gateway."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.in_memory import SECONDS, with_client

from fastrpc import Client, Server
from fastrpc.client.http.events import Events
from fastrpc.client.http.session import LONGEST_PAUSE, SHORTEST_PAUSE, SessionCarrier

# Lists the same page, with the same cursor, again and again; notes how often it was asked.
REPEATING = r"""
import json, sys
TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None:
        continue
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "repeating", "version": "1"}}
    elif method == "tools/list":
        with open(sys.argv[1], "a") as note:
            note.write("asked\n")
        result = {"tools": [TOOL], "nextCursor": "again"}
    else:
        error = {"code": -32601, "message": "no"}
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"""


@pytest.fixture
def repeating(tmp_path: Path) -> list[str]:
    program = tmp_path / "repeating.py"
    program.write_text(REPEATING)
    return [sys.executable, str(program), str(tmp_path / "asked")]


def asked(repeating: list[str]) -> int:
    return len(Path(repeating[-1]).read_text().splitlines())


def test_a_client_has_the_tools_of_a_list_whose_cursor_repeats(repeating: list[str]) -> None:
    async def use() -> Any:
        async with Client(repeating) as client:
            return await client.list_tools()

    tools = asyncio.run(asyncio.wait_for(use(), SECONDS))
    assert {tool.name for tool in tools} == {"echo"}
    assert asked(repeating) == 2


def test_a_proxy_has_them_too(repeating: list[str]) -> None:
    tools = with_client(Server.proxy(repeating), lambda client: client.request("tools/list", {}))["tools"]
    assert [tool["name"] for tool in tools] == ["echo"]
    assert asked(repeating) == 2


def test_a_gateway_has_them_too(repeating: list[str], tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": repeating[0], "args": repeating[1:]}}}))

    async def use() -> Any:
        async with Client([sys.executable, "-m", "fastrpc", "gateway", str(file)]) as client:
            return await client.list_tools()

    assert [tool.name for tool in asyncio.run(asyncio.wait_for(use(), SECONDS))] == ["a_echo"]
    assert asked(repeating) == 2


@pytest.mark.parametrize(
    ("retry", "pause"), [(b"0", SHORTEST_PAUSE), (b"1000", 1.0), (b"999999999", LONGEST_PAUSE)]
)
def test_a_stream_is_not_reopened_as_often_as_a_server_likes(retry: bytes, pause: float) -> None:
    events = Events(1000)
    list(events.feed(b"retry: " + retry + b"\nid: 1\ndata: x\n\n"))
    assert SessionCarrier._pause(events, 0) == pause
    assert SessionCarrier._pause(events, 1) >= pause
