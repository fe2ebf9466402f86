"""Upstream servers with a broken list, or a broken entry in one: it is left out, the rest is served; and with
lists that change while they are read for the first time."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from fastrpc import Client, Server
from fastrpc.gateway import gateway_of

SECONDS = 60.0
SERVER = """
import json, sys
BROKEN = json.load(open(sys.argv[1]))
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
        "serverInfo": {"name": "s", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "good", "inputSchema": {"type": "object"}}]},
    "resources/list": {"resources": [{"uri": "a://b", "name": "b"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "a://c/{d}", "name": "c"}]},
    "prompts/list": {"prompts": [{"name": "p"}]},
    "tools/call": {"content": [{"type": "text", "text": "good"}]},
    "resources/read": {"contents": [{"uri": "a://b", "text": "good"}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "good"}}]},
    "ping": {},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in BROKEN:
        answer.update(BROKEN[message["method"]])
    elif message["method"] in RESULTS:
        answer["result"] = RESULTS[message["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"""
# Adds an entry to each list behind its first answer, and says so before that answer leaves.
CHANGING = """
import json, sys
LISTS = {"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources"}
asked = []
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method = message["method"]
    if method == "initialize":
        say(id=message["id"], result={
            "protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
            "capabilities": {each: {"listChanged": True} for each in LISTS.values()}})
    elif method in LISTS:
        asked.append(method)
        kind, count = LISTS[method], asked.count(method)
        if count == 1:
            say(method=f"notifications/{kind}/list_changed")
        entries = [{"name": f"n{at}", "uri": f"a://n{at}", "inputSchema": {"type": "object"}}
                   for at in range(count)]
        say(id=message["id"], result={kind: entries})
    elif "id" in message:
        say(id=message["id"], error={"code": -32601, "message": "no"})
"""
INTERNAL = {"error": {"code": -32603, "message": "broken"}}
GOOD_TOOL = {"name": "good", "inputSchema": {"type": "object"}}
LISTS = ("resources/list", "resources/templates/list", "prompts/list")
ENTRIES = [
    {"tools/list": {"result": {"tools": [GOOD_TOOL, *wrong]}}}
    for wrong in ([7], [{}], [{"name": 7}], [{"name": "a"}], [{"name": "a", "inputSchema": 7}], [None])
]
BROKEN = [
    *(
        {each: answer}
        for each in LISTS
        for answer in (INTERNAL, {"result": {}}, {"result": None}, {"result": 7})
    ),
    {"resources/list": {"result": {"resources": [{"name": "a"}, 7, {"uri": None}, {"uri": "a://x"}]}}},
    {
        "resources/templates/list": {
            "result": {"resourceTemplates": [{"uriTemplate": 7}, {"uriTemplate": "{"}]}
        }
    },
    {"prompts/list": {"result": {"prompts": [{"title": "a"}, [], {"name": "p", "arguments": 7}]}}},
    {"tools/list": {"result": {"tools": [GOOD_TOOL], "nextCursor": 7}}},
    dict.fromkeys(LISTS, INTERNAL),
    *ENTRIES,
]


@pytest.mark.parametrize("kind", ["proxy", "gateway"])
@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: json.dumps(broken)[:60])
def test_what_is_broken_is_left_out_and_the_rest_is_served(
    broken: dict[str, object], kind: str, tmp_path: Path
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    command = [sys.executable, str(tmp_path / "server.py"), str(tmp_path / "broken.json")]
    prefix = "" if kind == "proxy" else "s_"
    if kind == "proxy":
        app = Server.proxy(command)
    else:
        app = gateway_of({"s": {"command": command[0], "args": command[1:]}})[0]

    async def run() -> None:
        async with Client(app) as client:
            names = [tool.name for tool in await client.list_tools()]
            assert [name for name in names if "status" not in name] == [f"{prefix}good"]
            if not any(name.startswith("resources/") for name in broken):
                assert [each.uri for each in await client.list_resources()][:1] == ["a://b"]
            assert (await client.call_tool(f"{prefix}good")).text == "good"
            if "resources/list" not in broken:
                assert (await client.read_resource("a://b")).text == "good"
            if "prompts/list" not in broken or "arguments" in str(broken):
                assert (await client.get_prompt(f"{prefix}p")).text == "good"

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@pytest.mark.parametrize("kind", ["proxy", "gateway"])
def test_a_list_that_changes_while_it_is_read_first_is_read_again(kind: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(CHANGING)
    command = [sys.executable, str(tmp_path / "server.py")]
    if kind == "proxy":
        app = Server.proxy(command)
    else:
        app = gateway_of({"s": {"command": command[0], "args": command[1:]}})[0]
    prefix = "" if kind == "proxy" else "s_"

    async def run() -> None:
        async with Client(app) as client:
            while f"{prefix}n1" not in [each.name for each in await client.list_tools()]:
                await asyncio.sleep(0.01)
            while f"{prefix}n1" not in [each.name for each in await client.list_prompts()]:
                await asyncio.sleep(0.01)
            while "a://n1" not in [each.uri for each in await client.list_resources()]:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


HALF = "a\ud83d"
ODD = {
    "tools/list": {
        "tools": [
            GOOD_TOOL,
            {**GOOD_TOOL, "name": "half", "description": HALF},
            {**GOOD_TOOL, "name": "number", "title": float("nan")},
            {"name": "schema", "inputSchema": {"type": "object", "properties": 7}},
            {"name": "required", "inputSchema": {"type": "object", "required": "a"}},
            {**GOOD_TOOL, "name": "odd", "description": 7, "annotations": "x", "icons": [7], "_meta": []},
        ]
    },
    "resources/list": {
        "resources": [
            {"uri": "a://b", "name": "b", "size": "big", "annotations": 7},
            {"uri": "a://half", "name": HALF},
            {"uri": "a://odd", "name": 7},
        ]
    },
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": "a://c/{d}", "name": "c", "title": 7}]
    },
    "prompts/list": {
        "prompts": [{"name": "p", "arguments": [7]}, {"name": "q", "arguments": [{"name": HALF}]}]
    },
}


@pytest.mark.parametrize("kind", ["client", "proxy", "gateway"])
def test_an_odd_entry_costs_no_other_and_no_client_its_list(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "broken.json").write_text(json.dumps({key: {"result": each} for key, each in ODD.items()}))
    command = [sys.executable, str(tmp_path / "server.py"), str(tmp_path / "broken.json")]
    target = {
        "client": lambda: command,
        "proxy": lambda: Server.proxy(command),
        "gateway": lambda: gateway_of({"s": {"command": command[0], "args": command[1:]}})[0],
    }[kind]()
    prefix = "s_" if kind == "gateway" else ""

    async def run() -> None:
        async with Client(target, timeout_seconds=0) as client:
            tools = await client.list_tools()
            assert [each["name"] for each in tools] == [f"{prefix}good", f"{prefix}odd"]
            assert set(tools[1]) == {"name", "inputSchema"}
            resources = await client.list_resources()
            assert resources[0] == {"uri": "a://b", "name": "b"}
            assert "a://half" not in [each["uri"] for each in resources]
            assert await client.list_resource_templates() == [{"uriTemplate": "a://c/{d}", "name": "c"}]
            assert await client.list_prompts() == [{"name": f"{prefix}p"}]
            assert (await client.call_tool(f"{prefix}good")).text == "good"
            assert (await client.read_resource("a://b")).text == "good"
            assert (await client.get_prompt(f"{prefix}p")).text == "good"

    asyncio.run(asyncio.wait_for(run(), SECONDS))
    assert "tools/list: 2 of 6 entries are not JSON and are left out" in caplog.text
    assert "members of a wrong type are left out: description, annotations, icons, _meta" in caplog.text
