"""Upstream servers that stop answering: what they last had is served, and later changes are followed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from support.waiting import until

from fastrpc import Client, Server
from fastrpc.gateway import gateway_of

SECONDS = 60.0
SHORT = 0.3
"""Seconds for what never comes; what does come has as long as a start."""

# The first call makes it notify of changes, and ignore the requests of lists that follow, or answer them with
# errors after it has notified again; the second adds entries and notifies. Subscriptions to silent resources
# are never answered.
SERVER = r"""
import json, sys

def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def changed(*lists):
    for each in lists:
        say(method=f"notifications/{each}/list_changed")

def entry(name):
    return {"name": name, "uri": f"a://{name}", "inputSchema": {"type": "object"}}

LISTS = {
    "tools/list": ("tools", "tool"), "resources/list": ("resources", "silent", "other"),
    "prompts/list": ("prompts", "p"),
}
ignored = set()
calls = 0
for line in sys.stdin:
    message = json.loads(line)
    method, params = message["method"], message.get("params") or {}
    if "id" not in message:
        continue
    if method in ignored:
        ignored.discard(method)
        if sys.argv[2] == "fails":
            calls = 2
            changed(method.split("/")[0])
            say(id=message["id"], error={"code": -32603, "message": "not now"})
        continue
    if method == "initialize":
        capabilities = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}}
        result = {"protocolVersion": "2025-11-25", "capabilities": capabilities,
                  "serverInfo": {"name": "s", "version": "1"}}
    elif method in LISTS:
        member, *names = LISTS[method]
        result = {member: [entry(each) for each in names + (["new"] if calls > 1 else [])]}
    elif method == "resources/subscribe":
        with open(sys.argv[1], "a") as asked:
            asked.write(params["uri"] + "\n")
        if "silent" in params["uri"]:
            continue
        result = {}
    elif method == "tools/call":
        calls += 1
        if calls == 1:
            ignored.update(LISTS)
        changed("tools", "resources", "prompts")
        result = {"content": []}
    else:
        say(id=message["id"], error={"code": -32601, "message": "no"})
        continue
    say(id=message["id"], result=result)
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "server.py").write_text(SERVER)
    return [sys.executable, str(tmp_path / "server.py"), str(tmp_path / "asked"), "ignores"]


async def names(client: Client) -> set[str]:
    listed: list[Any] = [
        *(tool.name for tool in await client.list_tools()),
        *(resource.uri for resource in await client.list_resources()),
        *(prompt.name for prompt in await client.list_prompts()),
    ]
    return {name for name in listed if "status" not in name}


async def has(client: Client, expected: set[str]) -> None:
    while await names(client) != expected:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", ["proxy", "gateway"])
def test_a_list_that_never_comes_is_given_up_and_later_changes_are_followed(
    kind: str, command: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    if kind == "proxy":
        app, prefix = Server.proxy(command), ""
        upstream: Any = app._upstream
    else:
        app, gateway = gateway_of({"s": {"command": command[0], "args": command[1:]}})
        upstream, prefix = gateway.members["s"].upstream, "s_"
    before = {f"{prefix}tool", "a://silent", "a://other", f"{prefix}p"}
    patient = upstream.features.seconds

    async def run() -> None:
        async with Client(app) as client:
            assert await names(client) == before
            upstream.features.seconds = SHORT
            await client.call_tool(f"{prefix}tool")
            await until(lambda: caplog.text.count("is not answered within 0.3 s") == 3)
            upstream.features.seconds = patient
            assert await names(client) == before
            await client.call_tool(f"{prefix}tool")
            await has(client, {*before, f"{prefix}new", "a://new"})

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_a_change_while_a_list_fails_is_followed(
    command: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    command[-1] = "fails"

    async def run() -> None:
        async with Client(Server.proxy(command)) as client:
            before = await names(client)
            await client.call_tool("tool")
            await has(client, {*before, "new", "a://new"})

    asyncio.run(asyncio.wait_for(run(), SECONDS))
    assert "its tools cannot be listed again: not now" in caplog.text


def test_a_subscription_that_is_not_answered_holds_neither_others_nor_the_next_start(
    command: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    app = Server.proxy(command)
    upstream: Any = app._upstream
    asked = Path(command[2])

    def subscriptions() -> list[str]:
        return sorted(asked.read_text().split()) if asked.exists() else []

    async def run() -> None:
        async with Client(app) as client:
            await client.subscribe("a://silent")
            await until(lambda: subscriptions() == ["a://silent"])
            await client.subscribe("a://other")
            await until(lambda: subscriptions() == ["a://other", "a://silent"])
            os.kill(upstream.pid, signal.SIGKILL)
            await until(lambda: not upstream.is_connected)
            asked.unlink()
            assert not (await client.call_tool("tool")).is_error  # it has started again
            await until(subscriptions)
            await upstream._client.watch({"a://silent/1", "a://silent/2"}, SHORT)
            assert {"a://silent/1", "a://silent/2"} <= {*subscriptions()}

    asyncio.run(asyncio.wait_for(run(), SECONDS))
    assert caplog.text.count("has not answered resources/subscribe within 0.3 s") == 1
